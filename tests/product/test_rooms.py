"""The core knows the mechanisms, and each optional capability its own name: no word of one stands in the core."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "mpijob_elastic"
# The command line, the installation and the list of the capabilities may name what users ask for.
CORE = (
    "model",
    "decide",
    "observe",
    "act",
    "admission",
    "kube",
    "controller",
    "diagnosis",
    "telemetry",
    "names.py",
)
ROOMS = sorted(path.parent.name for path in (ROOT / "capabilities").glob("*/__init__.py"))
# A capability is called as its folder is; these have other words.
WORDS = {
    "autoscaling": r"autoscal|\bhpas?\b|scale.timeout",
    "disruption": r"karpenter|nvsentinel|hyperpod",
    "gangs": r"koord|volcano|coschedul|pod.?group|gang",
    "history": r"\bhistor",
    "kube_queue": r"kube.?queue|queue.?unit",
    "kueue": r"kueue|workloadprior|resourceflavor",
    "run_policy": r"run.?polic",
}
# The text of the history is kept with the ConfigMap, so that nothing has to be read before the host
# list is written. et-operator's files, in a folder of its own, get the host list, too.
ALLOWED = {
    ("history", "model/history.py"),
    ("history", "model/job.py"),
    ("history", "observe/facts_config.py"),
    ("history", "names.py"),
    ("et_operator", "names.py"),
    ("et_operator", "admission/mutate.py"),
    # Kubernetes' own HPAs use the subresource scale, whoever made them; and the names of fields of
    # other programs, which the webhook adds to a pod or warns of.
    ("autoscaling", "admission/allowed_sizes.py"),
    ("autoscaling", "admission/mutate.py"),
    ("autoscaling", "admission/parking.py"),
    ("autoscaling", "admission/size.py"),
    ("gangs", "admission/json_patch.py"),
    ("gangs", "admission/parking.py"),
    ("run_policy", "admission/misplaced.py"),
}
# Of nobody else: the module of our own work queue, and a field that the operator's own definition
# has, in pkg/apis/kubeflow/v1/types.go: it is decoded for all, and means something to a capability
# alone.
OTHERS = re.compile(r"\bkube\.queue\b|^    run_policy: Any = None  # any value$")


def files(part: str) -> list[Path]:
    """The texts of a part of the core."""
    return [ROOT / part] if part.endswith(".py") else sorted((ROOT / part).rglob("*.py"))


@pytest.mark.parametrize("part", CORE)
@pytest.mark.parametrize("room", ROOMS)
def test_no_word_of_a_capability_stands_in_the_core(room: str, part: str) -> None:
    words = re.compile(WORDS.get(room, room.replace("_", ".?")), re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files(part)
        if (room, path.relative_to(ROOT).as_posix()) not in ALLOWED
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if words.search(OTHERS.sub("", line))
    ]
    assert files(part)
    assert not found


def test_words_are_of_capabilities() -> None:
    assert {*WORDS} <= {*ROOMS}


def test_capabilities_are_folders_beside_their_lists() -> None:
    home = ROOT / "capabilities"
    assert {path.name for path in home.glob("*.py")} == {
        "__init__.py",
        "live.py",
        "admission.py",
        "shown.py",
    }
    rooms = {path for path in home.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert {path.parent for path in home.glob("*/__init__.py")} == rooms
