"""The record: what the cluster held before the first change, which is the way back.

It is a Secret in our namespace, because not everybody may read the objects in it, created in one write and never
changed. It is compressed, because the definition and the objects are large and a Secret holds 1 MiB. It has a checksum,
because an edited record is no way back. Its annotation shows people the phase; nothing is decided by it.
"""

import base64
import contextlib
import datetime as dt
import gzip
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from mpijob_elastic import __version__, names
from mpijob_elastic.install import inventory, objects
from mpijob_elastic.install.objects import Identity, Manifest, identity
from mpijob_elastic.install.refusal import Refused
from mpijob_elastic.install.server_side_apply import Applier
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import NAMESPACES, SECRETS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from upgrade import namespaces

NAME = "mpijob-elastic-upgrade"
# The record of the definition alone, before `install` made it scalable.
DEFINITION = "mpijob-elastic-definition"
PATH = SECRETS.path(names.NAMESPACE, NAME)
PHASE = f"{names.PREFIX}upgrade"
LABELS = {"app.kubernetes.io/name": names.PROGRAM}
# Our programs create these Secrets in our namespace.
SECRETS_OF_OURS = (names.CERTIFICATE_SECRET,)
KEY = "before"
CHECKSUM = "sha256"
# https://kubernetes.io/docs/concepts/configuration/secret/#restriction-data-size; base64 does not count.
MOST_BYTES = 2**20 - 1024
_BROKEN = (
    "the recorded state before has been changed or damaged since, so it cannot be restored; put the Secret back from a "
    "backup, or remove the installation with `mpijob-elastic uninstall --no-scale` and correct the definition by hand"
)


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The state before.

    taken_at: RFC 3339. version: of this program. crd: the definition of MPIJobs. objects: those with a name of ours,
    with all their fields. secrets: the names of our Secrets, whose content is not copied.
    """

    taken_at: str
    version: str
    crd: dict[str, Any]
    objects: tuple[dict[str, Any], ...] = ()
    secrets: tuple[str, ...] = ()

    def find(self, wanted: Identity) -> Manifest | None:
        """Return the object as it was; None if it did not exist."""
        return next((found for found in self.objects if identity(found) == wanted), None)


class Phase(StrEnum):
    """The progress of an upgrade."""

    APPLYING = "applying"
    APPLIED = "applied"
    ROLLING_BACK = "rolling-back"


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The record, and the phase; "" if somebody removed it."""

    record: Record
    phase: str


def pack(record: Record) -> dict[str, str]:
    """Return the data of the Secret, in base64. Raises `Refused` if it is too large."""
    plain = msgspec.json.encode(record)
    packed = gzip.compress(plain, mtime=0)
    if len(packed) > MOST_BYTES:
        raise Refused(
            f"the state before the upgrade takes {len(packed)} bytes even when compressed, and a Secret holds "
            f"{MOST_BYTES}: without a record there is no way back, so nothing was changed"
        )
    digest = hashlib.sha256(plain).hexdigest()
    return {KEY: base64.b64encode(packed).decode(), CHECKSUM: base64.b64encode(digest.encode()).decode()}


def unpack(data: Mapping[str, str]) -> Record:
    """Return the record in a Secret's data. Raises `Refused` if it was changed."""
    try:
        plain = gzip.decompress(base64.b64decode(data[KEY]))
        intact = hashlib.sha256(plain).hexdigest() == base64.b64decode(data[CHECKSUM]).decode()
        record = msgspec.json.decode(plain, type=Record)
    except (KeyError, ValueError, EOFError, OSError, msgspec.MsgspecError) as error:
        raise Refused(f"{_BROKEN} ({error})") from error
    if not intact:
        raise Refused(_BROKEN)
    return record


async def read(client: ApiReader, name: str = NAME) -> Kept | None:
    """Return the record, None if there is none. Raises `Refused` if it is damaged, and `errors.KubeError`."""
    raw = await client.find(SECRETS.path(names.NAMESPACE, name))
    if raw is None:
        return None
    secret = objects.read(raw)
    phase = secret["metadata"].get("annotations", {}).get(PHASE, "")
    return Kept(record=unpack(secret.get("data") or {}), phase=phase)


async def keep(client: ApiWriter, applier: Applier, wanted: Iterable[Manifest], crd: Mapping[str, Any]) -> str:
    """Make sure that there is a record, and say which. Raises `Refused` and `errors.KubeError`.

    The first record stays true for ever.
    """
    namespace = await namespaces.find(client, names.NAMESPACE)
    if namespace is not None and namespace.deleting:
        raise Refused(
            f"namespace {names.NAMESPACE} is still ending, and a record in it would go with it; "
            "run the same command again when it is gone"
        )
    if kept := await read(client):
        await set_phase(client, Phase.APPLYING)
        return f"the state of {kept.record.taken_at} is already recorded, and a rollback goes back to that"
    await namespaces.ensure(client, names.NAMESPACE, namespaces.FOR_RECORD, labels=LABELS)
    taken = await _take(client, applier, wanted, crd)
    if not await _create(client, NAME, taken, annotations={PHASE: Phase.APPLYING}):
        return "somebody else has just recorded the state before the upgrade; a rollback goes back to that"
    return f"the state before is recorded in Secret {names.NAMESPACE}/{NAME}"


async def keep_definition(client: ApiWriter, crd: Mapping[str, Any]) -> None:
    """Make sure that there is a record of the definition alone; the first stays. Raises as `keep` does."""
    if await read(client, DEFINITION) is None:
        await _create(client, DEFINITION, Record(taken_at=_now(), version=__version__, crd=dict(crd)))


async def _create(client: ApiWriter, name: str, content: Record, annotations: Mapping[str, str] | None = None) -> bool:
    """Create the Secret; return False if there is one already."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": LABELS, "annotations": annotations or {}},
        "immutable": True,
        "type": "Opaque",
        "data": pack(content),
    }
    try:
        await client.create_object(SECRETS.path(names.NAMESPACE), body=secret)
    except errors.AlreadyExists:
        return False
    return True


async def set_phase(client: ApiWriter, phase: Phase) -> None:
    """Show the phase on the record. Raises `errors.KubeError`."""
    body = {"metadata": {"annotations": {PHASE: phase}}}
    await client.patch_object(PATH, body=body, content_type=MERGE_PATCH)


async def delete(client: ApiWriter, name: str = NAME) -> None:
    """Delete the record, or another Secret in our namespace, if it is still there. Raises `errors.KubeError`."""
    with contextlib.suppress(errors.NotFound):
        await client.delete_object(SECRETS.path(names.NAMESPACE, name))


async def _take(client: ApiReader, applier: Applier, wanted: Iterable[Manifest], crd: Mapping[str, Any]) -> Record:
    found = {one.identity for one in await inventory.find(client, applier.server, inventory.manifests())}
    served = {identity(manifest) for manifest in wanted if applier.server.serves(manifest)}
    lives = [await _before(applier, one) for one in sorted(found | served)]
    secrets = [name for name in SECRETS_OF_OURS if await client.find(SECRETS.path(names.NAMESPACE, name))]
    return Record(
        taken_at=_now(),
        version=__version__,
        crd=dict(crd),
        objects=tuple(live for live in lives if live),
        secrets=tuple(secrets),
    )


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


async def _before(applier: Applier, one: Identity) -> dict[str, Any] | None:
    live = await applier.read(one)
    if live and one.kind == NAMESPACES.kind and namespaces.CREATED in live["metadata"].get("annotations", {}):
        return None  # created a moment ago, to keep the record in
    return {**live, "apiVersion": one.api_version, "kind": one.kind} if live else None
