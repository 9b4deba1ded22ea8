"""Somebody else's lists are put right, ever more seldom where they come often; a marked operator is given way to."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.decide import decide, handover
from mpijob_elastic.decide.actions import Action, RefreshLauncher, TellUser, WriteConfig
from mpijob_elastic.decide.state import MENDED
from mpijob_elastic.model.job import JobView, parse_script
from tests.builders import NOW, but, job
from tests.simulated_writes import apply, run

SCRIPTS = st.sampled_from(
    [
        "#!/bin/sh\necho j-worker-0:1",
        "#!/bin/sh\necho j-worker-1.j:1\n\n",
        "#!/bin/sh\nexit 1\n",
        "",
        "garbage",
    ]
)
PAUSES = st.sampled_from([0.0, 0.1, 1.0, 5.0, 30.0, 59.0, 61.0, 300.0]) | st.floats(0.0, 700.0)
MOVES = st.lists(st.tuples(PAUSES, SCRIPTS, st.integers(1, 4)), min_size=1, max_size=40)


@given(moves=MOVES)
def test_every_edit_is_put_right_and_many_ever_more_seldom(
    moves: list[tuple[float, str, int]],
) -> None:
    view: JobView = job()
    now = NOW
    mended: list[float] = []
    for pause, script, replicas in moves:
        now += pause
        view = but(_written(view, script), replicas=replicas)
        view, done = _settle(view, now=now)
        mended += [
            now for write in done if isinstance(write, WriteConfig) and _is_mended(write, now=now)
        ]
        assert not any(
            isinstance(action, TellUser) and "HandedOver" in action.text for action in done
        )
    view, _, now = run(view, now=now)
    assert view.config is not None
    assert view.config.signed
    assert set(view.published_pods) == {
        worker.name for worker in view.workers if worker.index in view.wanted
    }
    count = 1
    for earlier, later in pairwise(mended):
        assert later - earlier >= MENDED.delays[min(count, len(MENDED.delays)) - 1] - 1e-3
        count = count + 1 if later - earlier < handover.FORGIVEN_AFTER else 1


@given(moves=MOVES)
def test_nothing_is_written_beside_an_operator_that_lives_but_a_try_at_last(
    moves: list[tuple[float, str, int]],
) -> None:
    view: JobView = job()
    now = NOW
    tries: list[float] = []
    for pause, script, replicas in moves:
        lived_at = now
        view = _taken_over(but(_written(view, script), replicas=replicas), at=lived_at)
        view, done = _settle(view, now=now)
        assert all(isinstance(action, TellUser) for action in done)
        now += pause
        view, done = _settle(view, now=now)
        assert not any(isinstance(action, RefreshLauncher) for action in done)
        if any(isinstance(action, WriteConfig) for action in done):
            assert now >= lived_at + handover.SILENT_FOR
            tries.append(now)
    silences = [
        min(handover.SILENT_FOR * 2**count, handover.LONGEST_SILENCE) for count in range(len(tries))
    ]
    assert all(
        later - earlier >= wait
        for (earlier, later), wait in zip(pairwise(tries), silences, strict=False)
    )


def _taken_over(view: JobView, *, at: float) -> JobView:
    assert view.config is not None
    return but(
        view,
        config=but(view.config, memory=None, written_at=at),
        foreign="it is theirs",
        foreign_at=at,
    )


def _written(view: JobView, script: str) -> JobView:
    """Return the job after a program wrote the data of the ConfigMap and left its annotations."""
    assert view.config is not None
    return but(
        view,
        config=but(view.config, script=script, published=parse_script(script), writer="kubectl"),
    )


def _is_mended(write: WriteConfig, *, now: float) -> bool:
    return write.memory.mended is not None and write.memory.mended.at == now


def _settle(view: JobView, *, now: float) -> tuple[JobView, list[Action]]:
    """Everything that is due at that moment."""
    done: list[Action] = []
    for _ in range(16):
        actions = decide(view, now=now).actions
        if not actions:
            break
        for action in actions:
            view = apply(view, action, now=now)
        done += actions
    return view, done
