"""Control words of RTF that matter to reading it.

Belongs here: the vocabulary alone, from the Rich Text Format Specification 1.9.1
(https://www.loc.gov/preservation/digital/formats/fdd/fdd000473.shtml). What is done with it is
`rtf.py`'s.
"""

from __future__ import annotations

CHARSETS = {
    0: "cp1252",
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    134: "gb2312",
    136: "big5",
    161: "cp1253",
    162: "cp1254",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
    255: "cp850",
}
SKIPPED = frozenset(
    (
        *("colortbl", "pict", "object", "themedata", "colorschememapping", "latentstyles"),
        *("datastore", "listtable", "listoverridetable", "rsidtbl", "generator", "filetbl"),
        *("revtbl", "xmlnstbl", "mmathPr", "pgdsctbl", "nonshppict", "blipuid"),
    )
)
# Destinations whose words a reader of the page does not see, with the way they are hidden.
HIDDEN = {
    "fldinst": "field_code",
    "annotation": "comment",
    "atnauthor": "comment",
    "header": "header_footer",
    "headerl": "header_footer",
    "headerr": "header_footer",
    "headerf": "header_footer",
    "footer": "header_footer",
    "footerl": "header_footer",
    "footerr": "header_footer",
    "footerf": "header_footer",
    "info": "metadata",
    "userprops": "metadata",
}
FACTS = {
    "title": "title",
    "author": "author",
    "subject": "subject",
    "keywords": "keywords",
    "doccomm": "description",
}
SYMBOLS = {
    "tab": " ",
    "line": " ",
    "emdash": "—",
    "endash": "–",
    "bullet": "•",
    "lquote": "‘",
    "rquote": "’",
    "ldblquote": "“",
    "rdblquote": "”",
    "emspace": " ",
    "enspace": " ",
}
ESCAPES = {b"~": " ", b"_": "-", b"-": "", b"\\": "\\", b"{": "{", b"}": "}", b"\n": "\n"}
