"""The requests about which the API server asks the webhook, and their results; it asks about no others."""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import msgspec
import pytest

from lab.cluster import Cluster
from lab.operator.objects import ELASTIC, SERVICE_ACCOUNTS
from lab.replicas import Webhook
from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, NAMESPACES, PODS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from mpijob_elastic.model import elastic_script
from tests.lab.job import MPIRUN, Job
from tests.lab.launchers import ITEM, UNMUTATED, items, label, launcher, plain_pod, reviews, tried
from tests.product.webhook import objects
from tests.product.webhook.objects import Object

pytestmark = pytest.mark.lab
ANY_MPI = ["/etc/mpi/elastic.sh", "--", "mpirun", "./train"]


@pytest.mark.usefixtures("operator", "webhook")
async def test_what_the_operator_makes_has_the_script_from_the_start(
    client: ApiWriter, namespace: str
) -> None:
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=2)
    state = await job.until(lambda state: state.launcher is not None, "the launcher")

    assert state.launcher is not None
    assert [item["key"] for item in items(state.launcher)] == [
        "kubexec.sh",
        "hostfile",
        "discover_hosts.sh",
    ]
    assert items(state.launcher)[2] == ITEM
    config = await client.get(CONFIG_MAPS.path(namespace, f"{job.name}-config"))
    data = msgspec.json.decode(config)["data"]
    assert sorted(data) == ["discover_hosts.sh", "hostfile", "kubexec.sh"]
    assert data["discover_hosts.sh"] == "#!/bin/sh\n"


@pytest.mark.usefixtures("operator", "webhook")
async def test_a_launcher_that_names_elastic_sh_finds_it_and_a_folder(
    client: ApiWriter, namespace: str
) -> None:
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=2, command=ANY_MPI)
    state = await job.until(lambda state: state.launcher is not None, "the launcher")

    assert state.launcher is not None
    assert [item["key"] for item in items(state.launcher)][2:] == [
        "discover_hosts.sh",
        "elastic.sh",
    ]
    assert mounts(state.launcher)["/run/mpijob-elastic"] == names.ELASTIC_VOLUME
    assert {"name": names.ELASTIC_VOLUME, "emptyDir": {}} in state.launcher["spec"]["volumes"]
    config = await client.get(CONFIG_MAPS.path(namespace, f"{job.name}-config"))
    data = msgspec.json.decode(config)["data"]
    assert sorted(data) == ["discover_hosts.sh", "elastic.sh", "hostfile", "kubexec.sh"]
    assert data["elastic.sh"] == elastic_script.TEXT
    variables = environment(state.launcher)
    assert variables["HYDRA_LAUNCHER_EXEC"] == "/etc/mpi/kubexec.sh"
    assert "HYDRA_HOST_FILE" not in variables


@pytest.mark.usefixtures("operator", "webhook")
async def test_a_switched_off_launcher_that_names_elastic_sh_has_all_hosts(
    client: ApiWriter, namespace: str
) -> None:
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=2, command=ANY_MPI, annotations={names.ENABLED: "false"})
    state = await job.until(lambda state: state.launcher is not None, "the launcher")

    assert state.launcher is not None
    assert items(state.launcher)[-1]["key"] == "elastic.sh"
    config = await client.get(CONFIG_MAPS.path(namespace, f"{job.name}-config"))
    script = msgspec.json.decode(config)["data"]["discover_hosts.sh"]
    assert script == "#!/bin/sh\necho train-worker-0:1\necho train-worker-1:1\n"


@pytest.mark.usefixtures("operator", "webhook")
async def test_any_mpirun_finds_the_workers_of_a_plain_job(
    client: ApiWriter, namespace: str
) -> None:
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=2, command=MPIRUN)
    state = await job.until(lambda state: state.launcher is not None, "the launcher")

    assert state.launcher is not None
    assert (
        environment(state.launcher).items()
        >= {
            "OMPI_MCA_plm_rsh_agent": "/etc/mpi/kubexec.sh",
            "PRTE_MCA_plm_ssh_agent": "/etc/mpi/kubexec.sh",
            "HYDRA_HOST_FILE": "/etc/mpijob-elastic/hostfile.hydra",
            "I_MPI_HYDRA_HOST_FILE": "/etc/mpijob-elastic/hostfile.hydra",
        }.items()
    )
    assert mounts(state.launcher)["/etc/mpijob-elastic"] == names.HYDRA_VOLUME
    config = await client.get(CONFIG_MAPS.path(namespace, f"{job.name}-config"))
    hosts = msgspec.json.decode(config)["data"]["hostfile.hydra"]
    assert hosts == "train-worker-0:1\ntrain-worker-1:1\n"


