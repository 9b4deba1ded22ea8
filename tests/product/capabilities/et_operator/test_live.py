"""The requests that are watched, and those for jobs that do not exist."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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
from mpijob_elastic.observe.caches import Caches
from mpijob_elastic.observe.watching import JobKey
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW
from tests.doubles.api import TinyApi
from tests.doubles.direct import Sent
from tests.faults.faults import Answer, Request
from tests.faults.proxy import FaultProxy
from tests.faults.waiting import eventually
from tests.product.act.writes import Told, leader_writer_of
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


@asynccontextmanager
async def answering(client: ApiWriter, told: Told) -> AsyncIterator[tuple[Requests, Caches]]:
    """What answers the requests that the caches have seen, once they have."""
    async with running(client, options=(OPTION,)) as caches:
        leader_writer = leader_writer_of(client, Metrics(CollectorRegistry()))
        yield (
            Requests(
                client=client,
                leader_writer=leader_writer,
                seen=caches,
                events=told,
                now=lambda: NOW,
            ),
            caches,
        )


async def known(caches: Caches) -> None:
    """Wait until all requests have been listed."""
    await eventually(lambda: caches.is_served(TRAINING_JOBS) is False)
    await eventually(lambda: all(caches.is_served(one) for one in (SCALE_INS, SCALE_OUTS)))


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
    api: TinyApi, client: ApiWriter, told: Told
) -> None:
    api.objects[SERVED] = {"resources": OURS}
    await asks(api, "in")
    await asks(api, "out", resource=SCALE_OUTS)
    await asks(api, "done", status={"phase": SUCCEEDED})
    await asks(api, "of-another", job="other")
    answers_status(api)
    async with answering(client, told) as (requests, caches):
        await known(caches)
        await requests.jobless("n", "train")
        assert failed(api) == {"in", "out"}
        assert told.notes == ["ScalingInFailed", "ScalingOutFailed"]
        await requests.jobless("n", "train")
        assert len(told.notes) == 2, "an answer is given once"


async def test_a_job_that_was_made_meanwhile_keeps_its_requests(
    api: TinyApi, client: ApiWriter, told: Told
) -> None:
    """The caches have not seen it yet."""
    api.objects[SERVED] = {"resources": OURS}
    await asks(api, "in")
    answers_status(api)
    async with answering(client, told) as (requests, caches):
        await known(caches)
        await api.create(MPI_JOBS.path("n"), "train")
        await requests.jobless("n", "train")
    assert failed(api) == set()


def of_namespace(request: Request) -> bool:
    """Tell whether a request is for objects of one namespace: the caches watch those of all."""
    return "/namespaces/n/" in request.path


@pytest.mark.parametrize("count", [10, 20])
async def test_twice_the_requests_for_jobs_that_do_not_exist_take_twice_the_work(
    proxy: FaultProxy, api: TinyApi, client: ApiWriter, told: Told, count: int
) -> None:
    """At each start, and for each of them a job that may exist live."""
    api.objects[SERVED] = {"resources": OURS}
    for number in range(count):
        await asks(api, f"in-{number}", job=f"missing-{number}")
    answers_status(api)
    async with answering(client, told) as (requests, caches):
        await known(caches)
        before = len(proxy.requests)
        for number in range(count):
            await requests.jobless("n", f"missing-{number}")
        sent = [one for one in proxy.requests[before:] if of_namespace(one)]
        asked = [(one.method, one.path.rpartition("/")[2]) for one in sent]
    assert sorted(failed(api)) == sorted(f"in-{number}" for number in range(count))
    assert asked == [
        pair for n in range(count) for pair in (("GET", f"missing-{n}"), ("PATCH", "status"))
    ]


async def test_a_job_that_is_gone_and_had_no_request_costs_nothing(
    proxy: FaultProxy, api: TinyApi, client: ApiWriter, told: Told
) -> None:
    api.objects[SERVED] = {"resources": OURS}
    async with answering(client, told) as (requests, caches):
        await known(caches)
        before = len(proxy.requests)
        await requests.jobless("n", "train")
        assert [one for one in proxy.requests[before:] if of_namespace(one)] == []


async def test_a_request_is_answered_although_the_server_had_no_time_to_say_whose_it_is(
    proxy: FaultProxy, api: TinyApi, client: ApiWriter, told: Told
) -> None:
    """Once the server has, the job is looked at again."""
    api.objects[SERVED] = {"resources": OURS}
    await asks(api, "in")
    answers_status(api)
    busy = Answer(status=429, retry_after=60)
    with proxy.inject(busy, on=lambda request: request.path == SERVED):
        async with answering(client, told) as (requests, caches):
            await requests.jobless("n", "train")
            assert failed(api) == set()
    woken: list[JobKey] = []
    async with answering(client, told) as (requests, caches):
        caches._enqueue = woken.append
        await known(caches)
        assert JobKey("n", "train") in woken
        await requests.jobless("n", "train")
    assert failed(api) == {"in"}
