"""The preference of a new worker for other nodes: which pods get it, and beside what."""

from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.admission import review
from mpijob_elastic.capabilities.avoided_nodes import words
from mpijob_elastic.capabilities.avoided_nodes.admission import AvoidedNodesAdmission
from tests.product.webhook.answers import facts, knowing, own, patch_of, patched
from tests.product.webhook.objects import PLAIN, Object, body, launcher_pod, mpi_job, worker_pod
from webhook.rules import handlers

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED: Object = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]
    }
}
TOGETHER: Object = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "rack"}],
    }
}
RULE = own(AvoidedNodesAdmission())


def avoiding(*nodes: str, **job: Any) -> Object:
    """A job that says that it avoids these nodes, beside another notice."""
    said = words.note("train", nodes or ("a",)).line
    return mpi_job(**{"annotations": {names.STATUS: f"WorkersNotReady: two\n{said}"}, **job})


def worker(**spec: Any) -> Object:
    made = worker_pod(1)
    return {**made, "spec": made["spec"] | spec}


def others(*nodes: str, weight: int = 100) -> Object:
    """A preference for other nodes than these."""
    fields = [{"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in nodes]
    return {"weight": weight, "preference": {"matchFields": fields}}


def zone(weight: int) -> Object:
    """A preference of the template."""
    wanted = {"key": "zone", "operator": "In", "values": ["z"]}
    return {"weight": weight, "preference": {"matchExpressions": [wanted]}}


def preferring(*terms: Object) -> Object:
    return {"nodeAffinity": {PREFERRED: [*terms]}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(None, preferring(others("a")), id="none"),
        pytest.param({}, preferring(others("a")), id="an empty one"),
        pytest.param({"nodeAffinity": None}, preferring(others("a")), id="a null"),
        pytest.param(TOGETHER, TOGETHER | preferring(others("a")), id="for pods"),
        pytest.param(
            {"nodeAffinity": REQUIRED},
            {"nodeAffinity": REQUIRED | {PREFERRED: [others("a")]}},
            id="required terms stay",
        ),
        pytest.param(preferring(), preferring(others("a")), id="no terms"),
        pytest.param(
            preferring(zone(100)), preferring(zone(100), others("a", weight=99)), id="one more term"
        ),
        pytest.param(
            preferring(zone(90), zone(5), zone(30)),
            preferring(zone(90), zone(5), zone(30), others("a", weight=4)),
            id="after all of the user's",
        ),
        pytest.param(
            preferring(zone(1)), preferring(zone(1), others("a", weight=1)), id="the least weight"
        ),
        pytest.param(
            preferring(others("a", weight=7)), preferring(others("a", weight=7)), id="ours"
        ),
    ],
)
def test_a_preferred_term_is_added_and_nothing_else_changes(
    before: Object | None, after: Object
) -> None:
    pod = worker() if before is None else worker(affinity=before)
    assert patched(RULE, pod, avoiding()) == worker(affinity=after)


def test_each_node_has_a_requirement_of_its_own() -> None:
    """[v1.37.2] The API server refuses a requirement on a name with more than one value."""
    found = patched(RULE, worker(), avoiding("a", "b.c"))
    assert found["spec"]["affinity"] == preferring(others("a", "b.c"))


@pytest.mark.parametrize(
    ("pod", "job"),
    [
        pytest.param(worker(), None, id="an unknown job"),
        pytest.param(worker(), mpi_job(), id="a job without losses"),
        pytest.param(launcher_pod(), avoiding(), id="a launcher"),
        pytest.param(worker(), avoiding(command=PLAIN), id="a plain job"),
        pytest.param(worker(), avoiding("-"), id="no name of a node"),
        pytest.param({**worker(), "metadata": {"name": "train-worker-1"}}, avoiding(), id="a pod"),
    ],
)
def test_any_other_pod_stays_as_it_is(pod: Object, job: Object | None) -> None:
    assert patch_of(RULE, pod, job) == ()


def test_a_job_that_is_told_not_to_be_elastic_avoids_nobody() -> None:
    job = avoiding()
    job["metadata"]["annotations"][names.ENABLED] = "false"
    assert not facts(job).acts_elastic
    assert patch_of(RULE, worker(), job) == ()


def test_the_webhook_asks_the_capability() -> None:
    handle = handlers.mutating(knowing(avoiding()))
    patch = handlers.answer(review.parse(body(worker())), handle).verdict.patch
    [added] = [one["value"] for one in patch if one["path"] == "/spec/affinity"]
    assert added == preferring(others("a"))
