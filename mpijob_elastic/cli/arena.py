"""The options of `arena submit etjob` and `mpijob`, and what becomes of each in a `submit` line.

Each option has the meaning that it has in Arena, or it is refused with what to type instead. All
that is refused in a line is refused in one message.

Sources, of arena v0.15.5: pkg/argsbuilder/submit.go, submit_etjob.go, submit_mpijob.go,
submit_sync_code.go and submit_tensorboard.go, pkg/commands/root.go,
charts/etjob/templates/etjob.yaml and charts/mpijob/templates/mpijob.yaml.
"""

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from mpijob_elastic.cli.typed import KINDS, CheckedCommand


@dataclass(frozen=True, kw_only=True)
class Flag:
    """An option of Arena."""

    #: The short form, such as `-e`; "" for an option without one.
    short: str = ""
    #: Whether Arena takes no word after the option, only `=true` or `=false`.
    is_switch: bool = False
    #: The name of the option here; "" for an option that has Arena's name.
    ours: str = ""
    #: What to type instead; "" for an option that is accepted.
    instead: str = ""
    #: Whether what the switch asks for is so here in any case.
    is_given: bool = False


_NO_SSH = "leave it out: the launcher reaches the workers by kubectl exec, without SSH"
_CODE = "put the code into the image, on a volume of --data, or write git clone into the command"
_BOARD = "leave it out, and run TensorBoard in a pod of your own on the volume of --data"
_SUPERVISOR = (
    "leave it out: only Alibaba Cloud's job supervisor reads it. A worker that loses its spot node "
    "is replaced in any case"
)
_RESTARTS = (
    "leave it out, or write spec.runPolicy.backoffLimit into the job that --dry-run prints, and "
    'annotate the job mpijob-elastic/run-policy: "true"'
)
_MODEL = "leave it out: nothing here registers models"
_SHELL = (
    "leave it out: a single word is a line for sh, as in Arena's etjob, whatever --shell says. For "
    "bash, type -- bash -c 'COMMAND'"
)
_PROGRAM = "leave it out: it is for Arena's program itself"
#: Every option of `arena submit etjob` by its long name, without the help option.
FLAGS: Mapping[str, Flag] = MappingProxyType(
    {
        "--name": Flag(),
        "--image": Flag(),
        "--gpus": Flag(),
        "--device": Flag(),
        "--workers": Flag(),
        "--min-workers": Flag(),
        "--max-workers": Flag(),
        "--cpu": Flag(),
        "--memory": Flag(),
        "--env": Flag(short="-e"),
        "--working-dir": Flag(),
        "--workingDir": Flag(ours="--working-dir"),
        "--data": Flag(short="-d"),
        "--data-dir": Flag(),
        "--dataDir": Flag(ours="--data-dir"),
        "--annotation": Flag(short="-a"),
        "--launcher-annotation": Flag(),
        "--worker-annotation": Flag(),
        "--label": Flag(short="-l"),
        "--selector": Flag(),
        "--launcher-selector": Flag(),
        "--toleration": Flag(),
        "--image-pull-secret": Flag(),
        "--image-pull-policy": Flag(),
        "--scheduler": Flag(),
        "--priority": Flag(short="-p"),
        "--rdma": Flag(is_switch=True),
        "--hostNetwork": Flag(is_switch=True, ours="--host-network"),
        "--hostIPC": Flag(is_switch=True, ours="--host-ipc"),
        "--hostPID": Flag(is_switch=True, ours="--host-pid"),
        "--namespace": Flag(short="-n"),
        "--config": Flag(ours="--kubeconfig"),
        "--gang": Flag(
            is_switch=True,
            instead="here it takes the scheduler's name: type --gang coscheduling, or volcano, "
            "koordinator or kubernetes",
        ),
        "--queue": Flag(
            is_switch=True,
            instead="here it takes the name of a queue in Kueue: type --queue NAME. For KubeQueue, "
            "which Arena's --queue asks, type --annotation scheduling.x-k8s.io/suspend=true",
        ),
        "--config-file": Flag(
            instead="make a ConfigMap with `kubectl create configmap NAME --from-file=FILE`, and "
            "mount it in the job that --dry-run prints"
        ),
        "--shell": Flag(instead=_SHELL),
        "--retry": Flag(
            instead="leave it out: Arena does nothing with it for an etjob. For an mpijob it is "
            f"spec.backoffLimit; {_RESTARTS}"
        ),
        "--job-restart-policy": Flag(instead=_RESTARTS),
        "--job-backoff-limit": Flag(instead=_RESTARTS),
        "--worker-restart-policy": Flag(
            instead="leave it out: a failed worker of an elastic job is replaced in any case"
        ),
        "--ssh-secret": Flag(instead=_NO_SSH),
        "--sync-mode": Flag(instead=_CODE),
        "--syncMode": Flag(instead=_CODE),
        "--sync-source": Flag(instead=_CODE),
        "--syncSource": Flag(instead=_CODE),
        "--sync-image": Flag(instead=_CODE),
        "--syncImage": Flag(instead=_CODE),
        "--tensorboard": Flag(is_switch=True, instead=_BOARD),
        "--tensorboard-image": Flag(instead=_BOARD),
        "--tensorboardImage": Flag(instead=_BOARD),
        "--logdir": Flag(instead=_BOARD),
        "--spot-instance": Flag(is_switch=True, instead=_SUPERVISOR),
        "--max-wait-time": Flag(instead=_SUPERVISOR),
        "--model-name": Flag(instead=_MODEL),
        "--model-source": Flag(instead=_MODEL),
        "--loglevel": Flag(instead=_PROGRAM),
        "--pprof": Flag(is_switch=True, instead=_PROGRAM),
        "--trace": Flag(is_switch=True, instead=_PROGRAM),
        "--helm-binary": Flag(is_switch=True, instead=_PROGRAM),
        "--arena-namespace": Flag(instead=_PROGRAM),
    }
)
#: The options that only `arena submit mpijob` has.
MPIJOB_FLAGS: Mapping[str, Flag] = MappingProxyType(
    {
        "--clean-task-policy": Flag(ours="--clean-pod-policy"),
        "--mounts-on-launcher": Flag(is_switch=True, is_given=True),
        "--gputopology": Flag(
            is_switch=True,
            instead="leave it out: only Alibaba Cloud's scheduler reads it. A gang is --gang NAME",
        ),
    }
)
_OTHER_KINDS = re.compile(r"(tf|pytorch|horovod|spark|volcano|deepspeed|ray)job")
_BY_SHORT = {flag.short: name for name, flag in FLAGS.items() if flag.short}
# What pflag reads as a boolean: strconv.ParseBool.
_YES = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_NO = frozenset({"0", "f", "F", "FALSE", "false", "False"})
# Arena's help says `usage: "--hostNetwork true"`, but pflag takes no second word for a switch.
_AS_IN_HELP = frozenset({"true", "false"})
_FIRST_WORD = "a word of its own becomes the first word of the command, in Arena, too"
# Switches in Arena that take a word here, and what that word looks like. A word of another form is
# the command of a line that was written for Arena.
_NAMED = {
    "--gang": re.compile(r"volcano|coscheduling|koordinator|kubernetes(-workers)?"),
    "--queue": re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"),
}


