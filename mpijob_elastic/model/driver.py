"""What a driver needs of the host list: the two drivers differ here, and nowhere else.

A driver is the launcher's program that starts the ranks on the hosts of discover_hosts.sh and
follows the changes of that list. Horovod's driver keeps ranks alive through a change, and has needs
that follow from that. elastic.sh ends all ranks and starts them again (docs/decisions/0048).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from mpijob_elastic.model.launch_command import ELASTIC_SH, HOROVODRUN


@dataclass(frozen=True, kw_only=True)
class Driver:
    """The needs of a driver."""

    #: The driver as messages name it.
    words: str
    #: The driver's program as the launcher's command names it.
    program: str
    #: The options that say how many ranks there may be, by their fields of `Launch`.
    options: Mapping[str, str]
    #: The options that say below how many slots training waits.
    least_options: str
    #: The driver records on which list ranks may run (model/acknowledgement). A worker has drained
    #: once a list without that worker is recorded. Of any other driver nobody knows; there looks
    #: into a worker show when its ranks have gone.
    acknowledges: bool
    #: The ranks keep the state of the training between them. So the list never becomes empty, the
    #: last worker with that state stays, and a change waits until the last one has settled.
    #: Otherwise the state is in a checkpoint.
    keeps_ranks: bool
    #: The driver never uses a host name again under which a rank died, so a worker whose rank is
    #: lost, or was replaced, gets a numbered host name.
    spends_names: bool
    #: Seconds that the first Ready worker of a scale-out waits for the others, so that they join
    #: in one change.
    gather: float


# [horovod] runner/elastic/driver.py and discovery.py; decide/host_list has the reasons.
HOROVOD = Driver(
    words="Horovod's driver",
    program=HOROVODRUN,
    options={"np": "-np", "min_np": "--min-np", "max_np": "--max-np"},
    least_options="--min-np, or -np",
    acknowledges=False,
    keeps_ranks=True,
    spends_names=True,
    gather=2.0,
)
# Each change costs a start of the program, which reads its checkpoint again: so a change waits for
# workers that start at about the same time.
ELASTIC = Driver(
    words="elastic.sh",
    program=ELASTIC_SH,
    options={"np": "--np", "min_np": "--min-np", "max_np": "--max-np"},
    least_options="--min-np",
    acknowledges=True,
    keeps_ranks=False,
    spends_names=False,
    gather=10.0,
)
