"""Whose hostfile is shortened when its job's ConfigMap is created, and to what."""

import jsonpatch
import pytest

from lab.operator import objects
from mpijob_elastic import names
from tests.product.webhook.answers import knowing
from tests.product.webhook.objects import ELASTIC, PLAIN, Object, body, mpi_job
from webhook.rules import handlers, review

OF_THREE = [ELASTIC[0], "-np", "3", *ELASTIC[1:]]
LEAST = {names.MIN_REPLICAS: "2"}


def stored(config: Object, *, known: Object | None) -> list[str]:
    """The lines of the hostfile that the API server stores, where the webhook knows that job."""
    table = handlers.mutating(knowing(known))
    patch = handlers.answer(review.parse(body(config)), table).verdict.patch
    patched: Object = jsonpatch.apply_patch(config, patch)
    assert len(patch) == 1 + (patched["data"]["hostfile"] != config["data"]["hostfile"])
    assert patched["data"]["discover_hosts.sh"] == "#!/bin/sh\n"
    assert handlers.answer(review.parse(body(patched)), table).verdict.patch == ()
    lines: list[str] = patched["data"]["hostfile"].splitlines()
    return lines


def hosts(count: int, *, slots: int = 1) -> list[str]:
    return [f"train-worker-{index} slots={slots}" for index in range(count)]


FOUR = mpi_job(replicas=4, annotations=LEAST)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        pytest.param(mpi_job(replicas=12, slots=4, annotations=LEAST), hosts(2, slots=4), id="elastic"),
        pytest.param(mpi_job(replicas=3, annotations=LEAST), hosts(2), id="just above its least"),
        pytest.param(mpi_job(replicas=2, annotations=LEAST), hosts(2), id="at its least"),
        pytest.param(mpi_job(replicas=1, annotations=LEAST), hosts(1), id="below its least"),
        pytest.param(mpi_job(replicas=4), hosts(4), id="no least"),
        pytest.param(mpi_job(replicas=4, command=PLAIN, annotations=LEAST), hosts(4), id="not elastic"),
        pytest.param(mpi_job(replicas=4, command=OF_THREE, annotations=LEAST), hosts(3), id="what horovodrun needs"),
    ],
)
def test_a_known_elastic_job_waits_for_its_least(job: Object, expected: list[str]) -> None:
    assert stored(objects.config_map(job), known=job) == expected


@pytest.mark.parametrize("known", [None, {**FOUR, "metadata": {**FOUR["metadata"], "uid": "another"}}])
def test_an_unknown_job_or_another_of_its_name_waits_for_all(known: Object | None) -> None:
    assert stored(objects.config_map(FOUR), known=known) == hosts(4)


def test_a_hostfile_that_is_not_the_operators_stays() -> None:
    config = objects.config_map(FOUR)
    config["data"]["hostfile"] = "b\na\nc\nd\n"
    assert stored(config, known=FOUR) == ["b", "a", "c", "d"]
