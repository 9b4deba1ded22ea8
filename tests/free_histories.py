"""Random histories of jobs without a queue: those of `queued_histories`, with parked workers and lists of sizes.

A job in a queue parks no workers, so these jobs begin without a queue. They may join one.
"""

from typing import ClassVar

from mpijob_elastic.capabilities.parking.facts import PARKED
from tests.queued_histories import History


class FreeHistory(History):
    """A history as it goes on."""

    LABELS: ClassVar = {}
    KINDS = (
        *("park",) * 6,
        *("size", "sizes") * 3,
        *("least", "suspend", "fail", "lose", "relaunch", "queue", "crash", "lag", "pass", "finish", "delete", "forge"),
        *("crash", "lag", "fail", "lose"),
    )

    def _create(self, name: str, *, least: int, **more: str) -> None:
        """Create a job; that with the least size has a worker parked from the beginning."""
        super()._create(name, least=least, **({PARKED: "0,3"} if least == 1 else {}), **more)
