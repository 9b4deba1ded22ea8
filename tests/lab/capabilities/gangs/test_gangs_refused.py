"""Each write of a PodGroup is refused for good: what does not need it comes true, and users are told.

The definitions are there and no gang scheduler, so pods start as any others.
"""

from collections.abc import Iterator
from functools import partial

import pytest

from lab.cluster import Cluster
from mpijob_elastic.capabilities.gangs.facts import COSCHEDULING, COSCHEDULING_POD_GROUPS
from tests.lab.definitions import SCHEDULER_PLUGINS, served
from tests.lab.job import Job
from tests.lab.on_demand import OnDemand
from tests.lab.refusing import DAY, Refused, asks, trains, withstands
from tests.lab.waiting import seen

pytestmark = [
    pytest.mark.lab,
    pytest.mark.thorough,
    pytest.mark.usefixtures("pod_groups", "elastic", "operator"),
]


@pytest.fixture(scope="module")
def pod_groups(
    cluster: Cluster, programs: OnDemand, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """They are there before our controller looks, which it does once a minute."""
    programs.keep(())
    with served(cluster, SCHEDULER_PLUGINS, tmp_path_factory.mktemp("plugins")):
        yield
        programs.keep(())


async def group(job: Job) -> bytes | None:
    return await job.client.find(COSCHEDULING_POD_GROUPS.path(job.namespace, job.name))


async def in_a_gang(job: Job) -> None:
    await job.create(
        replicas=3,
        annotations={"mpijob-elastic/drain-timeout": "1s", "mpijob-elastic/gang": COSCHEDULING},
    )
    await trains(3)(job)
    await seen(lambda: group(job), lambda found: found is not None, "its PodGroup")


async def loses_its_group(job: Job) -> None:
    await job.client.delete_object(COSCHEDULING_POD_GROUPS.path(job.namespace, job.name))


OF_GROUPS = partial(
    Refused,
    group=COSCHEDULING_POD_GROUPS.group,
    resource=COSCHEDULING_POD_GROUPS.plural,
    create=in_a_gang,
)
REFUSED = {
    "MakePodGroup": OF_GROUPS(operation="CREATE", due=loses_its_group, then=DAY),
    "LowerPodGroup": OF_GROUPS(operation="UPDATE", due=asks(min_replicas="1"), then=DAY),
}


@pytest.mark.parametrize("kind", REFUSED)
async def test_what_does_not_need_it_comes_true(job: Job, cluster: Cluster, kind: str) -> None:
    await withstands(job, cluster, REFUSED[kind])