@pytest.mark.usefixtures("webhook")
async def test_a_grace_that_the_drain_timeout_does_not_allow_is_refused_with_what_to_type(
    client: ApiWriter, namespace: str
) -> None:
    job = Job(client=client, namespace=namespace)
    command = [ANY_MPI[0], "--grace", "90", *ANY_MPI[1:]]
    with pytest.raises(errors.Invalid, match=r"use --grace 50, or the annotation .*100s"):
        await job.create(replicas=2, command=command)
    await job.create(replicas=2, command=command, annotations={names.DRAIN_TIMEOUT: "100s"})
    await job.scale(3)


def mounts(pod: Object) -> dict[str, str]:
    """The volume at each path of a pod's first container."""
    found = pod["spec"]["containers"][0]["volumeMounts"]
    return {mount["mountPath"]: mount["name"] for mount in found}


def environment(pod: Object) -> dict[str, str]:
    """The variables of its first container."""
    found = pod["spec"]["containers"][0]["env"]
    return {variable["name"]: variable.get("value", "") for variable in found}


@pytest.mark.usefixtures("operator", "webhook")
async def test_a_launcher_written_for_et_operator_has_the_script_where_it_looks(
    client: ApiWriter, namespace: str
) -> None:
    job = Job(client=client, namespace=namespace)
    await job.create(
        replicas=1, command=[word.replace("/etc/mpi/", "/etc/edl/") for word in ELASTIC]
    )
    state = await job.until(lambda state: state.launcher is not None, "the launcher")

    assert state.launcher is not None
    assert items(state.launcher)[2] == ITEM
    paths = mounts(state.launcher)
    assert paths["/etc/edl"] == paths["/etc/mpi"] == names.CONFIG_VOLUME


async def test_nobody_else_is_asked_about(
    client: ApiWriter, namespace: str, webhook: Webhook
) -> None:
    before = reviews(webhook)
    foreign = [
        *[(PODS, namespace, plain_pod(number)) for number in range(100)],
        *[
            (CONFIG_MAPS, namespace, plain_config(number, labels={"app": "web"}))
            for number in range(100)
        ],
        *[(CONFIG_MAPS, namespace, plain_config(number, labels={})) for number in range(50)],
        (PODS, namespace, worker("other-worker-0")),
        (PODS, "kube-system", worker("train-worker-0")),
        (PODS, namespace, launcher(apiVersion="kubeflow.org/v2beta1")),
        (PODS, namespace, launcher(kind="TFJob")),
        (PODS, namespace, launcher(controller=False)),
        (PODS, namespace, launcher(name="other")),
        (PODS, "kube-system", launcher()),
        (CONFIG_MAPS, "kube-public", objects.config_map()),
        (CONFIG_MAPS, names.NAMESPACE, objects.config_map()),
    ]
    await ensure_service_accounts(client, "kube-system", names.NAMESPACE)
    for batch in range(0, len(foreign), 25):
        await asyncio.gather(*(tried(client, *one) for one in foreign[batch : batch + 25]))
    # Refused by Pod Security there, but only after every mutating webhook that wanted it has had
    # it.
    with pytest.raises(errors.Forbidden, match="PodSecurity"):
        await tried(client, PODS, names.NAMESPACE, launcher())
    assert reviews(webhook) == before

    await tried(client, PODS, namespace, launcher())
    await tried(client, PODS, namespace, worker("train-worker-0"))
    await tried(client, CONFIG_MAPS, namespace, objects.config_map())
    assert reviews(webhook) == before + 3


