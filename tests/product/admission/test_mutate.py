"""What new ConfigMaps and pods get: whose hostfile is shortened, too, and to what."""

import copy
from collections.abc import Callable
from typing import Any

import jsonpatch
import msgspec
import pytest

from lab.operator import objects
from mpijob_elastic import names
from mpijob_elastic.admission import json_patch, mutate, review
from mpijob_elastic.admission.json_patch import ForeignField, Patch
from mpijob_elastic.capabilities.run_policy.admission import RunPolicyAdmission
from mpijob_elastic.model import elastic_script
from tests.product.webhook.answers import facts, knowing, patch_of, patched
from tests.product.webhook.answers import own as capability
from tests.product.webhook.objects import (
    ELASTIC,
    PLAIN,
    Object,
    body,
    config_map,
    launcher_pod,
    mpi_job,
    worker_pod,
)
from webhook.rules import handlers

ITEM = {"key": "discover_hosts.sh", "mode": 0o555, "path": "discover_hosts.sh"}
ON, OFF = ({"mpijob-elastic/enabled": value} for value in ("true", "false"))


ELASTIC_ITEM = {"key": "elastic.sh", "mode": 0o555, "path": "elastic.sh"}
ANY_MPI = ["/etc/mpi/elastic.sh", "--min-np", "2", "--", "mpirun", "-np", "{np}", "./train"]
FOLDER = {"name": "mpijob-elastic", "mountPath": "/run/mpijob-elastic"}


def patch_config(config: Object, job: Object | None = None) -> Patch:
    found = facts(job) if job else None
    return mutate.config_map(msgspec.convert(config, mutate.ConfigMap), found)


def behind_another_volume() -> Object:
    pod = launcher_pod()
    pod["spec"]["volumes"].insert(0, {"name": "istio", "emptyDir": {}})
    return pod


@pytest.mark.parametrize(
    ("pod", "job"),
    [
        pytest.param(launcher_pod(), None, id="it names the file"),
        pytest.param(
            launcher_pod(), mpi_job(command=PLAIN, annotations=OFF), id="whatever its job says"
        ),
        pytest.param(
            launcher_pod(command=PLAIN),
            mpi_job(command=PLAIN, annotations=ON),
            id="its job is elastic",
        ),
        pytest.param(behind_another_volume(), None, id="other webhooks put volumes before"),
    ],
)
def test_an_elastic_launcher_gets_the_item_at_the_end_and_nothing_else(
    pod: Object, job: Object | None
) -> None:
    expected = copy.deepcopy(pod)
    [items] = [
        volume["configMap"]["items"]
        for volume in expected["spec"]["volumes"]
        if "configMap" in volume
    ]
    items.append(ITEM)
    assert len(items) == 3
    assert patched(mutate.launcher, pod, job) == expected


def elastic_folder(pod: mutate.AdmittedPod, _job: object) -> Patch:
    return mutate.elastic_folder(pod)


def naming_it_in(**container: Any) -> Object:
    """A launcher whose first container names elastic.sh only there."""
    pod = launcher_pod(command=PLAIN)
    pod["spec"]["containers"][0] |= container
    return pod


@pytest.mark.parametrize(
    ("pod", "job"),
    [
        pytest.param(launcher_pod(command=ANY_MPI), None, id="its command"),
        pytest.param(
            naming_it_in(args=["exec /etc/mpi/elastic.sh -- ./train"]), None, id="an argument"
        ),
        pytest.param(
            naming_it_in(env=[{"name": "DRIVER", "value": "/etc/mpi/elastic.sh"}]),
            None,
            id="a variable",
        ),
        pytest.param(
            launcher_pod(command=ANY_MPI),
            mpi_job(command=ANY_MPI, annotations=OFF),
            id="whatever its job says",
        ),
    ],
)
def test_a_launcher_that_names_the_driver_gets_it_after_the_list(
    pod: Object, job: Object | None
) -> None:
    after = patched(mutate.launcher, pod, job)
    assert objects.mounted(after)[2:] == [ITEM, ELASTIC_ITEM]


