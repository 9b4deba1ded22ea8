"""The proxy to a server by HTTPS_PROXY and NO_PROXY, as client-go chooses it (golang.org/x/net/http/httpproxy).

Python's own choice (urllib.request.proxy_bypass) ignores networks such as 10.0.0.0/8 in NO_PROXY, which clusters use,
and sends loopback to the proxy.
"""

from collections.abc import Mapping
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit


def chosen(server: str, environment: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy to a server, None for none."""
    url = urlsplit(server)
    proxy, no_proxy = (
        environment.get(name.upper()) or environment.get(name, "") for name in (f"{url.scheme}_proxy", "no_proxy")
    )
    host, port = url.hostname or "", url.port or (80 if url.scheme == "http" else 443)
    entries = (entry.strip().lower() for entry in no_proxy.split(","))
    if not proxy or _is_local(host) or any(_covers(entry, host, port) for entry in entries if entry):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_local(host: str) -> bool:
    address = _address(host)
    return address.is_loopback if address else host == "localhost"


def _covers(entry: str, host: str, port: int) -> bool:
    """Return True if an entry of NO_PROXY covers a host: `*`, a network, or an address or domain, perhaps with port."""
    address = _address(host)
    with suppress(ValueError):
        network = ip_network(entry, strict=False)
        return address is not None and address in network
    with suppress(ValueError):
        named = urlsplit(f"//{entry}")
        name = (named.hostname or "").removeprefix("*" if entry.startswith("*.") else "")
        inside = not address and name and host.endswith(f".{name.removeprefix('.')}")
        return entry == "*" or (bool(host == name or inside) and named.port in (None, port))
    return False


def _address(host: str) -> IPv4Address | IPv6Address | None:
    with suppress(ValueError):
        return ip_address(host)
    return None
