"""Whether a scope takes a document in, by its language.

Belongs here: the decision as a pure function. Does not belong here: detecting, or writing down
what was decided.
"""

from __future__ import annotations

from collections.abc import Collection

from kb_resources.language.detection import UNDETERMINED, Detection
from kb_resources.model import DocumentState, Refusal

# Serbian and Croatian stay apart; texts from Bosnia or Montenegro are answered as one of them.
_NAMES = {
    "en": "English", "de": "German", "bg": "Bulgarian", "ru": "Russian", "sr": "Serbian",
    "mk": "Macedonian", "hr": "Croatian", "sl": "Slovenian", "ar": "Arabic", "be": "Belarusian",
    "ca": "Catalan", "cs": "Czech", "da": "Danish", "el": "Greek", "es": "Spanish",
    "et": "Estonian", "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi",
    "hu": "Hungarian", "it": "Italian", "ja": "Japanese", "ko": "Korean", "la": "Latin",
    "lt": "Lithuanian", "lv": "Latvian", "nb": "Norwegian", "nl": "Dutch", "no": "Norwegian",
    "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "sk": "Slovak", "sq": "Albanian",
    "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip


# Scripts that settle a language's absence; Greek letters are symbols in texts of any language.
_SCRIPTS = {
    "Arab": {"ar", "fa", "ur", "ps", "ug", "ku", "sd"}, "Hebr": {"he", "yi"}, "Hang": {"ko"},
    "Hani": {"zh", "ja", "ko"}, "Jpan": {"ja"}, "Kana": {"ja"}, "Thai": {"th"},
    "Deva": {"hi", "mr", "ne", "sa"}, "Armn": {"hy"}, "Geor": {"ka"},
}  # fmt: skip
_SCRIPT_NAMES = {
    "Arab": "Arabic", "Hebr": "Hebrew", "Hang": "Korean", "Hani": "Chinese", "Jpan": "Japanese",
    "Kana": "Japanese", "Thai": "Thai", "Deva": "Devanagari", "Armn": "Armenian",
    "Geor": "Georgian",
}  # fmt: skip


def language_gate(detection: Detection, allowed: Collection[str]) -> Refusal | str:
    """Take a document in or refuse it.

    Args:
        detection: of the visible text only, so that hidden text cannot flip it.
        allowed: language codes that the scope takes.

    Returns:
        The language to write down; "und" is taken in, and the caller warns about it, unless its
        letters are of a script that no allowed language is written in. Otherwise
        the refusal, with the state `language_refused`.
    """
    if detection.label in allowed:
        return detection.label
    if detection.label == UNDETERMINED:
        # Too short to tell its language, but not which letters it is written in.
        if _SCRIPTS.get(detection.script, set(allowed)).intersection(allowed):
            return detection.label
        name = f"{_SCRIPT_NAMES[detection.script]} letters"
    else:
        name = _NAMES.get(detection.label, detection.label)
    return Refusal(
        DocumentState.LANGUAGE_REFUSED,
        f"The text is in {name}, which this scope does not take; allow it with kb scopes set "
        "--language, naming all that the scope takes, and ingest again.",
        {
            "language": detection.label,
            "confidence": round(detection.confidence, 4),
            "script": detection.script,
            "allowed": sorted(allowed),
        },
    )
