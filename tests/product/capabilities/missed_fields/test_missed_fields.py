"""Pods that were created while the webhook was away: what their user is told, and which are made again."""

from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.capabilities.missed_fields import MARK as MARKED
from mpijob_elastic.capabilities.missed_fields import MissedFields
from mpijob_elastic.decide.derive import derive
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import LauncherPhase
from mpijob_elastic.model.template_fields import TABLE, Lost, TemplateFields
from tests.builders import NOW, Story, job, launcher, pending, worker
from tests.simulated_writes import run

MARK: dict[str, Any] = {"marks": {MARKED: "true"}}
ISOLATING, OTHER = ("hostUsers",), ("resizePolicy",)


def fields_of(*wanted: str) -> TemplateFields:
    """Fields that both templates of a job have."""
    rows = {row.known_as.partition(".")[2]: row for row in TABLE.fields.values()}
    found = tuple(Lost(steps=(name,), row=rows[name], value=b"false") for name in wanted)
    roles = (names.ROLE_LAUNCHER, names.ROLE_WORKER)
    return TemplateFields(
        fields=dict.fromkeys(roles, found), are_read=False, sidecar_counts={}, pod_counts={}
    )


def view(*fields: str, second: Any = None, **facts: Any) -> Story:
    """A job of two whose first worker and launcher have their fields."""
    workers = (worker(0, **MARK), second or pending(1))
    return job(
        2,
        template_fields=fields_of(*fields),
        workers=workers,
        **{"launcher": launcher(**MARK), **facts},
    )


def told(found: JobView) -> str:
    """What the user is told of these fields."""
    capability = found.of(MissedFields)
    notes = capability.notes(derive(found, now=NOW)) if capability else ()
    return "; ".join(note.message for note in notes)


def test_a_worker_without_its_fields_is_named_with_them() -> None:
    said = told(view(*ISOLATING, *OTHER, second=worker(1)))
    assert said.startswith("j-worker-1 made without hostUsers, resizePolicy of its template: ")


@pytest.mark.parametrize(
    ("found", "is_told"),
    [
        (view(*OTHER, second=worker(1, **MARK)), False),
        (view(*OTHER, second=worker(1, deleting=True)), False),
        (view(*OTHER, second=worker(1, **MARK), launcher=launcher()), True),
        (view(second=worker(1)), False),
    ],
)
def test_pods_with_their_fields_are_not_named(found: JobView, is_told: bool) -> None:
    assert bool(told(found)) is is_told


@pytest.mark.parametrize(
    ("fields", "second", "again"),
    [
        pytest.param(ISOLATING, pending(1), True, id="it lacks what isolates it"),
        pytest.param(OTHER, pending(1), False, id="it lacks something else"),
        pytest.param(ISOLATING, worker(1), False, id="it has started"),
        pytest.param(ISOLATING, pending(1, **MARK), False, id="it has all"),
    ],
)
def test_a_worker_that_has_not_started_is_made_again(fields: Any, second: Any, again: bool) -> None:
    _, done, _ = run(view(*fields, second=second), now=NOW)
    removals = [one.worker.index for action in done for one in getattr(action, "removals", ())]
    assert (1 in removals) is again


@pytest.mark.parametrize(
    ("fields", "facts", "again"),
    [
        pytest.param(ISOLATING, {}, True, id="it lacks what isolates it"),
        pytest.param(OTHER, {}, False, id="it lacks something else"),
        pytest.param(ISOLATING, MARK, False, id="it has all"),
    ],
)
def test_a_launcher_that_has_not_started_is_made_again(
    fields: Any, facts: Any, again: bool
) -> None:
    waits = launcher(LauncherPhase.WAITING, created_at=NOW - 60, **facts)
    found = view(*fields, second=worker(1, **MARK), launcher=waits)
    _, done, _ = run(found, now=NOW)
    assert any("without the fields that isolate it" in str(action) for action in done) is again
