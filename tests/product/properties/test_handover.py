"""Two writers of one discover_hosts.sh never alternate for long, however often the other one writes, and when."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.decide import decide, handover
from mpijob_elastic.decide.actions import Action, TellUser, WriteConfig
from mpijob_elastic.model.hosts import parse_script
from mpijob_elastic.model.job import JobView
from tests.builders import NOW, job
from tests.simulated_writes import apply

# None has the very bytes that we write: whoever writes those is nobody to fight with.
SCRIPTS = st.sampled_from(["#!/bin/sh\necho j-worker-0:1", "#!/bin/sh\necho j-worker-1.j:1\n\n", "#!/bin/sh\nexit 1\n"])
PAUSES = st.sampled_from([0.0, 0.1, 1.0, 5.0, 30.0, 59.0, 61.0, 300.0]) | st.floats(0.0, 700.0)


@given(moves=st.lists(st.tuples(PAUSES, SCRIPTS, st.integers(1, 4)), min_size=1, max_size=40))
def test_at_most_one_list_is_mended_in_ten_minutes_and_none_after_we_gave_way(
    moves: list[tuple[float, str, int]],
) -> None:
    view, now = job(), NOW
    mended: list[float] = []
    gave_way = False
    for pause, script, replicas in moves:
        now += pause
        view = replace(_written(view, script), replicas=replicas)
        view, done = _settle(view, now=now)
        assert not (gave_way and done)
        mended += [now for write in done if isinstance(write, WriteConfig) and write.memory.mended_at == now]
        gave_way = gave_way or any(isinstance(action, TellUser) and "HandedOver" in action.text for action in done)
    assert all(later - earlier > handover.MENDED_FOR for earlier, later in pairwise(mended))


def _written(view: JobView, script: str) -> JobView:
    """What an operator does that writes the data of the ConfigMap and leaves its annotations."""
    assert view.config is not None
    return replace(view, config=replace(view.config, script=script, published=parse_script(script)))


def _settle(view: JobView, *, now: float) -> tuple[JobView, list[Action]]:
    """Everything that is due at that moment."""
    done: list[Action] = []
    for _ in range(16):
        was_anothers = view.config is not None and handover.is_edited(view.config)
        actions = decide(view, now=now).actions
        if not actions:
            break
        for action in actions:
            view = apply(view, action, now=now)
            assert not isinstance(action, WriteConfig) or (action.memory.mended_at == now) >= was_anothers
        done += actions
    return view, done
