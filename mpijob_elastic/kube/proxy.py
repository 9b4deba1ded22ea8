"""The proxy to a server by HTTPS_PROXY and NO_PROXY, as client-go chooses it (golang.org/x/net/http/httpproxy).

Python's own choice (urllib.request.proxy_bypass) ignores networks such as 10.0.0.0/8 in NO_PROXY, which clusters use,
and sends loopback to the proxy.
"""

from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

_NEVER = "localhost,127.0.0.0/8,::1"


def chosen(server: str, environment: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy to a server, None for none."""
    url = urlsplit(server)
    variables = (f"{url.scheme}_proxy", "no_proxy")
    proxy, direct = (environment.get(name.upper()) or environment.get(name, "") for name in variables)
    host, port = url.hostname or "", url.port or (80 if url.scheme == "http" else 443)
    if not proxy or any(_covers(entry.strip(), host, port) for entry in f"{_NEVER},{direct}".lower().split(",")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _covers(entry: str, host: str, port: int) -> bool:
    """Return True if an entry of NO_PROXY covers a host: `*`, a network, or an address or domain, perhaps with port."""
    with suppress(ValueError):
        return ip_address(host) in ip_network(entry, strict=False)
    with suppress(ValueError):
        named = urlsplit(f"//{entry}")
        name = (named.hostname or "").removeprefix("*" if entry.startswith("*.") else "")
        inside = host.endswith(name) if name.startswith(".") else f".{host}".endswith(f".{name}")
        return entry == "*" or (inside and named.port in (None, port))
    return False
