"""The controller makes PodGroups of jobs, and lowers how many pods they wait for."""

import pytest

from lab.operator.objects import Object
from mpijob_elastic.capabilities.gangs.facts import VOLCANO_POD_GROUPS
from tests.lab.policies import JOB, UNOWNED, Accounts, annotations, created, owned, patched
from tests.lab.versions import needs

pytestmark = [pytest.mark.lab, needs("ValidatingAdmissionPolicy")]
MATCH = "gang.scheduling.koordinator.sh/match-policy"
GROUP: Object = {"spec": {"minMember": 5, "priorityClassName": "low"}}
TUNED, RETUNED = (
    {**annotations({"volcano.sh/task-topology-affinity": affinity}), "spec": {"queue": "team"}}
    for affinity in "ab"
)
POD_GROUPS_SENT = [
    *created(False, VOLCANO_POD_GROUPS, GROUP | {"metadata": {"name": "other"}}),
    *created(True, VOLCANO_POD_GROUPS, GROUP | owned(JOB, annotations={"kept": "yes"})),
    *patched(True, VOLCANO_POD_GROUPS, JOB, {"spec": {"minMember": 3}}, TUNED, RETUNED),
    *patched(
        True,
        VOLCANO_POD_GROUPS,
        JOB,
        *(annotations({MATCH: said}) for said in ("waiting-and-running", "once-satisfied")),
    ),
    *patched(
        False,
        VOLCANO_POD_GROUPS,
        JOB,
        annotations({MATCH: None}),
        {"spec": {"minMember": 4}},
        {"spec": {"minMember": 0}},
    ),
    *patched(
        False,
        VOLCANO_POD_GROUPS,
        JOB,
        {"spec": {"priorityClassName": "high"}},
        {"spec": {"minResources": {"cpu": "1"}}},
    ),
    *patched(
        False,
        VOLCANO_POD_GROUPS,
        JOB,
        annotations({"kept": "no"}),
        annotations({"kept": None}),
        UNOWNED,
    ),
]


async def test_pod_groups_only_of_jobs_and_only_to_fewer_pods(accounts: Accounts) -> None:
    await accounts.expect("mpijob-elastic-pod-groups", *POD_GROUPS_SENT)
