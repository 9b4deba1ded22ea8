"""The command with which elastic.sh runs a job that has a plain mpirun; for people to type.

All hosts are those of `-machinefile {hostfile}`: Open MPI, MPICH and Intel MPI each count the slots
of its lines (findings/one-hostfile-option.sh).
"""

import json
import re
from collections.abc import Sequence

from mpijob_elastic import names
from mpijob_elastic.model import mpirun_options
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.launch_command import ELASTIC_SH, MPIRUN, Launch
from mpijob_elastic.model.pod import Launcher

RANKS, HOST_FILE = "{np}", "{hostfile}"
MPIRUN_ON_ALL_HOSTS = ("mpirun", "-np", RANKS, "-machinefile", HOST_FILE)
# A word that YAML reads as this text where it stands without quotes, and words that look so.
_PLAIN = re.compile(r"(?:[A-Za-z/]|\.{1,2}/)[A-Za-z0-9_./+=-]*|-{1,2}[A-Za-z][A-Za-z0-9_./+=-]*|--")
_NO_TEXTS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
_MORE = "..."


def mpirun(given: Sequence[str]) -> list[str] | None:
    """Return a command of mpirun that has a rank in each slot of the list; None if it is not read.

    The given number of ranks and the given hosts are replaced.
    """
    if not given or given[0].rpartition("/")[2] not in MPIRUN:
        return None
    found = mpirun_options.read(given)
    if found is None:
        return None
    replaced = mpirun_options.COUNTS | mpirun_options.HOST_FILES | mpirun_options.HOSTS
    kept = [word for one in found.options if one.name not in replaced for word in one.words]
    return [found.program, *MPIRUN_ON_ALL_HOSTS[1:], *kept, *found.ranks]


def in_yaml(words: Sequence[str], *, longest: int) -> str:
    """Return a command as a field of YAML; words that do not fit are left out at its end."""
    shown: list[str] = []
    for word in words:
        shown.append(_quoted(word))
        # A command may have 100,000 words, of which the line has a few.
        if len(shown) > 1 and len(_field(shown)) > longest:
            return _shortened(shown, longest=longest)
    return _field(shown)


def _shortened(shown: list[str], *, longest: int) -> str:
    """Return a line with as many of these words as fit, but not with all, and at least with one."""
    line = ""
    for count in range(len(shown) - 1, 0, -1):
        line = _field([*shown[:count], _MORE])
        if len(line) <= longest:
            break
    return line


def field(given: Sequence[str], *, longest: int) -> str:
    """Return the field `command` to type for a job with that command, or the form of any."""
    started = mpirun(given) or [*MPIRUN_ON_ALL_HOSTS, _MORE]
    return in_yaml([names.ELASTIC_PATH, "--", *started], longest=longest)


def _field(shown: Sequence[str]) -> str:
    return f"command: [{', '.join(shown)}]"


def _quoted(word: str) -> str:
    is_plain = _PLAIN.fullmatch(word) and word.lower() not in _NO_TEXTS
    return word if is_plain or word == _MORE else json.dumps(word)


def lacks_script(view: JobView, launcher: Launcher) -> bool:
    """Tell whether a new launcher would be no more elastic: its command reads no host list.

    Then only the annotation says that the job is elastic.
    """
    launch = view.facts.launch
    if launch is None or not view.policy.enabled or launcher.facts.names_discovery:
        return False
    if launch.program in MPIRUN:
        return True
    if launch.program == ELASTIC_SH:
        return not view.facts.names_elastic
    if launch.discovery_script is not None:
        return False
    return launch.knows("discovery_script")


def command_for(launch: Launch | None) -> str:
    """Return what makes that command follow the size of its job, in words."""
    if launch is None or launch.program not in (ELASTIC_SH, *MPIRUN):
        return f"horovodrun --host-discovery-script {names.DISCOVER_HOSTS_PATH}"
    return f"{names.ELASTIC_PATH} before mpirun, as in {field((), longest=200)}"
