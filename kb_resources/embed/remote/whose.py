"""Where an endpoint is, and whose machine that is.

Belongs here: reading it off an address. What does not: what may be sent there
(`answer.disclosure`). Loopback and private addresses (RFC 1918, RFC 4193) are one's own; a name may
point anywhere, today or tomorrow, and is not.
"""

from __future__ import annotations

import ipaddress
from typing import Literal
from urllib.parse import urlsplit

Hosting = Literal["self_hosted", "external"]


def destination_of(url: str) -> str:
    """Scheme, host and port, without user, path or query."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")


def hosting_of(url: str, declared: str = "auto") -> Hosting:
    """Whose machine answers at an address: as declared, or for `auto` by the address."""
    if declared == "self_hosted" or (declared == "auto" and _is_own(url)):
        return "self_hosted"
    return "external"


def _is_own(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_private
