"""How often the same trouble befell the pods of one name, for back-offs and limits."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mpijob_elastic.model.job import Worker
from mpijob_elastic.model.memory import Tries

# A pod that had none for so many seconds has it for a new reason: counting starts again.
FORGIVEN_AFTER = 1800.0


def counted(
    before: Mapping[str, Tries], workers: Collection[Worker], *, troubled: Collection[str], now: float
) -> Mapping[str, Tries]:
    """The counts by pod name, each pod of uid in `troubled` counted once."""
    kept = {pod: one for pod, one in before.items() if one.uid in troubled or now - one.at < FORGIVEN_AFTER}
    for worker in workers if troubled else ():
        last = kept.get(worker.name)
        if worker.ref.uid in troubled and (last is None or last.uid != worker.ref.uid):
            kept[worker.name] = Tries(count=last.count + 1 if last else 1, at=now, uid=worker.ref.uid)
    return kept


def of_this_pod(before: Mapping[str, Tries], worker: Worker) -> Tries | None:
    """The count that this very pod brought about; None where it is of another pod of that name, or not written yet."""
    last = before.get(worker.name)
    return last if last is not None and last.uid == worker.ref.uid else None
