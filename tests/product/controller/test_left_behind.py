"""When the ranks of a worker whose job is gone are ended."""

import pytest

from mpijob_elastic.act.worker_probes import Prober
from mpijob_elastic.controller.reconcile import end_ranks
from mpijob_elastic.model.json_parts import Owned
from mpijob_elastic.model.pod import PodFacts
from mpijob_elastic.observe.watching import JobKey

KEY, DELETED_AT = JobKey("n", "train"), 1000.0


class Ended(Prober):
    """Remembers whose ranks were to be ended."""

    def __init__(self) -> None:
        self.pods: list[tuple[str, PodFacts]] = []

    def end(self, job: tuple[str, str], pod: PodFacts) -> None:
        self.pods.append(("/".join(job), pod))


def worker(*, grace: int) -> PodFacts:
    """A worker that was deleted with so many seconds."""
    return PodFacts(
        metadata=Owned(name="train-worker-0", namespace="n", uid="u", resource_version="1"),
        role="worker",
        phase="Running",
        created_at=1.0,
        deleting=True,
        containers=("proxy", "main"),
        ends_at=DELETED_AT + grace,
        grace=grace,
    )


@pytest.mark.parametrize(
    ("grace", "after", "ended", "wait"),
    [
        (300, 0.0, False, 30.0),
        (300, 29.5, False, 0.5),
        (300, 30.0, True, 5.0),
        (31, 30.5, True, 5.0),
        (30, 40.0, False, None),
    ],
)
def test_ranks_get_the_time_that_kubernetes_gives_by_default(
    grace: int, after: float, wait: float | None, *, ended: bool
) -> None:
    prober, pod = Ended(), worker(grace=grace)
    assert end_ranks(KEY, [pod], prober, now=DELETED_AT + after) == wait
    assert prober.pods == [("n/train", pod)] * ended
