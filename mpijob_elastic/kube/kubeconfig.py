"""Kubeconfig files, read as kubectl reads them.

The library finds server, credentials, `proxy-url` and `tls-server-name`. It takes the last `current-context` of several
files where kubectl takes the first, and ignores `as`, by which a user acts as another.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import yaml
from kubernetes.aio import config
from kubernetes.aio.config.kube_config import KubeConfigLoader, KubeConfigMerger

from mpijob_elastic.kube import errors

# In the name of a header, all but these are written as %XX (client-go, transport/round_trippers.go).
_IN_HEADERS = "!#$&'*+-.^_`|~"
# What the library raises on YAML that holds something else.
_OTHER_CONTENT = (TypeError, AttributeError, LookupError)


def load(files: str, context: str | None) -> KubeConfigLoader:
    """Return the configuration in one or more files. Raises `errors.Unconfigured` with what is wrong with them."""
    with usable(files):
        if not any(Path(file).expanduser().exists() for file in files.split(os.pathsep) if file):
            raise config.ConfigException("there is no such file")
        merger = KubeConfigMerger(files)
        named = (context, *(content.get("current-context") for content in merger.config_files.values()))
        current = next(filter(None, named), None)
        if current not in [one.value["name"] for one in merger.config.value["contexts"]]:
            raise config.ConfigException(f"it has no context {current}" if current else "choose one with --context")
        return KubeConfigLoader(merger.config, active_context=current, config_base_path=None)


def impersonation(loader: KubeConfigLoader) -> list[tuple[str, str]]:
    """Return the headers by which a user acts as another. Raises ConfigException where that is half said.

    https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
    """
    user = loader._user.value if loader._user else {}  # noqa: SLF001 - the library has no public name for it
    extra = user.get("as-user-extra") or {}
    headers = [
        ("Impersonate-User", user.get("as")),
        ("Impersonate-Uid", user.get("as-uid")),
        *(("Impersonate-Group", group) for group in user.get("as-groups") or ()),
        *((f"Impersonate-Extra-{quote(key, _IN_HEADERS)}", one) for key, several in extra.items() for one in several),
    ]
    found = [(name, str(value)) for name, value in headers if value]
    if found and not user.get("as"):
        raise config.ConfigException("as-uid, as-groups and as-user-extra of a user need `as`")
    return found


@contextmanager
def usable(where: str) -> Iterator[None]:
    """Turn whatever is wrong with a configuration into one sentence: an `errors.Unconfigured`."""
    try:
        yield
    except (*_OTHER_CONTENT, config.ConfigException, OSError, ValueError, yaml.YAMLError) as error:
        reason = "it is no kubeconfig" if isinstance(error, _OTHER_CONTENT) else " ".join(str(error).split())
        raise errors.Unconfigured(
            f"no usable cluster configuration in {where}: {reason}; pass --kubeconfig or set KUBECONFIG"
        ) from error
