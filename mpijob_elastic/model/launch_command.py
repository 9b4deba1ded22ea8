"""How a launcher's command starts the ranks, as far as that can be read.

The command is a list of words, a script given to a shell (`sh -c "..."`), or either of these within
other programs. Several commands may start something: the last horovodrun with a discovery script
counts, because it is the one that follows the job's size. Without one, a horovodrun whose options
cannot be read counts, then one with -np, then mpirun. What is known only when the command runs is
unknown, and no caller may take it for absent. The command may be hostile, and is read at every
change of its job: limits keep any command below 5 ms.

elastic.sh follows the size as well, whatever command it starts in its turn.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from mpijob_elastic import names
from mpijob_elastic.model import (
    elastic_options,
    horovod_options,
    mpirun_options,
    shell,
    variables,
    wrappers,
)
from mpijob_elastic.model.bounds import LONGEST_SCRIPT, MOST_WORDS
from mpijob_elastic.model.elastic_options import ElasticOptions
from mpijob_elastic.model.horovod_options import Options, expands
from mpijob_elastic.model.mpirun_options import Mpirun
from mpijob_elastic.model.variables import Variable
from mpijob_elastic.model.wrappers import Inner

HOROVODRUN = "horovodrun"
ELASTIC_SH = names.KEY_ELASTIC
MPIRUN = frozenset(
    {
        *("mpirun", "mpirun.openmpi", "mpirun.mpich", "orterun", "prterun"),
        *("mpiexec", "mpiexec.openmpi", "mpiexec.mpich", "mpiexec.hydra"),
    }
)

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh"})
# Letters and long options of a shell that take the next word.
_SHELL_LETTERS, _SHELL_OPTIONS = "oO", frozenset({"--rcfile", "--init-file"})
_PYTHON = re.compile(r"python[0-9.]{0,8}")
_PYTHON_LETTERS = ("W", "X")
_MODULES = frozenset({"horovod.runner.launch", "horovod.run.runner"})
_MENTION = re.compile("|".join(map(re.escape, sorted({"horovod", ELASTIC_SH, *MPIRUN}))))
# The options of elastic.sh that are numbers, by their fields of `Launch`.
_NUMBERS = frozenset({"np", "min_np", "max_np", "grace", "gather"})
# Levels of scripts within scripts, of commands within wrappers, and programs that start ranks.
_DEEPEST, _MOST_WRAPPERS, _MOST_STARTS = 3, 8, 64


@dataclass(frozen=True, kw_only=True)
class Launch:
    """The command that starts the ranks; an absent option is None."""

    #: horovodrun, elastic.sh, or a name in `MPIRUN`; options of the latter are not read.
    program: str
    #: -np, in processes, which are slots; --np of elastic.sh.
    np: int | None = None
    #: --min-np, in processes.
    min_np: int | None = None
    #: --max-np, in processes.
    max_np: int | None = None
    #: --host-discovery-script.
    discovery_script: str | None = None
    #: --reset-limit: how often the driver may form the ring again.
    reset_limit: int | None = None
    #: --blacklist-cooldown-range: least and most seconds.
    cooldown: tuple[int, int] | None = None
    #: --gloo-timeout-seconds.
    gloo_timeout: int | None = None
    #: True if --output-filename is there.
    writes_files: bool = False
    #: --grace of elastic.sh, in seconds.
    grace: int | None = None
    #: --gather of elastic.sh, in seconds.
    gather: int | None = None
    #: What the mpirun below elastic.sh says of the number of ranks and of hosts. None if elastic.sh
    #: starts another command, or one that cannot be read.
    mpirun: Mpirun | None = None
    #: Why elastic.sh refuses its own words; "" if it takes them.
    refusal: str = ""
    #: The fields above whose option is there with a value that cannot be read.
    computed: frozenset[str] = frozenset()
    #: True if any option may be there besides these.
    unread: bool = False

    def knows(self, field: str) -> bool:
        """Return True if the option of that field was read, or is certainly absent."""
        is_absent = not self.unread and field not in self.computed
        return is_absent or getattr(self, field) is not None

    @property
    def effective_min_np(self) -> int | None:
        """Slots below which training waits: --min-np, else -np (launch.py, _run_elastic).

        elastic.sh takes 1 for an absent --min-np. None if the number is not known.
        """
        is_absent = self.min_np is None and self.knows("min_np")
        if not is_absent:
            return self.min_np
        return 1 if self.program == ELASTIC_SH else self.np

    @property
    def least_option(self) -> str:
        """The option that says `effective_min_np`."""
        says_least = self.min_np is not None or self.program == ELASTIC_SH
        return "--min-np" if says_least else "-np"

    @property
    def follows_list(self) -> bool:
        """True if horovodrun itself reads a discovery script."""
        if self.program != HOROVODRUN:
            return False
        return self.discovery_script is not None or "discovery_script" in self.computed

    @property
    def spends_hosts(self) -> bool:
        """True if it surely is a horovodrun that never uses the host of a dead rank again."""
        if self.program != HOROVODRUN:
            return False
        return self.cooldown is None and self.knows("cooldown")

    @property
    def first_np(self) -> int | None:
        """Slots without which no rank starts: -np; of elastic.sh --np, or else --min-np.

        None if the command does not say.
        """
        if self.program != ELASTIC_SH:
            return self.np
        said = [number for number in (self.np, self.min_np) if number is not None]
        return max(said, default=None)


@dataclass(kw_only=True)
class _Start:
    """A program that starts ranks, before its options are judged."""

    program: str
    options: Options | ElasticOptions

    @property
    def rank(self) -> int:
        """How much it tells of the job's size; the highest of a command counts."""
        if self.program == ELASTIC_SH:
            return 4
        if self.program != HOROVODRUN:
            return 1
        if "discovery_script" in self.options.values:
            return 4
        if self.options.unread:
            return 3
        return 2 if "np" in self.options.values else 0


