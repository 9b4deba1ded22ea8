"""The record: the MPIJob definition as it was before we made it scalable.

It is a Secret in our namespace, created in one write and never changed. It is compressed, because a
Secret holds 1 MiB. `upgrade apply` of version 0.2.0 made a record of another name, which holds the
definition before, too.
"""

import base64
import contextlib
import gzip
from collections.abc import Mapping
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.install import Refused, objects
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import SECRETS
from mpijob_elastic.kube.writer import ApiWriter

NAME = "mpijob-elastic-definition"
# The record has either name. If both are there, `install` made the first before `upgrade apply`
# made the second.
NAMES = (NAME, "mpijob-elastic-upgrade")
KEY = "before"


class UpgradeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the record."""

    #: The definition of MPIJobs.
    crd: dict[str, Any]


def pack(crd: Mapping[str, Any]) -> dict[str, str]:
    """Return the data of the Secret, in base64."""
    plain = msgspec.json.encode(UpgradeRecord(crd=dict(crd)))
    return {KEY: base64.b64encode(gzip.compress(plain, mtime=0)).decode()}


def unpack(name: str, data: Mapping[str, str]) -> dict[str, Any]:
    """Return the definition in the data of the Secret of that name.

    Raises `Refused` if it is damaged.
    """
    try:
        plain = gzip.decompress(base64.b64decode(data[KEY]))
        return msgspec.json.decode(plain, type=UpgradeRecord).crd
    except (KeyError, ValueError, EOFError, OSError, msgspec.MsgspecError) as error:
        raise Refused(
            f"the record of the former definition, Secret {names.NAMESPACE}/{name}, is damaged "
            f"({error}); put it back from a backup, or delete it and correct the definition by "
            "`kubectl edit crd mpijobs.kubeflow.org`"
        ) from error


async def read(client: ApiReader) -> dict[str, Any] | None:
    """Return the definition before, None if there is no record.

    Raises as `unpack` does, and `errors.KubeError`.
    """
    for name in NAMES:
        raw = await client.find(SECRETS.path(names.NAMESPACE, name))
        if raw is not None:
            return unpack(name, objects.read(raw).get("data") or {})
    return None


async def keep(client: ApiWriter, crd: Mapping[str, Any]) -> None:
    """Record the definition, unless there is a record: the first stays. Raises as `read` does."""
    if await read(client) is not None:
        return
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": NAME, "labels": {"app.kubernetes.io/name": names.PROGRAM}},
        "immutable": True,
        "type": "Opaque",
        "data": pack(crd),
    }
    with contextlib.suppress(errors.AlreadyExists):  # somebody else was faster
        await client.create_object(SECRETS.path(names.NAMESPACE), body=secret)


async def delete(client: ApiWriter) -> None:
    """Delete the record, if it is still there. Raises `errors.KubeError`."""
    for name in NAMES:
        with contextlib.suppress(errors.NotFound):
            await client.delete_object(SECRETS.path(names.NAMESPACE, name))
