"""The write of a job's host list that is due, if any."""

from mpijob_elastic.decide import config_map, derive, next_memory
from mpijob_elastic.decide.actions import WriteConfig
from mpijob_elastic.decide.state import Standing
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from tests.builders import NOW, config, pods

# Worker 2 of three has left the list.
LEFT = Left(pod=pod_fingerprint("uid-of-j-worker-2"), at=NOW - 10)
SHRUNK = config(pods(0, 1), memory=Memory(left={"j-worker-2": LEFT}, removed_at=NOW - 10))


def written(view: JobView) -> WriteConfig | None:
    assert view.config is not None
    return config_map.write(derive(view, now=NOW), view.config)[0]


def change(view: JobView) -> WriteConfig:
    found = written(view)
    assert found is not None
    return found


def remembered(view: JobView, *, now: float = NOW) -> Memory:
    """Return the memory to write although the list stays."""
    assert view.config is not None
    state = derive(view, now=now)
    script, hostfile = view.config.script or "", view.config.hostfile
    change = WriteConfig(ref=view.config.ref, script=script, hostfile=hostfile, memory=view.memory)
    return next_memory.memory(state, view.config, change)


def given_up(view: JobView, *, now: float = NOW) -> list[str]:
    """The workers that are given up."""
    return [worker.name for worker in derive(view, now=now).workers if worker.standing is Standing.GIVEN_UP]
