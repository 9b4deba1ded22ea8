"""The watch of PodGroups."""

from mpijob_elastic.capabilities.gangs import Gangs
from mpijob_elastic.capabilities.gangs import facts as gang
from mpijob_elastic.capabilities.gangs.facts import Gang, PodGroup
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.job import JobView
from mpijob_elastic.observe.watching import ByJob, JobKey, Watching


class PodGroupWatch:
    """The watch of the PodGroups of each gang scheduler."""

    def __init__(self, watching: Watching) -> None:
        self._found: dict[Resource, ByJob[PodGroup]] = {
            groups: watching.by_job(groups, gang.read) for groups in gang.POD_GROUPS.values()
        }

    def seen(self, key: JobKey, view: JobView) -> Gangs | None:
        """Return the gang of a job; None if it has no PodGroup and asks for none."""
        found = self._found[gang.pod_groups(view.facts.of(Gang))]
        group = found.of(key).get(key.name)
        mine = group if group and group.metadata.job_uid == view.ref.uid else None
        return Gangs(group=mine, serves=found.known) if mine or view.facts.of(Gang) else None
