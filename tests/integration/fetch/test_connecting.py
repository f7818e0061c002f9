"""The connection a page comes over: closed ports, certificates, and proxies that are not used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kb_resources.acquire import Fetched, Fetcher, FetchProblem
from tests.integration.fetch.conftest import PAGE, fetcher, policy_for, refused

if TYPE_CHECKING:
    from tests.integration.fetch.conftest import OpenSite, Site


def test_a_closed_port_is_a_connection_problem(site: Site) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    policy = policy_for(site, allow_hosts=frozenset({f"127.0.0.1:{port}"}))
    found = Fetcher(policy).fetch(f"http://127.0.0.1:{port}/")
    assert refused(found, FetchProblem.CONNECTION).retryable


@pytest.mark.requirement("P-50")
def test_a_certificate_that_does_not_hold_is_never_accepted(secure_site: Site) -> None:
    secure_site.routes["/"] = lambda asked: asked.reply(body=PAGE)
    refused(fetcher(secure_site).fetch(secure_site.url()), FetchProblem.TLS)
    assert secure_site.seen == []


def test_ones_own_authority_is_accepted_for_its_names_alone(
    secure_site: Site, certificate: Path
) -> None:
    secure_site.routes["/"] = lambda asked: asked.reply(body=PAGE)
    port = secure_site.port
    policy = policy_for(
        secure_site,
        ca_file=str(certificate),
        allow_hosts=frozenset({f"127.0.0.1:{port}", f"site.test:{port}", f"wrong.test:{port}"}),
    )
    asking = Fetcher(policy, resolver=lambda _host, _port: ["127.0.0.1"])
    assert isinstance(asking.fetch(secure_site.url()), Fetched)
    named = asking.fetch(secure_site.url(host="site.test"))
    assert isinstance(named, Fetched)
    assert secure_site.seen[-1].headers["host"] == f"site.test:{port}"
    refused(asking.fetch(secure_site.url(host="wrong.test")), FetchProblem.TLS)


def test_plain_http_on_a_tls_port_is_refused(site: Site) -> None:
    found = fetcher(site, timeout_s=0.5).fetch(site.url().replace("http:", "https:"))
    refused(found, FetchProblem.TLS)


@pytest.mark.requirement("P-49")
def test_proxy_variables_reroute_nothing(
    open_site: OpenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, proxy = open_site(), open_site()
    home.routes["/"] = lambda asked: asked.reply(body=PAGE)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, proxy.url())
    monkeypatch.setenv("NO_PROXY", "")
    assert isinstance(fetcher(home).fetch(home.url()), Fetched)
    assert proxy.connections == 0
