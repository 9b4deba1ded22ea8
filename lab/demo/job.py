"""The job of the demo, and the commands a user would type for it."""

import asyncio
import os
import subprocess
from dataclasses import dataclass

from lab.cluster import Cluster
from lab.errors import LabError
from mpijob_elastic import names

NAMESPACE = "default"
NAME = "train"
CONTAINER = "worker"
POLL = 0.02  # seconds
# As a user of Elastic Horovod writes it; the images are never pulled.
MANIFEST = f"""\
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata:
  name: {NAME}
  annotations:
    {names.DRAIN_TIMEOUT}: 20s
spec:
  slotsPerWorker: 1
  cleanPodPolicy: Running
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
          - name: launcher
            image: horovod/horovod
            command: [horovodrun, -np, "1", --min-np, "1", --max-np, "4", --gloo,
                      --host-discovery-script, {names.DISCOVER_HOSTS_PATH}, python, train.py]
    Worker:
      replicas: {{size}}
      template:
        spec:
          containers:
          - name: {CONTAINER}
            image: horovod/horovod
"""


def workers(size: int) -> list[str]:
    """The names of that many workers."""
    return [names.worker(NAME, index) for index in range(size)]


def editor(size: int) -> str:
    """A KUBE_EDITOR that changes the one number and nothing else."""
    return f"sed -i '/Worker:/,/replicas:/s/replicas: .*/replicas: {size}/'"


@dataclass(frozen=True, kw_only=True)
class Terminal:
    """kubectl, with the administrator's rights."""

    cluster: Cluster

    async def create(self, size: int) -> str:
        """Create the job; what kubectl says. Raise LabError."""
        return await self._run("apply", "-f", "-", stdin=MANIFEST.format(size=size))

    async def edit(self, size: int) -> str:
        """`kubectl edit mpijob`; what kubectl says. Raise LabError."""
        return await self._run("edit", "mpijob", NAME, editor=editor(size))

    async def scale(self, size: int) -> str:
        """`kubectl scale mpijob`; what kubectl says. Raise LabError."""
        return await self._run("scale", f"mpijob/{NAME}", f"--replicas={size}")

    async def _run(self, *arguments: str, stdin: str = "", editor: str = "false") -> str:
        command = [str(self.cluster.binaries.kubectl), "--kubeconfig", str(self.cluster.kubeconfig), "-n", NAMESPACE]
        process = subprocess.Popen(  # noqa: ASYNC220 - asyncio's own would start a thread, see lab.processes
            [*command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "KUBE_EDITOR": editor},
        )
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        while process.poll() is None:  # noqa: ASYNC110 - what it says fits into the pipe
            await asyncio.sleep(POLL)
        assert process.stdout is not None
        said = process.stdout.read().strip()
        if process.returncode:
            raise LabError(f"`kubectl {' '.join(arguments)}` ended with {process.returncode}: {said}")
        return said
