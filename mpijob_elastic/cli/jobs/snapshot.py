"""One job at one moment, as a user may read it: the controller's view and some facts for people."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
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


def snapshots(
    *,
    jobs: Iterable[SeenJob],
    pods: Collection[SeenPod],
    configs: Iterable[ConfigFacts],
    roles: Iterable[RoleFacts] | None,
) -> list[Snapshot]:
    """Return each job with its objects, sorted by namespace and name. roles: None where this user may not read them."""
    pods_of: dict[tuple[str, str], dict[str, SeenPod]] = defaultdict(dict)
    for pod in pods:
        pods_of[pod.metadata.namespace, pod.metadata.job][pod.metadata.name] = pod
    ordered = sorted(jobs, key=lambda job: (job.metadata.namespace, job.metadata.name))
    facts = [pod.facts for pod in pods]
    found = views.each([job.facts for job in ordered], pods=facts, configs=configs, roles=roles or ())
    return [
        Snapshot(view=view, job=job, pods=pods_of[view.namespace, view.name], role_readable=roles is not None)
        for job, view in zip(ordered, found, strict=True)
    ]
