"""When the selector of the workers is written, and that it is written once."""

import pytest

from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import Plan, WriteSelector
from mpijob_elastic.model.job import JobView
from tests.builders import NOW, job, ref


def test_a_status_that_lost_its_selector_gets_it_back() -> None:
    write = WriteSelector(ref=ref("j"), selector="group-name=kubeflow.org,mpi-job-name=j,mpi-job-role=worker")
    assert decide(job(selector_due=True), now=NOW) == Plan(actions=(write,))


@pytest.mark.parametrize(
    "view",
    [
        job(),
        job(selector_due=True, reported=False),
        job(selector_due=True, elastic=False),
        job(selector_due=True, foreign="it is another's", notices="HandedOver: told"),
        job(selector_due=True, deleting=True),
        job(selector_due=True, finished=True),
    ],
    ids=["there or not kept", "no status yet", "not elastic", "another operator's", "being deleted", "finished"],
)
def test_else_nothing_is_written(view: JobView) -> None:
    assert decide(view, now=NOW).actions == ()
