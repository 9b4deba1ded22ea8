"""The course of a job whose size changes at some times, with a driver that loses words.

Time passes in steps of half a second. In each the controller does what is due, and the driver does
its part with the list that the launcher was shown last.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mpijob_elastic import names
from mpijob_elastic.decide import actions, decide, reminders
from mpijob_elastic.model.pod import Probe, Worker
from tests.builders import JOB, NOW, Story, but, config, job, launcher, role, worker
from tests.doubles.horovod_driver import Driver
from tests.simulated_writes import apply

STEP = 0.5
MOST = 4
# Seconds after the last change by which everything is long at rest.
AT_LAST = 700.0


@dataclass(kw_only=True)
class Course:
    """A job whose size changes at some times (seconds), and what has come of it."""

    driver: Driver
    sizes: Mapping[float, int]
    #: Pods whose rank still ran when they were deleted.
    killed: list[str] = field(default_factory=list)
    #: Times at which something was written, in seconds.
    writes: list[float] = field(default_factory=list)
    #: Writes that are reminders.
    reminders: int = 0
    _mounted: str = names.SCRIPT_HEADER

    def run(self) -> Story:
        """Return the job at its end."""
        view = job(
            1,
            config=config(()),
            workers=(),
            launcher=launcher(),
            role=role(*range(MOST)),
            known=False,
        )
        seconds = max(self.sizes) + AT_LAST
        for step in range(int(seconds / STEP)):
            at = step * STEP
            if at in self.sizes:
                view = _resized(view, self.sizes[at], now=NOW + at)
            view = self._decided(view, at)
            self.driver.tick(at, self._mounted)
        return view

    def _decided(self, view: Story, at: float) -> Story:
        now = NOW + at
        for _ in range(9):
            plan = decide(view, now=now)
            for action in plan.actions:
                view = self._written(view, action, at)
            for look in plan.looks:
                if isinstance(look, actions.ProbeWorkers):
                    view = self._looked(view, {one.name for one in look.workers}, now=now)
            if not plan.actions:
                return view
        raise AssertionError(f"{at}: still not at rest, {plan.actions}")

    def _written(self, view: Story, action: actions.Action, at: float) -> Story:
        if isinstance(action, actions.TellUser):
            return _applied(view, action, at)
        self.writes.append(at)
        if isinstance(action, actions.WriteConfig) and action.reminds:
            self.reminders += 1
        if isinstance(action, actions.DeleteWorkers):
            gone = {removal.worker.name for removal in action.removals}
            self.killed += sorted(gone & self._pods())
        after = _applied(view, action, at)
        if isinstance(action, actions.RefreshLauncher) and view.config:
            self._mounted = view.config.facts.script or ""
        return after

    def _looked(self, view: Story, pods: set[str], *, now: float) -> Story:
        workers = [
            but(one, probe=self._probe(one, now=now)) if one.name in pods else one
            for one in view.workers
        ]
        return view.but(workers=tuple(workers))

    def _probe(self, one: Worker, *, now: float) -> Probe:
        if one.name in self._pods():
            return Probe(busy_seen=True, busy_at=now, asked_at=now)
        since = now if one.probe.idle_since is None else one.probe.idle_since
        return replace(one.probe, idle_at=now, idle_since=since, asked_at=now)

    def _pods(self) -> set[str]:
        return set(map(names.pod_of, self.driver.ranks))


def _applied(view: Story, action: actions.Action, at: float) -> Story:
    after = apply(view, action, now=NOW + at)
    assert isinstance(after, Story)
    return after


def _resized(view: Story, size: int, *, now: float) -> Story:
    there = {one.index for one in view.workers}
    new = [
        worker(index, uid=f"{index}-of-{now}", created_at=now, ready_at=now)
        for index in range(size)
        if index not in there
    ]
    workers = sorted([*view.workers, *new], key=lambda one: one.index)
    return view.but(replicas=size, workers=tuple(workers))


def followed(course: Course) -> Course:
    """Run it to the end, and see that the ranks are those of the list, and nobody was harmed."""
    view = course.run()
    last = [*course.sizes.values()][-1]
    assert course.killed == []
    assert not course.driver.is_deadlocked
    assert set(map(names.pod_of, course.driver.ranks)) == {
        names.worker(JOB, index) for index in range(last)
    }
    assert {one.index for one in view.workers} == {*range(last)}
    # At rest there is no write, and the reminders are few.
    assert course.writes[-1] < max(course.sizes) + sum(reminders.PAUSES) + 20.0
    assert course.reminders <= len(reminders.PAUSES) * len(course.sizes)
    return course