def test_only_a_launcher_gets_the_driver() -> None:
    worker = {**worker_pod(), "spec": launcher_pod(command=ANY_MPI)["spec"]}
    assert patch_of(mutate.launcher, worker, None) == ()
    assert patch_of(elastic_folder, worker, None) == ()


def test_the_driver_gets_a_folder_in_each_container_that_finds_it() -> None:
    pod = launcher_pod(command=ANY_MPI)
    [main] = pod["spec"]["containers"]
    mounts = main["volumeMounts"]
    pod["spec"]["containers"] += [
        {"name": "logs"},
        {"name": "second", "volumeMounts": [{"name": "mpi-job-config", "mountPath": "/etc/mpi/"}]},
    ]
    after = patched(elastic_folder, pod, None)
    first, logs, second = after["spec"]["containers"]
    assert first["volumeMounts"] == [*mounts, FOLDER]
    assert logs == {"name": "logs"}
    assert second["volumeMounts"][1:] == [FOLDER]
    assert after["spec"]["volumes"] == [
        *pod["spec"]["volumes"],
        {"name": "mpijob-elastic", "emptyDir": {}},
    ]
    assert after["spec"]["initContainers"] == pod["spec"]["initContainers"]


def test_a_folder_of_the_template_stays() -> None:
    pod = launcher_pod(command=ANY_MPI)
    pod["spec"]["containers"][0]["volumeMounts"].append(
        {"name": "scratch", "mountPath": "/run/mpijob-elastic/"}
    )
    assert patch_of(elastic_folder, pod, None) == ()


def test_a_volume_of_the_template_is_no_second_one() -> None:
    pod = launcher_pod(command=ANY_MPI)
    own = {"name": "mpijob-elastic", "emptyDir": {"medium": "Memory"}}
    pod["spec"]["volumes"].append(own)
    after = patched(elastic_folder, pod, None)
    assert after["spec"]["volumes"] == pod["spec"]["volumes"]
    assert after["spec"]["containers"][0]["volumeMounts"][-1] == FOLDER


def test_a_volume_of_the_template_that_cannot_be_written_is_not_taken() -> None:
    pod = launcher_pod(command=ANY_MPI)
    pod["spec"]["volumes"].append({"name": "mpijob-elastic", "secret": {"secretName": "keys"}})
    after = patched(elastic_folder, pod, None)
    [main] = after["spec"]["containers"]
    assert main["volumeMounts"][-1] == {**FOLDER, "name": "mpijob-elastic-run"}
    ours = {"name": "mpijob-elastic-run", "emptyDir": {}}
    assert after["spec"]["volumes"] == [*pod["spec"]["volumes"], ours]
    assert patch_of(elastic_folder, after, None) == ()
    after["spec"]["containers"].append({**pod["spec"]["containers"][0], "name": "of another hook"})
    again = patched(elastic_folder, after, None)
    assert again["spec"]["containers"][1]["volumeMounts"][-1] == main["volumeMounts"][-1]
    assert again["spec"]["volumes"] == after["spec"]["volumes"]


def test_a_template_with_both_names_gets_no_folder() -> None:
    pod = launcher_pod(command=ANY_MPI)
    taken = ("mpijob-elastic", "mpijob-elastic-run")
    pod["spec"]["volumes"] += [{"name": name, "secret": {}} for name in taken]
    assert patch_of(elastic_folder, pod, None) == ()


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(launcher_pod(), id="Horovod's"),
        pytest.param(
            launcher_pod(command=["/opt/elastic.sh", "--", "mpirun"]), id="a file of that name"
        ),
        pytest.param(launcher_pod(command=PLAIN), id="plain"),
    ],
)
def test_no_other_launcher_gets_the_driver(pod: Object) -> None:
    after = patched(mutate.launcher, pod, None)
    assert ELASTIC_ITEM not in objects.mounted(after)
    assert patch_of(elastic_folder, pod, None) == ()


