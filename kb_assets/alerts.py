"""Telling people that a run failed: a webhook, an e-mail, or both.

Belongs here: sending. What does not: when (`run_failure`). A message holds run, job, scope, cause
and where to look, never text of documents nor the error, which may quote one. The webhook's body
has the member `text`, which Slack, Mattermost and Teams' workflows show as it is.
Mail submission: RFC 6409 (587 with STARTTLS), RFC 8314 (465, TLS from the start).
"""

from __future__ import annotations

import http.client
import json
import smtplib
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.message import EmailMessage
from typing import Any
from urllib.parse import unquote, urlsplit

from kb_resources.settings import Settings

TIMEOUT_S = 10.0


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The address is the operator's word; nobody else chooses another."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Do not follow."""


def send(settings: Settings, subject: str, facts: Mapping[str, str]) -> list[str]:
    """Send an alert by every way that is set.

    Args:
        settings: `KB_ALERT_URL`, `KB_ALERT_SMTP_URL`, `KB_ALERT_FROM`, `KB_ALERT_TO`.
        subject: one line.
        facts: what the message lists, in order.

    Returns:
        What could not be delivered and why; an alert that fails must not fail its sensor.
    """
    text = "\n".join([subject, *(f"{name}: {value}" for name, value in facts.items() if value)])
    problems = []
    if settings.alert_url:
        try:
            _post(settings.alert_url, {"text": text, "subject": subject, **facts})
        except (OSError, ValueError, http.client.HTTPException) as error:
            problems.append(f"webhook: {_words(error)}")
    if settings.alert_smtp_url and settings.alert_to:
        try:
            _mail(settings, subject, text)
        except (OSError, ValueError) as error:  # SMTPException is an OSError
            problems.append(f"e-mail: {_words(error)}")
    return problems


def _words(error: Exception) -> str:
    """What is said of an error; others than the system's quote the address, which is a secret."""
    return str(error) if isinstance(error, OSError) else type(error).__name__


def _post(url: str, body: Mapping[str, str]) -> None:
    request = urllib.request.Request(  # noqa: S310 - the setting allows http and https alone
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S):
        pass


def _mail(settings: Settings, subject: str, text: str) -> None:
    message = EmailMessage()
    message["Subject"] = subject
    message["From"] = settings.alert_from or settings.alert_to[0]
    message["To"] = ", ".join(settings.alert_to)
    message.set_content(text)
    server = urlsplit(settings.alert_smtp_url)
    host, context = server.hostname or "localhost", ssl.create_default_context()
    if server.scheme == "smtps":
        connection: smtplib.SMTP = smtplib.SMTP_SSL(
            host, server.port or 465, timeout=TIMEOUT_S, context=context
        )
    else:
        connection = smtplib.SMTP(host, server.port or 587, timeout=TIMEOUT_S)
    with connection:
        if server.scheme == "smtp+starttls":
            connection.starttls(context=context)
        if server.username:
            connection.login(unquote(server.username), unquote(server.password or ""))
        connection.send_message(message)
