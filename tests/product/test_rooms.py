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
    "kube",
    "controller",
    "diagnosis",
    "telemetry",
    "names.py",
)
WORDS = re.compile(
    "|".join(
        (
            "kueue",
            "workloadprior",
            "resourceflavor",
            "kube.?queue",
            "koord",
            "queue.?unit",
            "volcano",
            "coschedul",
            "pod.?group",
            "gang",
            "autoscal",
            r"\bhpas?\b",
            "karpenter",
            "nvsentinel",
            "hyperpod",
            "run.?polic",
            "scale.timeout",
        )
    ),
    re.IGNORECASE,
)
# Of nobody else: the module of our own work queue, and a field that the operator's own definition
# has, in pkg/apis/kubeflow/v1/types.go: it is decoded for all, and means something to a capability
# alone.
OTHERS = re.compile(r"\bkube\.queue\b|^    run_policy: Any = None  # any value$")


def files(part: str) -> list[Path]:
    """The texts of a part of the core."""
    return [ROOT / part] if part.endswith(".py") else sorted((ROOT / part).rglob("*.py"))


@pytest.mark.parametrize("part", CORE)
def test_no_word_of_a_capability_stands_in_the_core(part: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files(part)
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if WORDS.search(OTHERS.sub("", line))
    ]
    assert files(part)
    assert not found


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
