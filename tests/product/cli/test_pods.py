"""`attach` as it is typed on a terminal, with a kubectl that prints its words."""

import asyncio
import os
import pty
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.jobs import pods, size_request, write_change
from mpijob_elastic.cli.jobs.explain import NoSuchWorker
from mpijob_elastic.cli.jobs.pods import NotStarted
from mpijob_elastic.cli.jobs.size_request import SizeRequest
from mpijob_elastic.cli.jobs.snapshot import NoSuchJob, UnreadableObject
from mpijob_elastic.cli.jobs.write_change import Patience
from mpijob_elastic.cli.target import Where
from mpijob_elastic.install import Refused
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from tests.doubles.api import TinyApi
from tests.doubles.launcher_logs import Launcher
from tests.doubles.shells import Shells, says
from tests.product.cli.served import NAMESPACE, one_job

ROOT = Path(__file__).parents[3]
EXIT_3 = {"reason": "ExitCode", "message": "3"}
SHELL = "-c main -- /bin/sh -c command -v bash > /dev/null && exec bash; exec sh"


class Typed:
    """The command in a cluster whose job has a launcher and train-worker-1."""

    def __init__(self, api: TinyApi, folder: Path) -> None:
        self.launcher = Launcher()
        self._kubeconfig, self._folder = api.kubeconfig, folder
        api.hook = lambda sent: self.launcher.show(
            sent.path.replace("train-worker-1", "train-launcher")
        )
        kubectl = folder / "kubectl"
        kubectl.write_text('#!/bin/sh\necho "$@"\nexit 7\n')
        kubectl.chmod(0o755)

    async def options(self, job: str, worker: str | None = None) -> list[str]:
        """Return kubectl's options."""
        return await pods.options(
            Where(kubeconfig=self._kubeconfig, namespace="n"), job=job, worker=worker
        )

    async def attach(
        self, *words: str, terminal: bool = True, kubectl: bool = True
    ) -> tuple[int, str]:
        """Return the exit code, and what is printed in one line."""
        ours, theirs = pty.openpty()
        path = f"{self._folder}:/usr/bin:/bin" if kubectl else "/nowhere"
        options = ("-n", "n", "--kubeconfig", str(self._kubeconfig))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mpijob_elastic", "attach", *options, *words),
            cwd=ROOT,
            env={**os.environ, "PATH": path},
            stdin=theirs if terminal else PIPE,
            stdout=theirs if terminal else PIPE,
            stderr=PIPE,
        )
        os.close(theirs)
        out, err = await process.communicate()
        printed = (
            (await asyncio.to_thread(os.read, ours, 4096)).decode() if terminal and not err else ""
        )
        os.close(ours)
        assert process.returncode is not None
        return process.returncode, " ".join(
            (printed + (out or b"").decode() + err.decode()).split()
        )


@pytest.fixture
def typed(api: TinyApi, tmp_path: Path) -> Typed:
    return Typed(api, tmp_path)


async def test_kubectl_is_run_on_the_terminal_and_its_exit_code_counts(typed: Typed) -> None:
    code, said = await typed.attach("mpijob/train", "1")
    assert code == 7
    assert said.startswith("exec -it --kubeconfig ")
    assert said.endswith(f" -n n train-worker-1 {SHELL}")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (
            {"terminal": False},
            "a shell needs a terminal; without a terminal, its processes would count as ranks. "
            "Type what to run: attach JOB -- COMMAND",
        ),
        (
            {"kubectl": False},
            "the shell is started by kubectl, and there is no kubectl in the PATH",
        ),
    ],
)
async def test_what_it_needs_is_said_in_one_line(
    typed: Typed, options: dict[str, bool], error: str
) -> None:
    assert await typed.attach("train", **options) == (1, f"mpijob-elastic: {error}")


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        (("train", "1", "--", "ls", "-l"), "-n n train-worker-1 -c main -- ls -l"),
        (("train", "--", "ls", "-l"), "-n n train-launcher -c main -- ls -l"),
        (("train", "1", "ls"), "-n n train-worker-1 -c main -- ls"),
    ],
)
async def test_a_command_runs_by_kubectl_on_a_terminal(
    typed: Typed, words: tuple[str, ...], ends: str
) -> None:
    code, said = await typed.attach(*words)
    assert (code, said.endswith(ends)) == (7, True), said


