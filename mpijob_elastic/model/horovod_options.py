"""The options of horovodrun, read as its own argparse reads them.

Options: horovod/runner/launch.py, parse_args, at v0.28.1. Rules: argparse of Python's library. An
option may be shortened to any beginning that only one option has. A value is the next word, or
stands after an equals sign. The first other word begins the command that the ranks run. What
argparse refuses ends horovodrun; another version of Horovod may know it, so it counts as unread.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# The options without a value.
_FLAGS = (
    *("--disable-cache", "--verbose", "-prefix-timestamp", "--prefix-output-with-timestamp"),
    *("--hierarchical-allreduce", "--no-hierarchical-allreduce"),
    *("--hierarchical-allgather", "--no-hierarchical-allgather"),
    *("--torus-allreduce", "--no-torus-allreduce", "--autotune", "--no-autotune"),
    *("--timeline-mark-cycles", "--no-timeline-mark-cycles", "--stall-check", "--no-stall-check"),
    *("--mpi-threads-disable", "--no-mpi-threads-disable", "--tcp"),
    *("--log-with-timestamp", "--log-without-timestamp"),
    *("--log-hide-timestamp", "--no-log-hide-timestamp", "--gloo", "--mpi", "--jsrun"),
)
# The options with one value that tell us nothing.
_OTHERS = (
    *("--start-timeout", "--network-interfaces", "--network-interface", "--config-file"),
    *("-p", "--ssh-port", "-i", "--ssh-identity-file", "-H", "--hosts", "-hostfile", "--hostfile"),
    *("--fusion-threshold-mb", "--cycle-time-ms", "--cache-capacity", "--autotune-log-file"),
    *("--autotune-warmup-samples", "--autotune-steps-per-sample"),
    *("--autotune-bayes-opt-max-samples", "--autotune-gaussian-process-noise"),
    *("--slots-per-host", "--elastic-timeout", "--timeline-filename"),
    *("--stall-check-warning-time-seconds", "--stall-check-shutdown-time-seconds"),
    *("--mpi-args", "--binding-args", "--num-nccl-streams", "--thread-affinity", "--log-level"),
)
# The options that we read, by their fields of `launch_command.Launch`.
_READ: Mapping[str, str] = {
    "-np": "np",
    "--num-proc": "np",
    "--min-np": "min_np",
    "--min-num-proc": "min_np",
    "--max-np": "max_np",
    "--max-num-proc": "max_np",
    "--host-discovery-script": "discovery_script",
    "--reset-limit": "reset_limit",
    "--blacklist-cooldown-range": "cooldown",
    "--gloo-timeout-seconds": "gloo_timeout",
    "--output-filename": "writes_files",
}
# With one of these horovodrun prints something, and ends.
_TELLS = frozenset({"-h", "--help", "-v", "--version", "-cb", "--check-build"})


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option of horovodrun."""

    #: The number of its values.
    count: int
    #: Field of `launch_command.Launch`; "" if the option tells us nothing.
    field: str = ""


OPTIONS: Mapping[str, Option] = {
    **dict.fromkeys((*_FLAGS, *_TELLS), Option(count=0)),
    **dict.fromkeys(_OTHERS, Option(count=1)),
    **{name: Option(count=1, field=field_) for name, field_ in _READ.items()},
    "--blacklist-cooldown-range": Option(count=2, field="cooldown"),
}


_IN_ORDER = sorted(OPTIONS)
# Unknown options after which no more are read.
_MOST_UNKNOWN = 16


@dataclass(kw_only=True)
class Options:
    """The options of one horovodrun."""

    #: The last values of each option that we read, by its field of `launch_command.Launch`.
    values: dict[str, Sequence[str]] = field(default_factory=dict)
    #: True if there may be more options than these.
    unread: bool = False
    #: The number of options that argparse does not know.
    unknown: int = 0
    #: True if horovodrun only prints something and ends.
    only_tells: bool = False


def expands(word: str) -> bool:
    """Return True if a word is known only when the command runs."""
    return "$" in word or "`" in word


def read(words: Sequence[str]) -> Options:
    """Return the options up to the command that the ranks run; words: those after horovodrun."""
    found, at = Options(), 0
    while at < len(words) and found.unknown <= _MOST_UNKNOWN:
        word = words[at]
        at += 1
        if _is_option(word) and word != "--":
            at = _option(word, words, at, found)
        elif expands(word):
            found.unread = True
        else:
            break
    return found


def _option(word: str, words: Sequence[str], at: int, found: Options) -> int:
    """Read an option whose values begin at `at`; return where the next word is."""
    name, value = _named(word)
    option = OPTIONS.get(name)
    if option is None:
        # An option of another version, of which nobody knows whether a value follows.
        found.unread = True
        found.unknown += 1
        return at + 1 if value is None and at < len(words) and not words[at].startswith("-") else at
    values: Sequence[str]
    if value is None:
        values = words[at : at + option.count]
        at += option.count
    else:
        values = (value,)
    found.only_tells = found.only_tells or name in _TELLS
    if len(values) != option.count or any(map(_is_option, values)):
        found.unread = True
    if option.field:
        found.values[option.field] = values
    return at


def _named(word: str) -> tuple[str, str | None]:
    """Return the whole name of an option, "" if argparse knows none, and its value in the word."""
    if word in OPTIONS:
        return word, None
    name, equals, value = word.partition("=")
    said = value if equals else None
    if name in OPTIONS:
        return name, said
    if word.startswith("--"):
        longer = _starting_with(name)
        return (longer[0] if len(longer) == 1 else ""), said
    # One dash: a beginning, or a letter with its value, such as -p22.
    longer = _starting_with(word)
    letter = word[:2]
    if letter in OPTIONS:
        return ("", said) if longer else (letter, word[2:])
    return (longer[0], None) if len(longer) == 1 else ("", said)


def _starting_with(text: str) -> list[str]:
    """Return the options that start with a text; two at most, because two are ambiguous."""
    at = bisect_left(_IN_ORDER, text)
    return [name for name in _IN_ORDER[at : at + 2] if name.startswith(text)]


def _is_option(word: str) -> bool:
    """Tell whether argparse takes a word for an option, not for a value or a command."""
    if not word.startswith("-") or len(word) == 1:
        return False
    return _named(word)[0] != "" or not (" " in word or _is_number(word))


def _is_number(word: str) -> bool:
    digits = word[1:].replace(".", "", 1)
    return digits.isascii() and digits.isdigit()
