"""What a change of size means, in a line: for what is allowed but doubtful, and for dry runs; pure.

Short, since kubectl shows each in one line: https://kubernetes.io/blog/2020/09/03/warnings/ recommends 120 characters.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpijob_elastic.model import durations
from mpijob_elastic.model.horovodrun import HOROVODRUN
from webhook.rules.job_size import JobSize

# So many workers are named; of more the rest is counted.
_NAMED = 3


def doubts(job: JobSize, replicas: int) -> Iterator[str]:
    """What horovodrun's own limits make of that size."""
    launch = job.launch
    if launch is None or launch.program != HOROVODRUN or not job.elastic:
        return
    slots = replicas * job.slots
    if launch.max_np is not None and slots > launch.max_np:
        unused = slots - launch.max_np
        yield f"horovodrun's --max-np {launch.max_np} is less than its slots, {slots}: {unused} stay unused"
    least = launch.effective_min_np
    if least is not None and slots < least:
        option = "-np" if launch.min_np is None else "--min-np"
        yield f"horovodrun's {option} {least} is more than its slots, {slots}: training waits for more"


def change(job: JobSize, *, before: int, after: int) -> str | None:
    """What scaling would do, None where nothing changes."""
    if before == after:
        return None
    scale = f"would scale {before}→{after}"
    if not job.started:
        return f"{scale} before the job starts"
    return f"{scale}: {_grow(job, range(before, after)) if after > before else _shrink(job, range(after, before))}"


def _grow(job: JobSize, new: range) -> str:
    if not job.elastic:
        return f"{_few(new)} {_verb(new, 'starts', 'start')} unused, for the job is not elastic"
    return f"{_few(new)} {_verb(new, 'is', 'are')} created, and published once Ready"


def _shrink(job: JobSize, gone: range) -> str:
    first = _few(gone[::-1])
    if not job.elastic:
        return f"{first} {_verb(gone, 'keeps', 'keep')} running, for the job is not elastic"
    limit = durations.render(job.policy.drain_timeout)
    return f"{first} {_verb(gone, 'drains', 'drain')} for at most {limit}, then {_verb(gone, 'is', 'are')} deleted"


def _few(indices: range) -> str:
    rest = len(indices) - _NAMED
    return ", ".join(f"worker-{index}" for index in indices[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _verb(indices: range, one: str, many: str) -> str:
    return one if len(indices) == 1 else many
