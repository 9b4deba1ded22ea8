"""The variables and the hostfile by which any mpirun of a launcher finds the workers."""

from typing import Any

import jsonpatch
import msgspec
import pytest

from lab.operator import objects
from mpijob_elastic.admission import mpi_variables, mutate, review
from mpijob_elastic.admission.json_patch import Patch
from tests.product.webhook.answers import facts, knowing, patch_of, patched
from tests.product.webhook.objects import (
    ELASTIC,
    PLAIN,
    Object,
    body,
    launcher_pod,
    mpi_job,
    worker_pod,
)
from webhook.rules import handlers

KUBEXEC = "/etc/mpi/kubexec.sh"
HYDRA_HOSTFILE = "/etc/mpijob-elastic/hostfile.hydra"
TREES = {
    "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
    "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
    "I_MPI_HYDRA_BRANCH_COUNT": "0",
}
OPEN_MPI = {
    "PRTE_MCA_plm_ssh_agent": KUBEXEC,
    "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
}
MPICH = {"HYDRA_LAUNCHER": "rsh", "HYDRA_LAUNCHER_EXEC": KUBEXEC}
INTEL = {"I_MPI_HYDRA_BOOTSTRAP": "rsh", "I_MPI_HYDRA_BOOTSTRAP_EXEC": KUBEXEC}
INTERFACES = {"HYDRA_IFACE": "eth0", "I_MPI_HYDRA_IFACE": "eth0"}
HOSTFILES = {"HYDRA_HOST_FILE": HYDRA_HOSTFILE, "I_MPI_HYDRA_HOST_FILE": HYDRA_HOSTFILE}
BASIC = {**TREES, **OPEN_MPI, **MPICH, **INTEL, **INTERFACES}
ALL = {**BASIC, **HOSTFILES}
ANY_MPI = ["/etc/mpi/elastic.sh", "--", "mpirun", "./train"]
# It is there before ours, in any launcher of the operator.
OPERATORS = ["OMPI_MCA_plm_rsh_agent", "OMPI_MCA_orte_default_hostfile"]
MOUNT = {"name": "mpijob-elastic-hydra", "mountPath": "/etc/mpijob-elastic"}
VOLUME = {
    "name": "mpijob-elastic-hydra",
    "configMap": {
        "name": "train-config",
        "items": [{"key": "hostfile.hydra", "mode": 0o444, "path": "hostfile.hydra"}],
        "optional": True,
    },
}


def annotated(**values: str) -> dict[str, str]:
    return {f"mpijob-elastic/{key.replace('_', '-')}": value for key, value in values.items()}


def with_env(*names: str, **container: Any) -> Object:
    """A launcher whose template sets these variables."""
    pod = launcher_pod(command=PLAIN)
    first = pod["spec"]["containers"][0]
    first["env"] = [*({"name": name, "value": "own"} for name in names), *first["env"]]
    first |= container
    return pod


def added(pod: Object, job: Object | None) -> dict[str, str]:
    """The variables that the first container gets, which come after those of the operator."""
    before = pod["spec"]["containers"][0]["env"]
    after = patched(mpi_variables.launcher, pod, job)["spec"]["containers"][0]["env"]
    assert after[: len(before)] == before
    return {one["name"]: one["value"] for one in after[len(before) :]}


@pytest.mark.parametrize(
    ("command", "annotations", "expected"),
    [
        pytest.param(PLAIN, {}, ALL, id="plain"),
        pytest.param(ELASTIC, {}, BASIC, id="Horovod follows the list"),
        pytest.param(ANY_MPI, {}, BASIC, id="elastic.sh writes its own hostfile"),
        pytest.param(PLAIN, annotated(enabled="true"), BASIC, id="switched on"),
        pytest.param(PLAIN, annotated(enabled="false"), {}, id="switched off"),
        pytest.param(PLAIN, annotated(mpi_variables="false"), {}, id="not wanted"),
        pytest.param(PLAIN, annotated(mpi_variables="x"), ALL, id="nobody knows"),
        pytest.param(
            PLAIN, annotated(enabled="false", mpi_variables="true"), ALL, id="off, and wanted"
        ),
        pytest.param(
            ANY_MPI,
            annotated(enabled="false", mpi_variables="true"),
            BASIC,
            id="elastic.sh, off, and wanted",
        ),
    ],
)
def test_each_launcher_gets_the_variables_that_its_job_wants(
    command: list[str], annotations: dict[str, str], expected: dict[str, str]
) -> None:
    job = mpi_job(command=command, annotations=annotations)
    assert added(launcher_pod(command=command), job) == expected