def test_all_that_a_launcher_of_the_driver_gets_holds_together() -> None:
    """The patches of all rules are made for the pod as it came, and applied one after another."""
    pod = launcher_pod(command=[*ANY_MPI, "--hosts", "/etc/edl/hostfile"])
    table = handlers.mutating(knowing(mpi_job(command=ANY_MPI)))
    patch = handlers.answer(review.parse(body(pod)), table).verdict.patch
    after: Object = jsonpatch.apply_patch(pod, patch)
    assert objects.mounted(after)[2:] == [ITEM, ELASTIC_ITEM]
    paths = [mount["mountPath"] for mount in after["spec"]["containers"][0]["volumeMounts"]]
    assert {"/etc/mpi", "/etc/edl", "/run/mpijob-elastic"} <= {*paths}
    assert len(paths) == len({*paths})
    assert handlers.answer(review.parse(body(after)), table).verdict.patch == ()


def edl_mount(pod: mutate.AdmittedPod, _job: object) -> Patch:
    return mutate.edl_mount(pod)


EDL = [word.replace("/etc/mpi/", "/etc/edl/") for word in ELASTIC]


def test_a_launcher_that_names_the_path_of_et_operator_finds_the_same_files_there() -> None:
    pod = launcher_pod(command=EDL)
    expected = copy.deepcopy(pod)
    expected["spec"]["containers"][0]["volumeMounts"].append(
        {"name": "mpi-job-config", "mountPath": "/etc/edl"}
    )
    assert patched(edl_mount, pod, None) == expected
    [item] = patch_of(mutate.launcher, pod, None)
    assert item["value"] == ITEM


def mounted(**change: str) -> Object:
    """A launcher for et-operator whose first mount is changed."""
    pod = launcher_pod(command=EDL)
    [mount] = (
        mount
        for mount in pod["spec"]["containers"][0]["volumeMounts"]
        if mount["mountPath"] == "/etc/mpi"
    )
    mount.update(change)
    return pod


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(launcher_pod(), id="it does not name it"),
        pytest.param(mounted(name="x"), id="another volume"),
        pytest.param(mounted(mountPath="/mnt"), id="another path"),
        pytest.param(mounted(mountPath="/etc/edl/"), id="its own mount"),
        pytest.param({**worker_pod(), "spec": launcher_pod(command=EDL)["spec"]}, id="a worker"),
    ],
)
def test_no_other_pod_gets_a_second_mount(pod: Object) -> None:
    assert patch_of(edl_mount, pod, None) == ()


STRANGER = mpi_job(command=PLAIN, annotations=ON, uid="of an earlier job of this name")


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(None, id="not known"),
        pytest.param(mpi_job(command=PLAIN), id="plain"),
        pytest.param(STRANGER, id="an earlier job of this name"),
        pytest.param(
            mpi_job(command=ELASTIC), id="its template was edited after the operator had read it"
        ),
        pytest.param(mpi_job(command=PLAIN, annotations=OFF), id="switched off"),
    ],
)
def test_a_plain_launcher_gets_nothing_unless_its_job_says_so(job: Object | None) -> None:
    assert patch_of(mutate.launcher, launcher_pod(command=PLAIN), job) == ()


def limited(*, asked: str = "true", policy: Object | None = None, **job: Any) -> Object:
    """An MPIJob whose run policy gives it a minute."""
    made = mpi_job(**{"command": PLAIN, "annotations": {"mpijob-elastic/run-policy": asked}, **job})
    made["spec"]["runPolicy"] = {"activeDeadlineSeconds": 60} if policy is None else policy
    return made


DEADLINE = {"op": "add", "path": "/spec/activeDeadlineSeconds", "value": 60}
RESTARTED = {"op": "replace", "path": "/spec/restartPolicy", "value": "OnFailure"}
BOTH: Object = {"activeDeadlineSeconds": 60, "backoffLimit": 1}


