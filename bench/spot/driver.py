"""A model of Horovod's elastic driver: which hosts form a ring when, and which are blacklisted.

From horovod/runner/elastic/driver.py and measurements with Horovod 0.28.1:
- it runs discover_hosts.sh once a second; a change reaches the ranks at their next commit, and the
  ring re-forms;
- a rank whose host left the list ends by itself there, and its exit does not count;
- a rank that dies breaks the ring at once, and its host name is never used again (blacklisted);
- at least one host of the last ring must be in the next, or no rank has the training's state: the
  job ends;
- a listed host that cannot be reached fails like a dead rank.
A static job is the same without the list: any dead rank ends it.
"""

import math
from collections.abc import Iterable, Mapping

from bench.spot.tally import Costs, Tally
from mpijob_elastic.names import pod_of


class Driver:
    """A run of horovodrun.

    `failed` says why it ended, "" while it runs. Times are seconds and never go back.
    """

    def __init__(self, *, now: float, costs: Costs, tally: Tally, elastic: bool) -> None:
        self._costs = costs
        self._tally = tally
        self._elastic = elastic
        self._ring: dict[str, str] = {}
        self._known: tuple[str, ...] = ()
        self._forms_at: float | None = None
        self._change_at = math.inf
        self._poll_at = now
        self._give_up_at = now + costs.elastic_timeout
        self._blacklist: set[str] = set()
        self.failed = ""

    @property
    def ring(self) -> Iterable[str]:
        """Hosts with a running or starting rank."""
        return self._ring.keys()

    @property
    def killed(self) -> int:
        """Number of ranks that died while others continued."""
        return len(self._blacklist)

    def tick(self, now: float, *, listed: Iterable[str], running: Mapping[str, str]) -> None:
        """Do what is due.

        `listed`: the output of the script; `running`: uids of the pods that can have a rank.
        """
        if not self.failed:
            self._notice_losses(now, running)
        if not self.failed and now >= self._poll_at:
            self._poll_at = (math.floor(now / self._costs.poll) + 1) * self._costs.poll
            self._learn(now, listed, running)
        if not self.failed and self._forms_at is not None and now >= self._forms_at:
            self._tally.begin(self._forms_at, len(self._ring))
            self._forms_at = None
        if self._ring and self._forms_at is None and not self.failed:
            self._change(now, running)

    def _notice_losses(self, now: float, running: Mapping[str, str]) -> None:
        lost = {host for host, uid in self._ring.items() if running.get(pod_of(host)) != uid}
        if not lost:
            return
        if not self._elastic:
            self._fail(now, f"{min(lost)} was lost")
            return
        self._blacklist |= lost
        self._known = self._usable(self._known)
        self._tally.cut(now)
        self._form(now, running)

    def _learn(self, now: float, listed: Iterable[str], running: Mapping[str, str]) -> None:
        if self._elastic or not self._ring:
            self._known = self._usable(listed)
        if self._ring:
            return
        if self._known:
            self._start(now, running)
        elif now >= self._give_up_at:
            self._fail(now, "no host was listed in time")

    def _change(self, now: float, running: Mapping[str, str]) -> None:
        if self._ring.keys() == {*self._known}:
            self._change_at = math.inf
            return
        if self._change_at == math.inf:
            self._change_at = self._tally.next_commit(now)
        if now >= self._change_at:
            self._tally.pause(self._change_at)
            self._form(self._change_at, running)

    def _form(self, at: float, running: Mapping[str, str]) -> None:
        if not any(host in self._ring for host in self._known):
            self._fail(at, "no host of the last ring is left")
            return
        self._start(at, running)

    def _usable(self, hosts: Iterable[str]) -> tuple[str, ...]:
        return tuple(host for host in hosts if host not in self._blacklist)

    def _start(self, at: float, running: Mapping[str, str]) -> None:
        newcomers = any(host not in self._ring for host in self._known)
        self._ring = {host: running.get(pod_of(host), "") for host in self._known}
        self._forms_at = at + self._costs.reset + (self._costs.start if newcomers else 0.0)
        self._change_at = math.inf

    def _fail(self, now: float, why: str) -> None:
        self._tally.fail(now)
        self._ring = {}
        self.failed = why
