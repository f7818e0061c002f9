"""Providers and tokens that must not be believed.

The provider is of our own making, and the test holds its keys; signing in at a real one is in
`test_sign_in`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from kb.access.oidc import Provider, Urllib3Http, check_url
from kb_resources.errors import PolicyError, UnavailableError
from tests.read.http.conftest import free_port

ISSUER = "https://id.example"


KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


NOW = datetime(2026, 6, 1, tzinfo=UTC)


@dataclass
class Published:
    """What a provider answers, as bytes; its token endpoint signs what the test says."""

    claims: dict[str, Any] = field(default_factory=dict)
    key: Any = KEY
    kid: str = "1"
    algorithm: str = "RS256"
    metadata: dict[str, Any] = field(default_factory=dict)
    posted: dict[str, str] = field(default_factory=dict)
    published: dict[str, Any] = field(default_factory=lambda: {"1": KEY})
    asked_for_keys: int = 0

    def get(self, url: str) -> tuple[int, bytes]:
        if url.endswith("openid-configuration"):
            names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
            endpoints = {name: f"{ISSUER}/{name}" for name in names}
            return 200, json.dumps({"issuer": ISSUER, **endpoints, **self.metadata}).encode()
        self.asked_for_keys += 1
        keys = [
            {**json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key())), "kid": kid}
            for kid, key in self.published.items()
        ]
        return 200, json.dumps({"keys": [{**key, "use": "sig"} for key in keys]}).encode()

    def post_form(
        self,
        url: str,  # noqa: ARG002
        form: Mapping[str, str],
        *,
        user: str = "",  # noqa: ARG002
        password: str = "",  # noqa: ARG002
    ) -> tuple[int, bytes]:
        self.posted = dict(form)
        token = jwt.encode(
            self.claims, self.key, algorithm=self.algorithm, headers={"kid": self.kid}
        )
        return 200, json.dumps({"id_token": token}).encode()


def claims_after(
    published: Published,
    provider: Provider | None = None,
    now: datetime = NOW,
    **changed: Any,
) -> dict[str, Any]:
    """Run a whole sign-in; the token holds what is right, but for what is changed."""
    provider = provider or Provider(ISSUER, "kb", "", published)
    url, login = provider.begin(redirect_uri="https://kb.example/cb", go_to="/", now=now)
    seconds = int(datetime.now(UTC).timestamp())
    right = {
        "iss": ISSUER,
        "aud": "kb",
        "sub": "anna",
        "iat": seconds,
        "exp": seconds + 300,
        "nonce": login.nonce,
    }
    published.claims = {k: v for k, v in (right | changed).items() if v is not None}
    found = provider.finish(login, {"state": login.state, "code": "c"}, now)
    verifier = published.posted["code_verifier"]
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
    assert parse_qs(urlsplit(url).query)["code_challenge"] == [challenge.decode().rstrip("=")]
    return found


@pytest.mark.requirement("P-51")
def test_a_provider_changes_its_keys_without_anybody_being_locked_out() -> None:
    """A key that is not known yet makes us look again; the old one holds beside it."""
    published = Published()
    provider = Provider(ISSUER, "kb", "", published)
    assert claims_after(published, provider)["sub"] == "anna"
    assert claims_after(published, provider)["sub"] == "anna"
    assert published.asked_for_keys == 1
    published.published = {"1": KEY, "2": OTHER_KEY}
    published.key, published.kid = OTHER_KEY, "2"
    assert claims_after(published, provider)["sub"] == "anna"
    assert published.asked_for_keys == 2
    published.key, published.kid = KEY, "1"
    assert claims_after(published, provider)["sub"] == "anna"
    assert published.asked_for_keys == 2


@pytest.mark.requirement("P-51", "P-52")
def test_a_key_that_was_withdrawn_holds_for_five_minutes_at_most() -> None:
    published = Published()
    provider = Provider(ISSUER, "kb", "", published)
    assert claims_after(published, provider)["sub"] == "anna"
    published.published = {"2": OTHER_KEY}
    assert claims_after(published, provider, NOW + timedelta(minutes=5))["sub"] == "anna"
    with pytest.raises(PolicyError, match="does not publish"):
        claims_after(published, provider, NOW + timedelta(minutes=5, seconds=1))
    published.key, published.kid = OTHER_KEY, "1"
    with pytest.raises(PolicyError, match="does not publish"):
        claims_after(published, provider, NOW + timedelta(minutes=6))


@pytest.mark.requirement("P-51")
def test_a_new_key_under_an_old_name_is_believed_once_the_old_one_is_forgotten() -> None:
    published = Published()
    provider = Provider(ISSUER, "kb", "", published)
    assert claims_after(published, provider)["sub"] == "anna"
    published.published, published.key = {"1": OTHER_KEY}, OTHER_KEY
    with pytest.raises(PolicyError, match="does not hold"):
        claims_after(published, provider)
    assert claims_after(published, provider, NOW + timedelta(minutes=6))["sub"] == "anna"


@pytest.mark.requirement("P-51")
def test_a_right_token_is_believed_and_proves_the_code_by_pkce() -> None:
    assert claims_after(Published())["sub"] == "anna"


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "https://other.example"},
        {"aud": "another"},
        {"aud": ["kb", "other"], "azp": "other"},
        {"nonce": "another"},
        {"nonce": None},
        {"exp": 1},
        {"exp": None},
        {"iat": None},
        {"sub": None},
        {"sub": ""},
        {"sub": "a\u0000b"},
        {"sub": "x" * 191},
    ],
    ids=str,
)
def test_a_token_with_a_wrong_claim_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(PolicyError) as refused:
        claims_after(Published(), **changed)
    assert refused.value.code == "sign_in_refused"


@pytest.mark.parametrize(
    "published",
    [
        Published(key=OTHER_KEY),
        Published(kid="2"),
        Published(key="x" * 64, algorithm="HS256"),
        Published(key=None, algorithm="none"),
    ],
    ids=["another key", "unknown kid", "shared secret", "unsigned"],
)
def test_a_token_signed_otherwise_is_refused(published: Published) -> None:
    with pytest.raises(PolicyError):
        claims_after(published)


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://other.example"},
        {"token_endpoint": "http://other.example/token"},
        {"jwks_uri": None},
    ],
    ids=str,
)
def test_a_provider_that_describes_itself_wrongly_is_not_used(metadata: dict[str, Any]) -> None:
    with pytest.raises(UnavailableError):
        claims_after(Published(metadata=metadata))


@pytest.mark.parametrize("url", ["http://id.example", "ftp://id.example", "id.example", ""])
def test_a_provider_is_spoken_to_over_tls_only(url: str) -> None:
    with pytest.raises(UnavailableError):
        check_url(url, "issuer")
    check_url("http://127.0.0.1:9400", "issuer")


def test_a_provider_that_is_away_is_told_as_such() -> None:
    http = Urllib3Http(timeout_s=2)
    provider = Provider(f"http://127.0.0.1:{free_port()}", "kb", "", http)
    with pytest.raises(UnavailableError) as away:
        provider.begin(redirect_uri="https://kb.example/cb", go_to="/", now=NOW)
    http.close()
    assert away.value.code == "oidc_unavailable"


def test_an_endless_answer_is_read_up_to_its_bound() -> None:
    """A provider that sends and sends: what lies beyond the bound is not waited for."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ended = threading.Event()

        def flood() -> None:
            wire, _ = listening.accept()
            with wire, suppress(OSError):
                wire.recv(65536)
                wire.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n")
                while True:
                    wire.sendall(b"x" * 65536)
            ended.set()

        threading.Thread(target=flood, daemon=True).start()
        http = Urllib3Http(max_bytes=1000)
        status, body = http.get(f"http://127.0.0.1:{listening.getsockname()[1]}/")
        assert (status, body) == (200, b"x" * 1000)
        assert ended.wait(60)
        http.close()
