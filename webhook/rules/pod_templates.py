"""Warn about edits of a pod template: mpi-operator v0.2.3 never changes an existing pod; pure."""

import msgspec

from mpijob_elastic.model.wire import Wire

_EMPTY = msgspec.Raw(b"null")


class Spec(Wire, frozen=True):
    """`spec`; the fields of each replica spec as they were sent."""

    mpi_replica_specs: dict[str, dict[str, msgspec.Raw] | None] | None = None


class Templates(Wire, frozen=True):
    """The pod templates of an MPIJob."""

    spec: Spec | None = None

    def of(self, role: str) -> msgspec.Raw:
        """Return the template of Launcher or Worker."""
        specs = (self.spec.mpi_replica_specs if self.spec else None) or {}
        return (specs.get(role) or {}).get("template", _EMPTY)


_decoder = msgspec.json.Decoder(Templates)


def changed(after: msgspec.Raw, before: msgspec.Raw, *, queued: bool = False) -> tuple[str, ...]:
    """Return what an edit of a started job does; queued: Kueue gave it quota. Raises msgspec.DecodeError for others."""
    new, old = _decoder.decode(after), _decoder.decode(before)
    warnings = []
    if _differ(new.of("Launcher"), old.of("Launcher")):
        warnings.append("Launcher.template: for the next launcher: suspend and resume the job (this restarts training)")
    if _differ(new.of("Worker"), old.of("Worker")):
        warnings.append(
            "Worker.template: existing workers keep the old template; only workers created later get the new one"
        )
    if warnings and queued:
        warnings.append("the job keeps the quota that its old pods asked for; to ask again, suspend and resume it")
    return tuple(warnings)


def _differ(new: msgspec.Raw, old: msgspec.Raw) -> bool:
    # The API server writes both objects alike; differing bytes may still differ only in the order of keys.
    return bytes(new) != bytes(old) and msgspec.json.decode(new) != msgspec.json.decode(old)
