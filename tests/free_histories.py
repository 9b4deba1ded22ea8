"""Random histories of jobs without a queue: those of `queued_histories`, with parked workers and lists of sizes.

A job in a queue parks no workers, so these jobs begin without a queue. They may join one.
"""

from collections.abc import Sequence
from typing import ClassVar

from mpijob_elastic.capabilities.parking import PARKED
from mpijob_elastic.capabilities.sizes import SIZES
from tests.queued_histories import History

SLOW = 40.0  # seconds between the starts of two pods: shorter than what counts as rest


class FreeHistory(History):
    """A history as it goes on."""

    LABELS: ClassVar = {}
    KINDS: ClassVar[Sequence[str]] = (
        *("park",) * 6,
        *("size", "sizes") * 3,
        *(
            "least",
            "suspend",
            "fail",
            "lose",
            "relaunch",
            "queue",
            "crash",
            "lag",
            "pass",
            "finish",
            "delete",
            "forge",
        ),
        *("crash", "lag", "fail", "lose", "slow", "slow", "slow"),
    )

    def _create(self, name: str, *, least: int, **more: str) -> None:
        """Create a job: one has workers parked from the beginning, the next certain sizes."""
        super()._create(
            name, least=least, **({PARKED: "0,3"} if least == 1 else {SIZES: "2,4"}), **more
        )

    def _step(self, kind: str, name: str, number: int) -> None:
        """Do a step; a slow cluster starts one pod after the other, so a list could grow by one."""
        if kind == "slow":
            self.cluster.slow = SLOW - self.cluster.slow
        else:
            super()._step(kind, name, number)
