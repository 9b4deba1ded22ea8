"""Edits of a pod template under a running job: mpi-operator v0.2.3 never changes a pod that is there; pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mpijob_elastic.model.mpijob import Wire

_EMPTY = msgspec.Raw(b"null")


class Replica(Wire, frozen=True):
    """Launcher or Worker; the template as it was sent."""

    template: msgspec.Raw = _EMPTY


class Specs(Wire, frozen=True, rename="pascal"):
    """`mpiReplicaSpecs`."""

    launcher: Replica | None = None
    worker: Replica | None = None


class Spec(Wire, frozen=True):
    """`spec`."""

    mpi_replica_specs: Specs | None = None


class Templates(Wire, frozen=True):
    """A MPIJob, of which only the templates matter."""

    spec: Spec | None = None

    @property
    def specs(self) -> Specs:
        """Both replica specs."""
        return (self.spec.mpi_replica_specs if self.spec else None) or Specs()


def changed(after: Templates, before: Templates) -> Iterator[str]:
    """What becomes of an edit of a job that has started."""
    new, old = after.specs, before.specs
    if _differ(new.launcher, old.launcher):
        yield "Launcher.template: the launcher that is there keeps the former one until it is created anew"
    if _differ(new.worker, old.worker):
        yield "Worker.template: workers that are there keep the former one; only those created later get the edit"


def _differ(one: Replica | None, other: Replica | None) -> bool:
    # The API server writes both objects alike; only where the bytes differ it may be the order of keys.
    new, old = (one or Replica()).template, (other or Replica()).template
    return bytes(new) != bytes(old) and msgspec.json.decode(new) != msgspec.json.decode(old)
