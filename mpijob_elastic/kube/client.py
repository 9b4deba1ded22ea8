"""Connect to a cluster, as kubectl would: with the same kubeconfig files and the same proxy.

Python's own choice of a proxy (urllib.request.proxy_bypass) differs from client-go's: it ignores
networks such as 10.0.0.0/8 in NO_PROXY, which clusters use, and sends loopback to the proxy.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from ipaddress import ip_address, ip_network
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

from mpijob_elastic.kube import in_cluster
from mpijob_elastic.kube.access import Access, unusable
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.loading import load

# Hosts that are reached without a proxy.
_NEVER = "localhost,127.0.0.0/8,::1"


def proxy_to(server: str, environment: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy to a server; None without a proxy.

    The rules are those of golang.org/x/net/http/httpproxy.
    """
    url = urlsplit(server)
    variables = (f"{url.scheme}_proxy", "no_proxy")
    proxy, direct = (
        environment.get(name.upper()) or environment.get(name, "") for name in variables
    )
    host, port = url.hostname or "", url.port or (80 if url.scheme == "http" else 443)
    if not proxy or any(
        _covers(entry.strip(), host, port) for entry in f"{_NEVER},{direct}".lower().split(",")
    ):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _covers(entry: str, host: str, port: int) -> bool:
    """Return True if an entry of NO_PROXY covers a host.

    An entry is `*`, a network, or an address or a domain, perhaps with a port.
    """
    with suppress(ValueError):
        return ip_address(host) in ip_network(entry, strict=False)
    with suppress(ValueError):
        named = urlsplit(f"//{entry}")
        name = (named.hostname or "").removeprefix("*" if entry.startswith("*.") else "")
        inside = host.endswith(name) if name.startswith(".") else f".{host}".endswith(f".{name}")
        return entry == "*" or (inside and named.port in (None, port))
    return False


def namespace_of(files: str, context: str | None) -> str | None:
    """Return the namespace of the context in one or more kubeconfigs; None if it has none.

    Raises `errors.Unconfigured` if the files are not usable.
    """
    plain = _plain_kubeconfigs().plain_context(files, context)
    found: str | None = plain.namespace if plain else _kubeconfigs().namespace_of(files, context)
    return found


def lasting_context(*, kubeconfig: Path | None = None, context: str | None = None) -> str | None:
    """Return the name of the context that `connect` takes now; None if it takes that of this pod.

    Who passes it to `connect` reaches the same cluster later, whatever the current context is then.
    Raises `errors.Unconfigured` without a usable configuration, or if it cannot be read again.
    """
    if _is_inside(kubeconfig, context):
        return None
    files = _files(kubeconfig)
    if any(_is_read_once(Path(file).expanduser()) for file in files.split(os.pathsep) if file):
        raise unusable(files, "it is a pipe, and has to be read again: write it to a file")
    plain = _plain_kubeconfigs().plain_context(files, context)
    found: str = plain.name if plain else _kubeconfigs().context_of(files, context)
    return found


async def found_access(*, kubeconfig: Path | None = None, context: str | None = None) -> Access:
    """Return the access of `kubeconfig`, else of this pod, else of the usual kubeconfigs.

    Raises `errors.Unconfigured` without a usable configuration.
    """
    if _is_inside(kubeconfig, context):
        access = in_cluster.in_cluster_access(os.environ, in_cluster.SERVICE_ACCOUNT)
        return _by_proxy(access, in_cluster.WHERE)
    files = _files(kubeconfig)
    access = _plain_kubeconfigs().plain_access(files, context)
    if access is None:
        access = await _kubeconfigs().kubeconfig_access(files, context)
    return _by_proxy(access, files)


async def connect(
    *, user_agent: str, kubeconfig: Path | None = None, context: str | None = None
) -> ApiWriter:
    """Connect with `kubeconfig` if given, else in-cluster, else with $KUBECONFIG or ~/.kube/config.

    Code that only reads declares the client as an `ApiReader`. Raises `errors.Unconfigured` without
    a usable configuration.
    """
    access = await found_access(kubeconfig=kubeconfig, context=context)
    return ApiWriter(access, user_agent=user_agent)


def _is_inside(kubeconfig: Path | None, context: str | None) -> bool:
    """Return True if the access is that of this pod."""
    return kubeconfig is None and context is None and in_cluster.HOST in os.environ


def _files(kubeconfig: Path | None) -> str:
    return str(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config")


def _is_read_once(file: Path) -> bool:
    return file.is_fifo() or file.is_char_device()


def _plain_kubeconfigs() -> ModuleType:
    # Imported when it is needed, because a pod has no kubeconfig and needs no parser of YAML.
    return load("mpijob_elastic.kube.plain_kubeconfig")


def _kubeconfigs() -> ModuleType:
    # Imported when it is needed, because its library takes 12 MiB and 100 ms.
    return load("mpijob_elastic.kube.kubeconfig")


def _by_proxy(access: Access, where: str) -> Access:
    try:
        proxy = access.proxy or proxy_to(access.host, os.environ)
        scheme = urlsplit(proxy or "http:").scheme
    except ValueError as error:  # an address that is none
        raise unusable(where, str(error)) from error
    if scheme not in ("http", "https"):
        reason = f"a proxy must be http://HOST:PORT or https://HOST:PORT, not {scheme}://"
        raise unusable(where, reason)
    return replace(access, proxy=proxy)
