"""The webhook marks workers that are to be evicted, and evicts nobody."""

import pytest

from mpijob_elastic import names
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK
from mpijob_elastic.kube.resources import PODS
from tests.lab.policies import (
    DRY_RUN,
    EVIL_IMAGE,
    HELD,
    LAUNCHER,
    TOUCHED,
    UNOWNED,
    WORKER,
    Accounts,
    Sent,
    annotations,
    in_role,
    patched,
)
from tests.lab.versions import needs

pytestmark = [pytest.mark.lab, needs("ValidatingAdmissionPolicy")]
REQUESTED = annotations({EVICTION_MARK: "requested 2026-11-23T00:00:00Z for 361s"})
RELEASED = annotations({EVICTION_MARK: "released 2026-11-23T00:00:00Z"})
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": WORKER}}
ANOTHER_PLUGIN: dict[str, str | None] = {"another.plugin/adds": "x"}
EVICTIONS_SENT = [
    *patched(True, PODS, WORKER, REQUESTED, by="webhook"),
    *patched(True, PODS, WORKER, RELEASED),
    *patched(
        True,
        PODS,
        WORKER,
        annotations(REQUESTED["metadata"]["annotations"] | ANOTHER_PLUGIN),
        by="webhook",
    ),
    *patched(
        False, PODS, WORKER, RELEASED, annotations({EVICTION_MARK: None}), TOUCHED, by="webhook"
    ),
    *patched(False, PODS, WORKER, annotations({"another.plugin/adds": "y"}), by="webhook"),
    *patched(
        False, PODS, WORKER, in_role(names.ROLE_LAUNCHER), HELD, UNOWNED, EVIL_IMAGE, by="webhook"
    ),
    *patched(False, PODS, LAUNCHER, REQUESTED, by="webhook"),
    *patched(False, PODS, "foreign", REQUESTED, by="webhook"),
    *(
        Sent(
            ok=bool(query),
            by="webhook",
            method="create",
            resource=PODS,
            name=WORKER,
            part="eviction",
            body=EVICTION,
            query=query,
        )
        for query in (DRY_RUN, None)
    ),
]


async def test_the_webhook_marks_workers_and_evicts_nobody(accounts: Accounts) -> None:
    await accounts.expect("mpijob-elastic-evictions", *EVICTIONS_SENT)
