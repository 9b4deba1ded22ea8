"""Additions to launchers, ConfigMaps and statuses; everything else is left alone."""

import copy
import json
from collections.abc import Callable
from typing import Any

import jsonpatch
import msgspec
import pytest

from mpijob_elastic.model import job_facts
from tests.product.webhook.objects import ELASTIC, PLAIN, Object, config_map, launcher_pod, mpi_job, worker_pod
from webhook.rules import mutate
from webhook.rules.json_patch import Patch

ITEM = {"key": "discover_hosts.sh", "mode": 0o555, "path": "discover_hosts.sh"}
MOUNTED = [
    {"key": "kubexec.sh", "mode": 0o555, "path": "kubexec.sh"},
    {"key": "hostfile", "mode": 0o444, "path": "hostfile"},
]


def patch_pod(pod: Object, job: Object | None = None) -> Patch:
    return mutate.launcher(msgspec.convert(pod, mutate.Pod), job_facts.read(json.dumps(job).encode()) if job else None)


def patch_config(config: Object) -> Patch:
    return mutate.config_map(msgspec.convert(config, mutate.ConfigMap))


def volume(pod: Object) -> Object:
    found: Object = next(one for one in pod["spec"]["volumes"] if one["name"] == "mpi-job-config")["configMap"]
    return found


def test_a_launcher_gets_the_item_at_the_end_and_nothing_else() -> None:
    pod = launcher_pod()
    patched: Object = jsonpatch.apply_patch(pod, patch_pod(pod))

    expected = copy.deepcopy(pod)
    volume(expected)["items"] = [*MOUNTED, ITEM]
    assert patched == expected
    assert patch_pod(patched) == ()


def annotated(**job: Any) -> Object:
    return mpi_job(**{"command": PLAIN, "annotations": {"mpijob-elastic/enabled": "true"}, **job})


STRANGER = annotated()
STRANGER["metadata"] = {**STRANGER["metadata"], "uid": "of an earlier job of this name"}


@pytest.mark.parametrize(
    ("job", "patched"),
    [
        (None, False),
        (mpi_job(command=PLAIN), False),
        (annotated(), True),
        (STRANGER, False),
        # The template was edited after the operator had read it.
        (mpi_job(command=ELASTIC), False),
        (mpi_job(annotations={"mpijob-elastic/enabled": "false"}), False),
    ],
)
def test_a_plain_launcher_gets_nothing_unless_its_job_says_that_it_is_elastic(
    job: Object | None, patched: bool
) -> None:
    patch = patch_pod(launcher_pod(command=PLAIN), job)
    assert [operation["value"] for operation in patch] == ([ITEM] if patched else [])


def test_a_launcher_that_names_the_file_gets_it_whatever_its_job_says() -> None:
    pod = launcher_pod()
    assert patch_pod(pod, mpi_job(command=PLAIN, annotations={"mpijob-elastic/enabled": "false"}))


def limited(*, command: list[str] = PLAIN, asked: str = "true", uid: str = "5f1b") -> Object:
    """A MPIJob whose run policy gives it a minute."""
    job = mpi_job(command=command, annotations={"mpijob-elastic/run-policy": asked})
    job["spec"]["runPolicy"] = {"activeDeadlineSeconds": 60}
    job["metadata"]["uid"] = uid
    return job


@pytest.mark.parametrize(
    ("own", "job", "patched"),
    [
        (None, limited(), True),
        (None, limited(command=ELASTIC), True),
        (90, limited(), False),
        (None, limited(asked="false"), False),
        (None, limited(uid="of an earlier job of this name"), False),
        (None, mpi_job(), False),
        (None, None, False),
    ],
)
def test_a_launcher_gets_the_deadline_of_its_jobs_run_policy(
    own: int | None, job: Object | None, patched: bool
) -> None:
    pod = launcher_pod(command=PLAIN)
    if own:
        pod["spec"]["activeDeadlineSeconds"] = own
    facts = job_facts.read(json.dumps(job).encode()) if job else None
    patch = mutate.run_policy(msgspec.convert(pod, mutate.Pod), facts)
    assert patch == (({"op": "add", "path": "/spec/activeDeadlineSeconds", "value": 60},) if patched else ())


