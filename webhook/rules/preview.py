"""The effect of a change of size in one line, for dry runs and for sizes that are allowed but doubtful; pure.

Short, because kubectl shows each warning on one line: https://kubernetes.io/blog/2020/09/03/warnings/ recommends 120
characters.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpijob_elastic.model import durations
from mpijob_elastic.model.horovodrun import HOROVODRUN
from mpijob_elastic.model.job_facts import JobFacts

# So many workers are named; the rest is counted.
_NAMED = 3


def doubts(job: JobFacts, replicas: int) -> Iterator[str]:
    """Yield what horovodrun's own limits make of that size."""
    launch = job.launch
    if launch is None or launch.program != HOROVODRUN or not job.elastic:
        return
    slots, least = replicas * job.slots, launch.effective_min_np
    if launch.max_np is not None and slots > launch.max_np:
        unused = slots - launch.max_np
        yield f"horovodrun's --max-np is {launch.max_np}, but {slots} slots are asked for: {unused} stay unused"
    if least is not None and slots < least:
        option = "-np" if launch.min_np is None else "--min-np"
        yield f"horovodrun's {option} is {least}, but {slots} slots are asked for: training waits for more"


def change(job: JobFacts, *, before: int, after: int) -> str | None:
    """Return what scaling would do; None if nothing changes."""
    if before == after:
        return None
    scale = f"would scale {before}→{after}"
    if not job.reported:
        return f"{scale} before the job starts"
    return f"{scale}: {_grow(job, range(before, after)) if after > before else _shrink(job, range(after, before))}"


def _grow(job: JobFacts, new: range) -> str:
    if not job.elastic:
        return f"{_few(new)} {_verb(new, 'starts', 'start')} unused, because the job is not elastic"
    return f"{_few(new)} {_verb(new, 'is', 'are')} created, and published once Ready"


def _shrink(job: JobFacts, gone: range) -> str:
    workers = _few(gone[::-1])
    if not job.elastic:
        return f"{workers} {_verb(gone, 'keeps', 'keep')} running, because the job is not elastic"
    limit = durations.render(job.policy.drain_timeout)
    return f"{workers} {_verb(gone, 'drains', 'drain')} for at most {limit}, then {_verb(gone, 'is', 'are')} deleted"


def _few(indices: range) -> str:
    rest = len(indices) - _NAMED
    return ", ".join(f"worker-{index}" for index in indices[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _verb(indices: range, singular: str, plural: str) -> str:
    return singular if len(indices) == 1 else plural
