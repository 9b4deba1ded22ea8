"""Read by exec the acknowledgement of elastic.sh in launchers (model/acknowledgement)."""

from dataclasses import dataclass, replace
from functools import partial

from mpijob_elastic.act.looks import FairTurns, Job, Looks, look_into
from mpijob_elastic.decide.actions import LookAtDriver
from mpijob_elastic.model import acknowledgement
from mpijob_elastic.model.acknowledgement import Acknowledgement
from mpijob_elastic.model.job import JobView

# Seconds for a look.
LOOK_TIMEOUT = 5.0
# Looks over all jobs, under way at once (of a namespace at most half of them) and begun in a
# second.
MOST_AT_ONCE, MOST_A_SECOND = 16, 40.0
# Only builtins of a POSIX shell: the image may have nothing else.
SCRIPT = f"""\
while read -r line; do echo "$line"; done 2>/dev/null < {acknowledgement.PATH}
"""
COMMAND = ["/bin/sh", "-c", SCRIPT]


@dataclass(eq=False)
class DriverLooks(Looks[dict[str, Acknowledgement]]):
    """Looks for acknowledgements; remembers by job the launcher's uid and the last one."""

    def __post_init__(self) -> None:
        """Make the turns of its looks."""
        self._turns = FairTurns(at_once=MOST_AT_ONCE, a_second=MOST_A_SECOND)

    def seen(self, job: Job, uid: str) -> Acknowledgement:
        """Return the last acknowledgement of the launcher with this uid."""
        return self.jobs.get(job, {}).get(uid, Acknowledgement())

    def begin(self, view: JobView, action: LookAtDriver) -> None:
        """Look into a launcher, unless a look is under way."""
        uid, job = action.launcher.ref.uid, (view.namespace, view.name)
        self.jobs[job] = {uid: self.seen(job, uid)}
        self._begin(uid, job, self._turns, partial(self._ask, view, action))

    def tidy(self, view: JobView) -> None:
        """Forget what a job acknowledged of which no worker has left the list."""
        if not view.memory.left:
            self.forget((view.namespace, view.name))

    async def _ask(self, view: JobView, action: LookAtDriver) -> bool:
        asked_at = self.now()
        result = await look_into(
            self.client,
            view.namespace,
            action.launcher.ref.name,
            container=action.launcher.container,
            command=COMMAND,
            timeout=LOOK_TIMEOUT,
            limit=acknowledgement.longest(view.name, workers=view.most_workers),
        )
        # Read after the look: the job may have been forgotten meanwhile.
        known, uid = self.jobs.get((view.namespace, view.name), {}), action.launcher.ref.uid
        before = known.get(uid)
        if before is None:
            return False
        found = acknowledgement.parse(result.stdout, job=view.name) if result else None
        if found is None:
            known[uid] = replace(before, asked_at=asked_at, failed=before.failed + 1)
            return True
        number, busy = found
        known[uid] = Acknowledgement(asked_at=asked_at, number=number, busy=busy)
        return True