@pytest.mark.parametrize(
    ("own", "job", "patch"),
    [
        pytest.param({}, limited(), (DEADLINE,), id="a deadline"),
        pytest.param({}, limited(command=ELASTIC), (DEADLINE,), id="of an elastic job"),
        pytest.param({"activeDeadlineSeconds": 90}, limited(), (), id="a deadline of its own"),
        pytest.param({}, limited(asked="false"), (), id="not asked for"),
        pytest.param(
            {}, limited(policy={"backoffLimit": 1}), (RESTARTED,), id="may be tried again"
        ),
        pytest.param({}, limited(policy={"backoffLimit": 0}), (), id="may not be tried again"),
        pytest.param(
            {"restartPolicy": "Always"},
            limited(policy={"backoffLimit": 1}),
            (),
            id="restarts always",
        ),
        pytest.param(
            {"restartPolicy": "OnFailure"},
            limited(policy={"backoffLimit": 1}),
            (),
            id="restarts already",
        ),
        pytest.param({}, limited(policy=BOTH), (DEADLINE, RESTARTED), id="both"),
    ],
)
def test_a_launcher_gets_what_its_jobs_run_policy_asks_for(
    own: Object, job: Object, patch: Patch
) -> None:
    pod = launcher_pod(command=PLAIN)
    pod["spec"] |= own
    assert patch_of(capability(RunPolicyAdmission()), pod, job) == patch


def test_a_config_map_gets_a_script_that_names_no_host() -> None:
    config = config_map()
    stored: Object = jsonpatch.apply_patch(config, patch_config(config))
    assert stored == {**config, "data": {**config["data"], "discover_hosts.sh": "#!/bin/sh\n"}}
    assert patch_config(stored) == ()


SCRIPT = elastic_script.TEXT
ALL_HOSTS = "#!/bin/sh\necho train-worker-0:4\necho train-worker-1:4\n"


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        pytest.param(mpi_job(command=ANY_MPI), SCRIPT, id="its job names it"),
        pytest.param(None, None, id="not known"),
        pytest.param(mpi_job(), None, id="Horovod"),
        pytest.param(mpi_job(command=PLAIN, annotations=ON), None, id="switched on without it"),
        pytest.param(
            mpi_job(command=ANY_MPI, uid="another"), None, id="an earlier job of this name"
        ),
    ],
)
def test_a_config_map_gets_the_driver_of_its_job(job: Object | None, expected: str | None) -> None:
    stored: Object = jsonpatch.apply_patch(config_map(), patch_config(config_map(), job))
    assert stored["data"].get("elastic.sh") == expected
    assert stored["data"]["discover_hosts.sh"] == "#!/bin/sh\n"
    assert patch_config(stored, job) == ()


def test_a_key_of_the_drivers_name_stays() -> None:
    config = config_map()
    config["data"]["elastic.sh"] = "own"
    [only] = patch_config(config, mpi_job(command=ANY_MPI))
    assert only["path"] == "/data/discover_hosts.sh"


@pytest.mark.parametrize(
    ("command", "annotations", "expected"),
    [
        pytest.param(ANY_MPI, OFF, ALL_HOSTS, id="switched off"),
        pytest.param(ANY_MPI, {}, "#!/bin/sh\n", id="elastic"),
        pytest.param(ELASTIC, OFF, "#!/bin/sh\n", id="Horovod, switched off"),
    ],
)
def test_the_driver_of_a_job_that_nobody_follows_finds_all_hosts(
    command: list[str], annotations: dict[str, str], expected: str
) -> None:
    job = mpi_job(command=command, annotations=annotations, slots=4)
    config = objects.config_map(job)
    stored: Object = jsonpatch.apply_patch(config, patch_config(config, job))
    assert stored["data"]["discover_hosts.sh"] == expected
    assert stored["data"]["hostfile"] == config["data"]["hostfile"]


LEAVE_POD: dict[str, Callable[[Object], object]] = {
    "without our group": lambda pod: pod["metadata"]["labels"].pop("group-name"),
    "a volume of another ConfigMap": lambda pod: pod["spec"]["volumes"][1]["configMap"].update(
        name="other-config"
    ),
    "a volume with another name": lambda pod: pod["spec"]["volumes"][1].update(name="other"),
    "a volume that is no ConfigMap": lambda pod: pod["spec"]["volumes"][1].pop("configMap"),
    "a volume that projects every key": lambda pod: pod["spec"]["volumes"][1]["configMap"].pop(
        "items"
    ),
    "a launcher of v0.3.0, which has the item": lambda pod: objects.mounted(pod).insert(0, ITEM),
    "a file of that name from another key": lambda pod: objects.mounted(pod).append(
        {"key": "x", "path": ITEM["path"]}
    ),
    "the key under another name": lambda pod: objects.mounted(pod).append(
        {"key": ITEM["key"], "path": "x"}
    ),
    "a pod without volumes": lambda pod: pod["spec"].pop("volumes"),
}


