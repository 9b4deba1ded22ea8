"""The safety rules (docs/architecture.md) that more than one check holds, each said once on plain facts about a job.

Three adapters bring the facts: a plan of a view (product/properties/test_decide_safety.py), a move
of a model world (modelcheck/rules.py) and a stored version (campaign/sequence_rules.py). Who may
have seen several states brings the one that allows most. Nothing here asks the product for its
reasons: a rule that borrowed them would share its mistakes.

Each rule takes the job before a write, and the write. It returns what is wrong, "" if nothing is.
"""

from collections.abc import Callable, Collection
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from mpijob_elastic import names

Names = AbstractSet[str]
NOBODY: Names = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A job before a write.

    hosts: what the list names. size: how many workers are asked for. skips: indices that it does
    without. runs: its launcher may read the list. ended: nothing trains any more. cleans: its
    cleanPodPolicy lets a worker go then. ready, role: pods of the job that are Ready, and that its
    launcher may exec into. restarts: its driver is elastic.sh, which starts all ranks again at a
    change (`OF_HOROVOD` and `OF_ELASTIC` are where the drivers differ). number: of the list for
    elastic.sh, or the highest that such a driver may have read; 0 if there is none.
    """

    elastic: bool
    hosts: Names
    size: int
    runs: bool = True
    ended: bool = False
    cleans: bool = False
    suspended: bool = False
    ready: Names = NOBODY
    role: Names = NOBODY
    skips: Collection[int] = ()
    restarts: bool = False
    number: int = 0

    def asks_for(self, pod: str) -> bool:
        """Tell whether a worker is one of the size."""
        index = index_of(pod)
        return (
            index not in self.skips
            and index - sum(skipped < index for skipped in self.skips) < self.size
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """A write of the ConfigMap.

    blacklisted: hosts in which a rank may have died. finds_numbered: the launcher finds the pods of
    numbered hosts. threatened: Ready workers of nodes that go. least: how many have to stay where
    such a worker leaves. number: of a list for elastic.sh. is_same: the text stays as it is. told:
    the numbers of the lists with which workers leave, as the memory has them.
    """

    hosts: Names
    blacklisted: Names = NOBODY
    finds_numbered: bool = True
    writes_hostfile: bool = False
    threatened: Names = NOBODY
    least: int = 0
    number: int = 0
    is_same: bool = False
    told: AbstractSet[int] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Deletion:
    """A worker is deleted.

    replaced: it is dead, or its node goes. held: it has yet to start, or its job is stopped.
    in_use: why a rank may be in it, "" if none can be.
    """

    pod: str
    dead: bool = False
    replaced: bool = False
    held: bool = False
    in_use: str = ""


def pods_of(hosts: Names) -> Names:
    return {names.pod_of(host) for host in hosts}


def index_of(pod: str) -> int:
    """The number at the end of a worker's name."""
    return int(pod.rpartition("-")[2])


def an_added_host_is_ready(job: Job, write: Listing) -> str:
    unready = pods_of(write.hosts - job.hosts) - job.ready
    return (
        f"rule 1: {min(unready)} is published and is not a Ready pod of the job" if unready else ""
    )


def an_added_host_is_reachable(job: Job, write: Listing) -> str:
    barred = pods_of(write.hosts - job.hosts) - job.role
    return f"rule 1: {min(barred)} is published without a right to exec" if barred else ""


def an_added_host_is_wanted(job: Job, write: Listing) -> str:
    spare = {pod for pod in pods_of(write.hosts - job.hosts) if not job.asks_for(pod)}
    return f"rule 3: {min(spare)} is published beyond the size" if spare and job.elastic else ""


def the_list_does_not_become_empty(job: Job, write: Listing) -> str:
    return (
        "rule 2: the host list becomes empty" if job.hosts and not write.hosts and job.runs else ""
    )


def a_write_adds_or_removes(job: Job, write: Listing) -> str:
    both = job.hosts - write.hosts and write.hosts - job.hosts
    return "rule 4: a removal and an addition in one write" if both else ""


def the_number_changes_exactly_with_the_text(job: Job, write: Listing) -> str:
    if write.is_same:
        return "" if write.number == job.number else "rule 9: the same list gets another number"
    return "" if write.number > job.number else "rule 9: another list has no higher number"


def who_leaves_has_the_number_of_the_list(_job: Job, write: Listing) -> str:
    wrong = write.told - {write.number}
    return "rule 9: a worker leaves with the number of another list" if wrong else ""


def a_host_has_the_name_of_its_pod(job: Job, write: Listing) -> str:
    numbered = any(map(names.incarnation_of, write.hosts - job.hosts))
    return "rule 9: a host of elastic.sh gets a numbered name" if numbered else ""


