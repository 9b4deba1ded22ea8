"""Quota of queued jobs when the installation goes: given back where nothing of a job runs, named where its pods run."""

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from typer.testing import CliRunner

from mpijob_elastic import capabilities, names
from mpijob_elastic.capabilities.kueue.facts import WORKLOADS
from mpijob_elastic.cli import app, main
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.install import Refused, removal
from mpijob_elastic.install.server import check_deletions
from mpijob_elastic.kube.resources import DEPLOYMENTS, PODS, Resource
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi, refused
from tests.doubles.direct import Sent

GATED = [{"name": names.GATE_SUSPENDED}]
HOLDING = [holding.resource for holding in capabilities.HOLDINGS]
FINISHED = {"conditions": [{"type": "Finished", "status": "True"}]}


def owner(job: str) -> Mapping[str, Any]:
    of_job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "name": job,
        "uid": f"uid-of-{job}",
    }
    return {"ownerReferences": [{**of_job, "controller": True}]}


async def held(
    api: TinyApi, job: str, *, resource: Resource = WORKLOADS, name: str = "", **content: Any
) -> None:
    labels = {names.LABEL_MANAGED_BY: names.PROGRAM}
    await api.create(
        resource.path("ml"),
        name or f"{job}-launcher",
        metadata={**owner(job), "labels": labels},
        **content,
    )


async def pod(api: TinyApi, job: str, *, phase: str = "Running", gates: object = ()) -> None:
    content = {"spec": {"schedulingGates": gates}, "status": {"phase": phase}}
    await api.create(PODS.path("ml"), f"{job}-launcher", metadata=dict(owner(job)), **content)


def workloads(api: TinyApi) -> set[str]:
    return {path.rpartition("/")[2] for path in api.objects if "/pods/" not in path}


@pytest.fixture
async def four(api: TinyApi) -> TinyApi:
    """Jobs of which one runs, and of the others nothing: it has ended, waits, or has no pods."""
    for job in ("runs", "ended", "waits", "gone"):
        await held(api, job)
    await held(api, "runs", name="runs-worker-2")
    await pod(api, "runs")
    await pod(api, "ended", phase="Succeeded")
    await pod(api, "waits", phase="Pending", gates=GATED)
    return api


async def test_only_quota_of_jobs_of_which_nothing_runs_is_given_back(
    four: TinyApi, client: ApiWriter
) -> None:
    given, stays = (await removal.quota(client)).lines()
    assert "given back, because nothing of them runs: ml/ended, ml/gone, ml/waits." in given
    assert "because their pods run: ml/runs. It is free when the job is deleted" in stays
    told: list[str] = []
    for _ in range(2):  # an interrupted removal is repeated
        assert (
            await removal.give_back(client, seconds=60, say=lambda news: told.append(str(news)))
            == []
        )
    assert workloads(four) == {"runs-launcher", "runs-worker-2"}
    assert len(told) == 3
    assert all(options["preconditions"]["uid"] for options in four.deletions)


async def test_quota_of_a_job_that_has_ended_since_is_given_back_by_the_same_command(
    four: TinyApi, client: ApiWriter
) -> None:
    await four.update(PODS.path("ml"), "runs-launcher", status={"phase": "Failed"})
    assert await removal.give_back(client, seconds=60, say=print) == []
    assert workloads(four) == set()


@pytest.mark.parametrize("resource", HOLDING, ids=lambda resource: resource.kind)
async def test_what_any_queue_has_given_is_quota_and_finished_workloads_are_none(
    api: TinyApi, client: ApiWriter, resource: Resource
) -> None:
    await held(api, "train", resource=resource, name="held")
    await held(api, "over", status=FINISHED)
    await api.create(WORKLOADS.path("ml"), "stranger-launcher")
    assert [str(one.identity) for one in (await removal.quota(client)).unused] == [
        f"{resource.kind} ml/held"
    ]


async def test_without_a_queue_nothing_is_said(api: TinyApi, client: ApiWriter) -> None:
    def not_served(sent: Sent) -> None:
        if "/pods" not in sent.path:
            raise refused(404, "NotFound", "the server could not find the requested resource")

    api.hook = not_served
    assert (await removal.quota(client)).lines() == []
    assert await removal.give_back(client, seconds=60, say=print) == []


async def test_a_refused_deletion_holds_up_no_other_and_is_told_once_for_each_reason(
    four: TinyApi, client: ApiWriter
) -> None:
    def forbidding(sent: Sent) -> None:
        if sent.method == "DELETE" and "waits" not in sent.path:
            raise refused(403, "Forbidden", "the platform team forbids it")

    four.hook = forbidding
    [said] = await removal.give_back(client, seconds=60, say=print)
    assert said.count("the platform team forbids it") == 1
    assert "run `mpijob-elastic uninstall` again" in said
    assert workloads(four) == {"runs-launcher", "runs-worker-2", "ended-launcher", "gone-launcher"}