async def test_a_namespace_can_opt_out(client: ApiWriter, namespace: str, webhook: Webhook) -> None:
    before = reviews(webhook)
    labels = {"metadata": {"labels": {names.NAMESPACE_OPT_OUT: "disabled"}}}
    await client.patch_object(
        NAMESPACES.path(None, namespace), body=labels, content_type=MERGE_PATCH
    )
    while ITEM in items(await tried(client, PODS, namespace, launcher())):
        before = reviews(webhook)
        await asyncio.sleep(0.1)
    await tried(client, CONFIG_MAPS, namespace, objects.config_map())
    bad = objects.mpi_job(annotations={names.ENABLED: "yes"})
    await tried(client, MPI_JOBS, namespace, without_uid(bad))
    assert reviews(webhook) == before


def worker(name: str) -> Object:
    """A worker pod of that name of the job `train`."""
    pod = objects.worker_pod()
    return {**pod, "metadata": {**pod["metadata"], "name": name}}


def plain_config(number: int, *, labels: dict[str, str]) -> Object:
    metadata = {"name": f"web-{number}-config", "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"hostfile": "x"},
    }


def without_uid(job: Object) -> Object:
    metadata = {key: value for key, value in job["metadata"].items() if key != "uid"}
    return {**job, "metadata": metadata}


async def ensure_service_accounts(client: ApiWriter, *namespaces: str) -> None:
    """Wait until pods can be created there."""
    for namespace in namespaces:
        while True:
            try:
                await client.get(SERVICE_ACCOUNTS.path(namespace, "default"))
                break
            except errors.NotFound:
                await asyncio.sleep(0.05)


@pytest.mark.usefixtures("webhook")
async def test_bad_annotations_are_refused_with_field_value_and_what_is_allowed(
    client: ApiWriter, namespace: str
) -> None:
    job = Job(client=client, namespace=namespace)
    with pytest.raises(errors.Invalid) as refused:
        await job.create(replicas=2, annotations={names.DRAIN_TIMEOUT: "90"})
    assert (
        'metadata.annotations[mpijob-elastic/drain-timeout]: "90" is not allowed; use a duration from 0s to 24h'
        in refused.value.message
    )
    await job.create(replicas=2, annotations={names.MAX_REPLICAS: "3"})
    with pytest.raises(
        errors.Invalid, match=r"replicas: 4 is above .*max-replicas\] \(3\); use 1 to 3"
    ):
        await job.scale(4)
    await job.scale(3)


@pytest.mark.usefixtures("webhook")
async def test_kubectl_edit_opens_again_and_says_why(
    client: ApiWriter, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=2, annotations={names.MAX_REPLICAS: "3"})
    seen = await edited(cluster, job, tmp_path, "s/replicas: 2/replicas: 9/")
    assert '# mpijobs.kubeflow.org "train" was not valid:' in seen
    assert (
        "# * spec.mpiReplicaSpecs.Worker.replicas: 9 is above metadata.annotations[mpijob-elastic/max-rep"
        in seen
    )


async def edited(cluster: Cluster, job: Job, tmp_path: Path, sed: str) -> str:
    """Edit the job with kubectl and sed, until it gives up; return all that the editor was shown."""
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\ncat "$1" >> {tmp_path}/seen\nsed -i "{sed}" "$1"\n')
    editor.chmod(0o755)
    command = [
        str(cluster.binaries.kubectl),
        "--kubeconfig",
        str(cluster.kubeconfig),
        "edit",
        "mpijob",
        job.name,
    ]
    environment = {**os.environ, "KUBE_EDITOR": str(editor), "TMPDIR": str(tmp_path)}
    await asyncio.to_thread(
        subprocess.run,
        [*command, "--namespace", job.namespace],
        env=environment,
        capture_output=True,
        check=False,
    )
    return (tmp_path / "seen").read_text()


async def said(job: Job, conditions: list[Object]) -> None:
    """Write the job's status, as the operator does."""
    path = MPI_JOBS.path(job.namespace, job.name, "status")
    await job.client.patch_object(
        path, body={"status": {"conditions": conditions}}, content_type=MERGE_PATCH
    )