@pytest.mark.parametrize("change", LEAVE_POD.values(), ids=LEAVE_POD.keys())
def test_a_launcher_left_alone(change: Callable[[Object], object]) -> None:
    pod = launcher_pod()
    change(pod)
    assert patch_of(mutate.launcher, pod, None) == ()


LEAVE_CONFIG: dict[str, Callable[[Object], object]] = {
    "without an owner": lambda config: config["metadata"].pop("ownerReferences"),
    "not the operator's by its name": lambda config: config["metadata"].update(name="train-data"),
    "of another kind's owner": lambda config: config["metadata"]["ownerReferences"][0].update(
        kind="TFJob"
    ),
    "of v0.3.0, which has the key": lambda config: config["data"].update(
        {"discover_hosts.sh": "#!/bin/sh"}
    ),
    "the key in binaryData": lambda config: config.update(binaryData={"discover_hosts.sh": "IyE="}),
    "without data": lambda config: config.pop("data"),
}


@pytest.mark.parametrize("change", LEAVE_CONFIG.values(), ids=LEAVE_CONFIG.keys())
def test_a_config_map_left_alone(change: Callable[[Object], object]) -> None:
    config = config_map()
    change(config)
    assert patch_config(config) == ()


PROFILE = "/spec/initContainers/10/securityContext/seccompProfile"


PREFERRED = "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    "at",
    [
        "/data/discover_hosts.sh",
        "/data/elastic.sh",
        "/data/hostfile.hydra",
        "/spec/containers/0/env",
        "/spec/containers/10/env/2",
        PROFILE,
        "/spec/volumes/10",
        "/spec/volumes/10/configMap/items/2",
        "/spec/affinity",
        "/spec/affinity/nodeAffinity",
        PREFERRED,
        f"{PREFERRED}/-",
    ],
)
def test_an_addition_to_our_fields(at: str) -> None:
    assert json_patch.adding(at=at, value={"x": 1}) == (
        {"op": "add", "path": at, "value": {"x": 1}},
    )


def test_keys_are_escaped() -> None:
    [label] = json_patch.labelling("a.b/c", "d")
    assert label == {"op": "add", "path": "/metadata/labels/a.b~1c", "value": "d"}
    [mark] = json_patch.annotating({"a": "b"}, {"volcano.sh/task-spec": "worker"})
    assert mark == {
        "op": "add",
        "path": "/metadata/annotations/volcano.sh~1task-spec",
        "value": "worker",
    }


@pytest.mark.parametrize(
    "at", ["", "/data", "/data/discover_hosts.sh", "/data/hostfile/x", "/binaryData/hostfile"]
)
def test_few_fields_are_replaced(at: str) -> None:
    assert json_patch.replacing(at="/data/hostfile", value="x")[0]["op"] == "replace"
    with pytest.raises(ForeignField):
        json_patch.replacing(at=at, value="x")


@pytest.mark.parametrize(
    "at",
    [
        "",
        "/data/hostfile",
        "/data/discover_hosts.sh/x",
        "/data/discover_hosts_sh",
        "/data/elastic_sh",
        "/spec/volumes",
        "/spec/volumes/-",
        "/spec/volumes/0/emptyDir",
        "/spec/containers/0/env/-",
        "/spec/containers/0/env/0/value",
        "/spec/containers/0/envFrom",
        "/spec/initContainers/0/env/0",
        "/spec/containers/securityContext",
        "/spec/containers/0/securityContext/runAsUser",
        "/spec/securityContext/seccompProfile/type",
        "/spec/ephemeralContainers/0/securityContext",
        "/spec/volumes/0/secret/items/0",
        "/spec/volumes/0/configMap/items/01",
        "/spec/volumes/0/configMap/items/-",
        "/spec/volumes/x/configMap/items/0",
        f"{PREFERRED}/0",
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution",
        "/spec/affinity/podAffinity",
        "/metadata/labels/a~1b~1c",
        "/metadata/labels/a~0b",
        "/metadata/annotations/a~1b~1c",
        "/status/replicaStatuses/Launcher/selector",
        "/spec/volumes/0/configMap/items/0\n",
        "x/spec/volumes/0/configMap/items/0",
    ],
)
def test_anything_else_is_a_fault(at: str) -> None:
    with pytest.raises(ForeignField):
        json_patch.adding(at=at, value="x")


