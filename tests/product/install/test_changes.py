"""What an installation changes and removes, in which order, and when it is complete."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mpijob_elastic import names
from mpijob_elastic.cli.cluster import News, tell
from mpijob_elastic.install import gated_pods, rollout
from mpijob_elastic.install.objects import ObjectChange, ObjectIdentity, Outcome, changed
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.faults.faults import Answer, Fault, Reset
from tests.faults.proxy import FaultProxy

ONE = ObjectIdentity(api_version="v1", kind="Service", namespace="a", name="b")


def live(**fields: Any) -> dict[str, Any]:
    return {
        "kind": "Service",
        "metadata": {"name": "b", "resourceVersion": "1", "uid": "u"},
        **fields,
    }


def test_a_change_shows_what_differs_and_what_the_api_server_writes_is_none() -> None:
    assert changed(ONE, None, live()).outcome is Outcome.CREATED
    after = {
        **live(status={"x": 1}),
        "metadata": {"name": "b", "resourceVersion": "2", "managedFields": [{}]},
    }
    assert changed(ONE, live(), after).outcome is Outcome.UNCHANGED
    change = changed(ONE, live(spec={"replicas": 3}), live(spec={"replicas": 2}))
    assert change.outcome is Outcome.CONFIGURED
    assert change.difference.splitlines()[-3:] == [" spec:", "-  replicas: 3", "+  replicas: 2"]


@pytest.mark.parametrize(
    ("differences", "below"),
    [
        pytest.param(
            True,
            [
                "@@ -2,4 +2,4 @@",
                " metadata:",
                "   name: b",
                " spec:",
                "-  replicas: 3",
                "+  replicas: 2",
            ],
            id="a dry run",
        ),
        pytest.param(False, [], id="no dry run"),
    ],
)
def test_a_difference_is_printed_from_its_first_place_on(
    capsys: pytest.CaptureFixture[str], *, differences: bool, below: list[str]
) -> None:
    tell(
        changed(ONE, live(spec={"replicas": 3}), live(spec={"replicas": 2})),
        differences=differences,
    )
    _, *printed = capsys.readouterr().out.splitlines()
    assert printed == [f"    {line}" for line in below]


async def test_pods_that_came_to_a_gate_while_it_was_removed_are_told(
    api: TinyApi, client: ApiWriter
) -> None:
    assert await gated_pods.left_waiting(client) == []
    await api.create(
        PODS.path("ml"), "train-launcher", spec={"schedulingGates": [{"name": names.GATE_QUEUED}]}
    )
    [said] = await gated_pods.left_waiting(client)
    assert "nobody takes off: ml/train-launcher. Delete them" in said


CONFIG_MAPS = "/api/v1/namespaces/n/configmaps"


@pytest.mark.parametrize(
    ("fault", "said"),
    [(Reset(), "GET http"), (Answer(status=503), "503"), (Answer(status=500), "500")],
)
async def test_only_trouble_of_the_api_server_is_waited_for(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter, fault: Fault, said: str
) -> None:
    told: list[str] = []

    async def missing() -> str:
        await client.get(f"{CONFIG_MAPS}/a")
        return ""

    async def until(seconds: float) -> str:
        return await rollout.until(
            missing, seconds=seconds, say=lambda news: told.append(str(news))
        )

    with pytest.raises(errors.NotFound):
        await until(60)
    await api.create(CONFIG_MAPS, "a")
    with proxy.inject(fault, times=3):
        assert await until(60) == ""
    assert told
    assert all(one.startswith(said) for one in told)
    with proxy.inject(fault):
        assert (await until(0)).startswith(said), "in the end it is what is missing"


MANIFEST = Path(__file__).parents[3] / "config" / "base" / "webhook-configurations.yaml"
MUTATING, VALIDATING = yaml.safe_load_all(MANIFEST.read_text())
STATUS, SIZES, NEW_JOBS, DEFAULT_QUEUES, WORKERS = MUTATING["webhooks"][2:]
[EVICTIONS] = VALIDATING["webhooks"][2:]
HOOKS: list[dict[str, Any]] = [*MUTATING["webhooks"], *VALIDATING["webhooks"]]


@pytest.mark.parametrize("hook", HOOKS, ids=[hook["name"] for hook in HOOKS])
def test_nothing_waits_for_us_and_nothing_is_asked_of_the_system(hook: dict[str, Any]) -> None:
    quick = (STATUS, SIZES, NEW_JOBS, DEFAULT_QUEUES, WORKERS, EVICTIONS)
    seconds = 1 if hook in quick else 2
    effects = "NoneOnDryRun" if hook == EVICTIONS else "None"
    assert (hook["failurePolicy"], hook["timeoutSeconds"], hook["sideEffects"]) == (
        "Ignore",
        seconds,
        effects,
    )
    assert hook["matchPolicy"] == "Equivalent"
    assert "caBundle" not in hook["clientConfig"]
    labels = [names.NAMESPACE_OPT_OUT]
    if hook == DEFAULT_QUEUES:
        labels += [names.NO_DEFAULT_QUEUE]
    assert hook["namespaceSelector"]["matchExpressions"] == [
        {
            "key": "kubernetes.io/metadata.name",
            "operator": "NotIn",
            "values": ["kube-system", "kube-node-lease", "kube-public", names.NAMESPACE],
        },
        *[{"key": label, "operator": "NotIn", "values": ["disabled"]} for label in labels],
    ]


@pytest.mark.parametrize(
    ("dry_run", "expected"),
    [
        (
            False,
            "unchanged   Service a/b\n"
            * 3
            + "configured  Service a/b\nskipped     Service a/b (not served by v1.28)\n"
            "created     Service a/b (not checked)\n",
        ),
        (
            True,
            "unchanged   Service a/b\n"
            * 3
            + "configured  Service a/b (dry run)\nskipped     Service a/b (not served by v1.28)\n"
            "created     Service a/b (dry run, not checked)\n",
        ),
    ],
)
def test_an_installation_ends_with_the_count_of_each_outcome(
    capsys: pytest.CaptureFixture[str], *, dry_run: bool, expected: str
) -> None:
    news = News(prefix="waiting: ", dry_run=dry_run)
    for outcome in (Outcome.UNCHANGED,) * 3 + (Outcome.CONFIGURED,):
        news(ObjectChange(identity=ONE, outcome=outcome))
    news(ObjectChange(identity=ONE, outcome=Outcome.SKIPPED, note="not served by v1.28"))
    news(ObjectChange(identity=ONE, outcome=Outcome.CREATED, unchecked=True))
    assert capsys.readouterr().out == expected
    assert news.summary() == [
        "3 unchanged, 1 configured, 1 skipped, 1 created.",
        "Objects that were not checked: 1, because their namespace does not exist yet.",
    ]
    assert News(prefix="", dry_run=dry_run).summary() == []
