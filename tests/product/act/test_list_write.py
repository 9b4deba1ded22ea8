"""The write of the host list: it carries what belongs to it, and nothing is read before it."""

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic import names
from mpijob_elastic.capabilities import live
from mpijob_elastic.capabilities.history.changes import Sized
from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import WriteConfig
from mpijob_elastic.model import history
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Memory, SizeChange
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import LONG_AGO, NOW, but, config, job, pods, role, worker
from tests.doubles.direct import DirectClient, Sent
from tests.product.act.writes import Everything, Taken, Told, leader_writer_of, writer_of

EDITED = Sized(by="kubectl-edit", at=NOW - 10)
FIRST = history.Change(at=LONG_AGO, cause="user", by="helm", before=1, after=3)


def trained(size: int, *, listed: int, told: str = "") -> JobView:
    """A job that had so many workers listed, and is edited to a size; all its workers are Ready."""
    memory = Memory(added_at=LONG_AGO, scale=SizeChange(before=0, after=listed, at=LONG_AGO))
    known = but(config(pods(*range(listed)), memory=memory), history=told.encode())
    workers = tuple(worker(index) for index in range(max(size, listed)))
    return job(size, workers=workers, config=known, role=role(*range(12)), sized=EDITED)


@pytest.mark.parametrize(("listed", "size"), [(3, 1), (12, 2), (2, 3), (1, 12)])
async def test_the_list_and_its_history_are_one_write_and_nothing_is_read_before(
    listed: int, size: int
) -> None:
    async def answer(_: Sent) -> object:
        return {"metadata": {"resourceVersion": "8"}}

    client = DirectClient(answer)
    leader_writer = leader_writer_of(client, Metrics(CollectorRegistry()))
    taken, events = Taken(), Told(leader_writer)
    capability_writers = live.writers(
        client, leader_writer, taken, events, lambda: NOW, options=live.OPTIONS
    )
    writer = writer_of(client, taken, Everything(), capability_writers=capability_writers)
    view = trained(size, listed=listed, told=history.merged("", [FIRST]))
    [action] = (one for one in decide(view, now=NOW).actions if isinstance(one, WriteConfig))
    await writer.perform(view, action)
    [sent] = client.sent
    assert (sent.method, sent.name) == ("PATCH", names.config_map("j"))
    assert sent.body["metadata"]["resourceVersion"] == action.ref.resource_version
    told = sent.body["metadata"]["annotations"]
    sizes = [(one["from"], one["to"]) for one in msgspec.json.decode(told[names.HISTORY])]
    assert sizes == [(1, 3), (listed, size)]
    assert names.MEMORY in told
