"""`submit`: make an MPIJob v1 from options named as those of `arena submit etjob`."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal

from mpijob_elastic import capabilities, names
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import creation, manifest_file, pod_fields
from mpijob_elastic.cli.jobs.creation import Creation
from mpijob_elastic.cli.jobs.pod_fields import PodWords
from mpijob_elastic.cli.target import Where
from mpijob_elastic.install import Refused
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.model import (
    elastic_line,
    launch_command,
    operator_types,
    policy,
    requests,
    shell,
)
from mpijob_elastic.model.launch_command import ELASTIC_SH, HOROVODRUN, MPIRUN, Launch

Object = dict[str, Any]
# What starts the ranks: horovodrun, or an mpirun that elastic.sh starts.
DriverName = Literal["horovod", "mpi"]

_GPU = "nvidia.com/gpu"
# Arena's bounds where the user gives none (arena v0.15.5, pkg/argsbuilder/submit_etjob.go).
_LEAST, _MOST = 1, 1000
# What no name of an object may have between its dots.
_NO_NAME = re.compile(r"[^a-z0-9-]+")
# Characters of a typed value that an error shows.
_SHOWN = 64
# The network interface of every pod. Without this option horovodrun waits for a second host, to
# find the interfaces that both hosts have.
_INTERFACES = ("--network-interfaces", "eth0")
# What a command line has that no program sees: the shell acts on it.
_FOR_A_SHELL = re.compile(r"[$`<>|&;()*?\[~#\n]")


@dataclass(frozen=True, kw_only=True)
class Words:
    """The options that the user gives; None or "" for an option that is not given."""

    name: str
    image: str
    command: Sequence[str]
    workers: int = 1
    min_workers: int | None = None
    max_workers: int | None = None
    sizes: str = ""
    gpus: int = 0
    cpu: str = ""
    memory: str = ""
    env: Mapping[str, str]
    #: The paths at which each volume claim is mounted, by the claim's name.
    data: Mapping[str, Sequence[str]]
    working_dir: str = ""
    np: int | None = None
    driver: DriverName = "horovod"
    slots: int | None = None
    queue: str = ""
    priority: str = ""
    gang: str = ""
    #: Which pods are deleted once the job has ended.
    clean_pod_policy: str = "Running"
    pods: PodWords = field(default_factory=PodWords)


def manifest(words: Words) -> Object:
    """Return the MPIJob."""
    annotations = {
        names.MIN_REPLICAS: words.min_workers,
        names.MAX_REPLICAS: words.max_workers,
        names.SIZES: words.sizes,
        capabilities.GANG: words.gang,
    }
    metadata: Object = {"name": words.name}
    if words.queue:
        metadata["labels"] = {capabilities.LABEL_QUEUE: words.queue}
    if given := {key: str(value) for key, value in annotations.items() if value}:
        metadata["annotations"] = given
    pod_fields.on_job(metadata, words.pods)
    launcher = _template(words, pod_fields.LAUNCHER)
    worker = _template(words, pod_fields.WORKER)
    for template, role in ((launcher, pod_fields.LAUNCHER), (worker, pod_fields.WORKER)):
        pod_fields.on_template(template, role, words.pods)
    launcher["spec"]["containers"][0]["command"] = command(words)
    specs = {
        "Launcher": {"replicas": 1, "template": launcher},
        "Worker": {"replicas": words.workers, "template": worker},
    }
    spec = {
        "slotsPerWorker": _slots(words),
        "cleanPodPolicy": words.clean_pod_policy,
        "mpiReplicaSpecs": specs,
    }
    return {
        "apiVersion": MPI_JOBS.api_version,
        "kind": MPI_JOBS.kind,
        "metadata": metadata,
        "spec": spec,
    }


def command(words: Words) -> list[str]:
    """Return the launcher's command.

    With --driver mpi, elastic.sh starts mpirun, and mpirun the given command. With --np alone,
    horovodrun starts the given command in the workers. Otherwise the given command is the
    launcher's. A single word is a command line for the shell, in which line breaks become spaces,
    as Arena's examples need. Raises Refused if the given command does not fit the driver.
    """
    given = list(words.command)
    if len(given) == 1:
        given = ["sh", "-c", " ".join(given[0].split("\n"))]
    if words.driver == "mpi":
        return _by_elastic_sh(words, _plain(given))
    if words.np is None:
        return given
    if launch := launch_command.parse(given):
        if launch.program in MPIRUN:
            raise Refused(
                f"with --np horovodrun starts the command; for {launch.program} give --driver mpi"
            )
        raise Refused(f"give --np, or {launch.program} and its options in the command, not both")
    hosts = ("--host-discovery-script", names.DISCOVER_HOSTS_PATH)
    return [HOROVODRUN, *_limits(words, np="-np"), *_INTERFACES, *hosts, *given]


def _limits(words: Words, *, np: str) -> list[str]:
    """Return the driver's options for numbers of ranks, the first of which has that name."""
    least, most = (
        bound and bound * _slots(words) for bound in (words.min_workers, words.max_workers)
    )
    options = {np: words.np, "--min-np": least, "--max-np": most}
    return [text for option, number in options.items() if number for text in (option, str(number))]


