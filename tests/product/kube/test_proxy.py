"""Proxies are chosen as golang.org/x/net/http/httpproxy chooses them."""

import pytest

from mpijob_elastic.kube import client

PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("server", "no_proxy", "goes_direct"),
    [
        ("https://api.example", "", False),
        ("https://localhost:6443", "", True),
        ("https://[::1]:6443", "", True),
        ("https://api.example", "*", True),
        ("https://10.96.0.1:443", "10.0.0.0/8", True),
        ("https://11.96.0.1:443", "10.0.0.0/8", False),
        ("https://[fd00::1]:443", "fd00::/8", True),
        ("https://10.96.0.1", " .svc , 10.96.0.1", True),
        ("https://10.96.0.1:6443", "10.96.0.1:443", False),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", True),
        ("https://api.example", "EXAMPLE", True),
        ("https://api.example", "pi.example", False),
        ("https://example", ".example", False),
        ("https://api.example", "*.example", True),
        ("https://api.example", "*example", False),
        ("https://api.example:6443", "example:6443", True),
        ("https://api.example", "example:https", False),
        ("https://api.example", ",:443,", False),
    ],
)
def test_no_proxy_is_read_as_client_go_reads_it(
    server: str, no_proxy: str, goes_direct: bool
) -> None:
    found = client.proxy_to(server, {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy})
    assert found == (None if goes_direct else PROXY)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"https_proxy": PROXY}, PROXY),
        ({"HTTPS_PROXY": PROXY, "https_proxy": "http://other"}, PROXY),
        ({"HTTPS_PROXY": "proxy.example:3128"}, PROXY),
        ({"HTTP_PROXY": PROXY, "ALL_PROXY": PROXY}, None),
        ({"https_proxy": PROXY, "no_proxy": "example"}, None),
    ],
)
def test_the_variables(environment: dict[str, str], expected: str | None) -> None:
    assert client.proxy_to("https://api.example", environment) == expected


def test_plain_http_has_its_own_variable() -> None:
    assert client.proxy_to("http://api.example", {"HTTPS_PROXY": PROXY}) is None
    assert (
        client.proxy_to("http://api.example", {"HTTP_PROXY": PROXY, "NO_PROXY": "example:443"})
        == PROXY
    )
