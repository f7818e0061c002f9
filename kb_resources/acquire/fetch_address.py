"""Which network addresses a fetch may connect to.

Belongs here: the ranges, and looking through the forms in which IPv6 carries an IPv4 address.
Written out instead of `ipaddress.is_global`, whose answer differs between Python versions. Ranges:
https://www.iana.org/assignments/iana-ipv4-special-registry/ and iana-ipv6-special-registry.
"""

from __future__ import annotations

from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address


class Reach(StrEnum):
    """Who can be behind an address."""

    PUBLIC = "public"
    PRIVATE = "private"
    NEVER = "never"


_PRIVATE_V4 = tuple(
    IPv4Network(text)
    for text in ("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
)
_NEVER_V4 = tuple(
    IPv4Network(text)
    for text in (
        *("0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24"),
        *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    )
)
_PRIVATE_V6 = (IPv6Network("::1/128"), IPv6Network("fc00::/7"))
_PUBLIC_V6 = IPv6Network("2000::/3")
_NEVER_V6 = tuple(
    IPv6Network(text)
    # 2001::/23 holds Teredo, benchmarking, ORCHID; 3fff::/20 is documentation as 2001:db8::/32.
    for text in ("2001::/23", "2001:db8::/32", "3fff::/20")
)
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})


def reach(address: Address) -> Reach:
    """Who an address leads to.

    An IPv6 address that carries an IPv4 address (mapped, NAT64, 6to4, ISATAP) leads where that
    one does; the deprecated IPv4-compatible form and all that is not allotted lead nowhere.
    """
    if isinstance(address, IPv4Address):
        if any(address in network for network in _PRIVATE_V4):
            return Reach.PRIVATE
        never = any(address in network for network in _NEVER_V4)
        return Reach.NEVER if never else Reach.PUBLIC
    if address.scope_id is not None:
        return Reach.NEVER
    number = int(address)
    if address in _MAPPED or address in _NAT64:
        return reach(IPv4Address(number & 0xFFFFFFFF))
    if address in _SIX_TO_FOUR:
        return reach(IPv4Address(number >> 80 & 0xFFFFFFFF))
    if any(address in network for network in _PRIVATE_V6):
        return Reach.PRIVATE
    if address not in _PUBLIC_V6 or any(address in network for network in _NEVER_V6):
        return Reach.NEVER
    if number >> 32 & 0xFFFFFFFF in _ISATAP:
        return reach(IPv4Address(number & 0xFFFFFFFF))
    return Reach.PUBLIC
