"""A job whose launcher runs elastic.sh with the mpirun of one MPI, and what its launchers said."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.images import mpi
from lab.training.job import TrainingJob
from mpijob_elastic import names

STATE = "/state"
KUBEXEC = f"{names.MOUNT_PATH}/{names.KEY_KUBEXEC}"
PROGRAM = ("python3", mpi.PROGRAM_IN_IMAGE, "--state", STATE)
# In a container all ranks would be bound to the same first core of their node.
_UNBOUND = ("--bind-to", "none")


@dataclass(frozen=True, kw_only=True)
class Mpi:
    """An MPI of the image.

    mpirun: its command up to the program, with the words that elastic.sh replaces. libraries: what
    LD_LIBRARY_PATH of the workers is. slot: what says in its hostfile that a host has one slot.
    by_hand: the environment in which its mpirun starts ranks through kubexec.sh.
    """

    name: str
    words: str
    mpirun: tuple[str, ...]
    libraries: str = ""
    slot: str = " slots=1"
    by_hand: Mapping[str, str] = field(default_factory=dict)


MPIS = (
    Mpi(
        name="open-mpi-4",
        words="Open MPI 4.1.4",
        mpirun=("mpirun.openmpi", "-np", "{np}", "--hostfile", "{hostfile}", *_UNBOUND),
        by_hand={
            "OMPI_MCA_plm_rsh_agent": KUBEXEC,
            "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        },
    ),
    Mpi(
        name="open-mpi-5",
        words="Open MPI 5.0.11",
        mpirun=(
            f"{mpi.OPEN_MPI_5}/bin/mpirun",
            *("-np", "{np}", "--hostfile", "{hostfile}", *_UNBOUND),
        ),
        by_hand={
            "PRTE_MCA_plm_ssh_agent": KUBEXEC,
            "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
        },
    ),
    Mpi(
        name="mpich-5",
        words="MPICH 5.0.2",
        mpirun=(f"{mpi.MPICH_5}/bin/mpiexec.hydra", "-np", "{np}", "-f", "{hostfile}"),
        libraries=f"{mpi.MPICH_5}/lib",
        slot=":1",
        by_hand={
            "HYDRA_LAUNCHER": "rsh",
            "HYDRA_LAUNCHER_EXEC": KUBEXEC,
            "HYDRA_IFACE": "eth0",
        },
    ),
)


def manifest(
    made: Mpi,
    state: Path,
    *,
    size: int,
    step_seconds: float,
    save_every: int,
    work_seconds: float = 0.0,
) -> dict[str, Any]:
    """Return an MPIJob that elastic.sh drives; all workers see the folder `state` of the nodes."""
    program = (
        *PROGRAM,
        *("--step-seconds", f"{step_seconds}"),
        *("--save-every", f"{save_every}"),
        *("--work-seconds", f"{work_seconds}"),
    )
    return _job(
        made,
        state,
        size=size,
        command=[names.ELASTIC_PATH, "--min-np", "1", "--", *made.mpirun, *program],
        annotations={
            names.MIN_REPLICAS: "1",
            names.MAX_REPLICAS: "4",
            names.DRAIN_TIMEOUT: "60s",
        },
    )


def plain(made: Mpi, state: Path, *, size: int) -> dict[str, Any]:
    """Return an MPIJob of a fixed size whose launcher waits, so that somebody types into it."""
    return _job(made, state, size=size, command=["sleep", "365d"], annotations={})


def _job(
    made: Mpi, state: Path, *, size: int, command: list[str], annotations: Mapping[str, str]
) -> dict[str, Any]:
    request = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    libraries = [{"name": "LD_LIBRARY_PATH", "value": made.libraries}] if made.libraries else []
    launcher = {"name": "launcher", "command": command}
    worker = {
        "name": "worker",
        "env": libraries,
        "volumeMounts": [{"name": "state", "mountPath": STATE}],
    }
    volume = {"name": "state", "hostPath": {"path": str(state), "type": "Directory"}}

    def replicas(count: int, container: dict[str, Any], **spec: Any) -> dict[str, Any]:
        known = {"image": mpi.REFERENCE, "resources": request}
        return {
            "replicas": count,
            "template": {"spec": {"containers": [{**known, **container}], **spec}},
        }

    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "metadata": {"name": "train", "annotations": dict(annotations)},
        "spec": {
            "slotsPerWorker": 1,
            # So that one can look what is left in them.
            "cleanPodPolicy": "None",
            "mpiReplicaSpecs": {
                "Launcher": replicas(1, launcher),
                "Worker": replicas(size, worker, volumes=[volume]),
            },
        },
    }


@dataclass(kw_only=True)
class Said:
    """What the launchers of a job said, one after the other; kept when their pods are gone."""

    job: TrainingJob
    folder: Path
    count: int = 0

    @property
    def text(self) -> str:
        """All of it; each line begins with the time at which the kubelet got it."""
        files = sorted(self.folder.glob(f"{self.job.name}-launcher.*.log"))
        return "".join(file.read_text(errors="replace") for file in files)

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Follow the launcher that runs now, to its end or that of the block."""
        self.count += 1
        cluster, launcher = self.job.cluster, names.launcher(self.job.name)
        access = [str(cluster.binaries.kubectl), "--kubeconfig", str(cluster.kubeconfig)]
        words = ["-n", self.job.namespace, "logs", "--follow", "--timestamps", launcher]
        with (self.folder / f"{launcher}.{self.count}.log").open("wb") as file:
            follower = subprocess.Popen([*access, *words], stdout=file, stderr=subprocess.DEVNULL)
            try:
                yield
            finally:
                follower.terminate()
                follower.wait()
