"""The text of discover_hosts.sh for the workers that are to be published.

A list for elastic.sh has a number, by which the driver acknowledges the list, and names the pod of
each host, so that the driver tells a worker from its successor of the same name. The number grows
with each change. A list whose predecessor is not known gets the time as its number, in seconds
since the epoch: a list changes less often than once a second, so no earlier list has a higher one.
The first list of a ConfigMap has a predecessor if a driver runs: that of a deleted ConfigMap.
"""

from collections.abc import Sequence

from mpijob_elastic import names
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.model.bounds import MOST_INT32
from mpijob_elastic.model.job import Config, hostfile_slots

# In place of the fingerprint of a pod that nobody has seen.
_UNSEEN = "00000000"


def script(state: JobState, config: Config, published: Sequence[str], *, reminder: str = "") -> str:
    """Return the script that publishes these pods; `reminder` is the name in its last line."""
    slots = slots_of_each(state, config)
    if not state.view.driver.acknowledges:
        hosts = [host_name(state, pod) for pod in published]
        return names.discover_hosts(hosts, slots=slots, reminder=reminder)
    pods = {host_name(state, pod): _fingerprint(state, pod) for pod in published}
    drain = int(state.view.policy.drain_timeout)
    same = names.numbered_hosts(pods, slots=slots, number=config.number, drain=drain)
    if same == config.facts.script:
        return same
    number = _next_number(state, config)
    return names.numbered_hosts(pods, slots=slots, number=number, drain=drain)


def host_name(state: JobState, pod: str) -> str:
    """Return the host name of a pod: the name that is listed, or that the worker will get."""
    if listed_as := state.view.host_of.get(pod):
        return listed_as
    worker = state.by_name.get(pod)
    if worker:
        return worker.host
    return pod


def slots_of_each(state: JobState, config: Config) -> int:
    """Return the slots of each host.

    The driver mis-assigns local ranks when a listed host's slots change (horovod#1849), so the
    slots stay while the driver runs.
    """
    asked_slots, published = state.view.facts.slots, config.published
    if not state.view.driver_running:
        return asked_slots
    if published is None:
        return hostfile_slots(config.facts.hostfile) or asked_slots
    if not published.hosts:
        return asked_slots
    known = published.slots if config.signed else hostfile_slots(config.facts.hostfile)
    return known or asked_slots


def _fingerprint(state: JobState, pod: str) -> str:
    worker = state.by_name.get(pod)
    if worker:
        return worker.pod.fingerprint
    return state.view.listed_pod(pod) or _UNSEEN


def _next_number(state: JobState, config: Config) -> int:
    following = config.number + 1
    is_first = config.is_new and not state.view.driver_running
    if state.memory_known or is_first:
        return min(following, MOST_INT32)
    return max(following, int(state.now))