@pytest.mark.parametrize("kubectl", [True, False])
async def test_a_command_runs_without_a_terminal_too_and_its_exit_code_counts(
    typed: Typed, api: TinyApi, kubectl: bool
) -> None:
    ended = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": [EXIT_3]}}
    shells = Shells(says((1, "one\r\ntw"), (1, "o\r\n"), (1, "rest"), (3, ended)))
    api.streams["/exec"] = shells.serve
    code, said = await typed.attach(
        "train", "1", "--", "sh", "-c", "ls", terminal=False, kubectl=kubectl
    )
    assert (code, said) == (3, "one two rest")
    [asked] = shells.asked
    assert asked.pod == "train-worker-1"
    assert asked.command == [*pods.WITHOUT_INPUT, "sh", "-c", "ls"]
    assert "tty=true" in asked.query
    assert "stderr" not in asked.query
    assert "stdin" not in asked.query


@pytest.mark.parametrize(
    ("words", "ended", "printed"),
    [
        (("sh", "-c", "cat; echo read"), 0, "read"),
        (("sh", "-c", "echo on; test -t 1 && exit 5"), 5, "on"),
        (("printf", "%s|", "a  b", "$HOME", ""), 0, "a  b|$HOME||"),
        (("no-such-program",), 127, "not found"),
    ],
)
async def test_a_command_that_reads_ends_at_once_as_nobody_types(
    words: tuple[str, ...], ended: int, printed: str
) -> None:
    """Here the terminal of the pod is one of this machine."""
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *pods.WITHOUT_INPUT, *words, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    async with asyncio.timeout(20):
        assert await process.wait() == ended
    assert printed in os.read(ours, 4096).decode()
    os.close(ours)


async def test_without_a_worker_it_is_the_launcher(typed: Typed) -> None:
    assert (await typed.options("train"))[-4:] == ["n", "train-launcher", "-c", "main"]


@pytest.mark.parametrize(
    ("job", "worker", "error", "words"),
    [
        ("tran", None, NoSuchJob, "no MPIJob tran in namespace n; there are no MPIJobs"),
        (
            "train",
            "other",
            NoSuchWorker,
            "train has no worker other: give a number like 0",
        ),
        (
            "train",
            "7",
            NotStarted,
            "train-worker-7 does not run: there is no such pod; `mpijob-elastic explain train`",
        ),
    ],
)
async def test_why_there_is_no_shell_is_said(
    typed: Typed, job: str, worker: str | None, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        await typed.options(job, worker)


async def test_a_pod_that_does_not_run_is_said(typed: Typed) -> None:
    typed.launcher.pending = True
    with pytest.raises(NotStarted, match="train-launcher does not run: Pending"):
        await typed.options("train")


@pytest.mark.parametrize(
    ("container", "words"),
    [
        ({"args": 7}, "MPIJob ml/train cannot be read: Expected `array"),
        ({"resources": {"requests": []}}, "MPIJob ml/train cannot be read: Expected `object"),
    ],
)
async def test_a_job_that_cannot_be_read_is_an_error_and_no_traceback(
    container: dict[str, object], words: str
) -> None:
    async with one_job() as api:
        path = MPI_JOBS.path(NAMESPACE, "train")
        job = api.objects[path]
        job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"] = [
            {"name": "main", **container}
        ]
        api.put(path, job)
        where = Where(kubeconfig=api.kubeconfig, namespace=NAMESPACE)
        async with reached(where) as (client, _):
            with pytest.raises(UnreadableObject, match=words):
                await pods.find_job(client, NAMESPACE, "train")


async def test_a_pod_that_cannot_be_read_is_an_error_and_no_traceback() -> None:
    async with one_job() as api:
        path = PODS.path(NAMESPACE, "train-launcher")
        api.put(path, {**api.objects[path], "status": {"phase": []}})
        where = Where(kubeconfig=api.kubeconfig, namespace=NAMESPACE)
        async with reached(where) as (client, _):
            job = await pods.find_job(client, NAMESPACE, "train")
            with pytest.raises(UnreadableObject, match=r"^Pod ml/train-launcher cannot"):
                await pods.find(client, job)
        with pytest.raises(UnreadableObject, match=r"^Pod ml/train-launcher cannot"):
            await pods.options(where, job="train", worker=None)


@pytest.mark.parametrize(
    "asked", [SizeRequest(to=10_001), SizeRequest(grows=True, count=1_000_000_000)]
)
async def test_a_size_beyond_all_bounds_is_refused_before_its_workers_are_named(
    asked: SizeRequest,
) -> None:
    """A billion names need more memory than the machine has."""
    async with one_job() as api:
        where = Where(kubeconfig=api.kubeconfig, namespace=NAMESPACE)
        decide = size_request.size_decision(asked, waits=False)
        patience = Patience(wait=False, seconds=1.0, look=False)
        with pytest.raises(Refused, match=r"train: 3 → \d+ workers: .*at most 10000 workers"):
            await write_change.change(where, "train", decide, patience)
        assert not api.writes
