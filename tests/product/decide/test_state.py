"""The phase of a job in a word."""

import pytest

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import Asked
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import LauncherPhase
from tests.builders import config, job, launcher, pending, pods, worker
from tests.product.decide.plans import state

HELD = job(
    2, launcher=launcher(LauncherPhase.WAITING, gates=(names.GATE_QUEUED,)), config=config(())
)


@pytest.mark.parametrize(
    ("view", "word"),
    [
        pytest.param(job(3), "", id="at rest"),
        pytest.param(job(3, replicas=4), "Scaling", id="a pod is missing"),
        pytest.param(
            job(3, replicas=4, workers=(*map(worker, range(3)), pending(3))),
            "Scaling",
            id="it starts",
        ),
        pytest.param(job(3, replicas=2), "Scaling", id="the list is yet to change"),
        pytest.param(job(1).shrunk(from_=3), "Draining", id="two leave"),
        pytest.param(
            job(4, config=config(pods(0, 1)), sizes=(2, 4), replicas=3), "", id="only two may train"
        ),
        pytest.param(job(3, suspended_by="annotation x"), "Suspended", id="suspended"),
        pytest.param(
            job(3, launcher=launcher(LauncherPhase.FINISHED), replicas=4), "", id="it has ended"
        ),
        pytest.param(
            job(3, foreign="its pods are another's", replicas=4), "", id="another operator's"
        ),
        pytest.param(job(3, deleting=True, replicas=4), "", id="it goes"),
        pytest.param(job(3, elastic=False, replicas=4), "", id="not elastic"),
        pytest.param(
            job(2, launcher=launcher(LauncherPhase.WAITING), config=config(())),
            "",
            id="it starts at first",
        ),
        pytest.param(HELD.but(kueue=Asked(queue="team")), "Queued", id="its queue holds it"),
        pytest.param(HELD, "", id="something else holds it"),
        pytest.param(job(2, held_in_queue=True), "Queued", id="its queue wants all of it back"),
    ],
)
def test_what_is_under_way(view: JobView, word: str) -> None:
    assert state(view).phase == word
