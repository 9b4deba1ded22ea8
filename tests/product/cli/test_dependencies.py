"""Troubles of the controller, of nodes and in Events, as far as this user may see."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from mpijob_elastic import names
from mpijob_elastic.cli.jobs import dependencies, leader
from mpijob_elastic.kube.lease import LeaseObject, LeaseSpec, micro_time
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.kube.writer import ApiWriter
from tests.builders import job as elastic_job
from tests.builders import pending
from tests.doubles.api import TinyApi
from tests.product.cli import worlds
from tests.product.cli.cluster import Answers, forbidden, reaching, status
from tests.product.kube.virtual_time import run

NOW = 1_767_225_600.0


def lease(age: float, *, version: str = "1", holder: str = "a") -> LeaseObject:
    renewed = micro_time(datetime.fromtimestamp(NOW - age, UTC))
    spec = LeaseSpec(holder_identity=holder, renew_time=renewed, lease_duration_seconds=15)
    return LeaseObject(metadata=ObjectMeta(name="lease", resource_version=version), spec=spec)


def answers(*found: LeaseObject | None) -> Callable[[], Awaitable[LeaseObject | None]]:
    rest = list(found)

    async def read() -> LeaseObject | None:
        return rest.pop(0) if len(rest) > 1 else rest[0]

    return read


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([lease(2.0)], ""),
        ([None], ""),
        ([LeaseObject(metadata=ObjectMeta())], "is not installed in namespace ours"),
        ([lease(2.0, holder="")], "no controller of mpijob-elastic is the leader"),
        ([lease(2.0, holder=""), lease(0.0, version="2")], ""),
        ([lease(300.0), lease(300.0)], "the last leader renewed the Lease 5m ago"),
        # A clock that is wrong here.
        ([lease(300.0), lease(300.0, version="2")], ""),
        ([lease(-300.0), lease(-300.0, version="2")], ""),
        ([lease(-300.0), lease(-300.0)], "the last leader renewed the Lease 10s ago"),
        ([lease(300.0), None], ""),
    ],
)
def test_whether_a_controller_leads(found: list[LeaseObject | None], words: str) -> None:
    said = run(leader.controller_trouble(answers(*found), namespace="ours", now=NOW))
    assert words in said
    assert bool(said) is bool(words)


def event(reason: str, at: str, component: str = "mpi-job-controller") -> dict[str, Any]:
    message = f"{reason} happened\nto it"
    return {
        "metadata": {"name": reason},
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
        "source": {"component": component},
    }


async def test_the_newest_warning_that_is_not_ours(tmp_path: Path) -> None:
    events = [
        event("Second", "2026-01-01T00:00:02Z"),
        event("First", "2026-01-01T00:00:01Z"),
        event("Ours", "2026-01-01T00:00:03Z", "mpijob-elastic"),
    ]
    served: Answers = {"events": web.json_response({"metadata": {}, "items": events})}
    async with reaching(tmp_path, served) as (client, asked):
        found = await dependencies.warnings(client, "default", {"train": "uid-1"})
    assert found == {"train": "Second: Second happened to it"}
    assert "uid-1" in asked[0]
    async with reaching(tmp_path, {"events": forbidden("events")}) as (client, _):
        found = await dependencies.warnings(client, "default", {"train": "uid-1"})
    assert found == {"train": "unknown, as Events cannot be listed with your rights"}
    trouble: Answers = {"events": status(503, "ServiceUnavailable", "shutting down")}
    async with reaching(tmp_path, trouble) as (client, _):
        found = await dependencies.warnings(client, "default", {"train": "uid-1"})
    assert found == {
        "train": "unknown, as Events cannot be listed: 503 ServiceUnavailable: shutting down"
    }


@pytest.mark.parametrize(
    "annotations", [{}, {names.PARKED: "1"}], ids=["all are wanted", "one is parked"]
)
async def test_workers_beyond_the_size_are_seen_that_come_and_go(
    annotations: dict[str, str], tmp_path: Path
) -> None:
    pods = [worlds.worker(1), worlds.worker(2), worlds.worker(7), worlds.worker(8, job="another")]
    pods[3]["metadata"]["name"] = "train-worker-8"
    lines = "".join(
        json.dumps({"type": kind, "object": pod}) + "\n"
        for pod in pods
        for kind in ("ADDED", "DELETED")
    )
    [job] = worlds.read([worlds.mpi_job(replicas=2, annotations=annotations)])
    async with reaching(tmp_path, {"pods": web.Response(text=lines)}) as (client, asked):
        found = await dependencies.surplus(client, job.view)
    assert found == dict.fromkeys(["train-worker-2", "train-worker-7"], worlds.CREATED)
    assert "watch=true&timeoutSeconds=1" in asked[0]
    async with reaching(tmp_path, {"pods": forbidden("pods")}) as (client, _):
        assert await dependencies.surplus(client, job.view) == {}


BENCH = {"app": "bench"}
APART = "3 node(s) didn't match pod anti-affinity rules"


@pytest.mark.parametrize(
    ("why", "labels", "told"),
    [
        pytest.param(APART, BENCH, True, id="the rule keeps it apart"),
        pytest.param(APART, {}, False, id="the label was not put back"),
        pytest.param("3 Insufficient cpu", BENCH, False, id="something else keeps it"),
    ],
)
async def test_a_rule_that_matches_by_labels_that_were_put_back_is_told_of_the_pod(
    api: TinyApi, client: ApiWriter, why: str, labels: dict[str, str], *, told: bool
) -> None:
    term = {"labelSelector": {"matchLabels": BENCH}, "topologyKey": "node"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    template = {"metadata": {"labels": BENCH}, "spec": {"affinity": apart}}
    spec = {"mpiReplicaSpecs": {"Worker": {"replicas": 2, "template": template}}}
    view = elastic_job(2)
    await api.create(MPI_JOBS.path(view.namespace), view.name, spec=spec)
    pod = names.worker(view.name, 1)
    of_operator = {
        names.LABEL_GROUP_NAME: names.GROUP,
        names.LABEL_JOB_NAME: view.name,
        names.LABEL_JOB_ROLE: names.ROLE_WORKER,
    }
    await api.create(PODS.path(view.namespace), pod, metadata={"labels": {**of_operator, **labels}})
    found = await dependencies.new_rules(client, view, {pod: why, "other": ""})
    rule = "Worker.template: the required anti-affinity to app=bench (by node)"
    assert found == ({pod: rule} if told else {})


async def test_budgets_are_read_where_a_pod_only_holds_its_place(tmp_path: Path) -> None:
    made = {"metadata": {"name": "team", "namespace": "default"}, "spec": {"maxUnavailable": 1}}
    served: Answers = {"poddisruptionbudgets": web.json_response({"metadata": {}, "items": [made]})}
    view = elastic_job(2)
    held = replace(view, placeholders=(pending(1, gates=(names.GATE_PARKED,)),))
    async with reaching(tmp_path, served) as (client, asked):
        assert await dependencies.refusing_budgets(client, view) == ()
        assert asked == []
        [found] = await dependencies.refusing_budgets(client, held)
    assert (found.metadata.name, found.form) == ("team", "maxUnavailable 1")
    refused: Answers = {"poddisruptionbudgets": forbidden("poddisruptionbudgets")}
    async with reaching(tmp_path, refused) as (client, _):
        assert await dependencies.refusing_budgets(client, held) == ()
