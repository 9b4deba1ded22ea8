"""docs/session.md runs as it is: every command in order, with real Elastic Horovod.

`UPDATE_PAGES=1 pytest tests/real/test_session.py` writes what the commands print into the page;
what they must print is looked for there.
"""

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.training import log as training
from lab.training.job import TrainingJob
from mpijob_elastic import names
from tests.lab.waiting import create_namespace, may
from tests.real.nodes import SECOND, schedule_on
from tests.real.pods import until
from tests.real.session import PAGE, Shell, renewed, shown


@dataclass(frozen=True, kw_only=True)
class Step:
    """How a command of the page begins, its exit code, and what it says, as patterns.

    answers: typed on a terminal. trains: the workers that train afterwards, none where the job does
    not run. harmless: before it, no rank was killed and no host blacklisted. moved: before it, new
    pods go to the second node.
    """

    begins: str
    says: tuple[str, ...]
    code: int = 0
    answers: tuple[str, ...] = ()
    trains: tuple[int, ...] = ()
    harmless: bool = False
    moved: bool = False


def ours(words: str, *says: str, **more: Any) -> Step:
    return Step(begins=f"kubectl mpijob-elastic {words}", says=says, **more)


def refused(words: str, says: str, *, code: int = 1) -> tuple[Step, Step]:
    return ours(words, says, code=code), Step(begins="echo $?", says=(rf"^{code}$",))


STEPS = (
    ours("submit --name train", r"MPIJob train created"),
    ours("explain train", r"0 of 2 workers train", code=1),
    ours("logs train -f", r'"step": 1, .*"train-worker-1"', trains=(0, 1)),
    ours("get", r"^train +Running .* 2 +2 +2 +0 "),
    ours("list -o wide", r"^train +Running "),
    ours("explain train", r"2 of 2 workers train"),
    ours("logs train --tail", r'"event": "step"'),
    ours("logs train --rank", r"^train-worker-[01]: \[1\]<stdout>"),
    ours("logs train --worker", r"^train-worker-0: \[[01]\]<stdout>"),
    ours(
        "scaleout train --count 2",
        r"train: 2 → 4 workers",
        r"a rank runs in each",
        moved=True,
        trains=(0, 1, 2, 3),
    ),
    ours("get train", r"train-worker-3 .* real-1"),
    ours("logs train --worker 3", r"^train-worker-3: "),
    ours("attach train", r"^train-worker-3$", answers=("hostname", "exit")),
    ours("top train", r"^train-worker-0 .*\d+m", r"^train-worker-3 "),
    ours(
        "scalein train --pod",
        r"parked: train-worker-1",
        r"train has 3 workers; removed: 1",
        trains=(0, 2, 3),
    ),
    ours("get", r"^train +\S+ .* 3 +3 +3 +0 "),
    ours("explain train 1", r"train-worker-1 is parked", code=1),
    ours(
        "scaleout train --pod", r"back: train-worker-1", r"a rank runs in each", trains=(0, 1, 2, 3)
    ),
    ours("scalein train --count", r"train has 3 workers; removed: 1", trains=(0, 1, 2)),
    ours(
        "scalein train --node",
        r"parked: train-worker-0",
        r"train has 2 workers; removed: 1",
        trains=(1, 2),
    ),
    ours("logs train --tail", r'"size": 2'),
    ours("scaleout train --to", r"back: train-worker-0", r"a rank runs in each", trains=(0, 1, 2)),
    ours("suspend", r"train is suspended", harmless=True),
    ours("explain train", r"suspended", r"mpijob-elastic resume train -n ml", code=1),
    ours("resume", r"train has 3 workers, and a rank runs in each", trains=(0, 1, 2)),
    ours("history train", r"2→4 .* -\s", r"3→2 .* -\s"),
    *refused("scaleout train --to 9", r"above .*max-replicas.* \(4\)"),
    *refused("scalein train --count 0", r"--count", code=2),
    *refused("scalein train --pod 7", r"train has no train-worker-7: it has 3 workers"),
    *refused("logs trian", r"trian"),
    ours(
        "delete train",
        r"trains on 3 workers. Delete it\?",
        r"train deleted",
        answers=("y",),
        harmless=True,
    ),
    ours("get", r"^No MPIJobs"),
    ours("submit --name short", r"^mpijob.kubeflow.org/short$"),
    ours("watch short", r"Succeeded"),
    ours("logs short", r'"event": "end".*"reached": true'),
    ours("prune --dry-run", r"short +Succeeded", r"nothing was deleted"),
    ours("prune --yes", r"short deleted"),
)


@pytest.fixture
def ml(cluster: Cluster) -> Iterator[str]:
    """The namespace of the page."""
    create_namespace(cluster, "ml")
    yield "ml"
    cluster.kubectl("delete", "namespace", "ml", "--wait=false")


def admin(cluster: Cluster, namespace: str) -> Path:
    """Return the kubeconfig of somebody who is admin of a namespace, with all rights on its MPIJobs."""
    cluster.kubectl("create", "serviceaccount", "anna", "-n", namespace)
    cluster.kubectl(
        "create", "role", "mpijobs", "-n", namespace, "--verb=*", "--resource=mpijobs.kubeflow.org"
    )
    for role in ("--clusterrole=admin", "--role=mpijobs"):
        name, who = role.rpartition("=")[2], f"--serviceaccount={namespace}:anna"
        cluster.kubectl("create", "rolebinding", name, "-n", namespace, role, who)
    may(cluster, "anna", "create", "mpijobs.kubeflow.org", namespace=namespace)
    may(cluster, "anna", "create", "pods/exec", namespace=namespace)
    return cluster.service_account_kubeconfig(namespace, "anna")


def missing(step: Step, output: str) -> list[str]:
    """Return what a command does not say."""
    return [pattern for pattern in step.says if not re.search(pattern, output, re.MULTILINE)]


def await_training(job: TrainingJob, indices: tuple[int, ...], *, since: float) -> None:
    """Wait for a step of exactly these workers."""
    hosts = {names.worker(job.name, index) for index in indices}

    def trained() -> bool | None:
        return (
            any(set(step.hosts) == hosts and step.time >= since for step in job.log().steps) or None
        )

    until(f"{hosts} train", trained)


def test_the_page_says_what_is_asserted() -> None:
    page = shown(PAGE.read_text())
    told = [
        (line.startswith(step.begins), missing(step, output))
        for step, (line, output) in zip(STEPS, page, strict=True)
    ]
    assert told == [(True, [])] * len(STEPS)


@pytest.mark.timeout(1200)
@pytest.mark.usefixtures(
    "two_nodes", "scale_served", "metrics", "training_image", "operator", "elastic"
)
def test_every_command_of_the_page_does_what_it_shows(
    cluster: Cluster, ml: str, tmp_path: Path
) -> None:
    shell = Shell(cluster, admin(cluster, ml), tmp_path)
    job = TrainingJob(cluster=cluster, namespace=ml)
    outputs = []
    page = PAGE.read_text()
    for step, (line, _) in zip(STEPS, shown(page), strict=True):
        if step.moved:
            schedule_on(cluster, SECOND)
        if step.harmless:
            assert training.harm(job.log()) == []
        began = time.time()
        code, output = shell.type(line, step.answers)
        outputs.append(output)
        assert code == step.code, f"{line}\n{output}"
        if not os.environ.get("UPDATE_PAGES"):
            assert missing(step, output) == [], f"{line}\n{output}"
        if step.trains:
            await_training(job, step.trains, since=began)
    if os.environ.get("UPDATE_PAGES"):
        PAGE.write_text(renewed(page, outputs))
