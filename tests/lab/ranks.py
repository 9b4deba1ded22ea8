"""Ranks as real processes in a pod's own process namespace, started as kubexec.sh starts them."""

import shlex
import sys
from pathlib import Path

from lab.cluster import Cluster
from mpijob_elastic import names
from tests.lab.job import Job


def in_pod(cluster: Cluster, job: Job, pod: str, script: str) -> str:
    """Run a shell script in a pod."""
    return cluster.kubectl("exec", "-n", job.namespace, pod, "--", "/bin/sh", "-c", script)


def start_rank(cluster: Cluster, job: Job, pod: str) -> str:
    """Start a process that stays, as Horovod starts a rank; its number there."""
    return in_pod(cluster, job, pod, "sleep 300 >/dev/null 2>&1 & echo $!").strip()


# What kubexec.sh runs, as its process looks: a shell by the name of kubectl, which takes its first
# argument, the word exec, for its script.
_EXEC = """\
import os
os.chdir({folder!r})
os.execv("kubectl", ["/opt/kube/kubectl", "exec", {pod!r}, "--", "/bin/sh", "-c", "python3 train.py"])
"""


def start_exec(cluster: Cluster, job: Job, pod: str, *, folder: Path) -> str:
    """Start a process in the launcher that looks like the exec of a rank in a pod; its number there.

    folder: where it may keep its script.
    """
    (folder / "exec").write_text("while :; do sleep 1; done\n")
    program = folder / "kubectl"
    if not program.is_symlink():
        program.symlink_to("/bin/sh")
    python = shlex.join([sys.executable, "-c", _EXEC.format(folder=str(folder), pod=pod)])
    launcher = names.launcher(job.name)
    return in_pod(cluster, job, launcher, f"{python} >/dev/null 2>&1 & echo $!").strip()
