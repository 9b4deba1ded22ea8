"""Missed fields: pods that were created while nobody put back what the operator drops.

The webhook puts fields of a template back when a pod is created, and marks the pod
(`admission.template_fields`). A pod without the mark is named, with the fields. It is made again if
one of them would isolate the pod, and the pod has not started.
"""

from collections.abc import Iterable, Iterator

from mpijob_elastic import names
from mpijob_elastic.decide.actions import Note, warning
from mpijob_elastic.decide.capability import Capability
from mpijob_elastic.decide.state import JobState, honest
from mpijob_elastic.decide.wishes import Leave, LeaveKind, Relaunch, Wish
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.model.pod import NOT_STARTED, Launcher, PodFacts, Worker

# On a pod, written by the webhook that has put its fields back.
MARK = names.PUT_BACK
# Seconds after which a pod that lacks a field is made again: until then its kubelet, or the gates
# that its author wants, may be about to start it as it is.
_MADE_AGAIN_AFTER = 5.0
_WHY = "was created without the fields that isolate it while the webhook was down"


class MissedFields(Capability):
    """A job whose pods get back what the operator drops."""

    name = "missed fields"

    @classmethod
    def told(cls, view: JobView) -> Capability | None:
        """Return the capability for a job that wants fields put back."""
        return cls() if view.facts.template_fields else None

    def wishes(self, view: JobView, *, now: float) -> Iterable[Wish]:
        """Yield a wish for each pod that lacks an isolating field and has not started."""
        asked = view.facts.template_fields
        if asked is None:
            return
        if names.ROLE_WORKER in asked.isolates:
            for worker in view.workers:
                if _lacks_fields(worker.facts) and worker.facts.phase == "Pending":
                    yield Leave(
                        by=self.name,
                        pod=worker.name,
                        kind=LeaveKind.REPLACE,
                        why=f"because it {_WHY}",
                        after=_made_again_at(worker, now=now),
                    )
        launcher = view.launcher
        if names.ROLE_LAUNCHER not in asked.isolates or launcher is None:
            return
        if _lacks_fields(launcher.facts) and launcher.phase in NOT_STARTED:
            yield Relaunch(by=self.name, why=_WHY, after=_made_again_at(launcher, now=now))

    def notes(self, state: JobState) -> Iterator[Note]:
        """Yield a notice for the pods of each role that lack fields of their template."""
        view = state.view
        asked = view.facts.template_fields
        if asked is None:
            return
        for role, fields in asked.names.items():
            lacking = [
                pod.ref.name
                for pod in view.pods
                if pod.facts.role == role and _lacks_fields(pod.facts)
            ]
            if lacking:
                yield warning(
                    "TemplateFieldsMissed",
                    f"{listed(lacking)} made without {listed(fields)} of its template: the "
                    f"webhook {names.WEBHOOK} was away, or the template had no such field then. "
                    "A worker that is deleted comes back with the fields",
                )


def _lacks_fields(pod: PodFacts) -> bool:
    """Tell whether the webhook put nothing back on a pod that stays."""
    return MARK not in pod.marks and not pod.deleting


def _made_again_at(pod: Launcher | Worker, *, now: float) -> float:
    return honest(pod.facts.created_at, now=now) + _MADE_AGAIN_AFTER
