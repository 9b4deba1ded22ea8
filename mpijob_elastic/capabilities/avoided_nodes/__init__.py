"""Avoided nodes: new workers prefer other nodes than one that has lost several of the job's ranks.

A faulty node often stays in the cluster for days, and each rank that it takes with it costs
training a pause. The scheduler knows nothing of that, and may even choose that node again, because
it is empty now and has the image. A preference is enough: if there is no room elsewhere, a worker
on that node is better than no worker.

The losses are counted in the job's memory (`losses`). A notice names the nodes, and the webhook
reads this notice when the next worker is created (`words`, `admission`).
"""

from collections.abc import Collection, Iterable

from mpijob_elastic.capabilities.avoided_nodes import losses, words
from mpijob_elastic.decide.actions import Note
from mpijob_elastic.decide.capability import Capability, Record
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.wishes import Wish
from mpijob_elastic.model.job import JobView


class AvoidedNodes(Capability):
    """An elastic job that may be about to lose a worker, or has lost some."""

    name = "avoided nodes"

    @classmethod
    def told(cls, view: JobView) -> Capability | None:
        """Return the capability if the job remembers losses, or a listed worker is not well."""
        if not view.elastic:
            return None
        return cls() if losses.NAME in view.memory.own or losses.may_come(view) else None

    def remember(self, state: JobState, published: Collection[str]) -> Iterable[Record]:
        """Yield the losses by node; none for a job that has had none."""
        entry = losses.entry(state, published)
        if entry is not None:
            yield Record(name=losses.NAME, json=entry)

    def wishes(self, view: JobView, *, now: float) -> Iterable[Wish]:
        """Yield a wish to see the job again when a node is avoided no more."""
        until = losses.ends_at(view, now=now)
        if until is not None:
            yield Wish(by=self.name, until=until)

    def notes(self, state: JobState) -> Iterable[Note]:
        """Yield the notice that names the avoided nodes."""
        nodes = losses.avoided(state.view, now=state.now)
        if nodes:
            yield words.note(state.view.name, nodes)