COUNTING = ["sh", "-c", f"NP=$(wc -l < /etc/mpi/hostfile); {' '.join(ELASTIC)}"]
COMPUTED = ["sh", "-c", f"horovodrun -np $NP {' '.join(ELASTIC[3:])}"]
OF_THREE = [ELASTIC[0], "-np", "3", *ELASTIC[3:]]
LEAST = {names.MIN_REPLICAS: "2"}


def stored(config: Object, *, known: Object | None) -> list[str]:
    """The lines of the hostfile that the API server stores, where the webhook knows that job."""
    table = handlers.mutating(knowing(known))
    patch = handlers.answer(review.parse(body(config)), table).verdict.patch
    after: Object = jsonpatch.apply_patch(config, patch)
    # hostfile.hydra is for those that are not elastic.
    touched = {one["path"] for one in patch} - {"/data/hostfile.hydra"}
    assert len(touched) == 1 + (after["data"]["hostfile"] != config["data"]["hostfile"])
    assert after["data"]["discover_hosts.sh"] == "#!/bin/sh\n"
    assert handlers.answer(review.parse(body(after)), table).verdict.patch == ()
    lines: list[str] = after["data"]["hostfile"].splitlines()
    return lines


def hosts(count: int, *, slots: int = 1) -> list[str]:
    return [f"train-worker-{index} slots={slots}" for index in range(count)]


FOUR = mpi_job(replicas=4, annotations=LEAST)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        pytest.param(
            mpi_job(replicas=12, slots=4, annotations=LEAST), hosts(2, slots=4), id="elastic"
        ),
        pytest.param(mpi_job(replicas=3, annotations=LEAST), hosts(2), id="just above its least"),
        pytest.param(mpi_job(replicas=2, annotations=LEAST), hosts(2), id="at its least"),
        pytest.param(mpi_job(replicas=1, annotations=LEAST), hosts(1), id="below its least"),
        pytest.param(mpi_job(replicas=4), hosts(4), id="no least"),
        pytest.param(
            mpi_job(replicas=4, command=PLAIN, annotations=LEAST), hosts(4), id="not elastic"
        ),
        pytest.param(
            mpi_job(replicas=4, command=OF_THREE, annotations=LEAST),
            hosts(3),
            id="what horovodrun needs",
        ),
        pytest.param(
            mpi_job(replicas=4, command=COUNTING, annotations=LEAST),
            hosts(4),
            id="a command that names the hostfile",
        ),
        pytest.param(
            mpi_job(replicas=4, command=COMPUTED, annotations=LEAST),
            hosts(4),
            id="-np that cannot be read",
        ),
    ],
)
def test_a_known_elastic_job_waits_for_its_least(job: Object, expected: list[str]) -> None:
    assert stored(objects.config_map(job), known=job) == expected


@pytest.mark.parametrize(
    "known", [None, {**FOUR, "metadata": {**FOUR["metadata"], "uid": "another"}}]
)
def test_an_unknown_job_or_another_of_its_name_waits_for_all(known: Object | None) -> None:
    assert stored(objects.config_map(FOUR), known=known) == hosts(4)


def test_a_hostfile_that_is_not_the_operators_stays() -> None:
    config = objects.config_map(FOUR)
    config["data"]["hostfile"] = "b\na\nc\nd\n"
    assert stored(config, known=FOUR) == ["b", "a", "c", "d"]
