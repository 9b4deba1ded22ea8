"""Ranks as real processes in a pod's own process namespace, started as kubexec.sh starts them."""

from lab.cluster import Cluster
from tests.lab.job import Job


def in_pod(cluster: Cluster, job: Job, pod: str, script: str) -> str:
    """Run a shell script in a pod."""
    return cluster.kubectl("exec", "-n", job.namespace, pod, "--", "/bin/sh", "-c", script)


def start_rank(cluster: Cluster, job: Job, pod: str) -> str:
    """Start a process that stays, as Horovod starts a rank; its number there."""
    return in_pod(cluster, job, pod, "sleep 300 >/dev/null 2>&1 & echo $!").strip()