@dataclass(kw_only=True)
class ArenaLine:
    """The words of a line, read as Arena reads them."""

    #: The words in the form that `submit` takes.
    words: list[str] = field(default_factory=list)
    #: What to type instead, by the refused option.
    refused: dict[str, str] = field(default_factory=dict)


def read(words: list[str], takes_word: Mapping[str, bool]) -> ArenaLine:
    """Return a line in the form that `submit` takes, and what of it is refused.

    takes_word: whether a word follows, for each option of `submit`.
    """
    line, rest = ArenaLine(), deque(words)
    while rest:
        word = rest.popleft()
        if word == "--":
            line.words += [word, *rest]
            break
        if word.startswith("-") and word != "-":
            _option(line, word, rest, takes_word)
        else:
            line.words.append(word)
    return line


def _option(line: ArenaLine, word: str, rest: deque[str], takes_word: Mapping[str, bool]) -> None:
    option, value = _parted(word)
    flag = FLAGS.get(option) or MPIJOB_FLAGS.get(option)
    if option in _NAMED:
        _named(line, option, value, rest)
    elif flag is None:
        line.words.append(word)
        if takes_word.get(word) and rest:
            line.words.append(rest.popleft())
    elif flag.is_switch:
        _switch(line, option, value, rest, flag)
    else:
        _valued(line, option, value, rest, flag)


def _parted(word: str) -> tuple[str, str | None]:
    """Return an option by its long name, and the value that is written in the same word."""
    if word.startswith("--"):
        option, mark, value = word.partition("=")
        return option, value if mark else None
    short, value = word[:2], word[2:]
    option = _BY_SHORT.get(short, word)
    if option == word or not value:
        return option, None
    return option, value.removeprefix("=")


