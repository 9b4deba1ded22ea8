"""A sign on many of a job's nodes: workers leave one at a time. And faulty devices."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.capabilities.disruption import Disruption
from mpijob_elastic.capabilities.disruption.eviction import Eviction
from mpijob_elastic.decide import decide, derive, moves
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Memory
from mpijob_elastic.model.pod import Worker
from mpijob_elastic.model.policy import Policy
from tests.builders import NOW, but, config, job, left, pods, tries, worker
from tests.product.decide.plans import change, does, those

SIGN = "condition KernelReady=False"


def doomed(index: int, **facts: Any) -> Worker:
    """A worker on a node of its own that has a report on it."""
    known = {"disruption": SIGN, "can_wait": True, "node": f"n{index}"}
    return worker(index, **{**known, **facts})


def sound(index: int, **facts: Any) -> Worker:
    return worker(index, node=f"n{index}", **facts)


def workers(*going: int, count: int, **facts: Any) -> tuple[Worker, ...]:
    return tuple(
        doomed(index, **facts) if index in going else sound(index) for index in range(count)
    )


def leaving(view: JobView, *, now: float = NOW) -> tuple[str, ...]:
    return those(view, lambda one: one.moves_now, now=now)


def reasons(view: JobView) -> list[str]:
    state = derive(view, now=NOW)
    return [note.reason for one in state.view.all_of(Disruption) for note in one.notes(state)]


@pytest.mark.parametrize(
    ("view", "leave"),
    [
        # A third of the nodes is not many, and one node is none too many.
        (job(6, workers=workers(1, 3, count=6)), (1, 3)),
        (job(6, workers=workers(1, 3, 5, count=6)), (5,)),
        (job(4, workers=workers(1, 3, count=4)), (3,)),
        (job(2, workers=workers(1, count=2)), (1,)),
        (job(4, workers=workers(1, 2, 3, count=4, node="one")), (1, 2, 3)),
        # Nodes count, not workers: here two of six.
        (
            job(
                8,
                workers=(
                    *(doomed(index, node="a") for index in (0, 1, 2)),
                    doomed(3),
                    *(sound(index) for index in (4, 5, 6, 7)),
                ),
            ),
            (0, 1, 2, 3),
        ),
        # Two signs on a node each are not one sign on many.
        (job(5, workers=(*workers(3, count=4), doomed(4, disruption="label a=b"))), (3, 4)),
        # But one sign may have a value of its own on each node.
        (
            job(
                4,
                workers=(
                    *workers(count=2),
                    doomed(2, disruption="label a=b"),
                    doomed(3, disruption="label a=c"),
                ),
            ),
            (3,),
        ),
        # A node that goes at a set time does not wait for others.
        (job(4, workers=workers(1, 2, 3, count=4, can_wait=False)), (1, 2, 3)),
        # It stands there already, although it does not count yet on one of the nodes.
        (
            job(
                4,
                workers=(*workers(count=2), doomed(2), doomed(3, disruption_from=NOW + 9)),
            ),
            (2,),
        ),
        # It counts on no node yet.
        (job(4, workers=workers(2, 3, count=4, disruption_from=NOW + 9)), ()),
        # One that is being deleted goes by itself.
        (job(4, workers=(sound(0), doomed(1), doomed(2), doomed(3, deleting=True))), (2,)),
        # Faulty devices are such reports, too.
        (
            job(
                4,
                workers=tuple(
                    worker(index, node=f"n{index}", unhealthy="nvidia.com/gpu")
                    for index in range(4)
                ),
            ),
            (3,),
        ),
        (job(4, workers=workers(1, 3, count=4), elastic=False), ()),
    ],
)
def test_workers_leave_one_at_a_time_where_one_sign_is_on_many_nodes(
    view: JobView, leave: tuple[int, ...]
) -> None:
    assert leaving(view) == pods(*leave)


def under_way(*, ago: float = 20.0, uid: str = "uid-of-j-worker-3") -> Memory:
    """The memory once worker-3 has left the list, and its move is counted."""
    return Memory(
        moved={"j-worker-3": tries(1, ago=ago, uid=uid)},
        left={"j-worker-3": left("j-worker-3", ago=ago)},
        removed_at=NOW - ago,
    )


def after(last: Worker | None, *listed: int, memory: Memory | None = None) -> JobView:
    """Workers 1, 2 and 3 were under the sign, and worker-3 has left."""
    found = (*workers(1, 2, count=3), *([last] if last else []))
    known = config(pods(*(listed or (0, 1, 2))), memory=memory or under_way())
    return job(4, config=known, workers=found).shown(at=NOW - 20)


@pytest.mark.parametrize(
    ("view", "leave"),
    [
        # It drains, it is gone, its successor starts, is Ready, and is in the list.
        (after(doomed(3)), (3,)),
        (after(None), ()),
        (after(worker(3, uid="new", node="", ready_at=None)), ()),
        (after(worker(3, uid="new", node="n9")), ()),
        (after(worker(3, uid="new", node="n9"), 0, 1, 2, 3), (2,)),
        # The successor came to such a node again: it does not let another go first.
        (after(doomed(3, uid="new"), 0, 1, 2, 3), (3,)),
        # It does not come back: half an hour later the next may leave.
        (after(None, memory=under_way(ago=1799)), ()),
        (after(None, memory=under_way(ago=1801)), (2,)),
        # Nobody waits for a worker that the size does not ask for any more.
        (but(after(None), replicas=3), (2,)),
    ],
)
def test_the_next_leaves_once_the_one_before_trains_again(
    view: JobView, leave: tuple[int, ...]
) -> None:
    assert leaving(view) == pods(*leave)


def test_the_job_is_looked_at_again_when_the_next_may_leave_all_the_same() -> None:
    assert decide(after(None, memory=under_way(ago=1700)), now=NOW).wake_at == NOW + 100


def test_a_worker_that_moved_in_vain_too_often_lets_the_next_go() -> None:
    stays = Memory(moved={"j-worker-3": tries(3, ago=60, uid="before")})
    view = job(4, workers=workers(1, 2, 3, count=4), config=config(pods(0, 1, 2, 3), memory=stays))
    assert leaving(view) == pods(2)


def test_an_evicted_worker_does_not_wait_for_its_turn() -> None:
    evicted = doomed(1, eviction=Eviction(released=False, at=NOW - 1))
    view = job(4, workers=(sound(0), evicted, doomed(2), doomed(3)))
    assert leaving(view) == pods(1, 3)


def test_a_widespread_sign_is_told_as_long_as_it_moves_workers() -> None:
    many, few = workers(1, 3, count=4), workers(3, count=4)
    later = workers(1, 3, count=4, disruption_from=NOW + 9)
    assert reasons(job(4, workers=many)) == ["DisruptionWidespread"]
    assert reasons(job(4, workers=few)) == []
    assert reasons(job(4, workers=later)) == []
    assert reasons(job(4, workers=many, elastic=False)) == []
    state = derive(job(4, workers=many), now=NOW)
    [note] = [note for one in state.view.all_of(Disruption) for note in one.notes(state)]
    assert "condition KernelReady stands on more than a third of the nodes of j" in note.message
    assert "one at a time" in note.message


@given(st.data())
def test_at_most_one_more_worker_leaves_at_a_time(data: st.DataObject) -> None:
    """Whatever is out of the list already, and whatever was moved before."""
    count = data.draw(st.integers(2, 6))
    listed = data.draw(st.sets(st.integers(0, count - 1)))
    moved = data.draw(
        st.dictionaries(
            st.sampled_from(pods(*range(count))),
            st.tuples(st.integers(1, 4), st.sampled_from([0.0, 60.0, 1790.0]), st.booleans()),
        )
    )
    memory = Memory(
        moved={
            pod: tries(times, ago=ago, uid=f"uid-of-{pod}" if own else "before")
            for pod, (times, ago, own) in moved.items()
        }
    )
    view = job(
        count,
        workers=workers(*range(count), count=count),
        config=config(pods(*sorted(listed)), memory=memory),
    )
    gone = set(leaving(view)) & set(view.host_of)
    assert len(gone) <= 1
    if any(pod not in view.host_of for pod in moved):
        assert not gone, "one is under way"


FAULTY: dict[str, Any] = {"unhealthy": "nvidia.com/gpu", "node": "n3"}


def test_a_worker_with_a_faulty_device_leaves_and_the_move_is_counted() -> None:
    view = job(4, workers=(*workers(count=3), worker(3, **FAULTY)))
    assert does(view) == "publish 0 1 2 (Disruption)"
    assert change(view).memory.moved == {"j-worker-3": tries(1, uid="uid-of-j-worker-3")}
    [told] = [note for note in change(view).notes if note.reason == "Disruption"]
    assert "j-worker-3 (nvidia.com/gpu reported Unhealthy on node n3) removed" in told.message


@pytest.mark.parametrize(
    ("moved", "leaves"),
    [(1, True), (2, True), (3, False), (4, False)],
)
def test_a_worker_that_gets_a_faulty_device_again_and_again_stays(moved: int, leaves: bool) -> None:
    memory = Memory(moved={"j-worker-3": tries(moved, ago=60, uid="before")})
    found = (*workers(count=3), worker(3, **FAULTY))
    view = job(4, workers=found, config=config(pods(0, 1, 2, 3), memory=memory))
    assert bool(leaving(view)) is leaves
    assert [note.reason for note in moves.notes(derive(view, now=NOW))] == (
        [] if leaves else ["DisruptionRepeated"]
    )


def test_a_faulty_device_is_no_reason_below_the_least_size() -> None:
    found = (*workers(count=3), worker(3, **FAULTY))
    assert leaving(job(4, workers=found, policy=Policy(min_replicas=4))) == ()


def test_a_sign_on_the_node_comes_before_a_faulty_device() -> None:
    view = job(4, workers=(*workers(count=3), doomed(3, unhealthy="nvidia.com/gpu")))
    assert derive(view, now=NOW).by_name["j-worker-3"].cause == SIGN