@pytest.mark.parametrize(
    ("own", "kept"),
    [
        pytest.param(["PRTE_MCA_plm_ssh_agent"], ["PRTE_MCA_plm_ssh_agent"], id="one of ours"),
        pytest.param(["PRTE_MCA_plm_rsh_agent"], ["PRTE_MCA_plm_ssh_agent"], id="an older name"),
        pytest.param(["HYDRA_LAUNCHER"], [*MPICH], id="another remote shell"),
        pytest.param(["HYDRA_BOOTSTRAP_EXEC"], [*MPICH], id="its older name"),
        pytest.param(["I_MPI_HYDRA_BOOTSTRAP"], [*INTEL], id="that of Intel MPI"),
        pytest.param(["HYDRA_IFACE"], ["HYDRA_IFACE"], id="another interface"),
        pytest.param(["I_MPI_HYDRA_HOSTS_GROUP"], ["I_MPI_HYDRA_HOST_FILE"], id="other hosts"),
        pytest.param(["HYDRA_HOST_FILE"], ["HYDRA_HOST_FILE"], id="another hostfile"),
    ],
)
def test_what_a_template_sets_stays_with_what_belongs_to_it(
    own: list[str], kept: list[str]
) -> None:
    left = {name: value for name, value in ALL.items() if name not in kept}
    assert added(with_env(*own), mpi_job(command=PLAIN)) == left


def test_variables_that_the_pod_does_not_show_are_not_overruled_unasked() -> None:
    pod = with_env(envFrom=[{"configMapRef": {"name": "settings"}}])
    assert patch_of(mpi_variables.launcher, pod, mpi_job(command=PLAIN)) == ()
    asking = mpi_job(command=PLAIN, annotations=annotated(mpi_variables="true"))
    assert added(pod, asking) == ALL


def test_a_launcher_in_the_network_of_its_node_has_an_interface_of_another_name() -> None:
    pod = launcher_pod(command=PLAIN)
    pod["spec"]["hostNetwork"] = True
    assert added(pod, mpi_job(command=PLAIN)) == {
        name: value for name, value in ALL.items() if name not in INTERFACES
    }


def test_the_hostfile_for_hydra_is_mounted_where_it_is_named() -> None:
    pod = launcher_pod(command=PLAIN)
    files = {"name": "mpi-job-config", "mountPath": "/etc/mpi"}
    pod["spec"]["containers"] += [{"name": "logs"}, {"name": "second", "volumeMounts": [files]}]
    after = patched(mpi_variables.launcher, pod, mpi_job(command=PLAIN))
    first, logs, second = after["spec"]["containers"]
    assert first["volumeMounts"] == [*pod["spec"]["containers"][0]["volumeMounts"], MOUNT]
    assert logs == {"name": "logs"}
    assert second["volumeMounts"] == [files, MOUNT]
    assert {one["name"]: one["value"] for one in second["env"]} == ALL
    assert after["spec"]["volumes"] == [*pod["spec"]["volumes"], VOLUME]


def test_a_volume_of_the_template_is_no_second_one() -> None:
    pod = launcher_pod(command=PLAIN)
    pod["spec"]["volumes"].append({"name": "mpijob-elastic-hydra", "emptyDir": {}})
    pod["spec"]["containers"][0]["volumeMounts"].append(
        {"name": "own", "mountPath": "/etc/mpijob-elastic"}
    )
    after = patched(mpi_variables.launcher, pod, mpi_job(command=PLAIN))
    assert after["spec"]["volumes"] == pod["spec"]["volumes"]
    assert after["spec"]["containers"][0]["volumeMounts"] == [
        *pod["spec"]["containers"][0]["volumeMounts"]
    ]


OWN_FOLDER = {"name": "own", "mountPath": "/etc/mpijob-elastic/"}
OWN_VOLUMES = {
    "a folder": ({"name": "own", "emptyDir": {}}, [OWN_FOLDER]),
    "a volume of our name": ({"name": "mpijob-elastic-hydra", "secret": {}}, []),
    "a mounted volume of our name": ({"name": "mpijob-elastic-hydra", "emptyDir": {}}, [MOUNT]),
    "another ConfigMap": ({"name": "mpijob-elastic-hydra", "configMap": {"name": "own"}}, [MOUNT]),
}


@pytest.mark.parametrize(("volume", "mounts"), OWN_VOLUMES.values(), ids=OWN_VOLUMES)
def test_no_variable_names_a_hostfile_that_is_not_there(
    volume: Object, mounts: list[Object]
) -> None:
    pod, job = launcher_pod(command=PLAIN), mpi_job(command=PLAIN)
    pod["spec"]["volumes"].append(volume)
    pod["spec"]["containers"][0]["volumeMounts"] += mounts
    assert added(pod, job) == BASIC
    after = patched(mpi_variables.launcher, pod, job)
    assert after["spec"]["volumes"] == pod["spec"]["volumes"]
    [mounted] = (one["volumeMounts"] for one in after["spec"]["containers"])
    assert mounted == pod["spec"]["containers"][0]["volumeMounts"]


