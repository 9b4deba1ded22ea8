"""elastic.sh in one launcher of a cluster in memory: which list it follows, late perhaps, and what it acknowledges."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mpijob_elastic.model.acknowledgement import Acknowledgement
from mpijob_elastic.model.job import Published

# Seconds until ranks have saved and ended: at once, late, or later than workers may drain.
SAVE_FOR = (0.0, 0.0, 20.0, 90.0)


@dataclass(kw_only=True)
class ElasticSh:
    """elastic.sh in a launcher; by its kind it is late, or writes no acknowledgement."""

    kind: int
    #: The number of the list on which ranks run; -1 before the first.
    number: int = -1
    #: The uid of the pod of each host in that list that ran at the start.
    hosts: Mapping[str, str] = field(default_factory=dict)
    _read: int = -1
    _read_at: float = 0.0

    @property
    def save_for(self) -> float:
        """Return the seconds that its ranks take to save."""
        return SAVE_FOR[self.kind % len(SAVE_FOR)]

    @property
    def is_silent(self) -> bool:
        """Tell whether nobody can read what it acknowledges."""
        return self.kind % 5 == 0

    def act(self, found: Published, pods: Mapping[str, str], *, now: float) -> None:
        """Follow the list `found`; `pods` are the uids of the workers that run."""
        if found.number != self._read:
            self._read, self._read_at = found.number, now
        has_saved = not self.hosts or now >= self._read_at + self.save_for
        if found.number != self.number and has_saved:
            self.number = found.number
            self.hosts = {host: pods[host] for host in found.hosts if host in pods}

    def acknowledged(self, before: Acknowledgement, *, now: float) -> Acknowledgement:
        """Return what a look finds."""
        if self.is_silent or self.number < 0:
            return Acknowledgement(
                asked_at=now, failed=before.failed + 1, number=before.number, busy=before.busy
            )
        return Acknowledgement(asked_at=now, number=self.number, busy=frozenset(self.hosts))
