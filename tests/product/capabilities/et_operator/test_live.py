"""The requests that are watched, and those for jobs that do not exist."""

from typing import Any

import jsonpatch
import msgspec
import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic.capabilities.et_operator import EtOperator
from mpijob_elastic.capabilities.et_operator.facts import (
    FAILED,
    SCALE_INS,
    SCALE_OUTS,
    SUCCEEDED,
    TRAINING_JOBS,
)
from mpijob_elastic.capabilities.et_operator.live import OPTION, Requests
from mpijob_elastic.kube.resources import MPI_JOBS, Resource
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW
from tests.doubles.api import TinyApi
from tests.doubles.direct import Sent
from tests.faults.waiting import eventually
from tests.product.act.writes import Taken, Told, gate_of
from tests.product.observe.cached import job_of, running, view_of

SERVED = f"/apis/{SCALE_INS.api_version}"
OURS = [{"name": SCALE_INS.plural}, {"name": SCALE_OUTS.plural}]


async def asks(
    api: TinyApi, name: str, *, job: str = "train", resource: Resource = SCALE_INS, **parts: Any
) -> None:
    """Store a request for a job."""
    await api.create(
        resource.path("n"),
        name,
        spec={"selector": {"name": job}, "toDelete": {"count": 1}},
        **parts,
    )


@pytest.fixture
def requests(client: ApiWriter, taken: Taken, told: Told) -> Requests:
    return Requests(
        client=client,
        gate=gate_of(client, Metrics(CollectorRegistry())),
        seen=taken,
        events=told,
        now=lambda: NOW,
    )


def answers_status(api: TinyApi) -> None:
    """Store the status of an object, as the API server does."""

    def answer(sent: Sent) -> object | None:
        path = sent.path.removesuffix("/status")
        if path == sent.path:
            return None
        return api.put(path, jsonpatch.apply_patch(api.objects[path], sent.body))

    api.hook = answer


def failed(api: TinyApi) -> set[str]:
    """Return the requests that have failed."""
    return {
        path.rpartition("/")[2]
        for path, item in api.objects.items()
        if item.get("status", {}).get("phase") == FAILED
    }


async def test_requests_are_ours_unless_et_operator_has_jobs_of_its_own(
    api: TinyApi, client: ApiWriter
) -> None:
    elastic = msgspec.json.decode(job_of("train", {"enabled": "true"}))
    api.objects[MPI_JOBS.path(name="train")] = elastic
    asked = {"metadata": {"namespace": "n"}, "spec": {"selector": {"name": "train"}}}
    await api.create(SCALE_INS.path(), "in", **asked)
    api.objects[SERVED] = {"resources": [*OURS, {"name": TRAINING_JOBS.plural}]}
    async with running(client, options=(OPTION,)) as caches:
        assert view_of(caches).of(EtOperator) is None
    api.objects[SERVED] = {"resources": OURS}
    async with running(client, options=(OPTION,)) as caches:
        await eventually(lambda: view_of(caches).of(EtOperator) is not None)


async def test_requests_for_a_job_that_does_not_exist_fail_and_no_others(
    api: TinyApi, requests: Requests
) -> None:
    api.objects[SERVED] = {"resources": OURS}
    await asks(api, "in")
    await asks(api, "out", resource=SCALE_OUTS)
    await asks(api, "done", status={"phase": SUCCEEDED})
    await asks(api, "of-another", job="other")
    answers_status(api)
    await requests.jobless("n", "train")
    assert failed(api) == {"in", "out"}


async def test_a_job_that_was_made_meanwhile_keeps_its_requests(
    api: TinyApi, requests: Requests
) -> None:
    api.objects[SERVED] = {"resources": OURS}
    await api.create(MPI_JOBS.path("n"), "train")
    await asks(api, "in")
    answers_status(api)
    await requests.jobless("n", "train")
    assert failed(api) == set()