@pytest.mark.usefixtures("webhook")
async def test_users_see_warnings(client: ApiWriter, cluster: Cluster, namespace: str) -> None:
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=3, command=["mpirun", "python", "train.py"])
    await said(job, [{"type": "Created", "status": "True"}])
    patch = '{"spec":{"slotsPerWorker":2,"mpiReplicaSpecs":{"Worker":{"replicas":1}}}}'
    command = [
        "patch",
        "mpijob",
        job.name,
        "--namespace",
        namespace,
        "--type=merge",
        f"--patch={patch}",
    ]
    done = await asyncio.to_thread(
        subprocess.run,
        [str(cluster.binaries.kubectl), "--kubeconfig", str(cluster.kubeconfig), *command],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (
        "Warning: spec.mpiReplicaSpecs.Worker.replicas 3 to 1: this job is not elastic"
        in done.stderr
    )
    assert "Warning: spec.slotsPerWorker 1 to 2: the running job keeps 1" in done.stderr


@pytest.mark.thorough
async def test_a_webhook_that_hangs_keeps_nobody_from_starting(
    client: ApiWriter, namespace: str, webhook: Webhook
) -> None:
    webhook.signal(signal.SIGSTOP)
    try:
        assert ITEM not in items(await tried(client, PODS, namespace, launcher()))
        plain = await tried(client, PODS, namespace, plain_pod(0))
        assert plain["metadata"]["name"] == "web-0"
    finally:
        webhook.signal(signal.SIGCONT)
    while ITEM not in items(await tried(client, PODS, namespace, launcher())):
        await asyncio.sleep(0.1)


@pytest.mark.usefixtures("operator", "webhook")
async def test_pods_keep_the_labels_of_their_templates(client: ApiWriter, namespace: str) -> None:
    job, labels = (
        Job(client=client, namespace=namespace),
        {"team": "vision", "sidecar.istio.io/inject": "false"},
    )
    await job.create(
        replicas=1, command=MPIRUN, labels={**labels, "mpi-job-name": "another", "not a label": "x"}
    )
    state = await job.until(lambda state: bool(state.launcher and state.workers), "its pods")

    assert state.launcher is not None
    for pod, role in (
        (state.launcher, "launcher"),
        *((pod, "worker") for pod in state.workers.values()),
    ):
        operators = {"group-name": "kubeflow.org", "mpi-job-name": job.name, "mpi-job-role": role}
        assert pod["metadata"]["labels"] == {**operators, **labels}


NUMBER = {
    "containers": [{"name": "worker", "image": "horovod:test", "env": [{"name": "A", "value": 1}]}]
}


NUMBER_REFUSED = "containers[0].env[0].value: 1 is not a string; put it in quotes. mpi-operator v0.2.3 cannot work with such a job"


NO_SIZE = "spec.mpiReplicaSpecs.Worker.replicas: is missing; write the number of workers. mpi-operator v0.2.3 cannot work with such a job"


def resized(replicas: int | None) -> Object:
    return {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}}}


@pytest.mark.usefixtures("webhook")
async def test_a_job_that_has_a_fault_already_can_be_edited_mended_and_deleted(
    client: ApiWriter, namespace: str
) -> None:
    await label(client, namespace, UNMUTATED)
    job, other = (Job(client=client, namespace=namespace, name=name) for name in ("train", "other"))
    for one in (job, other):
        await one.create(replicas=2, worker_spec=NUMBER)
        await one.patch({"metadata": {"finalizers": ["example.com/kept"]}})
    await label(client, namespace, {names.NAMESPACE_OPT_OUT: None})

    await job.annotate(drain_timeout="30s")
    await job.scale(3)
    await said(job, [{"type": "Created", "status": "True"}])
    with pytest.raises(errors.Invalid) as refused:
        await job.patch(resized(None))
    assert NO_SIZE in refused.value.message
    assert NUMBER_REFUSED not in refused.value.message
    await job.patch(template({"containers": [{"name": "worker", "image": "horovod:test"}]}))
    with pytest.raises(errors.Invalid):
        await job.patch(template(NUMBER))
    await other.delete()
    for one in (job, other):
        await one.patch({"metadata": {"finalizers": None}})
    with pytest.raises(errors.NotFound):
        await client.get(MPI_JOBS.path(namespace, other.name))


def template(spec: Object) -> Object:
    return {"spec": {"mpiReplicaSpecs": {"Worker": {"template": {"spec": spec}}}}}
