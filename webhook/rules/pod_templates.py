"""Warn about edits of a pod template: mpi-operator v0.2.3 never changes an existing pod; pure."""

import msgspec

from mpijob_elastic.model.wire import Wire

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
    """The pod templates of an MPIJob."""

    spec: Spec | None = None

    @property
    def specs(self) -> Specs:
        """Both replica specs."""
        return (self.spec.mpi_replica_specs if self.spec else None) or Specs()


_decoder = msgspec.json.Decoder(Templates)


def changed(after: msgspec.Raw, before: msgspec.Raw) -> tuple[str, ...]:
    """Return what an edit of a started job does. Raises msgspec.DecodeError if either is no MPIJob."""
    new, old = _decoder.decode(after).specs, _decoder.decode(before).specs
    warnings = []
    if _differ(new.launcher, old.launcher):
        warnings.append("Launcher.template: the existing launcher keeps the old template until it is recreated")
    if _differ(new.worker, old.worker):
        warnings.append(
            "Worker.template: existing workers keep the old template; only workers created later get the new one"
        )
    return tuple(warnings)


def _differ(after: Replica | None, before: Replica | None) -> bool:
    # The API server writes both objects alike; differing bytes may still differ only in the order of keys.
    new, old = (after or Replica()).template, (before or Replica()).template
    return bytes(new) != bytes(old) and msgspec.json.decode(new) != msgspec.json.decode(old)
