"""What stood in the cluster before the first change: the way back; pure, from objects to the data of a Secret and back.

It is compressed, for the definition and the objects of an installation are large and a Secret holds 1 MiB, and it
carries a checksum, for a record that was edited is no way back. A Secret, because the objects are not for all to read.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from typing import Any

import msgspec

from mpijob_elastic.install.objects import Identity, Manifest, identity
from upgrade.refusal import Refused

KEY = "before"
CHECKSUM = "sha256"
# https://kubernetes.io/docs/concepts/configuration/secret/#restriction-data-size; base64 is not counted.
MOST_BYTES = 2**20 - 1024


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The state before.

    taken_at: RFC 3339. version: of this program. crd: the definition of MPIJobs. objects: those that have a name of
    ours, with all their fields. secrets: the names of Secrets of ours, whose content is not copied.
    """

    taken_at: str
    version: str
    crd: dict[str, Any]
    objects: tuple[dict[str, Any], ...] = ()
    secrets: tuple[str, ...] = ()

    def find(self, one: Identity) -> Manifest | None:
        """The object as it was; None where it was not."""
        return next((found for found in self.objects if identity(found) == one), None)


def pack(record: Record) -> dict[str, str]:
    """The data of the Secret, in base64. Raises `Refused` where it is too large for one."""
    plain = msgspec.json.encode(record)
    packed = gzip.compress(plain, mtime=0)
    if len(packed) > MOST_BYTES:
        raise Refused(
            f"the state before the upgrade takes {len(packed)} bytes even when compressed, and a Secret holds "
            f"{MOST_BYTES}: without a record there is no way back, so nothing was changed"
        )
    digest = hashlib.sha256(plain).hexdigest()
    return {KEY: base64.b64encode(packed).decode(), CHECKSUM: base64.b64encode(digest.encode()).decode()}


def unpack(data: dict[str, str]) -> Record:
    """The record in a Secret's data. Raises `Refused` where it is not what was once written."""
    try:
        plain = gzip.decompress(base64.b64decode(data[KEY]))
        intact = hashlib.sha256(plain).hexdigest() == base64.b64decode(data[CHECKSUM]).decode()
        record = msgspec.json.decode(plain, type=Record)
    except (KeyError, ValueError, EOFError, OSError, msgspec.MsgspecError) as error:
        raise Refused(f"{_BROKEN} ({error})") from error
    if not intact:
        raise Refused(_BROKEN)
    return record


_BROKEN = (
    "the recorded state before the upgrade has been changed or damaged since, so it cannot be restored; put the Secret "
    "back from a backup, or take the installation away with `mpijob-elastic uninstall` and mend the definition by hand"
)
