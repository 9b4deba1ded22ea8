"""Whatever worker is lost, back, listed or not: none is added beside hosts that may get over the loss of rank 0."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.decide import decide, lost_ranks
from mpijob_elastic.decide.actions import WriteConfig
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Host, Memory
from tests.builders import NOW, config, job, named, pods, role, worker

SIZE = 4
# Of each worker: since when it is there, whether it is listed, and to which pod its host name was
# given last.
AGES = st.sampled_from([0.0, 5.0, lost_ranks.REFORM - 1, lost_ranks.REFORM, 3600.0])
ELDERS = st.sets(st.sampled_from(pods(*range(SIZE))))
LAST = st.sampled_from([None, "", "this", "another"])
WORKERS = st.lists(st.tuples(AGES, st.booleans(), LAST), min_size=SIZE, max_size=SIZE)


def host(pod: str, last: str) -> Host:
    return Host(pod="") if not last else named(pod, uid=None if last == "this" else last)


@st.composite
def views(draw: st.DrawFn) -> JobView:
    drawn = draw(WORKERS)
    names = pods(*range(SIZE))
    memory = Memory(
        hosts={
            pod: host(pod, last)
            for pod, (_, _, last) in zip(names, drawn, strict=True)
            if last is not None
        }
    )
    memory = msgspec.structs.replace(memory, elders=tuple(draw(ELDERS)))
    return job(
        SIZE,
        workers=tuple(
            worker(index, created_at=NOW - age) for index, (age, _, _) in enumerate(drawn)
        ),
        config=config(
            [pod for pod, (_, listed, _) in zip(names, drawn, strict=True) if listed], memory=memory
        ),
        role=role(*range(SIZE)),
        min_np_workers=draw(st.integers(0, SIZE)),
    )


@given(view=views())
def test_nobody_is_added_while_others_get_over_a_loss(view: JobView) -> None:
    another = {
        one.name
        for one in view.workers
        if view.memory.hosts.get(one.name) == host(one.name, "another")
    }
    fresh = {one.name for one in view.workers if NOW - one.facts.created_at < lost_ranks.REFORM}
    lost = (another & fresh & {*(view.memory.elders or pods(*range(SIZE)))}) - {
        *view.published_pods
    }
    added = [
        pod
        for one in decide(view, now=NOW).actions
        if isinstance(one, WriteConfig)
        for pod in one.added
    ]
    assert not (added and lost and len(view.published_pods) >= max(2, view.facts.min_np_workers))