async def test_it_ends_in_time(four: TinyApi, client: ApiWriter) -> None:
    [said] = await removal.give_back(client, seconds=0, say=print)
    assert said.startswith("Quota was not given back within 0 s: ")
    assert four.deletions == []


async def test_who_may_not_give_it_back_is_told_before_anything_goes(
    four: TinyApi, client: ApiWriter
) -> None:
    found = await removal.quota(client)
    await check_deletions(client, found.unused)
    four.allows = lambda spec: spec["resourceAttributes"]["resource"] != WORKLOADS.plural
    with pytest.raises(Refused, match="may not delete Workload in ml"):
        await check_deletions(client, found.unused)


@pytest.mark.parametrize("is_allowed", [True, False])
async def test_the_command_ends_otherwise_if_quota_could_not_be_given_back(
    four: TinyApi, *, is_allowed: bool
) -> None:
    await four.delete(PODS.path("ml"), "waits-launcher")  # it would be left to do, too

    def answer(sent: Sent) -> object | None:
        if sent.method == "DELETE" and not is_allowed:
            raise refused(403, "Forbidden", "the platform team forbids it")
        return {"minor": "34", "gitVersion": "v1.34.4"} if sent.path == "/version" else None

    four.hook = answer
    arguments = ["uninstall", "--yes", "--no-scale", f"--kubeconfig={four.kubeconfig}"]
    done = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert done.exit_code == (Exit.DONE if is_allowed else Exit.OTHERWISE)
    assert ("Quota was not given back: " in done.output) != is_allowed
    assert "because their pods run: ml/runs." in " ".join(done.output.split())


def serve_deployments(api: TinyApi) -> str:
    """Let an API server have the controller's Deployment; return the path of it."""
    kind = {"kind": DEPLOYMENTS.kind, "name": DEPLOYMENTS.plural}
    api.objects[f"/apis/{DEPLOYMENTS.api_version}"] = {"resources": [kind]}
    path = f"{DEPLOYMENTS.path()}/{names.CONTROLLER}"
    api.put(path, {"metadata": {"namespace": names.NAMESPACE}})
    version = {"minor": "34", "gitVersion": "v1.34.4"}
    api.hook = lambda sent: version if sent.path == "/version" else None
    return path


@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="before the question"),
        pytest.param(["--dry-run"], id="in a dry run"),
        pytest.param(["--dry-run", "--yes"], id="in a dry run with a yes"),
    ],
)
async def test_what_goes_is_listed(four: TinyApi, options: list[str]) -> None:
    """Nobody answers the question."""
    path = serve_deployments(four)
    await four.delete(PODS.path("ml"), "waits-launcher")
    arguments = ["uninstall", *options, "--no-scale", f"--kubeconfig={four.kubeconfig}"]
    done = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert f"Deployment {names.NAMESPACE}/{names.CONTROLLER}" in done.output
    assert path in four.objects


@pytest.mark.parametrize("options", [["--dry-run"], [], ["--yes"]])
async def test_pods_at_a_gate_hold_it_and_a_dry_run_lists_first_what_would_go(
    four: TinyApi, options: list[str]
) -> None:
    serve_deployments(four)
    arguments = ["uninstall", *options, "--no-scale", f"--kubeconfig={four.kubeconfig}"]
    done = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert "nobody else takes off: ml/waits-launcher. For each" in str(done.exception)
    listed = f"Deployment {names.NAMESPACE}/{names.CONTROLLER}" in done.output
    assert listed == (options != ["--yes"])
    assert "Delete this from" not in done.output
    assert four.deletions == []


@pytest.mark.parametrize("resource", HOLDING, ids=lambda resource: resource.kind)
@pytest.mark.parametrize("is_served", [True, False])
async def test_who_may_not_even_list_it_is_told_which_right_lacks_and_what_stays(
    four: TinyApi,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    resource: Resource,
    is_served: bool,
) -> None:
    await four.delete(PODS.path("ml"), "waits-launcher")
    lacks = f'{resource.plural}.{resource.group} is forbidden: User "dev" cannot list resource "{resource.plural}"'

    def answer(sent: Sent) -> object | None:
        if sent.path == resource.path():
            raise refused(403, "Forbidden", lacks)
        if sent.path == f"/apis/{resource.api_version}" and is_served:
            return {"resources": [{"kind": resource.kind, "name": resource.plural}]}
        return {"minor": "34", "gitVersion": "v1.34.4"} if sent.path == "/version" else None

    four.hook = answer
    monkeypatch.setattr(
        sys, "argv", ["mpijob-elastic", "uninstall", "--yes", f"--kubeconfig={four.kubeconfig}"]
    )
    with pytest.raises(SystemExit) as ended:
        await asyncio.to_thread(main)
    assert ended.value.code == (Exit.REFUSED if is_served else Exit.DONE)
    said = f"mpijob-elastic: {lacks}; controller, webhook and quota stay as they are: ask an administrator"
    assert capsys.readouterr().err.startswith(said) == is_served
    assert not (is_served and four.deletions)
