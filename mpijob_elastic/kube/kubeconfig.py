"""The access in kubeconfig files, with the official library, as kubectl reads them.

The library finds server, credentials, `proxy-url` and `tls-server-name`. It takes the last
`current-context` of several files where kubectl takes the first, ignores `as`, by which a user acts
as another, and never asks a credential plugin again, although the token lasts only some minutes.

`client` imports this module when it is needed, because a pod needs none of this.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import yaml
from kubernetes.aio import config
from kubernetes.aio.client import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config.kube_config import KubeConfigLoader, KubeConfigMerger

from mpijob_elastic.kube.access import Access, NoCredentials, unusable

# Characters that stay as they are in the name of a header, beside letters and digits; all others
# are written as %XX (client-go, transport/round_trippers.go).
_IN_HEADERS = "!#$&'*+-.^_`|~"
# Errors that the library raises on YAML that holds something else.
_OTHER_CONTENT = (TypeError, AttributeError, LookupError)


async def kubeconfig_access(files: str, context: str | None) -> Access:
    """Return the access in one or more files.

    Raises `errors.Unconfigured`, with the reason, if the files are not usable.
    """
    with usable(files):
        loader = load_kubeconfig(files, context)
        configuration = Configuration()
        await loader.load_and_set(configuration)
        return Access(
            host=str(configuration.host),
            tls=RESTClientObject(configuration).ssl_context,
            server_name=configuration.tls_server_name or None,
            proxy=configuration.proxy or None,
            headers=tuple(impersonation(loader)),
            authorization=authorizing(loader),
        )


def namespace_of(files: str, context: str | None) -> str | None:
    """Return the namespace of the context in one or more files; None if it has none.

    Raises `errors.Unconfigured`, with the reason, if the files are not usable.
    """
    chosen = load_kubeconfig(files, context).current_context
    return chosen["context"].get("namespace") or None


def context_of(files: str, context: str | None) -> str:
    """Return the name of the context in one or more files.

    Raises `errors.Unconfigured`, with the reason, if the files are not usable.
    """
    return str(load_kubeconfig(files, context).current_context["name"])


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


def authorizing(loader: KubeConfigLoader) -> Callable[[], Awaitable[str]]:
    """Return a function that returns the value of the Authorization header, "" for none.

    It asks a credential plugin again when its token is about to expire, and raises `NoCredentials`
    if that fails.

    https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
    """
    lock = asyncio.Lock()  # the plugin may ask the user

    async def present() -> str:
        return str(getattr(loader, "token", ""))

    async def renewed() -> str:
        async with lock:
            try:
                await loader.load_from_exec_plugin()  # returns at once while the token lasts
            except (config.ConfigException, OSError) as error:
                raise NoCredentials(str(error)) from error
        return await present()

    return renewed if hasattr(loader, "exec_plugin_expiry") else present


@contextmanager
def usable(where: str) -> Iterator[None]:
    """Turn any error in a configuration into an `errors.Unconfigured` of one sentence."""
    try:
        yield
    except (*_OTHER_CONTENT, config.ConfigException, OSError, ValueError, yaml.YAMLError) as error:
        reason = "it is no kubeconfig" if isinstance(error, _OTHER_CONTENT) else str(error)
        raise unusable(where, reason) from error
