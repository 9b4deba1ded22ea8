"""The options of elastic.sh, read as the script reads them (`take` and `main` in elastic.sh).

An option has one value, which is the next word or stands after an equals sign. No option may be
shortened. The first `--` ends the options, and the command that starts the ranks follows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mpijob_elastic import names
from mpijob_elastic.model.horovod_options import expands

# The options and their fields of `ElasticOptions.values`.
OPTIONS: Mapping[str, str] = {
    "--np": "np",
    "--min-np": "min_np",
    "--max-np": "max_np",
    "--signal": "signal",
    "--grace": "grace",
    "--gather": "gather",
    "--retries": "retries",
    "--implementation": "implementation",
}
_NAMES: Mapping[str, str] = {field: option for option, field in OPTIONS.items()}
# The options whose value is a number, and the least number of each.
_LEAST: Mapping[str, int] = {
    "np": 1,
    "min_np": 1,
    "max_np": 1,
    "grace": 1,
    "gather": 0,
    "retries": 0,
}
_SIGNALS = ("USR1", "USR2", "TERM", "INT", "HUP", "QUIT", "ALRM", "CONT")
_INTEL = "intel-mpi"
_IMPLEMENTATIONS = ("open-mpi", "mpich", _INTEL)
# The beginnings of the programs that the script asks which implementation they are of.
_KNOWN_PROGRAMS = ("mpirun", "mpiexec")
_KNOWN_NAMES = frozenset({"orterun", "prterun"})
_HOST_FILE = "{hostfile}"
_OPERATORS_HOST_FILE = f"{names.MOUNT_PATH}/{names.KEY_HOSTFILE}"
# Characters of a word that a message shows, and digits of a number.
_SHOWN = 32
_MOST_DIGITS = 8
# With one of these the script prints its usage, and ends.
_TELLS = frozenset({"-h", "--help"})


@dataclass(kw_only=True)
class ElasticOptions:
    """The options of one elastic.sh, and the command that it starts."""

    #: The last value of each option, by its field.
    values: dict[str, str] = field(default_factory=dict)
    #: The words after `--`; empty if there are none.
    command: Sequence[str] = ()
    #: A word that the script refuses; "" if it refuses none.
    refused: str = ""
    #: True if there may be more options than these: a word is known only when the script runs.
    unread: bool = False
    #: True if the script only prints its usage.
    only_tells: bool = False


def read(words: Sequence[str]) -> ElasticOptions:
    """Return the options; words: those after elastic.sh."""
    found, at = ElasticOptions(), 0
    while at < len(words) and words[at] != "--":
        word = words[at]
        if word in _TELLS:
            found.only_tells = True
            return found
        name, equals, value = word.partition("=")
        at += 1
        if not equals:
            value = words[at] if at < len(words) else ""
            at += 1
        if name in OPTIONS:
            found.values[OPTIONS[name]] = value
        elif expands(word):
            # Nobody knows how many words that is.
            found.unread = True
            at -= not equals
        else:
            found.refused = word
            return found
    found.command = tuple(words[at + 1 :])
    return found


def refusal(options: ElasticOptions) -> str:
    """Return the first reason why the script ends with 2 at once, in its words; "" for none.

    Values that are known only when the script runs count as right.
    """
    return next(_refusals(options), "")


def _refusals(options: ElasticOptions) -> Iterator[str]:
    if options.only_tells:
        return
    values = {name: text for name, text in options.values.items() if not expands(text)}
    for name, text in values.items():
        yield from _wrong_value(name, text)
    if options.refused:
        yield _wrong_word(options.refused)
    elif not options.command and not options.unread:
        yield "no command after --"
    if not options.unread:
        yield from _wrong_bounds(values)
    yield from _wrong_command(options, values.get("implementation", ""))


def _wrong_word(word: str) -> str:
    if word.startswith("--"):
        return f"unknown option '{word.partition('=')[0][:_SHOWN]}'"
    return f"'{word[:_SHOWN]}' is no option; write -- before the command"


def _wrong_value(name: str, text: str) -> Iterator[str]:
    option, shown = _NAMES[name], text[:_SHOWN]
    if name == "signal" and text.removeprefix("SIG") not in _SIGNALS:
        yield f"{option} must be {', '.join(_SIGNALS[:-1])} or {_SIGNALS[-1]}, not '{shown}'"
    if name == "implementation" and text not in _IMPLEMENTATIONS:
        yield f"{option} must be open-mpi, mpich or intel-mpi, not '{shown}'"
    if name not in _LEAST:
        return
    if not _is_number(text):
        yield f"{option} needs a number, not '{shown}'"
    elif int(text) < _LEAST[name]:
        yield f"{option} must be at least {_LEAST[name]}, not {shown}"


def _is_number(text: str) -> bool:
    """Tell whether the script takes a number: leading zeros would be octal numbers."""
    is_plain = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return is_plain and (text == "0" or not text.startswith("0"))


def _wrong_bounds(values: Mapping[str, str]) -> Iterator[str]:
    """Yield bounds that contradict each other; numbers that cannot be read contradict nothing."""
    bounds = {
        name: int(values[name])
        for name in ("np", "min_np", "max_np")
        if _is_number(values.get(name, ""))
    }
    most = bounds.get("max_np")
    if most is None:
        return
    if most < bounds.get("min_np", 1):
        yield "--max-np is below --min-np"
    if most < bounds.get("np", 1):
        yield "--max-np is below --np"


def _wrong_command(options: ElasticOptions, implementation: str) -> Iterator[str]:
    """Yield what would start ranks elsewhere than on the hosts of the list."""
    before, with_machine_file = "", False
    for word in options.command:
        if _OPERATORS_HOST_FILE in word and _HOST_FILE not in word:
            yield f"{_OPERATORS_HOST_FILE} names all workers; write {_HOST_FILE}"
        with_machine_file = with_machine_file or (before == "-machinefile" and _HOST_FILE in word)
        before = word
    if implementation == _INTEL and options.command and not with_machine_file:
        yield f"Intel MPI counts the slots only with -machinefile; write -machinefile {_HOST_FILE}"
    names_file = any(_HOST_FILE in word for word in options.command)
    if names_file and not implementation and not _is_known(options):
        yield f"the form of {_HOST_FILE} depends on the MPI: give --implementation"


def _is_known(options: ElasticOptions) -> bool:
    """Tell whether the script can find out, or may be told, which implementation it is."""
    if options.unread or "implementation" in options.values:
        return True
    first = options.command[0]
    program = first.rpartition("/")[2]
    return expands(first) or program.startswith(_KNOWN_PROGRAMS) or program in _KNOWN_NAMES
