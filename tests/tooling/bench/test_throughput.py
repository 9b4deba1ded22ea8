"""Jobs a second, from the writes of a burst."""

import pytest

from bench.throughput import burst
from tests.tooling.bench.writes import edit, node, ours, write

FLEET = ["train-0", "train-1"]


def test_a_burst_lasts_from_the_first_edit_to_the_last_role_or_config_map() -> None:
    writes = [
        edit(10.0, "train-0"),
        edit(10.1, "train-1"),
        ours(10.2, "patch", "configmaps", "train-0-config"),
        ours(10.3, "patch", "configmaps", "train-1-config"),
        ours(10.4, "delete", "pods", "train-0-worker-1"),
        node(10.5, "delete", "pods", "train-0-worker-1"),
        ours(10.6, "patch", "roles", "train-0-launcher"),
        ours(10.7, "create", "events", "train-0.1"),
        # Later, but no part of it: another job's, an Event, a status.
        ours(11.0, "patch", "roles", "train-2-launcher"),
        ours(11.1, "create", "events", "train-1.1"),
        write(12.0, "update", "mpijobs", "train-1", subresource="status"),
    ]
    found = burst(writes, FLEET, cpu={"controller": 0.5})
    assert found.seconds == pytest.approx(0.6)
    assert (found.writes, found.events) == (2.0, 1.0)


def test_without_edits_there_is_no_burst() -> None:
    with pytest.raises(ValueError, match="min"):
        burst([ours(10.0, "patch", "roles", "train-0-launcher")], FLEET, cpu={})
