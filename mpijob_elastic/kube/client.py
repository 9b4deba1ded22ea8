"""Connect to a cluster, as kubectl would: with the same kubeconfig files and the same proxy.

The library finds server, credentials, `proxy-url` and `tls-server-name`. It takes the last
`current-context` of several files where kubectl takes the first, ignores `as`, by which a user acts
as another, and never asks a credential plugin again, although the token lasts only some minutes.
Python's own choice of a proxy (urllib.request.proxy_bypass) differs from client-go's: it ignores
networks such as 10.0.0.0/8 in NO_PROXY, which clusters use, and sends loopback to the proxy.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import quote, urlsplit

import yaml
from kubernetes.aio import config
from kubernetes.aio.client import Configuration
from kubernetes.aio.config.kube_config import KubeConfigLoader, KubeConfigMerger

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.writer import ApiWriter

# Hosts that are reached without a proxy.
_NEVER = "localhost,127.0.0.0/8,::1"
# Characters that stay as they are in the name of a header, beside letters and digits; all others
# are written as %XX (client-go, transport/round_trippers.go).
_IN_HEADERS = "!#$&'*+-.^_`|~"
# Errors that the library raises on YAML that holds something else.
_OTHER_CONTENT = (TypeError, AttributeError, LookupError)


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


def load_kubeconfig(files: str, context: str | None) -> KubeConfigLoader:
    """Return the configuration in one or more files.

    Raises `errors.Unconfigured`, with the reason, if the files are not usable.
    """
    with usable(files):
        if not any(Path(file).expanduser().exists() for file in files.split(os.pathsep) if file):
            raise config.ConfigException("there is no such file")
        merger = KubeConfigMerger(files)
        named = (
            context,
            *(content.get("current-context") for content in merger.config_files.values()),
        )
        current = next(filter(None, named), None)
        if current not in [one.value["name"] for one in merger.config.value["contexts"]]:
            raise config.ConfigException(
                f"it has no context {current}" if current else "choose one with --context"
            )
        return KubeConfigLoader(merger.config, active_context=current, config_base_path=None)


def impersonation(loader: KubeConfigLoader) -> list[tuple[str, str]]:
    """Return the headers by which a user acts as another.

    Raises ConfigException if the configuration names groups or the like, but no other user.

    https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
    """
    user = loader._user.value if loader._user else {}  # noqa: SLF001 - the library has no public name for it
    extra = user.get("as-user-extra") or {}
    headers = [
        ("Impersonate-User", user.get("as")),
        ("Impersonate-Uid", user.get("as-uid")),
        *(("Impersonate-Group", group) for group in user.get("as-groups") or ()),
        *(
            (f"Impersonate-Extra-{quote(key, _IN_HEADERS)}", one)
            for key, several in extra.items()
            for one in several
        ),
    ]
    found = [(name, str(value)) for name, value in headers if value]
    if found and not user.get("as"):
        raise config.ConfigException("as-uid, as-groups and as-user-extra of a user need `as`")
    return found


def renewing(loader: KubeConfigLoader) -> Callable[[Configuration], Awaitable[None]]:
    """Return a function that asks a credential plugin again when its token is about to expire.

    https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
    """
    lock = asyncio.Lock()  # the plugin may ask the user

    async def renew(configuration: Configuration) -> None:
        async with lock:
            await loader.load_from_exec_plugin()  # returns at once while the token lasts
        configuration.api_key["BearerToken"] = loader.token

    return renew


@contextmanager
def usable(where: str) -> Iterator[None]:
    """Turn any error in a configuration into an `errors.Unconfigured` of one sentence."""
    try:
        yield
    except (*_OTHER_CONTENT, config.ConfigException, OSError, ValueError, yaml.YAMLError) as error:
        reason = (
            "it is no kubeconfig"
            if isinstance(error, _OTHER_CONTENT)
            else " ".join(str(error).split())
        )
        raise errors.Unconfigured(
            f"no usable cluster configuration in {where}: {reason}; "
            "pass --kubeconfig or set KUBECONFIG"
        ) from error


async def connect(
    *, user_agent: str, kubeconfig: Path | None = None, context: str | None = None
) -> ApiWriter:
    """Connect with `kubeconfig` if given, else in-cluster, else with $KUBECONFIG or ~/.kube/config.

    Code that only reads declares the client as an `ApiReader`. Raises `errors.Unconfigured` without
    a usable configuration.
    """
    where = str(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config")
    configuration = Configuration()
    headers = list[tuple[str, str]]()
    with usable(where):
        if kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            config.load_incluster_config(client_configuration=configuration)
        else:
            loader = load_kubeconfig(where, context)
            await loader.load_and_set(configuration)
            headers = impersonation(loader)
            if hasattr(loader, "exec_plugin_expiry"):
                configuration.refresh_api_key_hook = renewing(loader)
        configuration.proxy = configuration.proxy or proxy_to(configuration.host, os.environ)
        scheme = urlsplit(configuration.proxy or "http:").scheme
        if scheme not in ("http", "https"):
            raise config.ConfigException(
                f"a proxy must be http://HOST:PORT or https://HOST:PORT, not {scheme}://"
            )
        return ApiWriter(configuration, user_agent=user_agent, headers=headers)
