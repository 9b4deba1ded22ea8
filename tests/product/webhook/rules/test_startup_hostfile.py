"""Whose hostfile is shortened when its job's ConfigMap is created, and to what."""

import json
from dataclasses import replace
from typing import Any

import jsonpatch
import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.model import job_facts
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob
from tests.product.webhook.objects import ELASTIC, PLAIN, Object, body, config_map, mpi_job
from webhook.rules import handlers, review
from webhook.rules.handlers import NOTHING

LEAST = {names.MIN_REPLICAS: "2"}


def patched(job: Object, *, known: Object | None, config: Object | None = None) -> list[str]:
    """The lines of the hostfile that the API server stores, where the webhook knows that job."""
    config = config or config_map(**made(job))
    seen: JobFacts | None = job_facts.of(msgspec.convert(known, MPIJob)) if known else None
    table = handlers.mutating(replace(NOTHING, job=lambda namespace, name: seen))
    answer = handlers.answer(review.parse(body(config)), table)
    stored: Object = jsonpatch.apply_patch(config, answer.verdict.patch)
    assert stored["data"].get("discover_hosts.sh") == "#!/bin/sh\n"
    again = handlers.answer(review.parse(body(stored)), table)
    assert again.verdict.patch == ()
    lines: list[str] = stored["data"]["hostfile"].splitlines()
    return lines


def made(job: Object) -> dict[str, Any]:
    """The arguments of that job's ConfigMap."""
    return {
        "name": job["metadata"]["name"],
        "replicas": job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"],
        "slots": job["spec"]["slotsPerWorker"],
    }


def hosts(count: int, *, slots: int = 1) -> list[str]:
    return [f"train-worker-{index} slots={slots}" for index in range(count)]


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (mpi_job(replicas=12, slots=4, command=ELASTIC, annotations=LEAST), hosts(2, slots=4)),
        (mpi_job(replicas=2, command=ELASTIC, annotations=LEAST), hosts(2)),
        (mpi_job(replicas=1, command=ELASTIC, annotations=LEAST), hosts(1)),
        (mpi_job(replicas=4, command=ELASTIC), hosts(4)),
        (mpi_job(replicas=4, command=PLAIN, annotations=LEAST), hosts(4)),
        (mpi_job(replicas=4, command=[*ELASTIC[:1], "-np", "3", *ELASTIC[1:]], annotations=LEAST), hosts(3)),
    ],
    ids=["elastic", "at its least", "below its least", "no least", "not elastic", "what horovodrun needs"],
)
def test_a_known_elastic_job_waits_for_its_least(job: Object, expected: list[str]) -> None:
    assert patched(job, known=job) == expected


def test_an_unknown_job_or_another_of_its_name_waits_for_all() -> None:
    job = mpi_job(replicas=4, command=ELASTIC, annotations=LEAST)
    other = json.loads(json.dumps(job).replace('"5f1b"', '"another"'))
    assert patched(job, known=None) == hosts(4)
    assert patched(job, known=other) == hosts(4)


def test_a_hostfile_that_is_not_the_operators_stays() -> None:
    job = mpi_job(replicas=4, command=ELASTIC, annotations=LEAST)
    config = config_map(**made(job))
    config["data"]["hostfile"] = "b\na\nc\nd\n"
    assert patched(job, known=job, config=config) == ["b", "a", "c", "d"]
