"""Warn about an MPIJob that is allowed but cannot become elastic, or will have trouble; pure.

A job that is not elastic, and does not ask for it by an annotation of ours, gets few warnings; an
update gets only new ones. A hostname, to which the kubelet cuts a pod's name, has at most 63
characters
(https://kubernetes.io/docs/concepts/overview/working-with-objects/names/).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from mpijob_elastic import names
from mpijob_elastic.admission import plain_mpirun, size, template_fields
from mpijob_elastic.admission.interface import CapabilityAdmission
from mpijob_elastic.admission.review import MOST
from mpijob_elastic.model import mpirun_options, near_names
from mpijob_elastic.model.elastic_line import HOST_FILE, RANKS
from mpijob_elastic.model.horovod_options import expands
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.launch_command import ELASTIC_SH, HOROVODRUN, MPIRUN, Launch
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.policy import ARENA_SCRIPT

# Resets that last for a long training: a change of size costs one, a lost rank up to three.
_ENOUGH_RESETS = 100
# Seconds. A rank imports its framework in this time (docs/spot.md).
_LEAST_GLOO_TIMEOUT = 10
# Seconds that Horovod allows for --blacklist-cooldown-range (discovery.py).
_COOLDOWN = (1, 3600)
_LONGEST_HOSTNAME = 63
# [operator] deletes the workers of a job that has ended for exactly the first two values, and keeps
# them for any other.
_CLEANS, _KEEPS = ("Running", "All"), "None"
# [operator] copies any other value into the pods; it makes ExitCode Never.
_RESTARTS = ("Never", "OnFailure", "Always", "ExitCode")
# Characters of a value that a warning shows.
_SHOWN = 64
_ASKING = (
    names.MIN_REPLICAS,
    names.MAX_REPLICAS,
    names.DRAIN_TIMEOUT,
    names.REPLACE_FAILED_WORKERS,
)


def created(
    job: MPIJob, facts: JobFacts, rooms: Sequence[CapabilityAdmission], *, size_stands: bool = True
) -> tuple[str, ...]:
    """Return the warnings about a new job; rooms: the rules of capabilities.

    size_stands: False if the size is refused or no workers are described, so that nothing is to be
    said of the driver's own limits.
    """
    findings = _findings(job, facts, rooms, size_stands=size_stands)
    return (*plain_mpirun.of_hydra(job, facts), *findings)[:MOST]


def updated(
    job: MPIJob,
    before: MPIJob,
    *,
    new: JobFacts,
    old: JobFacts,
    rooms: Sequence[CapabilityAdmission],
    size_stands: bool = True,
) -> tuple[str, ...]:
    """Return the new warnings after an update; `new` and `old`: the facts of both versions.

    size_stands: see `created`.
    """
    if _read_of(job) == _read_of(before):
        return ()
    known = set(_findings(before, old, rooms))
    findings = _findings(job, new, rooms, size_stands=size_stands)
    return tuple(found for found in findings if found not in known)[:MOST]


def _read_of(job: MPIJob) -> tuple[object, ...]:
    """Return what findings depend on; a queue is a label."""
    return job.spec_text, job.metadata.annotations, job.metadata.labels


def _findings(
    job: MPIJob, about: JobFacts, rooms: Sequence[CapabilityAdmission], *, size_stands: bool = True
) -> Iterator[str]:
    asks = _needs_elastic(job, about)
    if about.elastic:
        yield from _command(job, about)
        if size_stands:
            yield from size.doubts(about, about.workers)
        yield from _sidecars(job)
        yield from _probes(job)
    elif asks and about.policy.enabled is not False:
        yield f"this job is not elastic: {_reason(job, about.launch)}"
    yield from _name(about)
    yield from _values(job)
    yield from _of_policy(about)
    yield from template_fields.findings(job, about)
    for known in about.asked:
        yield from known.findings(about)
    for one in rooms:
        yield from one.findings(job, about)


def _needs_elastic(job: MPIJob, about: JobFacts) -> bool:
    """Tell whether the MPIJob asks for something that needs an elastic job."""
    if about.policy.parked:
        return True
    rules = (known.size_rule for known in about.asked)
    if any(rule.needs_elastic for rule in rules if rule):
        return True
    return any(key in job.metadata.annotations for key in _ASKING)


def _of_policy(about: JobFacts) -> Iterator[str]:
    """Yield warnings on annotations without effect, and on sizes with which no launcher starts."""
    policy = about.policy
    asked = {
        names.SUSPEND: policy.suspend,
        names.SCALE_TO_ZERO: policy.zero_suspends,
        names.SIZES: policy.sizes,
        names.PARKED: policy.parked,
    }
    for key, value in asked.items():
        if value and not about.acts_elastic:
            yield f"{key} has no effect: this job is not elastic"
    least = policy.min_replicas
    if policy.sizes and about.elastic and least and least not in about.sizes:
        few = f"{names.MIN_REPLICAS} ({least})"
        yield (
            f"a launcher that starts with {few} workers has no hosts until "
            f"{about.size_at_least(least)} are Ready"
        )


def _reason(job: MPIJob, launch: Launch | None) -> str:
    if launch is None:
        return (
            f"run horovodrun --host-discovery-script or {ELASTIC_SH}, or set "
            f'{names.ENABLED}: "true"'
        )
    if launch.program in MPIRUN:
        return plain_mpirun.advice(job, launch.program)
    if launch.program == ELASTIC_SH:
        return f"write {names.ELASTIC_PATH} with its folder; only then it is in the launcher"
    return f'run horovodrun with --host-discovery-script, or set {names.ENABLED}: "true"'


def _command(job: MPIJob, about: JobFacts) -> Iterator[str]:
    launch = about.launch
    if about.unread_options:
        yield about.unread_words
    yield from _startup(about)
    if launch is None:
        return
    check = _OF_PROGRAM.get(launch.program)
    if check is None:
        yield plain_mpirun.advice(job, launch.program)
    else:
        yield from check(about, launch)


def _of_horovodrun(job: JobFacts, launch: Launch) -> Iterator[str]:
    script = launch.discovery_script
    if script is None and launch.knows("discovery_script"):
        yield f"horovodrun has no --host-discovery-script; give it {names.DISCOVER_HOSTS_PATH}"
    elif script == names.ARENA_DISCOVER_HOSTS_PATH:
        yield ARENA_SCRIPT
    elif script is not None and script not in (
        names.DISCOVER_HOSTS_PATH,
        names.EDL_DISCOVER_HOSTS_PATH,
    ):
        yield (
            f"--host-discovery-script is not {names.DISCOVER_HOSTS_PATH}, the "
            "file that follows the job's size"
        )
    yield from _first_start(job, launch)
    yield from _no_least(job, launch)
    yield from _ending(launch)
    if launch.reset_limit is not None and launch.reset_limit < _ENOUGH_RESETS:
        end = launch.reset_limit + 1
        yield (
            f"horovodrun ends the job at reset {end} (--reset-limit): a new size "
            "costs one, a lost rank up to three"
        )
    if 0 < job.gloo_timeout < _LEAST_GLOO_TIMEOUT:
        said = f"with a Gloo timeout of {job.gloo_timeout} s,"
        yield (
            f"{said} a new rank that takes longer to start ends the other ranks; "
            f"set {_LEAST_GLOO_TIMEOUT} s or more"
        )


def _of_elastic_sh(job: JobFacts, launch: Launch) -> Iterator[str]:
    if not job.names_elastic:
        yield f"write {names.ELASTIC_PATH} with its folder; only then it is in the launcher"
    if launch.refusal:
        yield f"elastic.sh ends at once: {launch.refusal}"
        return
    least, fewest = job.policy.min_replicas, launch.min_np or 0
    if least is not None and fewest > least * job.slots:
        yield (
            f"elastic.sh waits with fewer than {fewest} slots (--min-np), but min-replicas gives "
            f"{least * job.slots}"
        )
    else:
        yield from _first_start(job, launch)
    yield from _fixed_ranks(launch)


# What is said of a command by its program; of mpirun only that elastic.sh can start it.
_OF_PROGRAM: Mapping[str, Callable[[JobFacts, Launch], Iterator[str]]] = {
    HOROVODRUN: _of_horovodrun,
    ELASTIC_SH: _of_elastic_sh,
}


def _fixed_ranks(launch: Launch) -> Iterator[str]:
    """Yield what keeps the ranks of the mpirun below elastic.sh as they are at any size.

    Without these options mpirun reads the hosts from variables, and starts a rank in each slot.
    """
    found = launch.mpirun
    if found is None:
        return
    for option in found.options:
        value, name = option.value[:_SHOWN], option.words[0].partition("=")[0]
        if expands(value) or RANKS in value or HOST_FILE in value:
            continue
        if option.name in mpirun_options.COUNTS:
            yield (
                f"{found.program} {name} {value} keeps {value} ranks at any size; "
                f"write {name} {RANKS}"
            )
        elif option.name in mpirun_options.HOST_FILES:
            yield f"{value} does not follow the job's hosts; write {name} {HOST_FILE}"
        elif option.name in mpirun_options.HOSTS:
            yield f"{name} names hosts, which change; write -machinefile {HOST_FILE} instead"


def _startup(job: JobFacts) -> Iterator[str]:
    """Yield the reason why the launcher waits for more workers than min-replicas."""
    least = job.policy.min_replicas
    if least is None or least >= job.workers or job.startup_workers is not None:
        return
    is_unread = "np" in job.unread_options
    option = job.driver.options["np"]
    why = f"its {option} cannot be read" if is_unread else "its command names the hostfile"
    yield f"the launcher waits for all {job.workers} workers, not for min-replicas: {why}"


def _ending(launch: Launch) -> Iterator[str]:
    """Yield the reasons why horovodrun ends at once (launch.py, gloo_run.py, discovery.py)."""
    if launch.np is None and launch.knows("np"):
        yield "horovodrun ends at once without -np; add -np and the number of ranks to start with"
    if launch.np == 1 and launch.writes_files:
        yield (
            "with -np 1, --output-filename starts no rank and the job succeeds untrained; "
            "use one of them"
        )
    if launch.cooldown is not None and not _is_allowed(launch.cooldown):
        least, most = launch.cooldown
        yield (
            f"horovodrun ends at once with --blacklist-cooldown-range {least} {most}; "
            f"use {_COOLDOWN[0]} to {_COOLDOWN[1]}"
        )


def _is_allowed(cooldown: tuple[int, int]) -> bool:
    return cooldown[0] >= _COOLDOWN[0] and cooldown[1] <= _COOLDOWN[1]


def _first_start(job: JobFacts, launch: Launch) -> Iterator[str]:
    """Yield the reason why the job cannot start as small as it may be.

    horovodrun never starts below -np (wait_for_available_slots), and elastic.sh not below --np.
    """
    least = (job.policy.min_replicas or 1) * job.slots
    starts_small = job.policy.min_replicas is not None and job.policy.min_replicas < job.workers
    first = launch.first_np
    if starts_small and first is not None and first > least:
        option = job.driver.options["np"]
        yield (
            f"{launch.program} starts with {first} slots ({option}), but min-replicas "
            f"gives {least}: it waits for more"
        )


def _no_least(job: JobFacts, launch: Launch) -> Iterator[str]:
    """Yield the reason why the job cannot become as small as it may be.

    Without --min-np training waits below -np (Horovod's launch.py).
    """
    least = (job.policy.min_replicas or 1) * job.slots
    is_absent = launch.min_np is None and launch.knows("min_np")
    if is_absent and launch.np is not None and least < launch.np:
        yield f"horovodrun has no --min-np: with fewer slots than -np {launch.np} training waits"


def _sidecars(job: MPIJob) -> Iterator[str]:
    workers = job.containers(names.ROLE_WORKER)
    main = job.spec.main_container if job.spec else None
    if len(workers) > 1 and not main:
        first = (workers[0].name or "")[:_LONGEST_HOSTNAME]
        yield (
            f"workers have {len(workers)} containers and no spec.mainContainer: "
            f"ranks start in the first, {first}"
        )


def _probes(job: MPIJob) -> Iterator[str]:
    """Yield a warning on a probe whose command a look into a worker takes for a rank."""
    found = (container.command_probe for container in job.containers(names.ROLE_WORKER))
    probe = next(filter(None, found), "")
    if probe:
        yield (
            f"the {probe} of workers looks like a rank while its command runs: use httpGet, "
            "tcpSocket or grpc"
        )


def _values(job: MPIJob) -> Iterator[str]:
    """Yield a warning on each value that is none of those that the operator compares it with."""
    spec = job.spec
    if spec is None:
        return
    yield from _clean_pod_policy(spec.clean_pod_policy or _KEEPS)
    for role in (names.ROLE_LAUNCHER, names.ROLE_WORKER):
        yield from _restart_policy(role, job.restart_policy(role) or _RESTARTS[0])


def _clean_pod_policy(written: str) -> Iterator[str]:
    meant = near_names.nearest(written, (*_CLEANS, _KEEPS))
    # The workers stay for every value but two, so a misspelt None does what its author means.
    if written in _CLEANS or meant == _KEEPS:
        return
    advice = f": did you mean {meant}?" if meant else "; to have them deleted, write Running"
    yield (
        f'spec.cleanPodPolicy: "{written[:_SHOWN]}" keeps the workers and their resources after '
        f"the job's end{advice}"
    )


def _restart_policy(role: str, written: object) -> Iterator[str]:
    if not isinstance(written, str) or written in _RESTARTS:
        return
    meant = near_names.nearest(written, _RESTARTS)
    advice = f"did you mean {meant}?" if meant else "use Never, OnFailure or Always"
    field = f"spec.mpiReplicaSpecs.{role.capitalize()}.restartPolicy"
    yield f'{field}: "{written[:_SHOWN]}": the API server refuses such pods; {advice}'


def _name(job: JobFacts) -> Iterator[str]:
    name = job.metadata.name
    most = max(job.policy.max_replicas or 0, job.replicas, 1)
    # One worker of a job that keeps its size has no other whose hostname could be the same.
    is_alone = most == 1 and not job.elastic
    if len(names.worker(name, most - 1)) > _LONGEST_HOSTNAME and not is_alone:
        yield (
            f"worker names exceed {_LONGEST_HOSTNAME} characters: their "
            "hostnames are cut and may be the same"
        )
