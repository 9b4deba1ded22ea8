"""The requests about which the webhook is asked, as installed."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mpijob_elastic import names
from mpijob_elastic.install.customize import MATCH_CONDITIONS_SINCE, for_version

MANIFEST = Path(__file__).parents[3] / "config" / "base" / "webhook-configurations.yaml"
MUTATING, VALIDATING = yaml.safe_load_all(MANIFEST.read_text())
STATUS, WORKERS = MUTATING["webhooks"][2:]
AUTOSCALERS, EVICTIONS = VALIDATING["webhooks"][2:]
HOOKS: list[dict[str, Any]] = [*MUTATING["webhooks"], *VALIDATING["webhooks"]]


def test_names_agree_with_the_program() -> None:
    for configuration in (MUTATING, VALIDATING):
        assert configuration["metadata"]["name"] == names.WEBHOOK_CONFIGURATION
    services = [hook["clientConfig"]["service"] for hook in HOOKS]
    assert {(one["name"], one["namespace"]) for one in services} == {(names.WEBHOOK, names.NAMESPACE)}
    assert EVICTIONS["name"] == names.EVICTIONS_HOOK
    assert [one.get("path") for one in services] == [names.PATH_MUTATE] * 4 + [names.PATH_VALIDATE] * 3 + [None]
    for hook, role in ((HOOKS[0], names.ROLE_LAUNCHER), (WORKERS, names.ROLE_WORKER)):
        expected = {names.LABEL_GROUP_NAME: names.GROUP, names.LABEL_JOB_ROLE: role}
        assert hook["objectSelector"]["matchLabels"] == expected
    assert HOOKS[1]["objectSelector"]["matchExpressions"][0]["key"] == names.LABEL_APP


@pytest.mark.parametrize("hook", HOOKS, ids=[hook["name"] for hook in HOOKS])
def test_nothing_waits_for_us_and_nothing_is_asked_of_the_system(hook: dict[str, Any]) -> None:
    seconds = 1 if hook in (STATUS, WORKERS, AUTOSCALERS, EVICTIONS) else 2
    effects = "NoneOnDryRun" if hook == EVICTIONS else "None"
    assert (hook["failurePolicy"], hook["timeoutSeconds"], hook["sideEffects"]) == ("Ignore", seconds, effects)
    assert hook["matchPolicy"] == "Equivalent"
    assert "caBundle" not in hook["clientConfig"]
    assert hook["namespaceSelector"]["matchExpressions"] == [
        {
            "key": "kubernetes.io/metadata.name",
            "operator": "NotIn",
            "values": ["kube-system", "kube-node-lease", "kube-public", names.NAMESPACE],
        },
        {"key": names.NAMESPACE_OPT_OUT, "operator": "NotIn", "values": ["disabled"]},
    ]


def test_without_match_conditions_the_hooks_that_need_one_go() -> None:
    [plain] = for_version([MUTATING], MATCH_CONDITIONS_SINCE - 1)
    kept = [{key: value for key, value in hook.items() if key != "matchConditions"} for hook in (HOOKS[0], WORKERS)]
    assert plain["webhooks"] == kept
    assert {**plain, "webhooks": []} == {**MUTATING, "webhooks": []}
    [rest] = for_version([VALIDATING], MATCH_CONDITIONS_SINCE - 1)
    assert rest == {**VALIDATING, "webhooks": VALIDATING["webhooks"][:2]}
