"""The options of the mpirun of Open MPI, MPICH and Intel MPI, up to the program of the ranks.

An option that is not in the table may or may not take the next word, so nobody knows where the
program begins: then nothing is read. Two dashes mean the same as one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

# The options that say how many ranks there are.
COUNTS = frozenset({"np", "n", "c"})
# The options that name a file of hosts, and those that name hosts.
HOST_FILES = frozenset({"hostfile", "machinefile", "default-hostfile", "f"})
HOSTS = frozenset({"host", "hosts", "H"})
# So many of these options are kept, and so many characters of a word.
_MOST_KEPT, _LONGEST_KEPT = 16, 128

_FLAGS = """
    allow-run-as-root bind-to-core bind-to-none bind-to-socket bycore bynode byslot display
    display-allocation display-map do-not-resolve enable-recovery envall envnone genvall genvnone l
    merge-stderr-to-stdout nolocal nooversubscribe ordered-output oversubscribe pernode prepend-rank
    print-rank-map q quiet report-bindings tag-output timestamp-output use-hwthread-cpus v verbose
"""
_WITH_A_VALUE = """
    N am bind-to bootstrap bootstrap-exec cpu-list cpu-set cpus-per-proc cpus-per-rank env-list
    envlist genvlist gpus-per-proc grr iface launcher launcher-exec map-by npernode npersocket
    output output-filename path perhost personality ppn prefix rank-by rmk rr stdin timeout tune wd
    wdir x
"""
# The table: how many words follow each option.
_WORDS: Mapping[str, int] = {
    **dict.fromkeys(_FLAGS.split(), 0),
    **dict.fromkeys(_WITH_A_VALUE.split(), 1),
    **dict.fromkeys((*COUNTS, *HOST_FILES, *HOSTS), 1),
    **dict.fromkeys(("env", "genv", "gmca", "mca", "omca", "pmixmca", "prtemca"), 2),
}


@dataclass(frozen=True, kw_only=True)
class MpirunOption:
    """An option of an mpirun."""

    #: Its name without dashes.
    name: str
    #: All its words.
    words: tuple[str, ...]

    @property
    def value(self) -> str:
        """Its last word; of `--name=value` the value, and "" without a value."""
        last = self.words[-1]
        return last.partition("=")[2] if len(self.words) == 1 else last


@dataclass(frozen=True, kw_only=True)
class Mpirun:
    """The words of an mpirun."""

    #: The program with its folder.
    program: str
    options: tuple[MpirunOption, ...]
    #: The program that the ranks run, with its words.
    ranks: tuple[str, ...]


def read(command: Sequence[str]) -> Mpirun | None:
    """Return the words of a command that begins with mpirun; None if they cannot be read.

    Several programs (`mpirun A : B`) count as unreadable, because each has its own number of ranks.
    """
    options, at = [], 1
    while at < len(command) and command[at].startswith("-"):
        name, equals, _ = command[at].lstrip("-").partition("=")
        if name not in _WORDS:
            return None
        follow = 0 if equals else _WORDS[name]
        if at + follow >= len(command):
            return None
        options.append(MpirunOption(name=name, words=tuple(command[at : at + 1 + follow])))
        at += 1 + follow
    ranks = tuple(command[at:])
    if not ranks or ":" in ranks:
        return None
    return Mpirun(program=command[0], options=tuple(options), ranks=ranks)


def of_size(found: Mpirun) -> Mpirun:
    """Return the options that say how many ranks there are, and where; long texts are cut.

    The other words may be a whole script, and nobody asks for them later.
    """
    said = [one for one in found.options if one.name in COUNTS | HOST_FILES | HOSTS]
    options = [
        replace(one, words=tuple(word[:_LONGEST_KEPT] for word in one.words))
        for one in said[:_MOST_KEPT]
    ]
    program = found.program.rpartition("/")[2]
    return Mpirun(program=program, options=tuple(options), ranks=())
