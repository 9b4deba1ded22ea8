"""What fingers that know kubectl type, against a real API server."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.errors import LabError
from mpijob_elastic.act.worker_scripts import SCRIPT
from mpijob_elastic.cli.jobs import json_path
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.lab.job import Job
from tests.lab.ranks import in_pod
from tests.lab.typed import Typed, said
from tests.lab.waiting import PATIENCE, may
from tests.product.cli.test_json_path import TEMPLATES, WORLD

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("elastic", "operator")]


@pytest.fixture
def user(cluster: Cluster, namespace: str) -> Typed:
    return Typed(cluster.kubeconfig, namespace)


@pytest.fixture
async def jobs(client: ApiWriter, namespace: str) -> list[Job]:
    """Two elastic jobs at rest; the first is labelled."""
    made = [Job(client=client, namespace=namespace, name=name) for name in ("one", "two")]
    for size, job in enumerate(made, 1):
        await job.create(replicas=size, annotations={"mpijob-elastic/max-replicas": "4"})
    for size, job in enumerate(made, 1):
        await job.settled(size)
    await client.patch_object(
        MPI_JOBS.path(namespace, "one"),
        body={"metadata": {"labels": {"team": "vision"}}},
        content_type=MERGE_PATCH,
    )
    return made


async def first_words(user: Typed, *words: str) -> list[str]:
    code, printed = await user.run(*words)
    assert code == 0, printed
    return [line.split()[0] for line in printed.splitlines() if not line.startswith("Warning")]


async def test_get_takes_the_options_of_kubectl(user: Typed, jobs: list[Job]) -> None:
    assert [job.name for job in jobs] == ["one", "two"]
    assert await first_words(user, "get", "-l", "team=vision", "--no-headers") == ["one"]
    assert await first_words(user, "get", "-l=team!=vision", "-o", "name") == [
        "mpijob.kubeflow.org/two"
    ]
    order = await first_words(user, "get", "--sort-by=.metadata.creationTimestamp")
    assert set(order) == {"NAME", "one", "two"}
    code, printed = await user.run("get", "-o=jsonpath={range .items[*]}{.name}={.desired};{end}")
    assert (code, printed.splitlines()[-1]) == (0, "one=1;two=2;")
    assert await first_words(user, "get", "two", "mpijob/one", "--no-headers") == ["two", "one"]
    code, printed = await user.run("get", "one", "three")
    assert code == 1
    assert "mpijob-elastic: no MPIJob three" in printed
    assert "\none " in printed
    assert "unable to parse" in await user.refused("get", "-l", "a=(")
    code, printed = await user.run("get", "-l", "team=none")
    assert (code, printed.splitlines()[-1]) == (
        0,
        f"No resources found in {jobs[0].namespace} namespace.",
    )


async def lines(user: Typed, *words: str) -> AsyncGenerator[list[str]]:
    """Yield the words of each line of a command that goes on."""
    async with user.running(*words) as process:
        assert process.stdout is not None
        async for line in process.stdout:
            yield line.decode().split()


async def test_get_watch_prints_a_row_after_each_change(user: Typed, jobs: list[Job]) -> None:
    one, two = jobs
    async with asyncio.timeout(PATIENCE), aclosing(lines(user, "get", "-w")) as rows:
        seen = [await anext(rows) for _ in range(3)]
        assert [row[0] for row in seen] == ["NAME", "one", "two"]
        await two.scale(3)
        size = seen[0].index("DESIRED")
        ready = seen[0].index("READY")
        while True:
            row = await anext(rows)
            assert row[0] == "two"
            if row[size] == row[ready] == "3":
                break
        await one.client.delete_object(MPI_JOBS.path(one.namespace, "one"))
        while (row := await anext(rows))[:2] != ["one", "Deleted"]:
            pass


async def test_several_jobs_are_suspended_resumed_and_deleted_together(
    user: Typed, jobs: list[Job]
) -> None:
    one, two = jobs
    code, printed = await user.run("suspend", "one", "three", "two", "--timeout=60s")
    assert code == 1
    assert "mpijob-elastic: no MPIJob three" in printed
    for job in (one, two):
        assert f"{job.name} is suspended, and nothing of it runs." in printed
    code, printed = await user.run("resume", "one", "two", "--no-exec", "--timeout=60s")
    assert (code, printed.count("all listed. Whether they train is not known")) == (0, 2)
    code, printed = await user.run("delete", "one", "two", "three", "--yes", "--ignore-not-found")
    assert (code, printed.splitlines()) == (
        0,
        [f"MPIJob {job.namespace}/{job.name} deleted" for job in (one, two)],
    )


async def test_a_size_is_set_by_its_number_within_bounds(
    user: Typed, client: ApiWriter, namespace: str
) -> None:
    train = Job(client=client, namespace=namespace)
    await train.create(replicas=2)
    await train.settled(2)
    refused = await user.refused("scale", "train", "--replicas=3", "--current-replicas=1")
    assert refused == "train has 2 workers now, not 1"
    code, printed = await user.run("scale", "train", "--replicas=3", "--no-exec")
    assert (code, printed.splitlines()[0]) == (0, "train: 2 → 3 workers")
    code, printed = await user.run("set bounds", "train", "--min=2", "--max=3")
    assert (code, printed) == (
        0,
        "train may have 2 to 3 workers, instead of any number of workers\n",
    )
    refused = await user.refused("scale", "train", "--replicas=4")
    assert "4 is above metadata.annotations[mpijob-elastic/max-replicas] (3)" in refused
    refused = await user.refused("set bounds", "train", "--max=2")
    assert refused.startswith("train has 3 workers: `mpijob-elastic scale train")
    code, printed = await user.run("set bounds", "train", "--max=none", "--min=none")
    assert code == 0
    code, printed = await user.run("scale", "train", "--replicas=1", "--no-wait")
    assert (code, printed.splitlines()[0]) == (0, "train: 3 → 1 worker")


async def test_events_of_a_job_and_its_pods_are_a_table(
    user: Typed, client: ApiWriter, namespace: str
) -> None:
    train = Job(client=client, namespace=namespace)
    await train.create(replicas=1)
    await train.settled(1)
    code, printed = await user.run("events", "train")
    header, *rows = printed.splitlines()
    assert (code, header.split()) == (0, ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"])
    assert any("mpijob/train" in row for row in rows)
    await train.scale(2)
    async with (
        asyncio.timeout(PATIENCE),
        aclosing(lines(user, "events", "train", "-w", "--no-headers")) as found,
    ):
        while "HostsPublished" not in await anext(found):
            pass
    assert (await user.run("events", "train", "--types=Warning"))[0] == 0
    assert "no MPIJob trian" in await user.refused("events", "trian")


async def test_a_command_has_a_terminal_in_its_worker_and_lines_have_times(
    cluster: Cluster, user: Typed, client: ApiWriter, namespace: str
) -> None:
    if not cluster.exec_offered:
        pytest.skip("PID namespaces cannot be had here")
    train = Job(client=client, namespace=namespace)
    await train.create(replicas=1)
    await train.settled(1)
    script = "echo in; test -t 1; echo $?; exit 3"
    code, printed = await user.run("attach", "train", "0", "--", "sh", "-c", script)
    assert (code, printed) == (3, "in\n0\n")
    # A program that reads finds the end, as under kubectl without -i.
    assert await user.run("attach", "train", "0", "--", "cat") == (0, "")
    async with user.running("attach", "train", "0", "--", "sh", "-c", "echo on; sleep 60") as other:
        await said(other, "on")
        # The look that the controller uses: a process with a terminal is no rank.
        assert in_pod(cluster, train, "train-worker-0", SCRIPT).startswith("idle")
        in_pod(cluster, train, "train-worker-0", "sleep 60 > /dev/null 2>&1 &")
        assert in_pod(cluster, train, "train-worker-0", SCRIPT).startswith("busy")
    in_pod(cluster, train, "train-launcher", "echo said > /proc/1/fd/1")
    code, printed = await user.run("logs", "train", "--timestamps", "--tail=1")
    stamp, _, text = printed.partition(" ")
    assert (code, text) == (0, "said\n")
    assert datetime.fromisoformat(stamp).tzinfo
    later = f"--since-time={(datetime.now(UTC) + timedelta(hours=1)).isoformat()}"
    assert await user.run("logs", "train", later) == (0, "")


async def test_submit_waits_and_follows_the_log(
    cluster: Cluster, user: Typed, job: Job, tmp_path: Path
) -> None:
    words = ("--name=train", "--image=horovod:test", "--np=1", "--workers=2", "--shm-size=1Gi")
    printed = (await user.run("submit", *words, "--dry-run", "--", "python", "t.py"))[1]
    file = tmp_path / "job.yaml"
    file.write_text(printed)
    code, printed = await user.run("submit", "-f", str(file), "--dry-run=server")
    assert (code, printed) == (0, "MPIJob train created (server dry run)\n")
    too_few = ("--min-workers=3", "--workers=2", "--dry-run=server")
    assert (await user.run("submit", *words[:3], *too_few, "--", "x"))[0] == 1
    code, printed = await user.run("submit", "-f", str(file), "--wait", "--no-exec")
    first, *_, last = printed.splitlines()
    assert (code, first) == (0, "MPIJob train created.")
    assert last.startswith("train has 2 workers, all listed. Whether they train is not known")
    raw = await job.client.get(PODS.path(job.namespace, "train-worker-0"))
    volumes = json.loads(raw)["spec"]["volumes"]
    assert any(one.get("emptyDir", {}).get("sizeLimit") == "1Gi" for one in volumes)
    if not cluster.exec_offered:
        pytest.skip("PID namespaces cannot be had here")
    other = (*words[1:3], "--name=other", "--logs", "--", "python", "t.py")
    async with user.running("submit", *other) as process:
        await said(process, "MPIJob other created.")
        mine = Job(client=job.client, namespace=job.namespace, name="other")
        await mine.settled(1)
        in_pod(cluster, mine, "other-launcher", "echo hello > /proc/1/fd/1")
        await said(process, "hello")
        await mine.set_status("other-launcher", {"phase": "Failed"})
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 1


async def test_a_finished_job_is_submitted_again_under_the_next_name(user: Typed, job: Job) -> None:
    await job.create(replicas=2, annotations={"mpijob-elastic/max-replicas": "4"})
    await job.settled(2)
    assert "has not ended" in await user.refused("resubmit", job.name)
    await job.set_status(f"{job.name}-launcher", {"phase": "Succeeded"})
    await job.until(lambda state: "Succeeded" in state.conditions, "the job has ended")
    code, printed = await user.run("resubmit", job.name, "--wait", "--no-exec")
    assert (code, printed.splitlines()[0]) == (0, f"MPIJob {job.name}-2 created.")
    raw = await job.client.get(MPI_JOBS.path(job.namespace, f"{job.name}-2"))
    made = json.loads(raw)
    assert made["metadata"]["annotations"]["mpijob-elastic/max-replicas"] == "4"
    assert (
        made["metadata"]["uid"]
        != json.loads(await job.client.get(MPI_JOBS.path(job.namespace, job.name)))["metadata"][
            "uid"
        ]
    )


async def test_submit_waits_for_a_plain_job_too(user: Typed) -> None:
    words = ("--name=plain", "--image=i", "--workers=2", "--wait", "--no-exec", "--timeout=60s")
    code, printed = await user.run("submit", *words, "--", "mpirun", "-np", "2", "true")
    assert code == 0, printed
    assert "plain has 2 workers" in printed


def test_templates_print_what_kubectl_prints(cluster: Cluster) -> None:
    # kubectl takes an object with items for a list of objects.
    world = {"parts" if key == "items" else key: value for key, value in WORLD.items()}
    job = {**world, "apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": {"name": "a"}}
    differ = []
    for text in (template for template, _ in TEMPLATES if "{" in template):
        template = text.replace(".items", ".parts")
        line = ("create", "--dry-run=client", "--validate=false", "-f", "-")
        try:
            theirs = cluster.kubectl(*line, f"-o=jsonpath={template}", stdin=json.dumps(job))
        except LabError as error:
            theirs = str(error)
        ours = json_path.rendered(json_path.template(template), job)
        # kubectl reads the fields of an object in no order.
        is_same = sorted(theirs.split()) == sorted(ours.split()) if ".." in template else False
        if theirs != ours and not is_same:
            differ.append((template, theirs, ours))
    assert not differ, "\n".join(map(str, differ))


async def test_who_may_list_and_not_watch_is_told_so_and_nothing_goes_on(
    cluster: Cluster, jobs: list[Job]
) -> None:
    namespace = jobs[0].namespace
    here = ("-n", namespace)
    cluster.kubectl("create", "serviceaccount", "lister", *here)
    cluster.kubectl(
        *("create", "role", "lists", *here, "--verb=get,list"),
        "--resource=mpijobs.kubeflow.org,pods,configmaps,events",
    )
    who = f"--serviceaccount={namespace}:lister"
    cluster.kubectl("create", "rolebinding", "lists", *here, "--role=lists", who)
    may(cluster, "lister", "list", "events", namespace=namespace)
    lister = Typed(cluster.service_account_kubeconfig(namespace, "lister"), namespace)
    for words in (("get", "-w"), ("events", jobs[0].name, "-w"), ("watch", jobs[0].name)):
        async with asyncio.timeout(PATIENCE):
            code, printed = await lister.run(*words)
        assert (code, "your account may not watch " in printed) == (1, True), printed
        assert "again in" not in printed
