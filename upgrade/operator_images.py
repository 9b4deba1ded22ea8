"""Which operator looks after MPIJobs, told by its image; pure.

Only v0.2.3 has been tried. v0.3.0 and later and the training-operator are elastic themselves: two
controllers that delete the same workers would make every job worse.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

KNOWN = (0, 2, 3)
_FIRST_ELASTIC = (0, 3, 0)
_NAMES = ("mpi-operator", "training-operator")
_VERSION = re.compile(r"v?(?P<major>\d+)\.(?P<minor>\d+)(\.(?P<patch>\d+))?")


class Kind(StrEnum):
    """What to think of it. elastic: it does itself what we do; other: of the family of v0.2.3, but never tried."""

    KNOWN = "known"
    ELASTIC = "elastic"
    OTHER = "other"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, order=True)
class Operator:
    """One operator. where: of what, as `Deployment mpi-operator/mpi-operator`; version: "" where its image has none."""

    where: str
    image: str
    version: str
    kind: Kind

    def __str__(self) -> str:
        version = f"version {self.version}" if self.version else "version unknown"
        return f"{self.where} ({self.image}, {version}: {self.kind})"


def recognise(where: str, image: str, command: tuple[str, ...] = ()) -> Operator | None:
    """The operator that runs this image with this command; None where it is none."""
    repository, tag = _split(image)
    name = repository.rpartition("/")[2]
    if name not in _NAMES:
        return None
    match = _VERSION.match(tag)
    version = tag.removeprefix("v") if match else ""
    kind = Kind.ELASTIC if name != _NAMES[0] or any("v2beta" in part for part in command) else _kind(match)
    return Operator(where=where, image=image, version=version, kind=kind)


def _kind(version: re.Match[str] | None) -> Kind:
    if version is None:
        return Kind.UNKNOWN
    number = tuple(int(version[part] or 0) for part in ("major", "minor", "patch"))
    if number >= _FIRST_ELASTIC:
        return Kind.ELASTIC
    return Kind.KNOWN if number == KNOWN else Kind.OTHER


def _split(image: str) -> tuple[str, str]:
    """The repository and the tag; a digest says nothing of a version, and a colon before a slash is a port."""
    name = image.partition("@")[0]
    repository, colon, tag = name.rpartition(":")
    return (repository, tag) if colon and "/" not in tag else (name, "")
