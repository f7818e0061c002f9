"""Signing in at an identity provider: the authorisation code flow with PKCE.

Belongs here: discovery, the redirect there, checking what comes back. What does not: what the
person may do here (`members`), cookies. Everything the provider says is checked: issuer, audience,
nonce, signature by its published keys, expiry. See OpenID Connect Core 1.0, section 3.1, RFC 7636
(PKCE), RFC 9207 (issuer in the answer) and RFC 9700 (security best current practice).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

from kb.access.members import is_subject
from kb_resources.errors import InputError, PolicyError, UnavailableError

SCOPES = "openid profile email"
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
LOGIN_LIFETIME = timedelta(minutes=10)
_KEEP = timedelta(minutes=5)
_LEEWAY_S = 60
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class Http(Protocol):
    """As much of an HTTP client as this needs; errors are UnavailableError."""

    def get(self, url: str) -> tuple[int, bytes]:
        """Status and body."""
        ...

    def post_form(
        self, url: str, form: Mapping[str, str], *, user: str = "", password: str = ""
    ) -> tuple[int, bytes]:
        """Status and body of a form that was posted, with basic credentials where given."""
        ...


class Urllib3Http:
    """The client used in production: TLS verified, no redirects, bounded time and size."""

    def __init__(self, *, timeout_s: float = 10.0, max_bytes: int = 2**20) -> None:
        import urllib3

        self._max_bytes = max_bytes
        self._pool = urllib3.PoolManager(timeout=timeout_s, retries=False)

    def get(self, url: str) -> tuple[int, bytes]:
        """See `Http.get`."""
        return self._request("GET", url)

    def post_form(
        self, url: str, form: Mapping[str, str], *, user: str = "", password: str = ""
    ) -> tuple[int, bytes]:
        """See `Http.post_form`."""
        from urllib3.util import make_headers

        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if password:
            quoted = urlencode({"u": user})[2:], urlencode({"p": password})[2:]
            headers |= make_headers(basic_auth=":".join(quoted))
        return self._request("POST", url, urlencode(form), headers)

    def close(self) -> None:
        """Close connections."""
        self._pool.clear()

    def _request(
        self, method: str, url: str, body: str | None = None, headers: Any = None
    ) -> tuple[int, bytes]:
        import urllib3

        try:
            answer = self._pool.request(
                method, url, body=body, headers=headers, redirect=False, preload_content=False
            )
            try:
                return answer.status, answer.read(self._max_bytes)
            finally:  # what is left unread is unbounded: the connection ends with it
                answer.close()
        except urllib3.exceptions.HTTPError as error:
            raise _away(
                f"{urlsplit(url).netloc} cannot be reached ({type(error).__name__})"
            ) from error


@dataclass(frozen=True, slots=True)
class Login:
    """What one browser has to bring back; sealed into a cookie meanwhile."""

    state: str
    nonce: str
    verifier: str
    go_to: str
    redirect_uri: str
    expires_at: str

    def to_json(self) -> bytes:
        """Bytes to be sealed."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Login:
        """Inverse of `to_json`."""
        return cls(**json.loads(data))