def _by_elastic_sh(words: Words, given: Sequence[str]) -> list[str]:
    """Return the command with elastic.sh; its mpirun is the given one, or one of ours."""
    launch = launch_command.parse(given)
    program = launch.program if launch else ""
    if program == HOROVODRUN:
        raise Refused("horovodrun starts the ranks itself; leave out --driver mpi")
    if program == ELASTIC_SH:
        if words.np is not None:
            raise Refused("give --np, or elastic.sh and its options in the command, not both")
        is_first = given[0].rpartition("/")[2] == ELASTIC_SH
        return [names.ELASTIC_PATH, *given[1:]] if is_first else [*given]
    started = [*given]
    if not program:
        started = [*elastic_line.MPIRUN_ON_ALL_HOSTS, *given]
    elif replaced := elastic_line.mpirun(given):
        started = replaced
    return [names.ELASTIC_PATH, *_limits(words, np="--np"), "--", *started]


def _plain(given: Sequence[str]) -> Sequence[str]:
    """Return the words of a command line that needs no shell; any other command stays."""
    if given[:2] != ["sh", "-c"] or len(given) != 3 or _FOR_A_SHELL.search(given[2]):
        return given
    found, is_whole = shell.commands(given[2])
    if not is_whole or len(found) != 1:
        return given
    return found[0].words


def check(words: Words) -> None:
    """Refuse options that contradict each other, in the names that the user typed.

    Raises Refused.
    """
    if names.gets_no_pod(words.name):
        raise Refused(
            f"--name has {len(words.name)} characters, and the operator makes no pod for a name "
            f"with more than {names.LONGEST_LABEL}; choose a shorter name"
        )
    if not names.is_object_name(words.name):
        raise Refused(
            f'--name: "{words.name}" is no name of an object; write lower-case letters, digits and '
            f"dashes, such as {_as_object_name(words.name)}"
        )
    for amount in _amounts(words):
        _check_amount(amount)
    _refuse_one_path(words)
    size, low, high = words.workers, words.min_workers, words.max_workers
    if low and high and low > high:
        raise Refused(f"--min-workers is {low}, which is above --max-workers {high}")
    if low and size < low:
        raise Refused(f"--workers is {size}, which is below --min-workers {low}")
    if high and size > high:
        raise Refused(f"--workers is {size}, which is above --max-workers {high}")


def _refuse_one_path(words: Words) -> None:
    """Raise Refused for two volumes at one path, with which the API server takes no pod."""
    paths = Counter(chain(*words.data.values(), pod_fields.paths(words.pods)))
    if twice := [path for path, times in paths.items() if times > 1]:
        raise Refused(
            f"two volumes would be mounted at {twice[0]}; give each its own path by --data "
            "CLAIM:PATH or --data-dir HOST-PATH:PATH"
        )


def _as_object_name(name: str) -> str:
    """Return a name that an object may have, as near to another one as easily done."""
    parts = [_NO_NAME.sub("-", part).strip("-") for part in name.lower().split(".")]
    return ".".join(filter(None, parts)) or "train"


@dataclass(frozen=True, kw_only=True)
class _Amount:
    """An amount of a resource that the user typed."""

    #: As the user typed it, with the resource if that is a part of it.
    option: str
    text: str
    #: What to write instead.
    example: str
    #: The API server takes only whole numbers.
    is_whole: bool = False


def _amounts(words: Words) -> Iterator[_Amount]:
    """Yield each amount that the user typed."""
    if words.cpu:
        yield _Amount(option="--cpu", text=words.cpu, example="500m or 4")
    if words.memory:
        yield _Amount(option="--memory", text=words.memory, example="500Mi or 8Gi")
    if words.pods.shm_size:
        yield _Amount(option="--shm-size", text=words.pods.shm_size, example="2Gi")
    for resource, text in words.pods.devices.items():
        option, is_whole = f"--device {resource}", _is_counted(resource)
        yield _Amount(option=option, text=text, example="1", is_whole=is_whole)


def _check_amount(typed: _Amount) -> None:
    """Refuse an amount with which the API server would take no pod. Raises Refused."""
    amount = requests.readable({"typed": typed.text}).get("typed")
    if amount is None or not operator_types.is_quantity(typed.text):
        fault = "is not a quantity"
    elif amount < 0:
        fault = "is below 0"
    elif typed.is_whole and amount % requests.UNIT:
        fault = "is not a whole number"
    else:
        return
    shown = typed.text[:_SHOWN]
    raise Refused(f'{typed.option}: "{shown}" {fault}; write for example {typed.example}')


