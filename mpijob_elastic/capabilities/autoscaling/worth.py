"""Worth: a job that fills idle nodes stops where another worker does not pay.

The worth of a growth is what each new worker adds to the samples per second, as a part of what each
worker did before: 1 if the speed grows with the size, 0 if it stays. It is measured once for each
growth, as soon as the new ring has trained for some minutes; until then the job grows no further.
If it is too little, the growth is given back, and the job keeps its size for some hours. A job
whose workers tell no speed grows as if each worker paid.

Only growth beyond the size that somebody has set is given back, and not in a queue of Kueue, where
a job asks for its largest size at once.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from mpijob_elastic.capabilities.autoscaling.facts import AUTOSCALE, Scaling, scaling
from mpijob_elastic.capabilities.autoscaling.growth import Ceiling, Growth
from mpijob_elastic.decide.actions import Note, normal
from mpijob_elastic.decide.state import JobState, honest
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.json_parts import timestamp
from mpijob_elastic.model.memory import pod_fingerprint
from mpijob_elastic.model.progress import ProgressLine

# Seconds of a ring before its speed counts: the first steps are slow.
MEASURED_AFTER = 180.0
# Seconds after a growth for which a job waits for its measurement, before it grows without.
AWAITED_FOR = 600.0
# Seconds after which a growth that was not worth it is tried again.
AGAIN_AFTER = 6 * 3600.0


def most(view: JobView) -> int:
    """Return the largest size that the job may have and at which every worker gets a rank."""
    least, largest = view.policy.min_replicas or 1, view.policy.max_replicas or 1
    return view.facts.size_down(max(least, min(largest, view.facts.max_np_workers or largest)))


def followed(state: JobState, before: Growth, asked: int) -> Growth:
    """Return the record with what is known of the worth of the last growth."""
    if not scaling(state.view.facts).fill:
        return replace(before, grown_from=0, typed=0, ceiling=None)
    if before.asked != asked:
        return _resized(state, before, asked)
    if not before.grown_from or not _is_measured(state.view, before):
        return before
    return replace(before, grown_from=0, ceiling=_found(state, before))


def _resized(state: JobState, before: Growth, asked: int) -> Growth:
    """Return the record after a change of the size; 0 while the job is suspended."""
    if not (asked and before.asked):
        return replace(before, grown_from=0)
    if not scaling(state.view.facts).sized_by_us:
        return replace(before, grown_from=0, typed=0, ceiling=None)
    typed = before.typed or before.asked
    if asked < before.asked:
        return replace(before, grown_from=0, typed=typed)
    is_judged = before.asked >= typed and state.wishes.is_rationed is False
    beyond = before.ceiling is not None and asked > before.ceiling.size
    return replace(
        before,
        grown_from=before.asked if is_judged else 0,
        typed=typed,
        ceiling=None if beyond else before.ceiling,
    )


def _found(state: JobState, before: Growth) -> Ceiling | None:
    """Return the size at which the job stops; None if the last growth was worth it."""
    view, size = state.view, before.grown_from
    rates = view.ledger.rates if view.ledger else {}
    if not scaling(view.facts).sized_by_us or before.asked <= size:
        return None
    if not rates.get(size) or not rates.get(before.asked):
        return None  # nobody can tell
    gain = min(rates[before.asked] / rates[size] - 1.0, 1e4)
    found = Ceiling(
        size=size,
        tried=before.asked,
        gain=round(gain, 3),
        at=round(state.now, 1),
        most=most(view),
        launcher=_launcher(view),
    )
    return found if _worth(found) < _asked_worth(scaling(view.facts)) else None


def is_awaited(view: JobView, size: Growth, *, now: float) -> bool:
    """Tell whether the worth of the last growth is about to be known."""
    if not size.grown_from or view.ledger is None or not view.ledger.has_lines:
        return False
    return now < honest(max(size.at, view.memory.added_at), now=now) + AWAITED_FOR


def ceiling(view: JobView, size: Growth, *, now: float) -> Ceiling | None:
    """Return the size at which the job stops; None if it may grow, or may try again."""
    found, least = size.ceiling, view.policy.min_replicas or 1
    if found is None or not least <= found.size < found.tried:
        return None
    if found.most != most(view) or found.launcher != _launcher(view):
        return None
    if size.typed > found.size or _worth(found) >= _asked_worth(scaling(view.facts)):
        return None
    return found if now < honest(found.at, now=now) + AGAIN_AFTER else None


def notes(state: JobState, size: Growth) -> Iterator[Note]:
    """Yield the notice on a job that keeps its size because another worker does not pay."""
    found = ceiling(state.view, size, now=state.now)
    if found is None or state.view.replicas != found.size or state.wishes.is_rationed:
        return
    again = timestamp(found.at + AGAIN_AFTER)
    yield normal(
        "NotWorthIt",
        f"{words(found, scaling(state.view.facts))}; the job keeps {found.size} and tries again "
        f"at {again}. {AUTOSCALE}: fill,worth=0 lets it grow anyway",
    )


def words(found: Ceiling, asked: Scaling) -> str:
    """Return why a growth was given back."""
    gain = f"{abs(100 * found.gain):.0f} % {'less' if found.gain < 0 else 'more'} samples/s"
    return (
        f"{found.size} → {found.tried} workers gave {gain} (a worth of "
        f"{_worth(found):.2g}; {_asked_worth(asked):g} is asked for)"
    )


def _worth(found: Ceiling) -> float:
    """Return what a new worker adds, as a part of what a worker did before."""
    return found.gain * found.size / (found.tried - found.size)


def _asked_worth(asked: Scaling) -> float:
    return asked.autoscale.worth if asked.autoscale else 0.0


def _is_measured(view: JobView, size: Growth) -> bool:
    """Tell whether a ring of the present size, which has formed since, has trained long enough."""
    if view.ledger is None:
        return False
    lines = (span.listed_line for span in view.ledger.spans.values())
    ranks = view.replicas * view.facts.slots
    return any(line is not None and _measures(line, size, ranks=ranks) for line in lines)


def _measures(line: ProgressLine, size: Growth, *, ranks: int) -> bool:
    if not line.alive or line.ranks != ranks or line.since < size.at:
        return False
    return line.at - line.since >= MEASURED_AFTER


def _launcher(view: JobView) -> str:
    return pod_fingerprint(view.launcher.ref.uid) if view.launcher else ""
