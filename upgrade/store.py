"""Where the record is kept: one Secret in our namespace, created whole in one write and never changed afterwards.

Its annotation says how far an upgrade is; that is for people, nothing is decided by it.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.resources import NAMESPACES, SECRETS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from upgrade import record
from upgrade.record import Record

NAME = "mpijob-elastic-upgrade"
PHASE = f"{names.PREFIX}upgrade"
# On our Namespace: it was not there before.
CREATED = f"{names.PREFIX}created-by-upgrade"
_LABELS = {"app.kubernetes.io/name": names.PROGRAM}


class Phase(StrEnum):
    """How far."""

    APPLYING = "applying"
    APPLIED = "applied"
    ROLLING_BACK = "rolling-back"


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The record, and the phase; "" where somebody took it off."""

    record: Record
    phase: str


class _Stub(msgspec.Struct):
    metadata: ObjectMeta


class _Secret(msgspec.Struct):
    metadata: ObjectMeta
    data: dict[str, str] = {}


async def read(client: ApiWriter) -> Kept | None:
    """What is kept; None where nothing is. Raises `Refused` where it is damaged, and `errors.KubeError`."""
    try:
        raw = await client.get(SECRETS.path(names.NAMESPACE, NAME))
    except errors.NotFound:
        return None
    secret = msgspec.json.decode(raw, type=_Secret)
    return Kept(record=record.unpack(secret.data), phase=secret.metadata.annotations.get(PHASE, ""))


async def write(client: ApiWriter, taken: Record) -> None:
    """Keep the record. Raises `errors.AlreadyExists` where there is one: the first is the true one."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": NAME, "labels": _LABELS, "annotations": {PHASE: Phase.APPLYING}},
        "immutable": True,
        "type": "Opaque",
        "data": record.pack(taken),
    }
    await client.create_object(SECRETS.path(names.NAMESPACE), body=secret)


async def set_phase(client: ApiWriter, phase: Phase) -> None:
    """Say how far it is. Raises `errors.KubeError`."""
    body = {"metadata": {"annotations": {PHASE: phase}}}
    await client.patch_object(SECRETS.path(names.NAMESPACE, NAME), body=body, content_type=MERGE_PATCH)


async def delete(client: ApiWriter, name: str = NAME) -> None:
    """Delete the record, or another Secret of our namespace; gone already is fine. Raises `errors.KubeError`."""
    try:
        await client.delete_object(SECRETS.path(names.NAMESPACE, name))
    except errors.NotFound:
        return


async def has_secret(client: ApiWriter, name: str) -> bool:
    """Whether our namespace has a Secret of that name. Raises `errors.KubeError`."""
    try:
        await client.get(SECRETS.path(names.NAMESPACE, name))
    except errors.NotFound:
        return False
    return True


async def ensure_namespace(client: ApiWriter) -> None:
    """Create our namespace where it is not there, marked as ours to remove. Raises `errors.KubeError`."""
    body = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": names.NAMESPACE, "labels": _LABELS, "annotations": {CREATED: "true"}},
    }
    if await _namespace(client) is None:
        with contextlib.suppress(errors.AlreadyExists):  # somebody else was faster
            await client.create_object(NAMESPACES.path(), body=body)


async def has_namespace(client: ApiWriter) -> bool:
    """Whether our namespace is there, if only on its way out. Raises `errors.KubeError`."""
    return await _namespace(client) is not None


async def is_namespace_ending(client: ApiWriter) -> bool:
    """Whether our namespace is on its way out. Raises `errors.KubeError`."""
    namespace = await _namespace(client)
    return namespace is not None and namespace.deleting


async def created_namespace(client: ApiWriter) -> bool:
    """Whether our namespace is there and was made to keep a record in. Raises `errors.KubeError`."""
    namespace = await _namespace(client)
    return namespace is not None and CREATED in namespace.annotations


async def delete_namespace(client: ApiWriter) -> None:
    """Delete our namespace. Raises `errors.KubeError`."""
    await client.delete_object(NAMESPACES.path(name=names.NAMESPACE))


async def _namespace(client: ApiWriter) -> ObjectMeta | None:
    try:
        raw = await client.get(NAMESPACES.path(name=names.NAMESPACE))
    except errors.NotFound:
        return None
    return msgspec.json.decode(raw, type=_Stub).metadata
