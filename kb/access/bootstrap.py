"""The first start: a secret and an administrator, where there is neither.

Belongs here: what makes a local installation usable without a manual step. What does not: servers
with a database of their own, where whoever owns it sets the secret and makes the first key.
"""

from __future__ import annotations

from datetime import UTC, datetime

from kb.access import keys
from kb.access.keys import IssuedKey
from kb.access.secret import ensure_secret
from kb_resources.compose import open_database
from kb_resources.settings import Settings
from kb_resources.store import access


def bootstrap(settings: Settings, *, by: str = "kb init") -> IssuedKey | None:
    """Make secret and first key of a local installation.

    Returns:
        The key, to be shown once; None where somebody administers it, or the database is your own.
    """
    if settings.database_url:
        return None
    secret, _ = ensure_secret(settings)
    now = datetime.now(UTC)
    with open_database(settings) as database:
        with database.transaction("app") as conn:
            if access.has_admin(conn, now):
                return None
        return keys.create(
            database,
            secret,
            name="first administrator",
            role="admin",
            scopes=None,
            audiences=(),
            expires_at=None,
            by=by,
            now=now,
        )