def test_the_variables_come_back_to_a_launcher_that_has_our_volume() -> None:
    """Another webhook may have replaced the variables after our first answer."""
    pod, job = launcher_pod(command=PLAIN), mpi_job(command=PLAIN)
    after = patched(mpi_variables.launcher, pod, job)
    after["spec"]["containers"][0]["env"] = pod["spec"]["containers"][0]["env"]
    assert added(after, job) == ALL


@pytest.mark.parametrize(
    ("pod", "job"),
    [
        pytest.param(launcher_pod(command=PLAIN), None, id="a job that is not known"),
        pytest.param(
            launcher_pod(command=PLAIN),
            mpi_job(command=PLAIN, uid="another"),
            id="an earlier job of this name",
        ),
        pytest.param(worker_pod(), mpi_job(command=PLAIN), id="a worker"),
    ],
)
def test_no_other_pod_gets_anything(pod: Object, job: Object | None) -> None:
    assert patch_of(mpi_variables.launcher, pod, job) == ()


def patch_config(config: Object, job: Object | None) -> Patch:
    found = facts(job) if job else None
    return mpi_variables.config_map(msgspec.convert(config, mutate.ConfigMap), found)


HOSTS = "train-worker-0:4\ntrain-worker-1:4\n"


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        pytest.param(mpi_job(command=PLAIN), HOSTS, id="plain"),
        pytest.param(None, HOSTS, id="not known"),
        pytest.param(mpi_job(command=PLAIN, uid="another"), HOSTS, id="an earlier job"),
        pytest.param(mpi_job(), None, id="Horovod"),
        pytest.param(mpi_job(command=ANY_MPI), None, id="elastic.sh"),
        pytest.param(
            mpi_job(command=PLAIN, annotations=annotated(mpi_variables="false")),
            None,
            id="not wanted",
        ),
        pytest.param(
            mpi_job(command=PLAIN, annotations=annotated(enabled="false")), None, id="switched off"
        ),
    ],
)
def test_a_config_map_gets_the_hostfile_for_hydra(job: Object | None, expected: str | None) -> None:
    config = objects.config_map(mpi_job(command=PLAIN, slots=4))
    stored: Object = jsonpatch.apply_patch(config, patch_config(config, job))
    assert stored["data"].get("hostfile.hydra") == expected
    assert patch_config(stored, job) == ()


def test_a_job_without_workers_runs_its_ranks_in_the_launcher() -> None:
    config = objects.config_map(mpi_job(command=PLAIN, replicas=0))
    [only] = patch_config(config, None)
    assert only["value"] == ""


@pytest.mark.parametrize(("letters", "fits"), [(20, True), (50, False)])
def test_a_config_map_never_becomes_larger_than_the_api_server_takes(
    letters: int, fits: bool
) -> None:
    job = mpi_job(name="j" * letters, command=PLAIN, replicas=10_000)
    config = objects.config_map(job)
    assert len(config["data"]["hostfile"]) < 2**20
    assert bool(patch_config(config, job)) is fits
    off = mpi_job(
        name="j" * letters,
        command=ANY_MPI,
        replicas=10_000,
        annotations=annotated(enabled="false"),
    )
    patch = mutate.config_map(msgspec.convert(config, mutate.ConfigMap), facts(off))
    stored: Object = jsonpatch.apply_patch(config, patch)
    assert stored["data"]["discover_hosts.sh"].count("\n") == (10_001 if fits else 1)
    assert sum(map(len, stored["data"].values())) < 2**20


@pytest.mark.parametrize("hostfile", ["a\n", "a slots=1 max_slots=2 slots=3\n"])
def test_a_hostfile_of_another_form_is_not_taken_over(hostfile: str) -> None:
    config = objects.config_map(mpi_job(command=PLAIN))
    config["data"]["hostfile"] = hostfile
    assert patch_config(config, None) == ()


def test_what_a_launcher_and_its_config_map_get_holds_together() -> None:
    job = mpi_job(command=PLAIN)
    table = handlers.mutating(knowing(job))

    def stored(made: Object) -> Object:
        after: Object = jsonpatch.apply_patch(
            made, handlers.answer(review.parse(body(made)), table).verdict.patch
        )
        assert handlers.answer(review.parse(body(after)), table).verdict.patch == ()
        return after

    pod, config = stored(objects.launcher(job)), stored(objects.config_map(job))
    names = [one["name"] for one in pod["spec"]["containers"][0]["env"]]
    assert len(names) == len({*names})
    assert {*OPERATORS, *ALL} <= {*names}
    assert pod["spec"]["volumes"][-1] == VOLUME
    assert config["data"]["hostfile.hydra"] == "train-worker-0:1\ntrain-worker-1:1\n"
