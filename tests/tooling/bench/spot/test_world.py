"""Facts that are read of a job's objects."""

import json
from typing import Any

from bench.spot import world

SCRIPT = "#!/bin/sh\necho train-worker-0:1\necho train-worker-1.r2:1\n"


def pod(name: str, *, phase: str = "Running", node: str = "n-0", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": f"uid of {name}", **metadata},
        "spec": {"nodeName": node},
        "status": {"phase": phase},
    }


def seen(*pods: dict[str, Any], gone: tuple[str, ...] = ()) -> world.World:
    config = {"data": {"discover_hosts.sh": SCRIPT, "hostfile": "train-worker-0 slots=1\ntrain-worker-1 slots=1\n"}}
    return world.seen(json.dumps({"items": pods}).encode(), json.dumps(config).encode(), gone=gone)


def test_ranks_live_in_workers_that_run_on_machines_that_are_there() -> None:
    found = seen(
        pod("train-worker-0"),
        pod("train-worker-1", phase="Pending"),
        pod("train-worker-2", node="n-1"),
        pod("train-worker-3", deletionTimestamp="2026-01-01T00:00:00Z"),
        pod("train-launcher"),
        gone=("n-1",),
    )
    assert found.running == {"train-worker-0": "uid of train-worker-0"}
    assert len(found.pods) == 5


def test_the_launcher_is_seen_with_its_touches() -> None:
    before = seen(pod("train-launcher", phase="Pending"))
    after = seen(pod("train-launcher", annotations={"mpijob-elastic/refreshed": "1"}))
    assert (before.launcher, before.started, after.started) == ("uid of train-launcher", False, True)
    assert before.touch != after.touch


def test_the_config_map_is_read() -> None:
    found = seen()
    assert found.hostfile == ("train-worker-0", "train-worker-1")
    assert world.hosts(found.script) == ("train-worker-0", "train-worker-1.r2")


def test_a_job_without_objects_is_empty() -> None:
    assert world.seen(b'{"items": []}', None, gone=()) == world.World(pods=frozenset())
