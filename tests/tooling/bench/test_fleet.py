"""The objects of a fleet's jobs are such as the controller takes for the operator's."""

from typing import Any

import msgspec
import pytest

from bench import jobs
from bench.fleet import Fleet, owned
from mpijob_elastic import names
from mpijob_elastic.observe import facts_config, facts_pod


@pytest.fixture
def made() -> dict[str, dict[str, Any]]:
    body = jobs.manifest("train", replicas=2, drain_timeout=jobs.AT_ONCE)
    body["metadata"] |= {"namespace": "n", "uid": "u"}
    return {made["metadata"]["name"]: made for _, made in owned(body, node="lab-0")}


def test_pods_are_bound_and_belong_to_the_job(made: dict[str, dict[str, Any]]) -> None:
    for name in ("train-worker-0", "train-worker-1", "train-launcher"):
        facts = facts_pod.read(msgspec.json.encode(made[name]))
        assert (facts.metadata.job, facts.foreign, made[name]["spec"]["nodeName"]) == ("train", False, "lab-0")
        assert facts.metadata.namespace == "n"
    accounts = [made[name]["spec"]["serviceAccountName"] for name in ("train-worker-0", "train-launcher")]
    assert accounts == ["default", "train-launcher"]


def test_the_launcher_sees_the_script(made: dict[str, dict[str, Any]]) -> None:
    assert facts_pod.read(msgspec.json.encode(made["train-launcher"])).mounts_discovery


def test_the_config_map_has_a_script_without_hosts(made: dict[str, dict[str, Any]]) -> None:
    assert facts_config.read_config(msgspec.json.encode(made["train-config"])).script == names.SCRIPT_HEADER


def test_a_fleet_of_a_number_of_pods_counts_launchers() -> None:
    fleet = Fleet.of_pods(1_000, workers=9)
    assert (fleet.count, fleet.pods, fleet.names[:2]) == (100, 1_000, ["train-0", "train-1"])