def parse(command: Sequence[str], environment: Iterable[Variable] = ()) -> Launch | None:
    """Return the launch in a container's command and args; None if it cannot be read.

    environment: the container's variables, in their order.
    """
    words = variables.replaced(command[:MOST_WORDS], environment)
    if not any(_MENTION.search(word, 0, LONGEST_SCRIPT) for word in words):
        return None
    found: _Start | None = None
    for number, start in enumerate(_starts(words, depth=0)):
        if found is None or start.rank >= found.rank:
            found = start
        if number >= _MOST_STARTS:
            found.options.unread = True
            break
    return _launch(found) if found else None


def _starts(words: Sequence[str], *, depth: int, stdin: str = "") -> Iterator[_Start]:
    """Yield what starts ranks in a command; stdin: the here-document that it reads."""
    found = _innermost(words, stdin=stdin)
    if found.script is not None:
        yield from _within(found.script, depth=depth)
        return
    program, rest = _name(found.words), found.words[1:]
    if program in MPIRUN:
        yield _Start(program=program, options=Options())
    elif program == ELASTIC_SH:
        yield from _elastic(rest)
    elif program == HOROVODRUN:
        yield from _horovodrun(rest)
    elif _PYTHON.fullmatch(program):
        yield from _python(rest)


def _innermost(words: Sequence[str], *, stdin: str) -> Inner:
    """Return what runs within all wrappers."""
    for _ in range(_MOST_WRAPPERS):
        words = wrappers.without_assignments(words)
        program, rest = _name(words), words[1:]
        if program in _SHELLS:
            file = _script_file(rest)
            if _name(file) == ELASTIC_SH:
                return Inner(words=file)
            return Inner(script=_script(rest, stdin=stdin))
        if program == "eval":
            return Inner(script=" ".join(rest))
        wrapper = wrappers.WRAPPERS.get(program)
        if wrapper is None:
            return Inner(words=words)
        found = wrappers.inner(wrapper, rest)
        if found.script is not None:
            return found
        words = found.words
    return Inner()


def _name(words: Sequence[str]) -> str:
    """Return the program of a command without its folder; "" for an empty command."""
    return words[0].rpartition("/")[2] if words else ""


def _within(script: str, *, depth: int) -> Iterator[_Start]:
    """Yield what starts ranks in a script."""
    if depth >= _DEEPEST or len(script) > LONGEST_SCRIPT or not _MENTION.search(script):
        return
    commands, is_whole = shell.commands(script)
    for command in commands:
        if not _MENTION.search("\n".join((*command.words, command.stdin))):
            continue
        for start in _starts(command.words, depth=depth + 1, stdin=command.stdin):
            start.options.unread = start.options.unread or not is_whole
            yield start


