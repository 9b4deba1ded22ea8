"""Programs that run the command in their own words, such as env, timeout and sh -c.

Each program's manual says which of its options take a value. Without that nobody knows where the
inner command begins.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}\+?=")


@dataclass(frozen=True, kw_only=True)
class Wrapper:
    """How a program that runs another command reads its own words."""

    #: Letters of the options that take a value, in their own word or in the next.
    letters: str = ""
    #: Long options that take the next word as their value, if they have no equals sign.
    long: frozenset[str] = frozenset()
    #: Words of its own before the command, such as the time of timeout.
    operands: int = 0
    #: Words by which it is told to run a command; no other use of it is read.
    subcommand: str = ""
    #: Letter of the option whose value is a script; "" without one.
    script: str = ""
    #: Options with which it only tells about a command.
    asks: frozenset[str] = frozenset()


def _long(*options: str) -> frozenset[str]:
    return frozenset(f"--{option}" for option in options)


# In a value's word a letter may follow other letters without a value, as in `sudo -Eu mpi`.
_CONDA = Wrapper(letters="np", long=_long("name", "prefix", "cwd"), subcommand="run")
_RUN_IN_ENVIRONMENT = Wrapper(letters="p", long=_long("python", "with"), subcommand="run")
_SWITCH_USER = Wrapper(letters="gGs", long=_long("group", "shell"), operands=1, script="c")
WRAPPERS: Mapping[str, Wrapper] = {
    # Of the shell.
    "exec": Wrapper(letters="a"),
    "command": Wrapper(asks=frozenset({"-v", "-V", "-pv", "-pV"})),
    "builtin": Wrapper(),
    "time": Wrapper(letters="of", long=_long("output", "format")),
    # GNU coreutils and util-linux.
    "chrt": Wrapper(letters="TPD", operands=1),
    "chroot": Wrapper(operands=1),
    "env": Wrapper(letters="uC", long=_long("unset", "chdir"), script="S"),
    "ionice": Wrapper(letters="cn", long=_long("class", "classdata")),
    "nice": Wrapper(letters="n", long=_long("adjustment")),
    "nohup": Wrapper(),
    "prlimit": Wrapper(),
    "runuser": Wrapper(
        letters="ugGs", long=_long("user", "group", "supp-group", "shell"), script="c"
    ),
    "script": Wrapper(letters="EIOBTmot", script="c"),
    "setpriv": Wrapper(
        long=_long("reuid", "regid", "ruid", "euid", "rgid", "egid", "groups", "inh-caps")
        | _long("ambient-caps", "bounding-set", "securebits", "pdeathsig", "selinux-label")
    ),
    "setsid": Wrapper(),
    "stdbuf": Wrapper(letters="ioe", long=_long("input", "output", "error")),
    "taskset": Wrapper(operands=1),
    "timeout": Wrapper(letters="sk", long=_long("signal", "kill-after"), operands=1),
    # Users.
    "doas": Wrapper(letters="uC"),
    "gosu": Wrapper(operands=1),
    "setuidgid": Wrapper(operands=1),
    "su": _SWITCH_USER,
    "su-exec": Wrapper(operands=1),
    "sudo": Wrapper(
        letters="ugChprtTUDR",
        long=_long("user", "group", "host", "prompt", "role", "type", "chdir", "chroot")
        | _long("close-from", "other-user", "command-timeout"),
    ),
    # First processes of a container.
    "catatonit": Wrapper(),
    "dumb-init": Wrapper(letters="r", long=_long("rewrite")),
    "tini": Wrapper(letters="pe"),
    "tini-static": Wrapper(letters="pe"),
    "docker-entrypoint.sh": Wrapper(),
    "busybox": Wrapper(),
    # Environments of Python.
    "conda": _CONDA,
    "mamba": _CONDA,
    "micromamba": _CONDA,
    "pdm": _RUN_IN_ENVIRONMENT,
    "pipenv": _RUN_IN_ENVIRONMENT,
    "poetry": Wrapper(subcommand="run"),
    "uv": Wrapper(
        letters="pw",
        long=_long("python", "with", "project", "directory", "extra", "group", "env-file"),
        subcommand="run",
    ),
    # What watches or places a process.
    "catchsegv": Wrapper(),
    "ltrace": Wrapper(letters="aeFlnopsuxX"),
    "nsys": Wrapper(
        letters="otscydefbpw",
        long=_long("output", "trace", "sample", "capture-range", "delay", "duration", "export"),
        subcommand="profile",
    ),
    "numactl": Wrapper(
        letters="NmCpiP",
        long=_long("cpunodebind", "membind", "physcpubind", "interleave", "preferred"),
    ),
    "strace": Wrapper(letters="abeIoOpPsSuEX", long=_long("output", "trace", "user")),
    "unbuffer": Wrapper(),
    "xvfb-run": Wrapper(letters="efnpsw"),
}


@dataclass(frozen=True, kw_only=True)
class Inner:
    """What a wrapper runs: a command, or a script."""

    #: The command; empty if the wrapper runs none that can be read.
    words: Sequence[str] = ()
    #: The script; None if the wrapper runs a command.
    script: str | None = None


def without_assignments(words: Sequence[str]) -> Sequence[str]:
    """Return the words after the variables that are set for a command."""
    first = 0
    while first < len(words) and _ASSIGNMENT.match(words[first]):
        first += 1
    return words[first:]


def inner(wrapper: Wrapper, words: Sequence[str]) -> Inner:
    """Return what the wrapper runs; words: those after its name."""
    reader = _Options(wrapper, words)
    if wrapper.subcommand:
        reader.pass_options()
        if reader.next_word() != wrapper.subcommand:
            return Inner()
    reader.pass_options()
    for _ in range(wrapper.operands):
        reader.next_word()
        reader.pass_options()
    if reader.asks:
        return Inner()
    if reader.script is not None:
        return Inner(script=reader.script)
    # `env` and `sudo` take variables after their options.
    return Inner(words=without_assignments(reader.rest))


class _Options:
    """Reads the options of a wrapper."""

    def __init__(self, wrapper: Wrapper, words: Sequence[str]) -> None:
        self.script: str | None = None
        self.asks = False
        self._wrapper = wrapper
        self._words = words
        self._at = 0

    @property
    def rest(self) -> Sequence[str]:
        """The words that are not read yet."""
        return self._words[self._at :]

    def next_word(self) -> str:
        """Return the next word; "" after the last."""
        word = self._words[self._at] if self._at < len(self._words) else ""
        self._at += 1
        return word

    def pass_options(self) -> None:
        """Read options up to another word, or past a double dash."""
        while self._at < len(self._words) and self._words[self._at].startswith("-"):
            option = self.next_word()
            if option == "--":
                return
            self.asks = self.asks or option in self._wrapper.asks
            if option.startswith("--"):
                self._long(option)
            else:
                self._letters(option[1:])

    def _long(self, option: str) -> None:
        name, equals, value = option.partition("=")
        if self._wrapper.script and name in ("--command", "--session-command"):
            self.script = value if equals else self.next_word()
        elif name in self._wrapper.long and not equals:
            self.next_word()

    def _letters(self, letters: str) -> None:
        for at, letter in enumerate(letters, start=1):
            if letter == self._wrapper.script:
                self.script = letters[at:] or self.next_word()
                return
            if letter in self._wrapper.letters:
                if at == len(letters):
                    self.next_word()
                return