def a_pod_has_one_host(_job: Job, write: Listing) -> str:
    return (
        "rule 8: two hosts stand for one pod"
        if len(pods_of(write.hosts)) < len(write.hosts)
        else ""
    )


def a_blacklisted_host_is_not_added(job: Job, write: Listing) -> str:
    again = (write.hosts - job.hosts) & write.blacklisted if job.elastic else NOBODY
    return (
        f"rule 8: {min(again)} is published again, and a rank may have died under this name"
        if again
        else ""
    )


def a_numbered_host_is_found(job: Job, write: Listing) -> str:
    lost = not write.finds_numbered and any(map(names.incarnation_of, write.hosts - job.hosts))
    return "a numbered host is published that the launcher cannot reach" if lost else ""


def a_plain_job_keeps_its_hostfile(job: Job, write: Listing) -> str:
    written = write.writes_hostfile and not job.elastic
    return "rule 5: the hostfile of a job that is not elastic is written" if written else ""


def a_node_takes_no_more_than_may_leave(job: Job, write: Listing) -> str:
    ready = {pod for pod in job.ready if job.asks_for(pod)}
    leave = pods_of(job.hosts - write.hosts) & write.threatened & ready
    too_few = leave and len(pods_of(write.hosts) & ready) < write.least
    return "a node that goes takes more workers than may leave" if too_few else ""


def an_ended_job_keeps_whom_its_policy_keeps(job: Job, _write: Deletion) -> str:
    against = job.ended and not job.cleans
    return (
        "rule 2: a worker of a job that has ended is deleted against its cleanPodPolicy"
        if against
        else ""
    )


def a_plain_job_keeps_its_workers(job: Job, _write: Deletion) -> str:
    plain = not (job.ended or job.elastic)
    return "rule 2: a worker of a job that is not elastic is deleted" if plain else ""


def a_worker_that_is_wanted_stays(job: Job, write: Deletion) -> str:
    wanted = job.asks_for(write.pod) and not (job.ended or write.replaced or write.held)
    return "rules 2, 3: a worker that the size asks for is deleted" if wanted else ""


def a_published_worker_stays(job: Job, write: Deletion) -> str:
    listed = pods_of(job.hosts)
    published = write.pod in listed and not job.ended and not (write.dead and listed == {write.pod})
    return "rule 2: a worker that is published is deleted" if published else ""


def a_rank_has_left(job: Job, write: Deletion) -> str:
    return f"rule 2: {write.in_use}" if write.in_use and not job.ended else ""


# Horovod's driver keeps ranks alive, and never uses a name again in which one died.
OF_HOROVOD: tuple[Callable[[Job, Listing], str], ...] = (
    the_list_does_not_become_empty,
    a_write_adds_or_removes,
    a_blacklisted_host_is_not_added,
    a_numbered_host_is_found,
)
# elastic.sh says by its number which list it follows.
OF_ELASTIC: tuple[Callable[[Job, Listing], str], ...] = (
    the_number_changes_exactly_with_the_text,
    who_leaves_has_the_number_of_the_list,
    a_host_has_the_name_of_its_pod,
)
OF_LISTS: tuple[Callable[[Job, Listing], str], ...] = (
    a_pod_has_one_host,
    an_added_host_is_ready,
    an_added_host_is_reachable,
    an_added_host_is_wanted,
    a_plain_job_keeps_its_hostfile,
    a_node_takes_no_more_than_may_leave,
)
OF_DELETIONS: tuple[Callable[[Job, Deletion], str], ...] = (
    an_ended_job_keeps_whom_its_policy_keeps,
    a_plain_job_keeps_its_workers,
    a_worker_that_is_wanted_stays,
    a_published_worker_stays,
    a_rank_has_left,
)


def published(job: Job, write: Listing) -> list[str]:
    """Return what is wrong with a write of the list."""
    of_driver = OF_ELASTIC if job.restarts else OF_HOROVOD
    return [wrong for rule in (*OF_LISTS, *of_driver) if (wrong := rule(job, write))]


def deleted(job: Job, write: Deletion) -> list[str]:
    """Return what is wrong with the deletion of a worker."""
    return [wrong for rule in OF_DELETIONS if (wrong := rule(job, write))]


def granted(before: Names, after: Names) -> list[str]:
    """Return what is wrong with a write of the Role, which covers these pods before and after."""
    return [f"rule 4: the Role loses {pod}" for pod in sorted(before - after)]


def launcher_deleted(job: Job, *, started: bool) -> list[str]:
    """Return what is wrong with the deletion of the launcher."""
    return (
        ["rule 7: a launcher that has started is deleted"] if started and not job.suspended else []
    )


def ungated(job: Job) -> list[str]:
    """Return what is wrong with taking the gate off a pod."""
    return ["a pod of a suspended job may start"] if job.suspended else []