def _valued(line: ArenaLine, option: str, value: str | None, rest: deque[str], flag: Flag) -> None:
    ours = flag.ours or option
    given = [ours] if value is None else [f"{ours}={value}"]
    if value is None and rest:
        given.append(rest.popleft())
    if flag.instead:
        line.refused[option] = flag.instead
    else:
        line.words += given


def _switch(line: ArenaLine, option: str, value: str | None, rest: deque[str], flag: Flag) -> None:
    if value in _NO:
        return
    if value is None and rest and rest[0] in _AS_IN_HELP:
        line.refused[option] = f"write {option}={rest[0]}; {_FIRST_WORD}"
        return
    if flag.instead:
        line.refused[option] = flag.instead
    elif value is None or value in _YES:
        line.words += [] if flag.is_given else [flag.ours or option]
    else:
        line.refused[option] = f"{value} is neither true nor false"


def _named(line: ArenaLine, option: str, value: str | None, rest: deque[str]) -> None:
    """Take the name that follows an option here; refuse the switch of Arena."""
    if value in _NO:
        return
    if value is None and rest and _NAMED[option].fullmatch(rest[0]):
        value = rest.popleft()
    if value is None or value in _YES:
        line.refused[option] = FLAGS[option].instead
    else:
        line.words.append(f"{option}={value}")


# What may stand beside -f FILE; every other option describes a job.
_BESIDE_A_FILE = frozenset(
    {"filename", "dry_run", "server_dry_run", "wait", "timeout", "look", "logs", "output"}
    | {"namespace", "kubeconfig", "context"}
)
# What describes a job at least, by the name of the parameter.
_NEEDED = {"name": "--name", "image": "--image", "command": "the command"}
# The forms of --dry-run that kubectl has.
_DRY_RUNS = {
    "--dry-run=client": ["--dry-run"],
    "--dry-run=server": ["--server-dry-run"],
    "--dry-run=none": list[str](),
}


class SubmitCommand(CheckedCommand):
    """`submit`, which takes the words of a line for Arena."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse in one message all that `submit` does not have; read the rest.

        Raises click's UsageError.
        """
        takes_word = {
            option: not getattr(param, "is_flag", False)
            for param in self.params
            for option in (*param.opts, *param.secondary_opts)
        }
        line = read(_with_dry_run(_without_kind(ctx, args)), takes_word)
        if line.refused and not ctx.resilient_parsing:
            says = (f"{option}: {instead}" for option, instead in line.refused.items())
            ctx.fail("\n".join(says))
        rest = super().parse_args(ctx, line.words)
        if not ctx.resilient_parsing:
            _refuse_halves(ctx)
        return rest


def _without_kind(ctx: Any, args: list[str]) -> list[str]:
    """Return the words behind the kind of a job, which Arena wants and which is one here.

    Raises click's UsageError for kinds that are no MPIJobs.
    """
    first = args[0] if args else ""
    if _OTHER_KINDS.fullmatch(first):
        ctx.fail(f"{first} is no MPIJob: `arena submit {first}` stays with Arena")
    return args[1:] if first in KINDS else args


def _with_dry_run(args: list[str]) -> list[str]:
    """Return the words with the switches that stand for kubectl's values of --dry-run."""
    end = args.index("--") if "--" in args else len(args)
    words = [word for given in args[:end] for word in _DRY_RUNS.get(given, [given])]
    return [*words, *args[end:]]


def _refuse_files(ctx: Any, files: Sequence[str]) -> None:
    """Raise click's UsageError for more than one file."""
    if len(files) > 1:
        all_files = " ".join(f"-f {file}" for file in files)
        ctx.fail(
            f"submit creates one job, and there are {len(files)} files: `kubectl create "
            f"{all_files}` creates all that they have, elastic jobs too"
        )


def _refuse_halves(ctx: Any) -> None:
    """Raise click's UsageError for a file beside options of a job, and for too few of them."""
    given = {
        name
        for name in ctx.params
        if getattr(ctx.get_parameter_source(name), "name", "") == "COMMANDLINE"
    }
    if files := ctx.params.get("filename"):
        _refuse_files(ctx, files)
        if more := sorted(given - _BESIDE_A_FILE):
            words = ", ".join(_NEEDED.get(name, f"--{name.replace('_', '-')}") for name in more)
            ctx.fail(f"-f FILE describes the whole job, so write {words} into the file")
        return
    if missing := [words for name, words in _NEEDED.items() if name not in given]:
        ctx.fail(f"{', '.join(missing)} is missing; or give -f FILE")