def _script(words: Sequence[str], *, stdin: str) -> str:
    """Return the script that a shell runs; "" if it is in a file."""
    at, is_given = _operands(words)
    if is_given:
        return words[at] if at < len(words) else ""
    return stdin if at >= len(words) else ""


def _script_file(words: Sequence[str]) -> Sequence[str]:
    """Return the file that a shell runs, and the words after it; empty without a file."""
    at, is_given = _operands(words)
    return () if is_given else words[at:]


def _operands(words: Sequence[str]) -> tuple[int, bool]:
    """Return where the options of a shell end, and whether one of them is -c."""
    at, is_given = 0, False
    while at < len(words) and words[at][:1] in ("-", "+") and words[at] not in ("--", "-"):
        option = words[at]
        at += 1
        if option in _SHELL_OPTIONS:
            at += 1
        elif not option.startswith("--"):
            is_given = is_given or (option.startswith("-") and "c" in option)
            at += sum(letter in _SHELL_LETTERS for letter in option)
    if at < len(words) and words[at] in ("--", "-"):
        at += 1
    return at, is_given


def _python(words: Sequence[str]) -> Iterator[_Start]:
    """Yield horovodrun as a script or a module of Python."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        option = words[at]
        at += 1
        if option.startswith("--"):
            continue
        if option.endswith("m") and at < len(words) and words[at] in _MODULES:
            yield from _horovodrun(words[at + 1 :])
        if option.endswith(("m", "c")):
            return
        if option[1:] in _PYTHON_LETTERS:
            at += 1
    if at < len(words) and words[at].rpartition("/")[2] == HOROVODRUN:
        yield from _horovodrun(words[at + 1 :])


def _horovodrun(words: Sequence[str]) -> Iterator[_Start]:
    """Yield horovodrun, unless it only tells something."""
    options = horovod_options.read(words)
    if not options.only_tells:
        yield _Start(program=HOROVODRUN, options=options)


def _elastic(words: Sequence[str]) -> Iterator[_Start]:
    """Yield elastic.sh, unless it only tells something."""
    options = elastic_options.read(words)
    if not options.only_tells:
        yield _Start(program=ELASTIC_SH, options=options)


def _launch(start: _Start) -> Launch:
    if isinstance(start.options, ElasticOptions):
        return _of_elastic(start.options)
    options, values = start.options, start.options.values
    texts = {
        field: words[0]
        for field, words in values.items()
        if len(words) == 1 and not expands(words[0])
    }
    known = Launch(
        program=start.program,
        np=number(texts.get("np")),
        min_np=number(texts.get("min_np")),
        max_np=number(texts.get("max_np")),
        discovery_script=texts.get("discovery_script"),
        reset_limit=number(texts.get("reset_limit")),
        cooldown=_range(values.get("cooldown", ())),
        gloo_timeout=number(texts.get("gloo_timeout")),
        writes_files="writes_files" in values,
        unread=options.unread,
    )
    computed = frozenset(field for field in values if getattr(known, field) is None)
    return replace(known, computed=computed)


def _of_elastic(options: ElasticOptions) -> Launch:
    texts = {field: text for field, text in options.values.items() if not expands(text)}
    computed = _NUMBERS.intersection(options.values.keys() - texts.keys())
    return Launch(
        program=ELASTIC_SH,
        np=number(texts.get("np")),
        min_np=number(texts.get("min_np")),
        max_np=number(texts.get("max_np")),
        grace=number(texts.get("grace")),
        gather=number(texts.get("gather")),
        mpirun=_mpirun(options.command),
        refusal=elastic_options.refusal(options),
        computed=computed,
        unread=options.unread,
    )


def _mpirun(command: Sequence[str]) -> Mpirun | None:
    if _name(command) not in MPIRUN:
        return None
    found = mpirun_options.read(command)
    return mpirun_options.of_size(found) if found else None


def number(text: str | None) -> int | None:
    """Return a plain decimal number, None if the text is anything else."""
    plain = text is not None and text.isascii() and text.isdigit() and len(text) <= 9
    return int(text) if text is not None and plain else None


def _range(values: Sequence[str]) -> tuple[int, int] | None:
    ends = [number(value) for value in values]
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        return None
    return ends[0], ends[1]
