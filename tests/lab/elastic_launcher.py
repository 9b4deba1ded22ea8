"""A launcher of the lab in which elastic.sh really runs, with a real mpirun and real `kubectl exec`.

The lab's pods run no containers, but their execs run in a namespace of processes of the pod. So the
test is the launcher's kubelet: it gives the driver the list when the launcher was touched, and
starts it by an exec. Ranks are shells (tests/driver/rank.sh); what they note is on this machine.
"""

import asyncio
import shlex
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from lab.cluster import Cluster
from lab.errors import LabError
from mpijob_elastic import names
from mpijob_elastic.kube import resources
from tests.driver.world import HERE, MPIS
from tests.lab.job import Job
from tests.lab.waiting import LIMITS, seen

# A folder of the pod's own at /run, as the webhook's emptyDir is one; the other files are the
# machine's.
_OWN_RUN = f"mount --make-rprivate / && mount -t tmpfs tmpfs /run && mkdir {names.ELASTIC_FOLDER}"
_KUBEXEC = """\
#!/bin/sh
pod=$1
shift
exec {kubectl} --kubeconfig {rights} -n {namespace} exec "$pod" -- /bin/sh -c "$*"
"""
_END = ("/bin/sh", "-c", "kill -KILL -1")
# Seconds between two looks of the kubelet at its pod.
_SYNC = 0.2


@dataclass(kw_only=True)
class ElasticLauncher:
    """The launcher of a job that runs elastic.sh."""

    cluster: Cluster
    job: Job
    folder: Path
    #: The start of the driver, once it has started.
    process: subprocess.Popen[bytes] | None = None
    _shown: str | None = field(default=None, init=False)

    @property
    def name(self) -> str:
        """The name of the pod."""
        return names.launcher(self.job.name)

    async def start(self, *options: str, steps: int = 10**6) -> None:
        """Wait for the pod, and start the driver in it with its options and ranks that count steps."""
        await self.job.until(lambda state: state.launcher_runs, "a launcher that runs")
        await asyncio.to_thread(self._exec, _OWN_RUN)
        rights = self.cluster.service_account_kubeconfig(self.job.namespace, self.name)
        kubexec = self.folder / "kubexec.sh"
        kubexec.write_text(
            _KUBEXEC.format(
                kubectl=self.cluster.binaries.kubectl, rights=rights, namespace=self.job.namespace
            )
        )
        kubexec.chmod(0o755)
        data = await self._data()
        (self.folder / names.KEY_ELASTIC).write_text(data[names.KEY_ELASTIC])
        mpi = MPIS["mpich"]
        program, *words = mpi.command
        ranks = {"NOTES": f"{self.folder}/notes", "HEARS": "saves", "STEPS": f"{steps}"}
        ours = {
            "MPIJOB_ELASTIC_LIST": f"{self.folder}/list",
            "MPIJOB_ELASTIC_KUBEXEC": f"{kubexec}",
            "HYDRA_IFACE": "lo",
            "CODE": "0",
            **ranks,
        }
        command = [
            *("env", *(f"{name}={value}" for name, value in ours.items())),
            *("sh", f"{self.folder}/{names.KEY_ELASTIC}", *options, "--"),
            *(f"{mpi.folder}/{program}", *words, "sh", f"{HERE}/rank.sh"),
        ]
        script = f"exec {shlex.join(command)} > {self.folder}/log 2>&1"
        self.process = subprocess.Popen(self._kubectl("/bin/sh", "-c", script))  # noqa: ASYNC220

    async def follow(self) -> None:
        """Give the driver the list whenever the launcher was touched."""
        while True:
            state = await self.job.state()
            if (
                state.launcher is not None and state.refreshed != self._shown
            ) or self._shown is None:
                self._shown = state.refreshed or ""
                data = await self._data()
                new = self.folder / "list.new"
                new.write_text(data.get(names.KEY_DISCOVER_HOSTS, ""))
                new.rename(self.folder / "list")
            await asyncio.sleep(_SYNC)

    @property
    def log(self) -> str:
        """What the driver said."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def notes(self) -> list[list[str]]:
        """What the ranks noted: start, rank, ranks, what, step."""
        path = self.folder / "notes"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    async def until_ranks(self, ranks: int, *, start: int) -> None:
        """Wait until a start has so many ranks."""

        async def noted() -> list[list[str]]:
            return [note for note in self.notes if note[0] == str(start) and note[3] == "starts"]

        def enough(notes: list[list[str]]) -> bool:
            return len(notes) == ranks

        await seen(noted, enough, f"{ranks} ranks of start {start}", show=lambda _: self.log)

    def _kubectl(self, *command: str) -> list[str]:
        kubectl = [f"{self.cluster.binaries.kubectl}", "--kubeconfig", f"{self.cluster.kubeconfig}"]
        return [*kubectl, "exec", "-n", self.job.namespace, self.name, "--", *command]

    def _exec(self, script: str) -> None:
        subprocess.run(self._kubectl("/bin/sh", "-c", script), check=True)

    async def _data(self) -> dict[str, str]:
        path = resources.CONFIG_MAPS.path(self.job.namespace, names.config_map(self.job.name))
        raw = await self.job.client.get(path, limits=LIMITS)
        data: dict[str, str] = msgspec.json.decode(raw)["data"]
        return data


@asynccontextmanager
async def launcher_of(cluster: Cluster, job: Job, folder: Path) -> AsyncIterator[ElasticLauncher]:
    """Make a launcher, whose list is kept up to date until the end of the block."""
    made = ElasticLauncher(cluster=cluster, job=job, folder=folder)
    await job.until(lambda state: state.launcher is not None, "a launcher")
    following = asyncio.create_task(made.follow())
    try:
        yield made
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        if made.process:
            made.process.kill()
            made.process.wait()
            # What an exec has started outlives its client.
            with suppress(LabError):
                cluster.kubectl("exec", "-n", job.namespace, made.name, "--", *_END)
