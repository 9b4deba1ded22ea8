"""Random sequences: steps of users, other programs and misfortune, as values that can be printed and replayed."""

from dataclasses import dataclass
from random import Random

from tests.lab.job import HOROVODRUN, MPIRUN

SHORTEST, LONGEST = 3, 9  # steps of a sequence
MOST_WORKERS = 4
HOUR = 3600
GARBAGE = ("garbage", "", "#!/bin/sh\nexit 1\n", "#!/bin/sh\necho a:9\n", "#!/bin/sh\necho {job}-worker-0:1\n")
TEMPLATES = {"elastic": HOROVODRUN, "other": [*HOROVODRUN, "--verbose"], "plain": MPIRUN}


@dataclass(frozen=True)
class Step:
    """A step: its kind, a function of `sequence_play`; its value, if it has one; seconds of rest after it."""

    kind: str
    value: str | int | None = None
    rest: float = 0.0


def sequence(seed: str) -> tuple[Step, ...]:
    """Return the sequence of that seed: the first step creates the job."""
    random = Random(seed)
    steps = [Step("create", random.randint(1, 3), random.choice([0.0, 5.0, 5.0]))]
    steps += [_step(random) for _ in range(random.randint(SHORTEST, LONGEST))]
    return tuple(steps)


def _step(random: Random) -> Step:
    rest = random.choice([0.0, 0.0, 0.3, 1.0, 4.0])
    kinds = random.choices(list(_WEIGHTS), weights=list(_WEIGHTS.values()))
    values: dict[str, list[str | int | None]] = {
        "size": [*range(1, MOST_WORKERS + 1)],
        "drain_timeout": ["0s", "1s", "3s", None],
        "min_replicas": ["1", None],
        "enabled": ["true", "false", None],
        "template": list(TEMPLATES),
        "delete_worker": [0, 1, 2],
        "fail_worker": [0, 1, 2],
        "script": [*GARBAGE, None],
        "hostfile": ["nobody slots=1\n", "", None],
        "memory": ["garbage", "{}", None],
        "role": ["empty", "first", "stranger"],
        "clock": [-HOUR, HOUR, -600, 600, -30, 30, random.randint(-HOUR, HOUR)],
        "webhook": ["away", "back"],
    }
    return Step(kinds[0], random.choice(values.get(kinds[0], [None])), rest)


_WEIGHTS = {
    "size": 8,
    "drain_timeout": 2,
    "min_replicas": 1,
    "enabled": 1,
    "template": 1,
    "delete_worker": 2,
    "delete_launcher": 1,
    "fail_worker": 1,
    "recreate": 1,
    "script": 5,
    "hostfile": 1,
    "memory": 1,
    "replace_config": 1,
    "role": 2,
    "clock": 3,
    "kill_leader": 2,
    "webhook": 2,
}
