"""A process that stands in for Horovod's driver in each job of a namespace, beside commands that wait for ranks.

It has a process of its own, because `lab.ranks` starts children from programs without threads.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lab.cluster import Cluster
from lab.errors import LabError
from lab.ranks import Ranks
from mpijob_elastic import names

ROOT = Path(__file__).parents[2]
EVERY = 0.3  # seconds
_HOST = re.compile(r"^echo (\S+):[1-9]", re.MULTILINE)
LINES = ('[0]<stdout>:{"event": "step", "step": 1, "size": 2}', "[1]<stdout>:of rank 1")


@contextmanager
def standing_in(cluster: Cluster, namespace: str, job: str, *, ends: str = "") -> Iterator[None]:
    """Be the driver of a job as often as it has a launcher; the job `ends` succeeds as soon as it runs."""
    words = [sys.executable, "-m", "tests.lab.stand_in_ranks", cluster.name, namespace, job, ends]
    with subprocess.Popen(words, cwd=ROOT) as process:
        try:
            yield
        finally:
            process.terminate()


def stand_in(cluster: Cluster, namespace: str, job: str, ends: str) -> None:
    """Go on until the process ends."""
    driver, ranks = "", None
    while True:
        time.sleep(EVERY)
        uid = running(cluster, namespace, job)
        if ends and running(cluster, namespace, ends):
            succeed(cluster, namespace, ends)
        if uid and uid != driver:
            driver = uid
            if ranks:
                ranks.close()
            ranks = Ranks(cluster, namespace=namespace, job=job, commit=0.5)
        if ranks:
            ranks.discover(hosts(cluster, namespace, job) if uid else [])
            ranks.commit()
        if uid:
            prints(cluster, namespace, job)


def running(cluster: Cluster, namespace: str, job: str) -> str:
    """The uid of a launcher that runs, and is not about to go; "" without one."""
    try:
        text = cluster.kubectl("get", "pod", names.launcher(job), "-n", namespace, "-o", "json")
    except LabError:
        return ""
    pod = json.loads(text)
    is_going = "deletionTimestamp" in pod["metadata"]
    runs = pod.get("status", {}).get("phase") == "Running"
    return str(pod["metadata"]["uid"]) if runs and not is_going else ""


def hosts(cluster: Cluster, namespace: str, job: str) -> list[str]:
    """The hosts that the list names."""
    try:
        text = cluster.kubectl(
            "get", "configmap", names.config_map(job), "-n", namespace, "-o", "json"
        )
    except LabError:
        return []
    return _HOST.findall(json.loads(text)["data"].get(names.KEY_DISCOVER_HOSTS, ""))


def prints(cluster: Cluster, namespace: str, job: str) -> None:
    """Let the launcher print what a training prints, if it still runs."""
    script = "printf '%s\\n' \"$@\" > /proc/1/fd/1"
    words = ("--", "/bin/sh", "-c", script, "sh", *LINES)
    with suppress(LabError):
        cluster.kubectl("exec", "-n", namespace, names.launcher(job), *words)


def succeed(cluster: Cluster, namespace: str, job: str) -> None:
    """End a job."""
    status = json.dumps({"status": {"phase": "Succeeded"}})
    patch = ("--subresource=status", "--type=merge", "-p", status)
    cluster.kubectl("patch", "pod", names.launcher(job), "-n", namespace, *patch)


if __name__ == "__main__":
    stand_in(Cluster.attach(name=sys.argv[1]), *sys.argv[2:])
