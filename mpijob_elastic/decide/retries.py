"""Back-offs: how often, and how late, the same is tried for workers, launchers and probes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mpijob_elastic.decide.state import honest
from mpijob_elastic.model.memory import Mended, Tries
from mpijob_elastic.model.pod import Worker

# Trouble after so many seconds without any has a new reason: counting starts again.
FORGIVEN_AFTER = 1800.0


@dataclass(frozen=True, kw_only=True)
class Delays:
    """delays: seconds before the first, second, ... try. given_up_for: seconds of rest after more tries than that."""

    delays: tuple[float, ...]
    given_up_for: float = 0.0

    def is_given_up(self, tries: Tries | None) -> bool:
        """Tell whether there were more tries than delays."""
        return tries is not None and tries.count > len(self.delays)

    def due_at(self, tries: Tries | Mended, *, now: float) -> float:
        """Return when the next try is due."""
        return honest(tries.at, now=now) + self.delays[min(tries.count, len(self.delays)) - 1]

    def again_at(self, tries: Tries, *, now: float) -> float:
        """Return when the next try is due; after all of them, when the rest ends."""
        if not self.is_given_up(tries):
            return self.due_at(tries, now=now)
        return honest(tries.at, now=now) + self.given_up_for


# Failed workers, deleted so that the operator creates them again.
REPLACED = Delays(delays=(0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0), given_up_for=3600.0)
# Workers on a node that is about to go, deleted so that they come back elsewhere; after the last they stay.
MOVED = Delays(delays=(0.0, 30.0, 120.0))
# Workers whose rank is lost, published under a new host name.
RENAMED = Delays(delays=(0.0, 30.0, 60.0, 120.0, 240.0), given_up_for=3600.0)
# Seconds between two probes of a worker that does not answer, at most: its shell hangs, or exec is refused.
LEAVING_PROBES_APART = 30.0
PUBLISHED_PROBES_APART = 600.0
# Launchers that were created without discover_hosts.sh, deleted before they start.
RELAUNCHED = Delays(delays=(0.0, 15.0, 30.0))
# Touches of a launcher that the API server refuses; after the last delay it is tried again and again.
TOUCHED = Delays(delays=(1.0, 2.0, 5.0, 10.0, 30.0, 60.0))
# A touch that is refused so often in a row is worth a word: no short trouble of the API server is.
REFUSED_OFTEN = 2
# Scripts of another writer, replaced by ours: five edits by hand are put right within seconds, and two programs that
# write against one another come to one write in five minutes.
MENDED = Delays(delays=(0.0, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0, 300.0))


def probe_pause(usual: float, failed: int, *, most: float) -> float:
    """Return the seconds between two probes: as usual after one failure, then twice as long after each in a row."""
    return min(usual * 2.0 ** min(max(failed - 1, 0), 16), most)


def counted(
    before: Mapping[str, Tries], workers: Collection[Worker], *, troubled: Collection[str], now: float
) -> Mapping[str, Tries]:
    """Return failure counts per pod name; each pod of uid in `troubled` counts once."""
    kept = {pod: last for pod, last in before.items() if last.uid in troubled or now - last.at < FORGIVEN_AFTER}
    for worker in workers if troubled else ():
        last = kept.get(worker.name)
        if worker.ref.uid in troubled and (last is None or last.uid != worker.ref.uid):
            kept[worker.name] = Tries(count=last.count + 1 if last else 1, at=now, uid=worker.ref.uid)
    return kept


def of_this_pod(before: Mapping[str, Tries], worker: Worker) -> Tries | None:
    """Return the count that this very pod brought about; None where it is another pod's, or not written yet."""
    last = before.get(worker.ref.name)
    return last if last is not None and last.uid == worker.ref.uid else None
