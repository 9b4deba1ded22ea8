"""The command of a launcher that reads no host list, so that the size of its job is fixed."""

from mpijob_elastic import names
from mpijob_elastic.model import elastic_line
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.launch_command import ELASTIC_SH, MPIRUN, Launch
from mpijob_elastic.model.pod import Launcher

# What a command is to be so that its launcher follows the size, for horovodrun and for mpirun.
_HOROVODRUN = f"horovodrun --host-discovery-script {names.DISCOVER_HOSTS_PATH}"
_ELASTIC = f"{names.ELASTIC_PATH} before mpirun, as in {elastic_line.field((), longest=200)}"


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
    is_horovod = launch is None or launch.program not in (ELASTIC_SH, *MPIRUN)
    return _HOROVODRUN if is_horovod else _ELASTIC
