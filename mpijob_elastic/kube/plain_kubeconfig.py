"""The access in a plain kubeconfig file, read without the official library.

The library takes 100 ms to import, a sixth of what `get` takes. Plain is one file whose user has a
token, a certificate or nothing, and whose cluster has no other settings than its authority. All
else, such as several files, credential plugins and proxies, and whatever is wrong with a file, is
left to `kubeconfig`. A test compares the two.
"""

import base64
import os
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mpijob_elastic.kube.access import Access
from mpijob_elastic.kube.tls_pair import load_pair

_IN_USER = frozenset(
    {
        "token",
        "client-certificate",
        "client-certificate-data",
        "client-key",
        "client-key-data",
    }
)
_IN_CLUSTER = frozenset({"server", "certificate-authority", "certificate-authority-data"})
# Any program may note here what kubectl ignores; minikube does.
_NOTES = "extensions"


class _Unusual(ValueError):
    """The file says something that the library has to tell."""


@dataclass(frozen=True, kw_only=True)
class PlainContext:
    """A context of a plain file."""

    name: str
    #: The folder to which paths in the file are relative.
    folder: Path
    #: The settings of the cluster.
    cluster: Mapping[str, str]
    #: The credentials of the user.
    user: Mapping[str, str]
    #: None if the context has none.
    namespace: str | None


def plain_context(file: str, context: str | None) -> PlainContext | None:
    """Return the context of this name, None for the current one; None if the file is not plain."""
    with suppress(OSError, RuntimeError, ValueError, yaml.YAMLError):
        path = Path(file).expanduser()
        # A pipe can be read once, and the library has to read it if it is not plain.
        if not path.is_file():
            raise _Unusual
        content = _loaded(path.read_text())
        name = context or content.get("current-context")
        chosen = _named(content, "context", name)
        return PlainContext(
            name=str(name),
            folder=path.absolute().parent,
            cluster=_texts(_named(content, "cluster", chosen.get("cluster")), _IN_CLUSTER),
            user=_texts(_named(content, "user", chosen.get("user")), _IN_USER),
            namespace=_texts(chosen, {"cluster", "user", "namespace"}).get("namespace") or None,
        )
    return None


def plain_access(file: str, context: str | None) -> Access | None:
    """Return the access in a file, as of the time of the call; None if the file is not plain."""
    chosen = plain_context(file, context)
    if chosen is None:
        return None
    with suppress(OSError, ValueError):
        host = chosen.cluster.get("server", "").rstrip("/")
        if not host.startswith(("https://", "http://")):
            return None
        token = chosen.user.get("token", "")

        async def authorization() -> str:
            return f"Bearer {token}" if token else ""

        return Access(host=host, tls=_tls(chosen, host), authorization=authorization)
    return None


def _loaded(text: str) -> Mapping[str, Any]:
    # The parser in C is ten times as fast; PyYAML is also built without it.
    content = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    if not isinstance(content, dict):
        raise _Unusual
    return content


def _named(content: Mapping[str, Any], kind: str, name: object) -> dict[str, Any]:
    """Return what the only context, cluster or user of a name holds. Raises `_Unusual`."""
    every = content.get(f"{kind}s")
    if not isinstance(every, list) or not isinstance(name, str):
        raise _Unusual
    if not all(isinstance(one, dict) for one in every):
        raise _Unusual
    found = [one.get(kind) for one in every if one.get("name") == name]
    if len(found) != 1 or not isinstance(found[0], dict):
        raise _Unusual
    return found[0]


def _texts(settings: Mapping[str, Any], known: frozenset[str] | set[str]) -> dict[str, str]:
    """Return settings that are texts of these names. Raises `_Unusual` if there are others."""
    found = {name: value for name, value in settings.items() if name != _NOTES}
    if not found.keys() <= known:
        raise _Unusual
    if not all(isinstance(value, str) and value for value in found.values()):
        raise _Unusual
    return found


def _tls(chosen: PlainContext, host: str) -> ssl.SSLContext:
    """Return the TLS settings. Raises OSError and ValueError if a file or text is not usable."""
    if host.startswith("http:"):
        return ssl.create_default_context()
    authority = _pem(chosen, chosen.cluster, "certificate-authority")
    tls = ssl.create_default_context(cadata=authority.decode("ascii") if authority else None)
    certificate = _pem(chosen, chosen.user, "client-certificate")
    key = _pem(chosen, chosen.user, "client-key")
    if certificate and key:
        if not hasattr(os, "memfd_create"):
            raise _Unusual
        load_pair(tls, certificate + b"\n" + key)
    elif certificate or key:
        raise _Unusual
    return tls


def _pem(chosen: PlainContext, settings: Mapping[str, str], name: str) -> bytes:
    """Return a text of the settings, or of a file that they name; b"" if they have neither."""
    data, file = settings.get(f"{name}-data"), settings.get(name)
    if data and file:
        raise _Unusual
    if data:
        return _some(base64.b64decode(data, validate=True))
    return _some((chosen.folder / file).read_bytes()) if file else b""


def _some(text: bytes) -> bytes:
    """Return a text, which is not empty. Raises `_Unusual`: an empty one is not as good as none."""
    if not text:
        raise _Unusual
    return text
