"""A driver of Elastic Horovod and its ranks, as far as a word about the list can be lost between them.

After horovod v0.28.1: runner/elastic/driver.py (_discover_hosts, _notify_workers_host_changes),
runner/elastic/discovery.py (check_update), common/elastic.py (check_host_updates, on_reset, run_fn).
- Once a second the driver reads the list. If what it prints has changed and differs from the ranks,
  rank 0 is told that hosts were added, removed or both.
- Rank 0 hears it only once it has entered hvd.elastic.run, and not while ranks form their ring.
- At the next commit after that the ring forms anew, with the hosts that the driver knows by then.
  It forms until the newcomers have started.
- If rank 0 was told of nothing but removals, the old ranks do not synchronise, and newcomers wait
  for them for ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

REMOVED, ADDED = "removed", "added"


@dataclass(kw_only=True)
class Driver:
    """A run of horovodrun. Times are seconds and never go back."""

    #: Seconds that a rank needs to start, before its hvd.init() ends.
    start: float
    #: Seconds between two commits.
    commit: float
    #: Ranks, by host; a rank has a process from the time at which its ring begins to form.
    ranks: set[str] = field(default_factory=set)
    #: Words that rank 0 was told and did not hear.
    lost: int = 0
    #: True once newcomers wait for ranks that do not synchronise.
    is_deadlocked: bool = False
    _known: Mapping[str, int] = field(default_factory=dict)
    _told: list[frozenset[str]] = field(default_factory=list)
    _forms_until: float | None = None
    _entered: bool = False
    _reads_at: float = 0.0
    _commits_at: float = 0.0

    def tick(self, now: float, script: str) -> None:
        """Do what is due; `script` is discover_hosts.sh as the launcher has it mounted."""
        if self._forms_until is not None and now >= self._forms_until:
            self._forms_until, self._entered = None, True
            self._told.clear()
            self._commits_at = now + self.commit
        if now >= self._reads_at:
            self._reads_at = now + 1.0
            self._read(now, printed(script))
        if self._entered and self._forms_until is None and now >= self._commits_at:
            self._commits_at = now + self.commit
            if self._told:
                self._form(now)

    @property
    def slots(self) -> set[str]:
        """Hosts with slots, as the driver knows them."""
        return {host for host, slots in self._known.items() if slots}

    def _read(self, now: float, found: Mapping[str, int]) -> None:
        if found == self._known:
            return
        added = {host for host in found if found[host] > self._known.get(host, -1)}
        removed = {host for host, slots in self._known.items() if slots > found.get(host, -1)}
        self._known = found
        if not self.ranks:
            self._begin(now)
        elif self.slots != self.ranks:
            self._tell(frozenset([ADDED] * bool(added) + [REMOVED] * bool(removed)))

    def _tell(self, word: frozenset[str]) -> None:
        if self._entered and self._forms_until is None:
            self._told.append(word)
        else:
            self.lost += 1

    def _begin(self, now: float) -> None:
        if self.slots:
            self.ranks, self._forms_until = self.slots, now + self.start

    def _form(self, now: float) -> None:
        newcomers = self.slots - self.ranks
        if newcomers and frozenset().union(*self._told) == {REMOVED}:
            self.is_deadlocked = True
        self.ranks = self.slots
        self._forms_until = now + (self.start if newcomers else 0.5)


def printed(script: str) -> Mapping[str, int]:
    """Return what the script prints: slots by host."""
    lines = [line.removeprefix("echo ") for line in script.splitlines() if "echo " in line]
    found = (line.rpartition(":") for line in lines)
    return {host: int(slots) for host, _, slots in found}