@pytest.mark.parametrize(
    ("limit", "own", "changed"),
    [(1, "Never", True), (0, "Never", False), (1, "Always", False), (1, "OnFailure", False)],
)
def test_a_launcher_that_may_be_tried_again_is_restarted_in_place(limit: int, own: str, changed: bool) -> None:
    job, pod = limited(), launcher_pod(command=PLAIN)
    job["spec"]["runPolicy"] = {"backoffLimit": limit}
    pod["spec"]["restartPolicy"] = own
    patch = mutate.run_policy(msgspec.convert(pod, mutate.Pod), job_facts.read(json.dumps(job).encode()))
    assert patch == (({"op": "replace", "path": "/spec/restartPolicy", "value": "OnFailure"},) if changed else ())


def test_a_worker_gets_nothing_of_the_run_policy() -> None:
    job = job_facts.read(json.dumps(limited()).encode())
    assert mutate.run_policy(msgspec.convert(worker_pod(), mutate.Pod), job) == ()


def test_the_volume_is_found_by_its_name_wherever_other_webhooks_put_theirs() -> None:
    pod = launcher_pod()
    pod["spec"]["volumes"].insert(0, {"name": "istio", "emptyDir": {}})

    assert [operation["path"] for operation in patch_pod(pod)] == ["/spec/volumes/2/configMap/items/2"]


def test_a_config_map_gets_a_script_that_names_no_host() -> None:
    config = config_map()
    patched: Object = jsonpatch.apply_patch(config, patch_config(config))

    assert patched == {**config, "data": {**config["data"], "discover_hosts.sh": "#!/bin/sh\n"}}
    assert patch_config(patched) == ()


def owner(obj: Object) -> Object:
    found: Object = obj["metadata"]["ownerReferences"][0]
    return found


LEAVE_POD: dict[str, Callable[[Object], object]] = {
    "a pod without an owner": lambda pod: pod["metadata"].pop("ownerReferences"),
    "a pod that the MPIJob owns but does not control": lambda pod: owner(pod).update(controller=False),
    "a pod of a v2beta1 MPIJob": lambda pod: owner(pod).update(apiVersion="kubeflow.org/v2beta1"),
    "a pod of a TFJob": lambda pod: owner(pod).update(kind="TFJob"),
    "a pod of another job's name": lambda pod: owner(pod).update(name="other"),
    "a pod with the role of a worker": lambda pod: pod["metadata"]["labels"].update({"mpi-job-role": "worker"}),
    "a pod without our labels": lambda pod: pod["metadata"].pop("labels"),
    "a volume of another ConfigMap": lambda pod: volume(pod).update(name="other-config"),
    "a volume with another name": lambda pod: pod["spec"]["volumes"][1].update(name="other"),
    "a volume that is no ConfigMap": lambda pod: pod["spec"]["volumes"][1].pop("configMap"),
    "a volume that projects every key": lambda pod: volume(pod).pop("items"),
    "a launcher of v0.3.0, which has the item": lambda pod: volume(pod)["items"].insert(0, ITEM),
    "a file of that name from another key": lambda pod: volume(pod)["items"].append({"key": "x", "path": ITEM["path"]}),
    "the key under another name": lambda pod: volume(pod)["items"].append({"key": ITEM["key"], "path": "x"}),
    "a pod without volumes": lambda pod: pod["spec"].pop("volumes"),
}


@pytest.mark.parametrize("change", LEAVE_POD.values(), ids=LEAVE_POD.keys())
def test_left_alone(change: Callable[[Object], object]) -> None:
    pod = launcher_pod()
    change(pod)
    assert patch_pod(pod) == ()


def test_a_worker_is_left_alone() -> None:
    assert patch_pod(worker_pod()) == ()


LEAVE_CONFIG: dict[str, Callable[[Object], object]] = {
    "a ConfigMap without an owner": lambda config: config["metadata"].pop("ownerReferences"),
    "a ConfigMap that is not the operator's by its name": lambda config: config["metadata"].update(name="train-data"),
    "a ConfigMap of another kind's owner": lambda config: owner(config).update(kind="TFJob"),
    "a ConfigMap of v0.3.0, which has the key": lambda config: config["data"].update(
        {"discover_hosts.sh": "#!/bin/sh"}
    ),
    "the key in binaryData": lambda config: config.update(binaryData={"discover_hosts.sh": "IyE="}),
    "a ConfigMap without data": lambda config: config.pop("data"),
}


@pytest.mark.parametrize("change", LEAVE_CONFIG.values(), ids=LEAVE_CONFIG.keys())
def test_config_map_left_alone(change: Callable[[Object], object]) -> None:
    config = config_map()
    change(config)
    assert patch_config(config) == ()
