"""Properties of explanations: each worker of any job has a cause that fits; looks for frozen execs come to an end."""

from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.cli.jobs.explain import text
from mpijob_elastic.decide import derive, frozen_execs
from mpijob_elastic.diagnosis.explanation import diagnose
from mpijob_elastic.diagnosis.facts import Facts, Level, Look
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import HeldExecs
from tests.builders import NOW, but
from tests.product.properties.views import MOST, NAMES, jobs

LOOKS = st.sampled_from([Look(), Look(processes=("python3",)), Look(error="no rights")])
FACTS = st.builds(
    Facts,
    controller=st.sampled_from(["", "no controller leads"]),
    role_readable=st.booleans(),
    looks=st.dictionaries(st.sampled_from(NAMES), LOOKS),
)


@given(jobs, FACTS)
def test_each_worker_has_one_cause_unless_the_job_is_over(view: JobView, facts: Facts) -> None:
    explanation = diagnose(view, facts, now=NOW)
    expected = {*view.wanted_names, *(worker.name for worker in view.workers)}
    assert len(explanation.workers) in (0, len(expected))
    assert {worker.name for worker in explanation.workers} in (set(), expected)
    assert explanation.workers or explanation.job or not expected
    said = [*explanation.job, *(worker.cause for worker in explanation.workers)]
    assert all(finding.says for finding in said)
    assert all(
        finding.next_step
        for finding in said
        if finding.level is Level.WRONG and "(see above)" not in finding.says
    )
    assert text(explanation)


@given(jobs, FACTS)
def test_no_worker_is_said_to_train_that_no_rank_can_reach(view: JobView, facts: Facts) -> None:
    for found in diagnose(view, facts, now=NOW).workers:
        worker = view.worker(found.name)
        if found.wanted and found.cause.level is Level.FINE:
            assert worker is not None
            assert worker.ready
            assert view.driver_running
            assert worker.name in view.host_of or not view.elastic
            assert facts.looks[found.name].processes


@given(jobs)
def test_looks_for_frozen_execs_that_find_nothing_come_to_an_end(view: JobView) -> None:
    now, looks = NOW, 0
    for _ in range(4 * MOST):
        look, at = frozen_execs.look(derive(view, now=now))
        if look is not None and view.launcher is not None:
            looks += 1
            view = but(
                view, launcher=but(view.launcher, held=HeldExecs(asked_at=now, about=look.about))
            )
        elif at is None:
            break
        else:
            assert at > now
            now = at
    else:
        raise AssertionError("it goes on")
    assert looks <= 2 * MOST
