"""Writes that are refused: what is told of them."""

from mpijob_elastic.controller.per_job_state import Refusals
from mpijob_elastic.decide.actions import DeleteWorkers, Removal, normal
from mpijob_elastic.decide.state import REFUSED_OFTEN
from mpijob_elastic.kube.errors import Forbidden
from mpijob_elastic.observe.watching import JobKey
from tests.builders import worker

KEY = JobKey("default", "j")
DENIED = Forbidden(
    status=403, reason="Forbidden", message="a policy denies it: " + "x" * 5_000, retry_after=None
)


def deletion(index: int) -> DeleteWorkers:
    note = normal("SurplusDeleted", f"j-worker-{index} is being deleted" + "x" * 5_000)
    return DeleteWorkers(removals=(Removal(worker=worker(index), outcome="idle", note=note),))


def test_what_is_told_of_a_refusal_stays_while_another_of_its_kind_is_new() -> None:
    refusals = Refusals()
    told = [refusals.add(KEY, deletion(1), DENIED) for _ in range(REFUSED_OFTEN)]
    assert [note is not None for note in told] == [False] * (REFUSED_OFTEN - 1) + [True]
    words = refusals.seen(KEY)
    refusals.add(KEY, deletion(2), DENIED)
    assert refusals.seen(KEY) == words
    assert "j-worker-1 is being deleted" in words[DeleteWorkers]
    assert len(words[DeleteWorkers]) < 1_100
