"""What the commands of docs/session.md must print, and what holds after each."""

import re
from dataclasses import dataclass
from typing import Any


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
    ours("get", r"^No resources found in ml namespace"),
    ours("submit --name short", r"^mpijob.kubeflow.org/short$"),
    ours("watch short", r"Succeeded"),
    ours("logs short", r'"event": "end".*"reached": true'),
    ours("prune --dry-run", r"short +Succeeded", r"nothing was deleted"),
    ours("prune --yes", r"short deleted"),
)


def missing(step: Step, output: str) -> list[str]:
    """Return what a command does not say."""
    return [pattern for pattern in step.says if not re.search(pattern, output, re.MULTILINE)]
