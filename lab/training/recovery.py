"""Recovery of training from the loss of a rank; pure."""

from dataclasses import dataclass

from lab.training.log import Log, first_with


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """Seconds from the loss to the first step without the lost rank, and to the first step of all ranks."""

    went_on: float
    full: float


def recovery(log: Log, host: str, *, size: int, since: float) -> Recovery | None:
    """Return the recovery of training with `size` ranks from the loss of the rank in `host`; None before that."""
    back = next((one.time for one in log.starts if one.host == host and one.time >= since), None)
    full = first_with(log.steps, size=size, since=back) if back else None
    if back is None or full is None:
        return None
    # The last steps of all ranks may have been told after `since`.
    without = (one.time for one in log.steps if one.time >= since and (one.size < size or one.time >= back))
    return Recovery(went_on=next(without) - since, full=full.time - since)
