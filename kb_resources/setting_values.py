"""What the text of a variable may be: a reader for each kind, ValueError for what does not fit.

Belongs here: one value. What does not: which variable there is, and its default (`settings`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from kb_resources.language.labels import LABELS

_HOST = re.compile(r"[a-z0-9.-]+(:\d+)?|\[[0-9a-f:]+\](:\d+)?", re.IGNORECASE)
_HEADER_TEXT = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_HEADER = re.compile(r"[A-Za-z0-9_-]+: ?\S.*")


def number(text: str, kind: Callable[[str], Any], low: float, high: float) -> Any:
    """A number within bounds, both included."""
    value = kind(text)
    if not low <= value <= high:
        raise ValueError(f"must lie between {low:g} and {high:g}")
    return value


def path(text: str) -> Path:
    """A path; `~` is the home folder."""
    return Path(text).expanduser()


def one_of(text: str, known: tuple[str, ...]) -> str:
    """One of a few words."""
    if text not in known:
        raise ValueError(f"must be one of {', '.join(known)}")
    return text


def level(text: str) -> str:
    """A log level."""
    return one_of(text.upper(), ("DEBUG", "INFO", "WARNING", "ERROR"))


def log_format(text: str) -> str:
    """`json` or `text`."""
    return one_of(text.lower(), ("json", "text"))


def hosting(text: str) -> str:
    """Whose machine an endpoint is."""
    if text not in ("auto", "self_hosted", "external"):
        raise ValueError("must be one of auto, self_hosted, external")
    return text


def yes(text: str) -> bool:
    """Yes or no."""
    return one_of(text.lower(), ("yes", "no", "true", "false", "1", "0")) in ("yes", "true", "1")


def hosts(text: str) -> tuple[str, ...]:
    """Hosts, as host or host:port."""
    found = tuple(part.lower() for part in text.replace(",", " ").split())
    if any("/" in part or "@" in part for part in found):
        raise ValueError("write hosts as host or host:port, separated by commas")
    return found


def languages(text: str) -> tuple[str, ...]:
    """ISO 639 codes."""
    found = tuple(part for part in text.replace(",", " ").split() if part)
    if not found or any(len(part) not in (2, 3) or not part.isalpha() for part in found):
        raise ValueError("write ISO 639 codes, separated by commas")
    if unknown := sorted(set(found) - LABELS):
        raise ValueError(f"no text is ever told to be in {', '.join(unknown)}")
    return found


def permission_keys(text: str) -> tuple[str, ...]:
    """What a feed calls the three permissions."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    names = sorted(part.partition("=")[0] for part in found)
    keys = {part.partition("=")[2].strip() for part in found}
    if names != ["admin", "create", "read"] or "" in keys or len(keys) != len(found):
        raise ValueError("write read=KEY,create=KEY,admin=KEY with three different keys")
    return found


def model_prices(text: str) -> tuple[str, ...]:
    """Prices as `MODEL=PRICE` or `MODEL=PRICE/PRICE`."""
    found = tuple(part.replace(" ", "") for part in text.split(",") if part.strip())
    for part in found:
        name, _, price = part.rpartition("=")
        numbers = [float(number) for number in price.split("/")]
        if not name or len(numbers) > 2 or not all(0 <= number < 1e6 for number in numbers):
            raise ValueError("write MODEL=PRICE or MODEL=PRICE/PRICE, separated by commas")
    return found


def currency(text: str) -> str:
    """A currency's code."""
    if not text.isascii() or not text.isalpha() or len(text) > 8:
        raise ValueError("write a currency's code, such as EUR")
    return text.upper()


def web_address(text: str) -> str:
    """An http or https address."""
    if not text.startswith(("http://", "https://")):
        raise ValueError("must start with http:// or https://")
    return text


def mail_server(text: str) -> str:
    """A mail server that a password may be sent to."""
    if not text.startswith(("smtp://", "smtp+starttls://", "smtps://")):
        raise ValueError("must start with smtp://, smtp+starttls:// or smtps://")
    if text.startswith("smtp://") and "@" in text:
        raise ValueError("a password needs smtp+starttls:// or smtps://")
    return text


def mailboxes(text: str) -> tuple[str, ...]:
    """Mail addresses."""
    found = tuple(text.replace(",", " ").split())
    if not all("@" in part for part in found):
        raise ValueError("write mail addresses, separated by commas")
    return found


def by_host(text: str) -> tuple[str, ...]:
    """Values for hosts, as `host=value`."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    for part in found:
        host, sign, value = part.partition("=")
        if not (_HOST.fullmatch(host) and sign and _HEADER_TEXT.fullmatch(unquote(value))):
            raise ValueError("write host=value or host:port=value, separated by commas")
    return found


def headers_by_host(text: str) -> tuple[str, ...]:
    """Headers for hosts, as `host=name:value`."""
    found = by_host(text)
    if not all(_HEADER.fullmatch(part.partition("=")[2]) for part in found):
        raise ValueError("write host=name:value, separated by commas")
    return found


def packs(text: str) -> tuple[str, ...]:
    """Names of Tesseract packs."""
    found = tuple(text.replace(",", " ").replace("+", " ").split())
    if not all(part.replace("_", "").isalnum() for part in found):
        raise ValueError("write names of Tesseract packs (deu, srp_latn), separated by commas")
    return found