class Provider:
    """One identity provider, known by its issuer.

    Args:
        issuer: URL; https, or http on this machine.
        client_id: as the provider gave it.
        client_secret: empty for a public client.
        http: the client.
    """

    def __init__(self, issuer: str, client_id: str, client_secret: str, http: Http) -> None:
        check_url(issuer, "issuer")
        if not client_id:
            raise InputError("The identity provider needs a client id.", next_step="Set it.")
        self._issuer = issuer
        self._client_id = client_id
        self._client_secret = client_secret
        self._http = http
        self._guard = threading.Lock()
        self._metadata: dict[str, Any] = {}
        self._keys: list[dict[str, Any]] = []
        self._keys_at: datetime | None = None

    def begin(self, *, redirect_uri: str, go_to: str, now: datetime) -> tuple[str, Login]:
        """Where to send the browser, and what it has to bring back.

        Raises:
            UnavailableError: the provider is away or describes itself wrongly.
        """
        login = Login(
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
            go_to=local_path(go_to),
            redirect_uri=redirect_uri,
            expires_at=(now + LOGIN_LIFETIME).isoformat(),
        )
        challenge = base64.urlsafe_b64encode(hashlib.sha256(login.verifier.encode()).digest())
        query = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": redirect_uri,
            "scope": SCOPES,
            "state": login.state,
            "nonce": login.nonce,
            "code_challenge": challenge.decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        endpoint = self.metadata()["authorization_endpoint"]
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}", login

    def finish(self, login: Login, answer: Mapping[str, str], now: datetime) -> dict[str, Any]:
        """The verified claims of who signed in.

        Args:
            login: what `begin` gave.
            answer: query of the redirect back.
            now: aware time.

        Raises:
            PolicyError: anything does not fit (`sign_in_refused`).
            UnavailableError: the provider is away.
        """
        if datetime.fromisoformat(login.expires_at) <= now:
            raise refused("The sign-in took too long")
        if not hmac.compare_digest(answer.get("state", "").encode(), login.state.encode()):
            raise refused("The answer belongs to another sign-in")
        if answer.get("iss", self._issuer) != self._issuer:
            raise refused("The answer comes from another provider")
        if "error" in answer:
            raise refused("The identity provider refused")
        code = answer.get("code", "")
        if not code:
            raise refused("The answer holds no code")
        token = self._exchange(code, login)
        claims = self._verified(token, now)
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), login.nonce.encode()):
            raise refused("The identity token was made for another sign-in")
        if not is_subject(str(claims["sub"])):
            raise refused("The identity provider names nobody we could write down")
        return claims

    def metadata(self) -> dict[str, Any]:
        """The provider's own description, read once.

        Raises:
            UnavailableError: it is away, names another issuer, or lacks an endpoint.
        """
        with self._guard:
            if not self._metadata:
                url = self._issuer.rstrip("/") + "/.well-known/openid-configuration"
                found = self._json(*self._http.get(url))
                if found.get("issuer") != self._issuer:
                    raise _away("The identity provider names another issuer")
                for name in _ENDPOINTS:
                    check_url(str(found.get(name, "")), name)
                self._metadata = found
            return self._metadata

    def _exchange(self, code: str, login: Login) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": login.redirect_uri,
            "client_id": self._client_id,
            "code_verifier": login.verifier,
        }
        status, body = self._http.post_form(
            self.metadata()["token_endpoint"],
            form,
            user=self._client_id,
            password=self._client_secret,
        )
        if 400 <= status < 500:
            raise refused("The identity provider does not take the code")
        token = self._json(status, body).get("id_token")
        if not isinstance(token, str):
            raise refused("The identity provider gave no identity token")
        return token

    def _verified(self, token: str, now: datetime) -> dict[str, Any]:
        import jwt

        try:
            header = jwt.get_unverified_header(token)
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key(header.get("kid"), str(header.get("alg")), now),
                algorithms=list(ALGORITHMS),
                audience=self._client_id,
                issuer=self._issuer,
                leeway=_LEEWAY_S,
                options={"require": ["exp", "iat", "sub", "aud", "iss"]},
            )
        except jwt.PyJWTError as error:
            raise refused("The identity token does not hold") from error
        if claims.get("azp", self._client_id) != self._client_id:
            raise refused("The identity token is for another client")
        return claims

    def _key(self, kid: str | None, algorithm: str, now: datetime) -> Any:
        """The published key of a token; a key not known yet makes us look again."""
        import jwt

        if algorithm not in ALGORITHMS:
            raise refused("The identity token is signed in a way that is not accepted")
        for fresh in (False, True):
            keys = self._published(now, fresh=fresh)
            fitting = [key for key in keys if kid is None or key.get("kid") == kid]
            if len(fitting) == 1:
                return jwt.PyJWK(fitting[0], algorithm=algorithm).key
        raise refused("The identity token is signed by a key the provider does not publish")

    def _published(self, now: datetime, *, fresh: bool) -> list[dict[str, Any]]:
        uri = self.metadata()["jwks_uri"]
        with self._guard:
            if fresh or self._keys_at is None or now - self._keys_at > _KEEP:
                found = self._json(*self._http.get(uri)).get("keys")
                self._keys = [key for key in found or [] if isinstance(key, dict)]
                self._keys_at = now
            return [key for key in self._keys if key.get("use", "sig") == "sig"]

    def _json(self, status: int, body: bytes) -> dict[str, Any]:
        try:
            value = json.loads(body) if status == 200 else None
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise _away(f"The identity provider answered {status} without a JSON object")
        return value


def check_url(url: str, what: str) -> None:
    """UnavailableError unless an address is https, or http on this machine."""
    parts = urlsplit(url)
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        raise UnavailableError(
            f"The identity provider's {what} is not an https address.",
            next_step="Correct KB_OIDC_ISSUER.",
            code="oidc_unsafe",
        )


def local_path(path: str) -> str:
    """A path on this server, never another site."""
    plain = path.startswith("/") and not path.startswith("//")
    return path if plain and path.isprintable() and "\\" not in path and len(path) < 500 else "/"


def refused(what: str) -> PolicyError:
    """What somebody hears whose sign-in does not hold."""
    return PolicyError(f"{what}.", next_step="Sign in again.", code="sign_in_refused")


def _away(what: str) -> UnavailableError:
    return UnavailableError(
        f"{what}.", next_step="Look at the identity provider.", code="oidc_unavailable"
    )
