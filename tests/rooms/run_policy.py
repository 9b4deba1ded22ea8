"""Words for the run policy."""

from dataclasses import replace
from typing import Any

from mpijob_elastic.capabilities import run_policy as of_runs
from mpijob_elastic.capabilities.run_policy import RunPolicy
from tests.builders import but
from tests.room_words import ByType, Words


def _with(before: ByType, **facts: Any) -> ByType:
    return {RunPolicy: replace(before.get(RunPolicy) or RunPolicy(), **facts)}


WORDS = Words(
    asked={
        "ttl": lambda before, ttl: _with(before, ttl=ttl),
        "backoff_limit": lambda before, limit: _with(before, backoff_limit=limit),
    },
    plan={of_runs.DeleteJob: lambda _: "delete job"},
    done={of_runs.DeleteJob: lambda view, _: but(view, deleting=True)},
)
