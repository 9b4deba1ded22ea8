"""What is said of a MPIJob when it is created or changed; pure, from objects to verdict.

Refused is only what this very request brings in. What was wrong before and is not touched stays allowed, because the
update may be somebody else's (a controller's, a status write) who can do nothing about it; for the same reason nothing
is refused on a job that is finished or being deleted. The controller holds every rule again, with Events.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from mpijob_elastic import names
from mpijob_elastic.model import policy
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.policy import Policy, Problem
from webhook.rules import deadline, job_size, lint, preview, size_bounds
from webhook.rules.review import Refusal, Verdict

REPLICAS_FIELD = "spec.mpiReplicaSpecs.Worker.replicas"
SLOTS_FIELD = "spec.slotsPerWorker"
# Written on MPIJobs by the controller: nobody's spelling mistake.
_OURS = frozenset({names.STATUS})


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A MPIJob as its author wrote it."""

    annotations: Mapping[str, str]
    policy: Policy
    problems: tuple[Problem, ...]
    elastic: bool
    replicas: int
    slots: int


def created(job: MPIJob) -> Verdict:
    """The verdict on a new MPIJob."""
    verdict = _verdict(_asked(job), None)
    return replace(verdict, warnings=(*verdict.warnings, *lint.created(job)))


def updated(job: MPIJob, before: MPIJob, *, now: datetime, dry_run: bool = False) -> Verdict:
    """The verdict on a changed MPIJob; a dry run is shown what a change of size would do."""
    if job.metadata.deleting or _finished(before):
        return Verdict()
    verdict = _verdict(_asked(job), _asked(before))
    started = before.status is not None and bool(before.status.conditions)
    changes = _change_warnings(_asked(job), _asked(before), started=started)
    said = (*verdict.warnings, *changes, *lint.updated(job, before), *_resized(job, before, now=now, dry_run=dry_run))
    return replace(verdict, warnings=said)


def _resized(job: MPIJob, before: MPIJob, *, now: datetime, dry_run: bool) -> Iterator[str]:
    if job.replicas == before.replicas:
        return
    about, sizes = job_size.of(job), {"before": before.replicas, "after": job.replicas}
    yield from deadline.growth(about, **sizes, now=now)
    shown = preview.change(about, **sizes) if dry_run else None
    if shown:
        yield shown


def _verdict(asked: _Asked, before: _Asked | None) -> Verdict:
    return Verdict(
        refusals=(*_bad_annotations(asked, before), *_out_of_bounds(asked, before)),
        warnings=tuple(_unknown_annotations(asked, before)),
    )


def _asked(job: MPIJob) -> _Asked:
    parsed, problems = policy.parse(job.metadata.annotations)
    return _Asked(
        annotations=job.metadata.annotations,
        policy=parsed,
        problems=tuple(problems),
        elastic=policy.is_elastic(parsed, job.launcher_texts()),
        replicas=job.replicas,
        slots=job.slots,
    )


def _finished(job: MPIJob) -> bool:
    return any(job.condition(kind) for kind in (names.CONDITION_SUCCEEDED, names.CONDITION_FAILED))


def _bad_annotations(asked: _Asked, before: _Asked | None) -> Iterator[Refusal]:
    known = before.problems if before else ()
    for problem in asked.problems:
        if problem not in known:
            yield Refusal(field=problem.field, message=str(problem).removeprefix(f"{problem.field}: "))


def _out_of_bounds(asked: _Asked, before: _Asked | None) -> Iterator[Refusal]:
    untouched = before is not None and _size(before) == _size(asked)
    refusal = size_bounds.refusal(asked.replicas, asked.policy, field=REPLICAS_FIELD)
    if refusal and not untouched:
        yield refusal


def _size(asked: _Asked) -> tuple[int, int | None, int | None, bool | None]:
    """Everything that decides whether the size is within its bounds."""
    return asked.replicas, asked.policy.min_replicas, asked.policy.max_replicas, asked.policy.enabled


def _unknown_annotations(asked: _Asked, before: _Asked | None) -> Iterator[str]:
    known = names.USER_ANNOTATIONS | _OURS | (before.annotations.keys() if before else set())
    for key in sorted(asked.annotations.keys() - known):
        if key.startswith(names.PREFIX):
            near = difflib.get_close_matches(key[:128], names.USER_ANNOTATIONS, n=1, cutoff=0.0)
            yield f"metadata.annotations[{key[:64]}] is not known and has no effect; did you mean {near[0]}?"


def _change_warnings(asked: _Asked, before: _Asked, *, started: bool) -> Iterator[str]:
    if asked.replicas < before.replicas and not asked.elastic and started:
        yield (
            f"{REPLICAS_FIELD} {before.replicas} to {asked.replicas}: this job is not elastic, so its surplus workers "
            f"stay. Run horovodrun with --host-discovery-script {names.DISCOVER_HOSTS_PATH}, or set the annotation "
            f'{names.ENABLED}: "true"'
        )
    if asked.slots != before.slots and started:
        yield (
            f"{SLOTS_FIELD} {before.slots} to {asked.slots}: the running job keeps {before.slots}, "
            "its hostfile is written once; delete and create the job to change it"
        )
