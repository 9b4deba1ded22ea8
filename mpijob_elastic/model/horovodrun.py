"""The options of horovodrun in a launcher's command, as far as they can be read.

The command is a list of words, or a script given to a shell (`sh -c "..."`). Nothing is expanded: a
value with a `$` or a backtick is unknown, and a word that expands as a whole may be any option. The
command may be hostile, and is read at every change of its job: limits keep any command below 3 ms.
Options: horovod/runner/launch.py, parse_args, at v0.28.1.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, pairwise

from mpijob_elastic.model.bounds import LONGEST_SCRIPT, MOST_WORDS

HOROVODRUN = "horovodrun"
MPIRUN = frozenset({"mpirun", "mpiexec", "mpirun.openmpi", "orterun"})

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh"})
# Programs that run the command after them.
_WRAPPERS = frozenset({"exec", "time", "nohup", "env", "command"})
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}=")
_MENTION = re.compile("|".join(map(re.escape, sorted({HOROVODRUN, *MPIRUN}))))
# A shell's words and the commands that they make,
# https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html
_COMMENT = r"(?<![^\s;&|()<>])\#[^\n]*+"
_QUOTED = r"""'[^']*+'|"(?:[^"\\]++|\\.)*+"|\\."""
_COMMAND = re.compile(
    rf"""(?P<text>(?:{_COMMENT}|{_QUOTED}|[^;&|()<>\n'"\\\#]++|\#)++)|(?P<unclosed>['"\\])""",
    re.DOTALL,
)
_WORD = re.compile(rf"""{_COMMENT}|(?P<word>(?:{_QUOTED}|[^\s'"\\]++)++)""", re.DOTALL)
_ESCAPED = re.compile(r"""\\(["\\])""")
_QUOTATION = re.compile(_QUOTED, re.DOTALL)
# Levels of scripts within scripts.
_DEEPEST = 3
_WITHOUT_VALUE = re.compile(
    r"-v|-cb|-prefix-timestamp"
    r"|--(version|check-build|disable-cache|verbose|gloo|mpi|jsrun|tcp|prefix-output-with-timestamp)"
    r"|--log-with(out)?-timestamp"
    r"|--(no-)?(autotune|hierarchical-all(reduce|gather)|timeline-mark-cycles|stall-check|mpi-threads-disable)"
    r"|--(no-)?log-hide-timestamp"
)
_NAMES = {
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
}
_COOLDOWN = "--blacklist-cooldown-range"


@dataclass(frozen=True, kw_only=True)
class Launch:
    """The command that starts the ranks; an absent option is None."""

    #: horovodrun, or a name in `MPIRUN`; options of the latter are not read.
    program: str
    #: -np, in processes, which are slots.
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
    #: True if a part of the command is known only when it runs, and may be any option.
    unread: bool = False

    @property
    def effective_min_np(self) -> int | None:
        """Slots below which training waits: --min-np, else -np (launch.py, _run_elastic)."""
        return self.min_np if self.min_np is not None or self.unread else self.np


def parse(command: Sequence[str]) -> Launch | None:
    """Return the launch in a container's command and args; None if it cannot be read."""
    return _parse(command[:MOST_WORDS], depth=0)


def _parse(words: Sequence[str], *, depth: int) -> Launch | None:
    words = list(dropwhile(lambda word: word in _WRAPPERS or _ASSIGNMENT.match(word), words))
    if not words or depth > _DEEPEST:
        return None
    program, *rest = words
    program = program.rpartition("/")[2]
    if program == HOROVODRUN:
        return _launch(rest)
    if program in MPIRUN:
        return Launch(program=program)
    script = _script(rest) if program in _SHELLS else None
    if script is None:
        return None
    found = (_parse(simple, depth=depth + 1) for simple in _simple_commands(script))
    return next((launch for launch in found if launch), None)


def _script(words: Sequence[str]) -> str | None:
    """Return the script in `-c SCRIPT`, also as `-lc` or after `-o pipefail`."""
    for option, script in pairwise(words):
        if re.fullmatch(r"-[a-z]{0,9}c", option):
            return script if len(script) <= LONGEST_SCRIPT else None
    return None


def _simple_commands(script: str) -> Iterator[list[str]]:
    """Yield the words of each command that may start ranks, up to a quotation without an end."""
    if not _MENTION.search(script):
        return
    for command in _COMMAND.finditer(script.replace("\\\n", " ")):
        if command["unclosed"]:
            return
        if _MENTION.search(command["text"]):
            yield [
                _QUOTATION.sub(_plain, found["word"])
                for found in _WORD.finditer(command["text"])
                if found["word"]
            ]


def _plain(quotation: re.Match[str]) -> str:
    text = quotation[0]
    if text[0] == "\\":
        return text[1]
    return text[1:-1] if text[0] == "'" else _ESCAPED.sub(r"\1", text[1:-1])


def _launch(words: Sequence[str]) -> Launch:
    found, unread = _options(words)
    numbers = {name: number(found.get(name)) for name in ("np", "min_np", "max_np")}
    return Launch(
        program=HOROVODRUN,
        **numbers,
        discovery_script=found.get("discovery_script"),
        reset_limit=number(found.get("reset_limit")),
        cooldown=_range(found.get("cooldown")),
        gloo_timeout=number(found.get("gloo_timeout")),
        unread=unread or any(name in found and number is None for name, number in numbers.items()),
    )


def _options(words: Sequence[str]) -> tuple[Mapping[str, str], bool]:
    """Return the known options up to the command to run, and True if there may be more."""
    found: dict[str, str] = {}
    unread, at = False, 0
    while at < len(words) and (words[at].startswith("-") or _expands(words[at])):
        option, equals, value = words[at].partition("=")
        at += 1
        unread = unread or _expands(option)
        if not equals and option.startswith("-") and not _WITHOUT_VALUE.fullmatch(option):
            count = 2 if option == _COOLDOWN else 1
            value = " ".join(words[at : at + count])
            at += count
        if option in _NAMES:
            unread = unread or _expands(value)
            found[_NAMES[option]] = value
    return {name: value for name, value in found.items() if not _expands(value)}, unread


def _expands(word: str) -> bool:
    return "$" in word or "`" in word


def number(text: str | None) -> int | None:
    """Return a plain decimal number, None if the text is anything else."""
    plain = text is not None and text.isascii() and text.isdigit() and len(text) <= 9
    return int(text) if text is not None and plain else None


def _range(text: str | None) -> tuple[int, int] | None:
    ends = [number(part) for part in (text or "").split(maxsplit=2)]
    return (
        (ends[0], ends[1])
        if len(ends) == 2 and ends[0] is not None and ends[1] is not None
        else None
    )
