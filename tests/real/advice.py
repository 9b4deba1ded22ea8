"""What Events tell users to do, and doing it."""

import re
import shlex

from lab.cluster import Cluster

_COMMAND = re.compile(r"end it: `kubectl (.+)`")


def frozen_execs(cluster: Cluster, namespace: str) -> set[str]:
    """The commands by which execs are to be ended that outlived their pods, as far as they were ever told."""
    query = ("--field-selector=reason=FrozenExec", "-o", 'jsonpath={range .items[*]}{.message}{"\\n"}{end}')
    return set(_COMMAND.findall(cluster.kubectl("get", "events", "--namespace", namespace, *query)))


def follow(cluster: Cluster, command: str) -> None:
    """Do as an Event says; `command` is what stands behind `kubectl`."""
    cluster.kubectl(*shlex.split(command))
