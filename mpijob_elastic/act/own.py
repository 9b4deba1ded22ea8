"""Who does the own writes of a capability."""

from collections.abc import Sequence
from typing import Protocol

from mpijob_elastic.decide.actions import Action, Ungate
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.model.job import JobView

# An operation of a JSON patch.
Operation = dict[str, object]


class Own(Protocol):
    """Carries out the writes of some kinds."""

    @property
    def kinds(self) -> tuple[type, ...]:
        """The kinds of its writes."""

    async def perform(self, view: JobView, action: Action) -> None:
        """Carry out a write of these kinds.

        Raises errors.KubeError or NotLeader; it is then unknown whether anything has changed.
        """

    def forget(self, namespace: str, name: str) -> None:
        """Forget a job that is gone."""

    async def place(self, view: JobView, pod: Identity, action: Ungate) -> Sequence[Operation]:
        """Return what a pod gets beside the loss of its gates, first its precondition; nothing if that is not ours."""
