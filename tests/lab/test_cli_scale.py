"""`mpijob-elastic scaleout` and `scalein` beside the real operator."""

import json
import signal

import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.hpa import Autoscaler
from tests.lab.job import HOLD, MPIRUN, Job, Object
from tests.lab.ranks import start_rank
from tests.lab.readers import readers_kubeconfig
from tests.lab.typed import Typed, said

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("elastic", "operator")]

BOUNDS = {"mpijob-elastic/max-replicas": "5"}


@pytest.fixture
def user(cluster: Cluster, job: Job) -> Typed:
    return Typed(cluster.kubeconfig, job.namespace)


@pytest.fixture
def late_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands wait longer for an Event of what they saw."""
    monkeypatch.setattr("mpijob_elastic.cli.jobs.write_change._EVENT_WITHIN", 10.0)


async def test_workers_are_added_and_removed_with_each_step_as_a_line(
    user: Typed, job: Job
) -> None:
    await job.create(replicas=1, annotations=BOUNDS)
    await job.settled(1)
    code, printed = await user.run("scaleout", "mpijob/train", "--count", "2", "--no-exec")
    first, *steps, last = printed.splitlines()
    assert (code, first) == (0, "train: 1 → 3 workers")
    assert "pods 3 of 3, host list 3 of 3, ranks ? of 3" in steps[-1]
    assert last.startswith(
        "train has 3 workers, all listed. Whether they train is not known: only exec"
    )
    assert (await job.settled(3)).replicas == 3

    code, printed = await user.run("scaleout", "train", "--to", "3", "--no-exec")
    assert (code, printed.splitlines()[0]) == (0, "train already has size 3; nothing was changed")

    code, printed = await user.run("scalein", "train", "--to", "1")
    assert (code, printed.splitlines()[0], printed.splitlines()[-1]) == (
        0,
        "train: 3 → 1 worker",
        "train has 1 worker; removed: 2.",
    )
    await job.settled(1)


@pytest.mark.thorough
@pytest.mark.usefixtures("late_events")
async def test_ranks_are_waited_for_and_a_rank_that_is_cut_is_told(
    user: Typed, job: Job, cluster: Cluster
) -> None:
    if not cluster.exec_offered:
        pytest.skip("PID namespaces cannot be had here")
    await job.create(replicas=1, annotations={**BOUNDS, "mpijob-elastic/drain-timeout": "10s"})
    await job.settled(1)
    start_rank(cluster, job, "train-worker-0")
    async with user.running("scaleout", "train") as process:
        await said(process, "pods 2 of 2, host list 2 of 2, ranks 1 of 2; train-worker-1 ")
        start_rank(cluster, job, "train-worker-1")
        await said(process, "train has 2 workers, and a rank runs in each.")
        assert await process.wait() == 0
    node = (await job.state()).workers["train-worker-1"]["spec"]["nodeName"]
    code, printed = await user.run("scalein", "train")
    assert "train-worker-1 has been draining for" in printed
    over = "train-worker-1 is being deleted: its drain-timeout of 10s is over; its ranks are killed"
    assert (code, printed.splitlines()[-1]) == (3, f"{over} (last state: Running on node {node})")


@pytest.mark.thorough
async def test_ctrl_c_undoes_nothing_and_the_timeout_says_why(user: Typed, job: Job) -> None:
    await job.create(replicas=1, annotations=BOUNDS)
    await job.settled(1)
    await job.limit(pods=3)
    more = f"`mpijob-elastic watch train -n {job.namespace}`"
    async with user.running("scaleout", "train", "--to", "4") as process:
        await said(process, "pods 2 of 4, host list 2 of 4")
        process.send_signal(signal.SIGINT)
        *_, last = (await said(process, "Interrupted.")).splitlines()
        assert last == f"Interrupted. Nothing is undone, the change goes on: {more} shows it."
        assert await process.wait() == 130
    assert (await job.state()).replicas == 4

    code, printed = await user.run("scaleout", "train", "--to", "4", "--timeout", "3", "--no-exec")
    assert code == 4
    page = " ".join(printed.split())
    assert "After 3s the change still goes on: pods 2 of 4, host list 2 of 4" in page
    assert (
        "train-worker-2 does not exist: the operator has not created it. Its last warning: MPIJobFailed:"
        in page
    )
    assert "exceeded quota: team" in page
    assert page.endswith(f"Nothing is undone: the change goes on, and {more} shows it.")


@pytest.mark.thorough
@pytest.mark.usefixtures("late_events")
async def test_a_size_that_is_set_back_meanwhile_is_told(user: Typed, job: Job) -> None:
    await job.create(
        replicas=1,
        annotations={**BOUNDS, "mpijob-elastic/scale-timeout": "4s"},
        worker_annotations={},
    )
    await job.settled(1)
    await job.limit(pods=2)
    code, printed = await user.run("scaleout", "train")
    assert (code, printed.splitlines()[-2]) == (3, "the size of train is 1 now, not 2.")
    assert "Worker.replicas returns to 1, the last size that worked" in printed.splitlines()[-1]

    await job.annotate(scale_timeout=None)
    async with user.running("scaleout", "train") as process:
        await said(process, "pods 1 of 2")
        await job.set_status("train-launcher", {"phase": "Succeeded"})
        await said(process, "train has ended: Succeeded.")
        assert await process.wait() == 3


async def test_what_cannot_be_is_refused_in_one_line(
    user: Typed, job: Job, cluster: Cluster
) -> None:
    await job.create(
        replicas=2,
        annotations={"mpijob-elastic/sizes": "2,4,8", "mpijob-elastic/max-replicas": "8"},
    )
    await job.settled(2)
    refused, here = user.refused, f"-n {job.namespace}"
    assert (
        await refused("scaleout", "trian")
        == f"no MPIJob trian in namespace {job.namespace}; did you mean train?"
    )
    assert (
        "3 is not a size of metadata.annotations[mpijob-elastic/sizes] (2,4,8); use 2 or 4"
        in await refused("scaleout", "train")
    )
    assert "9 is above metadata.annotations[mpijob-elastic/max-replicas] (8)" in await refused(
        "scaleout", "train", "--to=9"
    )
    assert (
        f"train has 2 workers: `mpijob-elastic scalein train {here} --to 1` does"
        in await refused("scaleout", "train", "--to=1")
    )
    assert (
        f"train has 2 workers: `mpijob-elastic scaleout train {here} --to 4` does"
        in await refused("scalein", "train", "--to=4")
    )
    assert "train has 2 workers, and at least one must stay: " in await refused(
        "scalein", "train", "--count=2"
    )
    assert (await user.run("scaleout", "train", "--count=0"))[0] == 2
    assert (await user.run("scaleout", "train", "--count=1", "--to=4"))[0] == 2

    await job.annotate(suspend="true")
    assert await refused("scaleout", "train", "--to=4") == (
        "train is suspended by annotation mpijob-elastic/suspend; with --no-wait the size is set for its start"
    )
    code, printed = await user.run("scaleout", "train", "--to=4", "--no-wait")
    assert (code, printed.splitlines()[0]) == (0, "train: 2 → 4 workers")
    await job.annotate(suspend=None)
    await job.settled(4)  # with a launcher that stays

    edit: Object = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "metadata": {"name": "train"},
    }
    edit["spec"] = {"mpiReplicaSpecs": {"Worker": {"replicas": 4}}}
    apply = (
        "apply",
        "--server-side",
        "--force-conflicts",
        "--field-manager=argocd-controller",
        "-f",
        "-",
    )
    cluster.kubectl(*apply, "-n", job.namespace, stdin=json.dumps(edit))
    assert await refused("scalein", "train", "--to=2") == (
        "argocd-controller sets the size of train; change the size at its source, such as in Git"
    )
    await job.set_status("train-launcher", {"phase": "Succeeded"})
    await job.until(lambda state: "Succeeded" in state.conditions, "its end")
    assert (
        await refused("scaleout", "train")
        == "train has ended (Succeeded); create it again to run it again"
    )


@pytest.mark.thorough
async def test_who_sets_the_size_is_named(user: Typed, job: Job, hpa: Autoscaler) -> None:
    bounds = {"mpijob-elastic/min-replicas": "1", "mpijob-elastic/max-replicas": "3"}
    await job.create(replicas=1, annotations={**bounds, "mpijob-elastic/autoscale": "fill"})
    await job.settled(1)
    assert await user.refused("scaleout", "train") == (
        "the annotation mpijob-elastic/autoscale lets idle nodes set the size of train; edit or remove the "
        "annotation"
    )
    await job.annotate(autoscale=None)
    await hpa.apply(1, 3)
    assert await user.refused("scaleout", "train") == (
        "HPA train sets the size of train; edit or delete that HPA, with KEDA its ScaledObject"
    )


@pytest.mark.thorough
async def test_who_may_not_is_told_so_and_nothing_happens(
    job: Job, cluster: Cluster, client: ApiWriter
) -> None:
    plain = Job(client=client, namespace=job.namespace, name="plain")
    await plain.create(replicas=1, command=MPIRUN)
    await job.create(replicas=1)
    await job.settled(1)
    reader = Typed(
        readers_kubeconfig(cluster, job.namespace, "mpijobs.kubeflow.org", "pods", "configmaps"),
        job.namespace,
    )
    lacks = f"your account may not patch mpijobs.kubeflow.org in namespace {job.namespace}"
    assert (await reader.refused("scaleout", "train")).startswith(lacks)
    assert "plain is not elastic, so it runs as it is to its end" in await reader.refused(
        "scaleout", "plain"
    )
    assert (await job.state()).replicas == 1


@pytest.mark.thorough
async def test_workers_that_are_named_leave_and_come_back(
    user: Typed, job: Job, client: ApiWriter
) -> None:
    await job.create(replicas=4, annotations={"mpijob-elastic/min-replicas": "2"})
    await job.settled(4)
    code, printed = await user.run("scalein", "train", "--pod", "1")
    first, *_, last = printed.splitlines()
    assert (code, first, last) == (
        0,
        "train: 4 → 3 workers; parked: train-worker-1",
        "train has 3 workers; removed: 1.",
    )
    state = await job.state()
    assert state.replicas == 4

    assert "leaves 1 of 4 workers, below mpijob-elastic/min-replicas (2)" in await user.refused(
        "scalein", "train", "--pod=0", "--pod=train-worker-2"
    )
    assert "no worker of train is on a node elsewhere" in await user.refused(
        "scalein", "train", "--node=elsewhere"
    )
    assert "--count 2 does not match the workers named: train-worker-0" in await user.refused(
        "scalein", "train", "--pod=0", "--count=2"
    )
    assert (await user.run("scalein", "train", "--pod=0", "--to=2"))[0] == 2

    node = state.workers["train-worker-0"]["spec"]["nodeName"]
    there = [pod for pod in job.workers(0, 2, 3) if state.workers[pod]["spec"]["nodeName"] == node]
    if there == ["train-worker-0"]:
        code, printed = await user.run("scalein", "train", "--node", node)
        assert (code, printed.splitlines()[0]) == (
            0,
            "train: 3 → 2 workers; parked: train-worker-0",
        )
    code, printed = await user.run("scaleout", "train", "--to", "4", "--no-exec")
    assert (code, "; back: train-worker-" in printed.splitlines()[0]) == (0, True)
    await job.settled(4)

    queued = Job(client=client, namespace=job.namespace, name="queued")
    await queued.create(replicas=2, job_labels={"kueue.x-k8s.io/queue-name": "team"})
    await queued.until(lambda state: len(state.workers) == 2, "its workers")
    assert "workers of a queued job cannot be parked" in await user.refused(
        "scalein", "queued", "--pod=0", "--no-wait"
    )


@pytest.mark.thorough
async def test_a_script_runs_in_the_launcher_before_workers_leave_and_once_all_are_there(
    user: Typed, job: Job, cluster: Cluster
) -> None:
    if not cluster.exec_offered:
        pytest.skip("PID namespaces cannot be had here")
    await job.create(replicas=2, annotations=BOUNDS)
    await job.settled(2)
    words = ("--env", "STEP=step 9", "--no-exec")
    code, printed = await user.run(
        "scaleout", "train", *words, "--script", 'echo "$STEP, in $(hostname)"'
    )
    lines = printed.splitlines()
    assert (code, lines[0]) == (0, "train: 2 → 3 workers")
    assert lines[-2].startswith("train has 3 workers, all listed.")
    assert lines[-1].startswith("step 9, in ")

    code, printed = await user.run(
        "scaleout", "train", *words, "--to=3", "--script=echo no; exit 5"
    )
    assert (code, printed.splitlines()[-2:]) == (
        3,
        ["no", "the script exited with 5 in train-launcher; train keeps its new size"],
    )
    code, printed = await user.run("scalein", "train", "--script=echo full disk; exit 5")
    assert (code, printed.splitlines()) == (
        1,
        [
            "full disk",
            "mpijob-elastic: the script exited with 5 in train-launcher; train was not changed",
        ],
    )
    assert (await job.state()).replicas == 3

    # What goes on in the launcher delays no drain.
    code, printed = await user.run(
        "scalein", "train", "--to=2", "--script=sleep 300 > /dev/null 2>&1 & echo saved"
    )
    first, second, *_, last = printed.splitlines()
    assert (code, first, second, last) == (
        0,
        "saved",
        "train: 3 → 2 workers",
        "train has 2 workers; removed: 1.",
    )

    await job.annotate_pod("train-launcher", {HOLD: ""})  # else it runs again at once
    await job.set_status("train-launcher", {"phase": "Pending", "containerStatuses": []})
    assert "; --script needs a launcher that runs" in await user.refused(
        "scalein", "train", "--script=true"
    )


@pytest.mark.thorough
@pytest.mark.usefixtures("late_events")
async def test_a_rank_that_is_cut_while_another_job_is_waited_for_is_told(
    user: Typed, job: Job, client: ApiWriter, cluster: Cluster
) -> None:
    if not cluster.exec_offered:
        pytest.skip("PID namespaces cannot be had here")
    slow = Job(client=client, namespace=job.namespace, name="slow")
    for one, drain in ((job, "3s"), (slow, "12s")):
        timeout = {"mpijob-elastic/drain-timeout": drain}
        await one.create(replicas=2, annotations={**BOUNDS, **timeout})
    for one in (job, slow):
        await one.settled(2)
        start_rank(cluster, one, f"{one.name}-worker-1")
    code, printed = await user.run("scale", "slow", "train", "--replicas=1", "--no-exec")
    for name, drain in (("slow", "12s"), ("train", "3s")):
        over = f"{name}-worker-1 is being deleted: its drain-timeout of {drain} is over"
        assert over in printed
    assert code == 3, printed
