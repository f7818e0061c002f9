"""What a fetch may do: limits, and the hosts an operator has opened.

Belongs here: the rules as data and asking them about one address. Everything is closed by default;
a host is opened by name, for private networks and other ports. Link-local addresses, where clouds
keep their credentials, stay closed for every host; see
https://cheatsheetseries.owasp.org/cheatsheets/Server_Side_Request_Forgery_Prevention_Cheat_Sheet.html.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from kb_resources.acquire.fetch_address import Address, Reach, reach
from kb_resources.acquire.fetch_outcome import FetchProblem, FetchRefusal, FetchStopped
from kb_resources.acquire.fetch_url import DEFAULT_PORTS, Target

USER_AGENT = "dagster-kb/0.1 (knowledge base; conditional GET; honours robots.txt)"


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """Rules of every fetch.

    Attributes:
        allow_hosts: hosts that may lead to private and loopback addresses, as `host` (ports 80 and
            443) or `host:port`; lower case.
        https_only: whether plain http is refused.
        max_bytes: most bytes of an answer, on the wire and after decompression.
        timeout_s: longest time of one fetch, redirects and DNS included.
        connect_s: longest wait for one connection.
        idle_s: longest silence of a server.
        max_redirects: hops followed.
        max_ratio: most times that decompression may enlarge an answer of more than 1 MiB.
        ca_file: PEM file of authorities trusted beside the system's; empty: none.
        user_agent: how we introduce ourselves.
    """

    allow_hosts: frozenset[str] = frozenset()
    https_only: bool = False
    max_bytes: int = 50 * 2**20
    timeout_s: float = 180.0
    connect_s: float = 15.0
    idle_s: float = 60.0
    max_redirects: int = 5
    max_ratio: int = 200
    ca_file: str = ""
    user_agent: str = USER_AGENT

    def check_target(self, target: Target) -> None:
        """Refuse what can be told before DNS is asked.

        Raises:
            FetchStopped: the scheme, port or literal address is not allowed.
        """
        if self.https_only and target.scheme != "https":
            raise _closed(
                FetchProblem.URL,
                f"{target.origin} is plain http, and only https is allowed.",
                "Use https, or unset KB_FETCH_HTTPS_ONLY.",
            )
        if target.port not in DEFAULT_PORTS.values() and not self._opened(target):
            raise _closed(
                FetchProblem.URL,
                f"Port {target.port} is not fetched from.",
                f"If it is yours, add {target.host}:{target.port} to KB_FETCH_ALLOW_HOSTS.",
            )
        is_local = target.host == "localhost" or target.host.endswith(".localhost")
        if is_local and not self._opened(target):
            raise self._private(target, target.host)
        if target.literal is not None:
            self.check_addresses(target, [str(target.literal)])

    def check_addresses(self, target: Target, answers: Sequence[str]) -> list[Address]:
        """The addresses of a host, if every single one may be connected to.

        Raises:
            FetchStopped: one may not, or is none.
        """
        addresses = []
        for answer in answers:
            try:
                address = ip_address(answer)
            except ValueError:
                raise self._private(target, answer) from None
            found = reach(address)
            if found is Reach.NEVER or (found is Reach.PRIVATE and not self._opened(target)):
                raise self._private(target, answer)
            addresses.append(address)
        return addresses

    def _opened(self, target: Target) -> bool:
        names = {target.authority, f"{target.authority}:{target.port}"}
        return not names.isdisjoint(self.allow_hosts)

    def _private(self, target: Target, answer: str) -> FetchStopped:
        where = target.host if answer == target.host else f"{target.host} ({answer})"
        return _closed(
            FetchProblem.ADDRESS,
            f"{where} leads into a private or special network.",
            f"If it is yours, add {target.authority} to KB_FETCH_ALLOW_HOSTS.",
        )


def _closed(problem: FetchProblem, reason: str, next_step: str) -> FetchStopped:
    return FetchStopped(FetchRefusal(problem, reason, next_step))
