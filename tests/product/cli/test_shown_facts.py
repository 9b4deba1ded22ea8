"""An MPIJob and a pod as they are read for showing."""

import json
from typing import Any

import pytest

from mpijob_elastic.cli.jobs import shown_facts
from tests.product.cli import worlds


@pytest.mark.parametrize(
    ("conditions", "more", "state"),
    [
        ([], {}, "Pending"),
        (["Created"], {}, "Created"),
        (["Created", "Running"], {}, "Running"),
        (["Created", "Restarting"], {}, "Restarting"),
        (["Created", "Succeeded"], {"completionTime": worlds.CREATED_TEXT}, "Succeeded"),
        (["Created", "Failed"], {"completionTime": worlds.CREATED_TEXT}, "Failed"),
        # An evicted worker leaves Failed behind for ever, although the job goes on.
        (["Created", "Failed", "Running"], {}, "Running"),
    ],
)
def test_the_state_is_one_word_for_the_conditions(conditions: list[str], more: dict[str, Any], state: str) -> None:
    job = worlds.mpi_job(conditions=conditions, **more)
    assert shown_facts.read_job(json.dumps(job).encode()).state == state


def test_a_job_that_is_being_deleted_says_so_whatever_else_it_is() -> None:
    job = worlds.mpi_job(conditions=["Succeeded"])
    job["metadata"]["deletionTimestamp"] = worlds.CREATED_TEXT
    assert shown_facts.read_job(json.dumps(job).encode()).state == "Terminating"


def test_when_a_job_was_created() -> None:
    assert shown_facts.read_job(json.dumps(worlds.mpi_job()).encode()).facts.created_at == worlds.CREATED


def test_the_node_of_a_pod_is_empty_until_it_is_scheduled() -> None:
    pod = worlds.worker(3)
    assert shown_facts.read_pod(json.dumps(pod).encode()).facts.node == "node-3"
    del pod["spec"]
    assert not shown_facts.read_pod(json.dumps(pod).encode()).facts.node
