"""History: who set the size of a job last, by the managers of its fields, and what our own annotations say."""

from collections.abc import Sequence
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.model import history
from mpijob_elastic.model.capability import Known
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.policy import Policy, Problem
from mpijob_elastic.model.wire import shared

# The program of the HPA controller, which writes to the scale subresource.
_HPA = ("kube-controller-manager", "scale")
# Characters of them that are kept; ours are shorter.
_LONGEST_PHASE, _LONGEST_CHANGE = 32, 512


@dataclass(frozen=True, kw_only=True)
class Sized(Known):
    """Who set the size: the field manager, when (seconds since the epoch), and whether that is an HPA.

    edited_by: the one who set or removed anything last. phase, change: what our annotations say; change: of a size that
    the history does not have yet.
    """

    by: str
    at: float
    is_hpa: bool = False
    edited_by: str = ""
    phase: str = ""
    change: str = ""


def asked(job: MPIJob, _known: Policy) -> tuple[Sized | None, Sequence[Problem]]:
    """Return who set the size; None where nobody is known to have."""
    found = job.sized
    if found is None:
        return None, ()
    said = job.metadata.annotations
    sized = Sized(
        by=shared(history.short(found.manager, most=history.LONGEST_MANAGER)),
        at=found.at,
        edited_by=shared(history.short(job.edited_by, most=history.LONGEST_MANAGER)),
        is_hpa=(found.manager, found.subresource) == _HPA,
        phase=shared(said.get(names.PHASE, "")[:_LONGEST_PHASE]),
        change=said.get(names.CHANGE, "")[:_LONGEST_CHANGE],
    )
    return sized, ()
