"""A job that does no step for as long as it says: when it is named, and when never."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic import capabilities
from mpijob_elastic.capabilities.stragglers import Stragglers
from mpijob_elastic.capabilities.stragglers.facts import PROGRESS_TIMEOUT, ProgressTimeout
from mpijob_elastic.decide import derive
from mpijob_elastic.model.goodput import Ledger
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import LauncherPhase, Probe
from tests.builders import LONG_AGO, NOW, Story, job, launcher
from tests.product.capabilities.stragglers.trainings import Training, named, usual

HOUR, TIMEOUT = 3600.0, 1800.0
# Nobody does a step from then on.
SILENT = [(600.0, 9 * HOUR)]
ASKED: dict[str, Any] = {"progress_timeout": TIMEOUT}


def test_a_job_is_named_once_it_is_silent_for_as_long_as_it_says() -> None:
    training = Training(usual, pauses=SILENT, facts=ASKED)
    [(line, at)] = named(training, 2 * HOUR).items()
    assert 600 + TIMEOUT <= at <= 600 + TIMEOUT + 60
    assert line == (
        "NoProgress: no step since step 601 at 1970-01-12T13:56:40Z, for more than 30m "
        "(mpijob-elastic/progress-timeout), while the driver runs. Nothing is done about it; look "
        "at `mpijob-elastic explain j -n default` and `kubectl -n default logs j-launcher`"
    )
    assert training.writes == 1


def test_a_job_without_lines_is_told_how_to_write_them() -> None:
    training = Training(usual, tells=False, facts=ASKED)
    [(line, at)] = named(training, HOUR).items()
    assert "docs/progress.md" in line
    assert at == 0.0, "its pods have been Ready, and its list the same, for an hour"
    assert training.writes == 1


NEVER: tuple[tuple[str, Callable[[], Training]], ...] = (
    ("nobody asks", lambda: Training(usual, pauses=SILENT)),
    ("steps go on", lambda: Training(usual, facts=ASKED)),
    (
        "an evaluation of 20 minutes",
        lambda: Training(usual, pauses=[(600, 1800), (2000, 3200)], facts=ASKED),
    ),
    ("a change now and then", lambda: Training(usual, changes=[600, 1800], facts=ASKED)),
    ("looks get no answer", lambda: Training(usual, pauses=SILENT, deaf=(660, HOUR), facts=ASKED)),
)


@pytest.mark.parametrize(("_case", "training"), NEVER, ids=[case for case, _ in NEVER])
def test_never_named(_case: str, training: Callable[[], Training]) -> None:
    one = training()
    assert named(one, HOUR) == {}
    assert one.writes == 0


def test_a_step_ends_the_notice() -> None:
    training = Training(usual, pauses=[(600, 3000)], facts=ASKED)
    held = [at for at, told in training.runs(HOUR) if told]
    assert held[0] >= 600 + TIMEOUT
    assert held[-1] <= 3030
    assert training.writes == 2


def test_a_restart_of_the_controller_changes_nothing() -> None:
    training = Training(usual, pauses=SILENT, restarts=[3000, 3600], facts=ASKED)
    assert len(named(training, 2 * HOUR)) == 1
    assert training.writes == 1


SAID = "NoProgress: no step since step 7 at some time"
LOOKED = Probe(busy_seen=True, asked_at=NOW, busy_at=NOW)


def silent(**facts: Any) -> Story:
    """A job whose looks have shown no line for an hour."""
    known = {**ASKED, "ledger": Ledger(uid="uid-of-j"), **facts}
    view = job(2, **known)
    return view.but(workers=tuple(replace(one, probe=LOOKED) for one in view.workers))


def reasons(view: JobView, *, now: float = NOW) -> list[str]:
    known = capabilities.told(view)
    room = known.of(Stragglers)
    told = room.notes(derive(known, now=now)) if room else ()
    return [note.reason for note in told]


@pytest.mark.parametrize(
    ("view", "is_named"),
    [
        pytest.param(silent(), True, id="silent"),
        pytest.param(silent(progress_timeout=HOUR - 1), True, id="just long enough"),
        pytest.param(silent(progress_timeout=HOUR + 1), False, id="not long enough"),
        pytest.param(silent(launcher=launcher(started_at=NOW - 60)), False, id="just started"),
        pytest.param(silent().pod(0, ready_at=NOW - 60), False, id="a worker is new"),
        pytest.param(silent().remembering(added_at=NOW - 60), False, id="the list is new"),
        pytest.param(silent().remembering(removed_at=NOW - 60), False, id="a worker has left"),
        pytest.param(silent().remembering(added_at=NOW + 60), True, id="a time of another clock"),
        pytest.param(silent(launcher=None), False, id="no launcher"),
        pytest.param(
            silent(launcher=launcher(LauncherPhase.FINISHED)), False, id="the driver has ended"
        ),
        pytest.param(silent(suspended_by="annotation"), False, id="suspended"),
        pytest.param(silent(elastic=False), False, id="not elastic"),
        pytest.param(silent().shrunk(from_=3), False, id="it drains"),
        pytest.param(silent().pod(0, opaque=True), False, id="nobody can look"),
        pytest.param(silent(progress_timeout=60.0).pod(0, probe=Probe()), False, id="not looked"),
        pytest.param(
            silent(ledger=None, notices=SAID), True, id="a command says what the controller says"
        ),
        pytest.param(silent(ledger=None), False, id="a command knows nothing by itself"),
    ],
)
def test_who_is_named(view: JobView, is_named: bool) -> None:
    assert reasons(view) == ["NoProgress"] * is_named


def test_a_look_is_due_when_the_time_is_over() -> None:
    view = capabilities.told(silent().remembering(added_at=NOW - 60))
    room = view.of(Stragglers)
    assert room is not None
    assert [one.until for one in room.wishes(view, now=NOW)] == [NOW - 60 + TIMEOUT]
    assert [*room.wishes(view, now=NOW + TIMEOUT)] == []
    assert LONG_AGO < NOW


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", 1800.0),
        ("1m", 60.0),
        ("60s", 60.0),
        ("24h", 86400.0),
        ("59s", None),
        ("0s", None),
        ("25h", None),
        ("30", None),
        ("", None),
        ("-1m", None),
    ],
)
def test_the_annotation(text: str, seconds: float | None) -> None:
    raw = (
        '{"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": {"annotations": '
        f'{{"{PROGRESS_TIMEOUT}": "{text}"}}}}}}'
    )
    facts = capabilities.read(raw.encode())
    asked = facts.of(ProgressTimeout)
    assert (asked.seconds if asked else None) == seconds
    assert len(facts.problems) == (seconds is None)
    assert (
        f"{PROGRESS_TIMEOUT} has no effect: this job is not elastic" in warned(asked, facts)
    ) == (seconds is not None)


def warned(asked: ProgressTimeout | None, facts: Any) -> list[str]:
    return [*asked.findings(facts)] if asked else []
