"""One job at one moment, as a user may read it: the controller's view and some facts for people."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mpijob_elastic.cli.jobs.shown_facts import SeenJob, SeenPod
from mpijob_elastic.model.job import JobView
from mpijob_elastic.observe import views
from mpijob_elastic.observe.facts_config import ConfigFacts, RoleFacts


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """pods: by name. role_readable: this user may read Roles."""

    view: JobView
    job: SeenJob
    pods: Mapping[str, SeenPod]
    role_readable: bool


@dataclass(frozen=True, kw_only=True)
class Objects:
    """The objects of any number of jobs; roles: None where this user may not read them."""

    jobs: Collection[SeenJob]
    pods: Collection[SeenPod]
    configs: Collection[ConfigFacts]
    roles: Collection[RoleFacts] | None

    def snapshots(self) -> list[Snapshot]:
        """Return each job with its objects, sorted by namespace and name."""
        objects = views.Objects(pods=[pod.facts for pod in self.pods], configs=self.configs, roles=self.roles)
        pods: dict[tuple[str, str], dict[str, SeenPod]] = defaultdict(dict)
        for pod in self.pods:
            pods[pod.metadata.namespace, pod.metadata.job][pod.metadata.name] = pod
        ordered = sorted(self.jobs, key=lambda job: (job.metadata.namespace, job.metadata.name))
        return [
            Snapshot(
                view=objects.view(job.facts),
                job=job,
                pods=pods[job.metadata.namespace, job.metadata.name],
                role_readable=self.roles is not None,
            )
            for job in ordered
        ]