def _is_counted(resource: str) -> bool:
    """Tell whether the API server takes only whole numbers of a resource, as of all devices."""
    return "/" in resource and "kubernetes.io/" not in resource


async def submit(where: Where, words: Words, asked: Creation) -> Exit:
    """Create the job that the options describe. Raises `errors.KubeError`."""
    check(words)
    warned = replace(asked, warning=_warning(command(words), asked))
    return await creation.create(where, manifest(words), warned)


async def submit_file(where: Where, file: str, asked: Creation) -> Exit:
    """Create the MPIJob of a file; `-` stands for standard input.

    Raises `errors.KubeError` and OSError.
    """
    body = manifest_file.read(file)
    here = replace(where, namespace=manifest_file.namespace(body, where.namespace, file))
    name = body["metadata"].get("name", "")
    if names.gets_no_pod(name):
        raise Refused(f"{file}: the operator makes no pod for the name {name}: {_too_long(name)}")
    warning = _warning(manifest_file.launcher_line(body), asked)
    return await creation.create(here, body, replace(asked, warning=warning))


def _too_long(name: str) -> str:
    return f"it has {len(name)} characters, and {names.LONGEST_LABEL} are the most"


def _warning(line: Sequence[str], asked: Creation) -> str:
    return warning(line, is_read=asked.dry_run != "client")


def warning(line: Sequence[str], *, is_read: bool) -> str:
    """Return what is wrong with the command's host list; "" if nothing is.

    is_read: whether the webhook reads the command too, and warns of what it can read there.
    """
    launch = launch_command.parse(line)
    if not policy.names_discovery(line):
        advice = "with --np, horovodrun starts the command in each worker"
        if launch and launch.program in MPIRUN:
            advice = f"with --driver mpi, {ELASTIC_SH} starts it again with each size"
        return (
            f"the command names no {names.KEY_DISCOVER_HOSTS}, so the job keeps its size; {advice}"
        )
    if launch and launch.program == ELASTIC_SH:
        return _elastic_warning(launch, " ".join(line))
    if not any(names.ARENA_DISCOVER_HOSTS_PATH in text for text in line):
        return ""
    is_said = launch is not None and launch.discovery_script == names.ARENA_DISCOVER_HOSTS_PATH
    return "" if is_read and is_said else policy.ARENA_SCRIPT


def _elastic_warning(launch: Launch, text: str) -> str:
    """Return what is wrong with the words of elastic.sh or of its mpirun; "" if nothing is."""
    if launch.refusal:
        return f"{ELASTIC_SH} ends at once: {launch.refusal}"
    ranks, hosts = elastic_line.RANKS, elastic_line.HOST_FILE
    is_known = launch.mpirun is not None or ranks in text
    if is_known or not any(name in text for name in MPIRUN):
        return ""
    return (
        "the options of mpirun could not all be read, so they stay as they are; write "
        f"-np {ranks} and -machinefile {hosts} among them"
    )


def _slots(words: Words) -> int:
    return words.slots or max(1, words.gpus)


def _of_arena(words: Words) -> dict[str, str]:
    """Return the variables on which the commands of Arena's users rely.

    Arena's defaults (arena v0.15.5, pkg/argsbuilder/submit.go and submit_etjob.go) are bounds that
    nobody gave, so they are written only for a command that reads them.
    """
    found = {"workers": str(words.workers), "gpus": str(words.gpus)}
    line = " ".join(words.command)
    bounds = (("minWorkers", words.min_workers, _LEAST), ("maxWorkers", words.max_workers, _MOST))
    for name, given, default in bounds:
        if given:
            found[name] = str(given)
        elif name in line and name not in words.env:
            found[name] = str(default)
    return found


def _template(words: Words, role: str) -> Object:
    env = {**words.env, **_of_arena(words)}
    container: Object = {"name": role, "image": words.image}
    asked = {
        "cpu": words.cpu,
        "memory": words.memory,
        _GPU: str(words.gpus) if words.gpus and role == "worker" else "",
    }
    if amounts := {name: amount for name, amount in asked.items() if amount}:
        container["resources"] = {"requests": amounts, "limits": dict(amounts)}
    if words.working_dir:
        container["workingDir"] = words.working_dir
    container["env"] = [{"name": name, "value": value} for name, value in env.items()]
    spec: Object = {"containers": [container]}
    if words.data:
        spec["volumes"], container["volumeMounts"] = [], []
    for number, (claim, paths) in enumerate(words.data.items()):
        name = f"data-{number}"
        spec["volumes"].append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
        container["volumeMounts"] += [{"name": name, "mountPath": path} for path in paths]
    if words.priority:
        spec["priorityClassName"] = words.priority
    return {"spec": spec}
