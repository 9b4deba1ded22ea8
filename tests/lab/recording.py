"""Recordings of the real operator, as worlds: every object of a job after each step.

A file lists for each step the objects that changed (whole), those gone and those unchanged.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

RECORDINGS = Path(__file__).parents[1] / "recordings" / "v0.2.3"

World = dict[str, Any]
"""Normalised objects by KIND/NAME, and under "Events" the job's Events."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """What was done, what changed by it, and the whole world after it."""

    do: str
    changed: World
    after: World


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One scenario of one job."""

    scenario: str
    job: str
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return self.scenario

    @property
    def gang_scheduling(self) -> str | None:
        """What the operator was started with."""
        return "volcano" if f"PodGroup/{self.job}" in self.steps[0].after else None

    @property
    def earlier_lives(self) -> int:
        """How often a job of this name had been created and deleted before; Events outlive their job."""
        return sum(" MPIJobCreated " in event for event in self.steps[0].after["Events"]) - 1


def read(path: Path) -> Recording:
    """Read a recording; raise ValueError if its parts contradict one another."""
    content = yaml.safe_load(path.read_text())
    steps: list[Step] = []
    for step in content["steps"]:
        before = steps[-1].after if steps else {}
        touched = {*step["changed"], *step.get("gone", ())}
        kept = {key: value for key, value in before.items() if key not in touched}
        if set(kept) != set(step.get("unchanged", ())):
            raise ValueError(f"{path}, step {step['do']!r}: `unchanged` is not what is left of the step before")
        steps.append(Step(do=step["do"], changed=step["changed"], after={**kept, **step["changed"]}))
    job = next(key for key in steps[0].after if key.startswith("MPIJob/")).removeprefix("MPIJob/")
    return Recording(scenario=content["scenario"], job=job, steps=tuple(steps))


def read_all() -> list[Recording]:
    """Read all recordings, by name; raise ValueError."""
    return [read(path) for path in sorted(RECORDINGS.glob("*.yaml"))]
