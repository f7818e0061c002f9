"""A web server that answers exactly as a test says, however wrong, and counts what it is asked."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest

from kb_resources.acquire import Fetcher, FetchPolicy, FetchProblem, FetchRefusal

PAGE = b"<html><body><h1>Leave</h1><p>Thirty days of paid leave.</p></body></html>"
Answer = Callable[["Asked"], None]


@dataclass
class Asked:
    """One request, and the connection to answer on."""

    path: str
    headers: dict[str, str]
    connection: socket.socket
    stopped: threading.Event

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def reply(self, status: str = "200 OK", body: bytes = b"", **headers: str) -> None:
        fields = {"Content-Length": str(len(body))} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value != "-")
        self.send(f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body)


@dataclass
class Site:
    """A running server.

    `routes` maps paths to answers; `seen` holds the requests, `connections` how many were made.
    """

    listener: socket.socket
    context: ssl.SSLContext | None
    routes: dict[str, Answer] = field(default_factory=dict)
    seen: list[Asked] = field(default_factory=list)
    connections: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{'https' if self.context else 'http'}://{host}:{self.port}{path}"

    def serve(self) -> None:
        while not self.stopped.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with connection:
            try:
                connection.settimeout(10)
                if self.context is not None:
                    with self.context.wrap_socket(connection, server_side=True) as secured:
                        self._answer(secured)
                else:
                    self._answer(connection)
            except OSError:
                return  # the other side went away, which is what many tests are about

    def _answer(self, connection: socket.socket) -> None:
        raw = b""
        while b"\r\n\r\n" not in raw:
            part = connection.recv(65_536)
            if not part:
                return
            raw += part
        head, *lines = raw.decode("latin-1").split("\r\n\r\n")[0].split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        asked = Asked(head.split(" ")[1], headers, connection, self.stopped)
        self.seen.append(asked)
        answer = self.routes.get(asked.path.split("?")[0])
        if answer is None:
            asked.reply("404 Not Found")
        else:
            answer(asked)

    def close(self) -> None:
        self.stopped.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


OpenSite = Callable[..., Site]


@pytest.fixture
def open_site() -> Iterator[OpenSite]:
    made: list[Site] = []

    def make(context: ssl.SSLContext | None = None) -> Site:
        listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        site = Site(listener, context)
        threading.Thread(target=site.serve, daemon=True).start()
        made.append(site)
        return site

    yield make
    for site in made:
        site.close()


@pytest.fixture
def site(open_site: OpenSite) -> Site:
    return open_site()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1 and its key, in one file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test site")])
    now = datetime.now(UTC)
    names = [x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("site.test")]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "site.pem"
    file.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return file


@pytest.fixture
def secure_site(open_site: OpenSite, certificate: Path) -> Site:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return open_site(context)


def policy_for(*sites: Site, **values: object) -> FetchPolicy:
    """A policy that opens the sites, and is in a hurry."""
    given: dict[str, object] = {
        "allow_hosts": frozenset(site.authority for site in sites),
        "timeout_s": 5.0,
        "idle_s": 2.0,
        **values,
    }
    return FetchPolicy(**given)  # type: ignore[arg-type]


def fetcher(*sites: Site, **values: object) -> Fetcher:
    return Fetcher(policy_for(*sites, **values))


def refused(found: object, *problems: FetchProblem) -> FetchRefusal:
    assert isinstance(found, FetchRefusal), found
    assert found.problem in problems, found
    assert found.reason
    assert found.next_step
    return found
