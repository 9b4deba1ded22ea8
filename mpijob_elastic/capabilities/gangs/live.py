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
            groups: watching.by_job(groups, gang.read)
            for versions in gang.POD_GROUPS.values()
            for groups in versions
        }

    def seen(self, key: JobKey, view: JobView) -> Gangs | None:
        """Return the gang of a job; None if it has no PodGroup and asks for none."""
        asked = view.facts.of(Gang)
        resource, serves = self._served(asked)
        group = self._found[resource].of(key).get(key.name)
        mine = group if group and group.metadata.job_uid == view.ref.uid else None
        if mine is None and asked is None:
            return None
        return Gangs(group=mine, serves=serves, resource=resource)

    def _served(self, asked: Gang | None) -> tuple[Resource, bool | None]:
        """Return the PodGroups that the API serves for a job, and if it does.

        They are those of the newest version while none are served, and None stands for not known.
        """
        versions = gang.pod_groups(asked)
        known = [self._found[resource].known for resource in versions]
        if True in known:
            return versions[known.index(True)], True
        return versions[0], None if None in known else False
