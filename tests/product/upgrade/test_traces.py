import copy
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.model import kubexec, mpijob
from mpijob_elastic.observe import facts_config, facts_pod
from tests.builders import KUBEXEC
from tests.product.upgrade.definitions import applied
from tests.product.upgrade.objects import SCRIPT, config_map, job, launcher, worker
from upgrade import traces


def find(
    *,
    jobs: Iterable[dict[str, Any]] = (),
    config_maps: Iterable[dict[str, Any]] = (),
    pods: Iterable[dict[str, Any]] = (),
) -> traces.Traces:
    return traces.find(
        jobs=[mpijob.decode(msgspec.json.encode(one)) for one in jobs],
        configs=[facts_config.read_config(msgspec.json.encode(one)) for one in config_maps],
        pods=[facts_pod.read(msgspec.json.encode(one)) for one in pods],
    )


def without(config: dict[str, Any]) -> dict[str, Any]:
    found = find(config_maps=[config])
    [removal] = found.removals
    return applied(copy.deepcopy(config), removal.patch)


def test_key_and_memory_go_from_a_job_without_a_launcher() -> None:
    after = without(config_map())
    assert after["data"] == {"hostfile": "train-worker-0 slots=1\n", "kubexec.sh": "x"}
    assert after["metadata"]["annotations"] == {"theirs": "1"}


def test_kubexec_becomes_the_operators_again() -> None:
    config = config_map()
    config["data"][names.KEY_KUBEXEC] = kubexec.mapped(KUBEXEC)
    assert without(config)["data"][names.KEY_KUBEXEC] == KUBEXEC


def test_what_a_live_launcher_mounts_stays_with_its_memory() -> None:
    found = find(config_maps=[config_map()], pods=[launcher(refreshed=False)])
    assert (found.removals, found.kept) == ((), ("ml/train",))


@pytest.mark.parametrize("pod", [launcher(mounts=False), launcher(phase="Succeeded"), launcher(phase="Failed")])
def test_a_launcher_that_does_not_mount_it_or_has_ended_keeps_nothing(pod: dict[str, Any]) -> None:
    found = find(config_maps=[config_map()], pods=[pod])
    assert found.kept == ()
    assert {one.name for one in found.removals} == {"train-launcher", "train-config"}


def test_the_empty_list_of_the_webhook_goes_and_what_others_wrote_stays() -> None:
    empty = config_map(script=names.discover_hosts([], slots=1), managed=False)
    assert names.KEY_DISCOVER_HOSTS not in without(empty)["data"]
    for foreign in (
        config_map(script=SCRIPT, managed=False),
        config_map(owner=False),
        config_map(script=None, managed=False),
    ):
        assert find(config_maps=[foreign]) == traces.Traces()


@pytest.mark.parametrize("pods", [[], [launcher(refreshed=False)]])
def test_the_key_of_a_job_that_was_handed_over_is_anothers(pods: list[dict[str, Any]]) -> None:
    found = find(jobs=[job({names.STATUS: "HandedOver: to another"})], config_maps=[config_map()], pods=pods)
    first, last = found.removals
    assert applied(copy.deepcopy(config_map()), first.patch)["data"] == config_map()["data"]
    assert str(first).endswith(f": {names.MEMORY}")
    # What tells that it was goes last, should this be interrupted.
    assert (last.resource.kind, found.kept) == ("MPIJob", ())


def test_our_annotations_go_and_users_stay() -> None:
    said = {names.STATUS: "waiting", names.MIN_REPLICAS: "1"}
    one = job(said)
    [removal] = find(jobs=[one]).removals
    assert applied(copy.deepcopy(one), removal.patch)["metadata"]["annotations"] == {names.MIN_REPLICAS: "1"}
    assert str(removal) == f"MPIJob ml/train: {names.STATUS}"


def test_our_selector_goes_from_the_status_and_anothers_stays() -> None:
    one = job()
    one["status"] = {"replicaStatuses": {"Worker": {"active": 1, "selector": names.worker_selector("train")}}}
    [removal] = find(jobs=[one]).removals
    assert removal.path.endswith("/namespaces/ml/mpijobs/train/status")
    assert applied(copy.deepcopy(one), removal.patch)["status"] == {"replicaStatuses": {"Worker": {"active": 1}}}
    one["status"]["replicaStatuses"]["Worker"]["selector"] = "theirs=1"
    assert find(jobs=[one]).removals == ()


@pytest.mark.parametrize("status", [None, {"conditions": None, "replicaStatuses": None}])
def test_a_status_that_the_operator_left_null_has_no_selector(status: dict[str, None] | None) -> None:
    assert find(jobs=[{**job(), "status": status}]).removals == ()


def test_a_patch_is_of_this_very_object() -> None:
    [removal] = find(jobs=[job({names.STATUS: "x"})]).removals
    assert {"op": "test", "path": "/metadata/uid", "value": "job"} in removal.patch


def test_surplus_are_running_workers_beyond_the_size() -> None:
    pods = [launcher(), worker(0), worker(1), worker(2, phase="Failed")]
    assert find(jobs=[job(replicas=1)], pods=pods).surplus == ("ml/train-worker-1",)
    assert find(pods=pods).surplus == ()
