"""One job at one moment, as a user may read it: the controller's view and some facts for people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.cli.jobs.shown_facts import SeenJob, SeenPod
from mpijob_elastic.model.horovodrun import Launch
from mpijob_elastic.model.job import JobView, Probe
from mpijob_elastic.observe import views
from mpijob_elastic.observe.facts_config import ConfigFacts, RoleFacts


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """created_at: seconds since the epoch. pods: by name. role_readable: this user may read Roles.

    launch: how the job's launcher starts ranks, None where that cannot be read.
    """

    view: JobView
    state: str
    created_at: float
    launch: Launch | None
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
        pods: dict[tuple[str, str], list[SeenPod]] = defaultdict(list)
        for pod in self.pods:
            pods[pod.metadata.namespace, pod.metadata.job].append(pod)
        configs = {(config.metadata.namespace, config.metadata.name): config for config in self.configs}
        roles = {(role.metadata.namespace, role.metadata.name): role for role in self.roles or ()}
        ordered = sorted(self.jobs, key=lambda job: (job.metadata.namespace, job.metadata.name))
        return [self._snapshot(job, pods, configs, roles) for job in ordered]

    def _snapshot(
        self,
        job: SeenJob,
        pods: Mapping[tuple[str, str], list[SeenPod]],
        configs: Mapping[tuple[str, str], ConfigFacts],
        roles: Mapping[tuple[str, str], RoleFacts],
    ) -> Snapshot:
        namespace, name = job.metadata.namespace, job.metadata.name
        mine = {pod.metadata.name: pod for pod in pods.get((namespace, name), ())}
        view = views.view(
            job.facts,
            pods=[pod.facts for pod in mine.values()],
            config=configs.get((namespace, names.config_map(name))),
            role=roles.get((namespace, names.launcher(name))),
            probes=_never_asked,
        )
        return Snapshot(
            view=view,
            state=job.state,
            created_at=job.created_at,
            launch=job.launch,
            pods=mine,
            role_readable=self.roles is not None,
        )


def _never_asked(_uid: str, _occasion: str) -> Probe:
    # Only the controller knows what its own execs have shown.
    return Probe()
