"""`mpijob-elastic status`, and what commands say where nobody would carry out a change; as an administrator and as a user."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lab.cluster import Cluster
from mpijob_elastic import __version__
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.command_line import IMAGE, UNINSTALL, CommandLine
from tests.lab.job import Job
from tests.lab.launchers import UNMUTATED, label, patched, until_patched
from tests.lab.typed import Typed
from tests.lab.waiting import may

pytestmark = pytest.mark.lab

LACKING = (
    "your account may not get leases.coordination.k8s.io mpijob-elastic-controller, "
    "deployments.apps mpijob-elastic-controller, deployments.apps mpijob-elastic-webhook, "
    "secrets mpijob-elastic-webhook-certificates in namespace mpijob-elastic"
)


def users_kubeconfig(cluster: Cluster, namespace: str) -> Path:
    """A ServiceAccount that may do everything with MPIJobs and read their objects, and no more."""
    kubeconfig = account(cluster, namespace, "user", verbs="*")
    may(cluster, "user", "create", "mpijobs.kubeflow.org", namespace=namespace)
    may(cluster, "user", "list", "configmaps", namespace=namespace)
    return kubeconfig


def account(cluster: Cluster, namespace: str, name: str, *, verbs: str) -> Path:
    """A ServiceAccount with these verbs for MPIJobs, which may read the objects of jobs."""
    here = ("-n", namespace)
    cluster.kubectl("create", "serviceaccount", name, *here)
    for role, allowed, resources in (
        ("jobs", verbs, "mpijobs.kubeflow.org"),
        ("reads", "get,list,watch", "pods,configmaps"),
    ):
        rights = (f"--verb={allowed}", f"--resource={resources}")
        cluster.kubectl("create", "role", role, *here, *rights)
        who = f"--serviceaccount={namespace}:{name}"
        cluster.kubectl("create", "rolebinding", role, *here, f"--role={role}", who)
    return cluster.service_account_kubeconfig(namespace, name)


async def parts(user: Typed) -> tuple[int, dict[str, Any], dict[str, tuple[str, str]]]:
    """The exit code of `status`, its JSON, and state and words of each part."""
    code, printed = await user.run("status", "-o", "json")
    report = json.loads(printed)
    found = {one["part"]: (one["state"], one["found"]) for one in report["parts"]}
    return code, report, found


@pytest.mark.usefixtures("elastic", "operator")
async def test_an_administrator_sees_who_works(cluster: Cluster, namespace: str) -> None:
    code, report, found = await parts(Typed(cluster.kubeconfig, namespace))
    # The lab's programs are processes, and so is its operator.
    assert found["mpijob-elastic"] == ("-", "not installed as Deployments")
    assert found["operator"] == ("care", "no mpi-operator was found")
    assert (code, report["verdict"]) == (Exit.OTHERWISE, "care")
    assert (report["cli"], report["missingRights"]) == (__version__, [])
    assert report["kubernetes"].startswith("v1.")
    state, words = found["controller"]
    assert (state, " leads, renewed " in words) == ("ok", True)
    assert found["webhook"] == ("ok", f"answers for jobs in {namespace}")
    state, words = found["certificates"]
    assert (state, words.startswith("the webhook's ends 20")) == ("ok", True)
    assert found["your rights"] == ("ok", f"all commands of jobs in namespace {namespace}")
    assert found["preflight"][0] in {"ok", "care"}


@pytest.mark.usefixtures("elastic", "operator")
async def test_a_user_sees_what_a_user_may(cluster: Cluster, namespace: str) -> None:
    user = Typed(users_kubeconfig(cluster, namespace), namespace)
    code, report, found = await parts(user)
    assert (code, report["verdict"]) == (Exit.NOT_KNOWN, "unknown")
    assert found["webhook"] == ("ok", f"answers for jobs in {namespace}")
    assert [found[part] for part in ("controller", "operator", "preflight")] == [("-", "-")] * 3
    assert report["missingRights"][0] == LACKING
    assert len(report["missingRights"]) == 3
    code, printed = await user.run("status")
    print(printed)  # noqa: T201 - shown with a failure
    lines = printed.splitlines()
    assert sum(line == f"Not shown: {LACKING}." for line in lines) == 1
    assert "403" not in printed
    state, words = found["your rights"]
    assert (state, "attach" in words, "submit" in words) == ("care", True, False)


@pytest.fixture
def bare(lab: CommandLine) -> CommandLine:
    """Nothing of ours is there."""
    lab.done(*UNINSTALL)
    return lab


@pytest.mark.thorough
def test_from_nothing_to_an_installation(bare: CommandLine) -> None:
    lab = bare
    code, said = lab.run("status")
    assert code == Exit.REFUSED
    assert said.splitlines()[-1].startswith("mpijob-elastic is not installed in this cluster; an")
    role = "mpijob-elastic-controller"
    lab.cluster.kubectl("create", "clusterrole", role, "--verb=get", "--resource=pods")
    lab.cluster.kubectl("label", "clusterrole", role, "app.kubernetes.io/name=mpijob-elastic")
    code, said = lab.run("status")
    assert (code, "but parts of it are left" in said.splitlines()[-1]) == (Exit.REFUSED, True)
    assert role in lab.done("uninstall", "--yes")
    lab.install("--jobs-namespace=jobs")
    code, said = lab.run("status", "-n", "others", "-o", "json")
    report = json.loads(said)
    found = {one["part"]: (one["state"], one["found"]) for one in report["parts"]}
    # kwok only pretends that our pods run.
    assert (code, report["verdict"], report["installed"]) == (1, "broken", __version__)
    by = f"{__version__} ({IMAGE}), by `mpijob-elastic install`"
    assert found["mpijob-elastic"] == ("ok", by)
    assert found["namespaces"] == ("care", "jobs; others is not covered")
    assert found["webhook"][0] == "wrong"
    assert found["controller"][0] == "wrong"
    assert found["kubectl scale"] == ("ok", "works, and so do HPAs")
    said = lab.refused("scaleout", "train", "-n", "others")
    assert "mpijob-elastic covers only the jobs in jobs, so nobody carries out changes" in said


@pytest.mark.thorough
async def test_a_user_who_may_not_read_the_lease_is_told_that_nobody_works(
    bare: CommandLine,
) -> None:
    lab = bare
    user = Typed(users_kubeconfig(lab.cluster, "jobs"), "jobs")
    nobody = "no webhook of mpijob-elastic answers for namespace jobs"
    words = ("submit", "--name=train", "--image=i", "--np=1")
    for typed in ((*words, "--", "true"), ("scaleout", "train", "--to", "3")):
        code, printed = await user.run(*typed)
        assert (code, printed.count(nobody)) == (Exit.REFUSED, 1)
        assert "an administrator runs `mpijob-elastic status -n jobs`" in printed
    code, printed = await user.run("status")
    assert (code, printed.splitlines()[-1][:41]) == (1, "Nothing of mpijob-elastic answers here: i")
    assert not lab.cluster.kubectl("get", "mpijobs", "-n", "jobs", "-o", "name")


@pytest.mark.usefixtures("elastic", "operator")
async def test_with_the_webhook_the_same_user_hears_nothing(cluster: Cluster, job: Job) -> None:
    user = Typed(users_kubeconfig(cluster, job.namespace), job.namespace)
    code, printed = await user.run("submit", "--name=other", "--image=i", "--np=1", "--", "true")
    assert (code, "Warning" in printed) == (0, False), printed


@pytest.mark.usefixtures("elastic", "operator")
async def test_a_namespace_that_opts_out_of_the_webhook_is_not_broken(
    cluster: Cluster, job: Job, client: ApiWriter
) -> None:
    user = Typed(users_kubeconfig(cluster, job.namespace), job.namespace)
    await job.create(replicas=2)
    await job.settled(2)
    await label(client, job.namespace, UNMUTATED)
    grown = ("scaleout", job.name, "--to", "3", "--no-exec")
    said = await user.refused(*grown)
    assert f"no webhook of mpijob-elastic answers for namespace {job.namespace}, and no" in said
    here = ("-n", job.namespace)
    cluster.kubectl("create", "role", "looks", *here, "--verb=get", "--resource=namespaces")
    who = f"--serviceaccount={job.namespace}:user"
    cluster.kubectl("create", "rolebinding", "looks", *here, "--role=looks", who)
    may(cluster, "user", "get", "namespaces", namespace=job.namespace)
    code, printed = await user.run(*grown)
    assert code == Exit.DONE, printed
    code, _, found = await parts(Typed(cluster.kubeconfig, job.namespace))
    assert (code, found["webhook"]) == (Exit.OTHERWISE, ("ok", "answers for jobs in default"))


@asynccontextmanager
async def without_mutation(
    cluster: Cluster, client: ApiWriter, namespace: str
) -> AsyncIterator[None]:
    """Delete the MutatingWebhookConfiguration, and put it back."""
    kind = ("mutatingwebhookconfiguration", "mpijob-elastic")
    found = json.loads(cluster.kubectl("get", *kind, "-o", "json"))
    for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        found["metadata"].pop(key, None)
    cluster.kubectl("delete", *kind)
    try:
        while await patched(client, namespace):
            await asyncio.sleep(0.1)
        yield
    finally:
        cluster.kubectl("create", "-f", "-", stdin=json.dumps(found))
        await until_patched(client, namespace)


@pytest.mark.usefixtures("elastic", "operator")
async def test_half_of_the_registration_is_missing(
    cluster: Cluster, client: ApiWriter, namespace: str
) -> None:
    """The other half still refuses the bad job by which the webhook is asked."""
    user = Typed(users_kubeconfig(cluster, namespace), namespace)
    administrator = Typed(cluster.kubeconfig, namespace)
    await until_patched(client, namespace)
    submit = ("submit", "--image=i", "--np=1")
    words = "new launchers get no discover_hosts.sh"
    async with without_mutation(cluster, client, namespace):
        # Only an administrator may read what is registered.
        for one, ends in (
            (administrator, (Exit.REFUSED, "unfinished", "wrong")),
            (user, (Exit.NOT_KNOWN, "unknown", "care")),
        ):
            code, report, found = await parts(one)
            state, said = found["webhook"]
            assert (code, report["verdict"], state) == ends
            assert words in said
        code, printed = await user.run(*submit, "--name=one", "--", "true")
        assert (code, printed.count(words)) == (Exit.DONE, 1), printed
    code, _, found = await parts(administrator)
    assert (code, found["webhook"][0]) == (Exit.OTHERWISE, "ok")
    code, printed = await user.run(*submit, "--name=two", "--", "true")
    assert (code, words in printed) == (Exit.DONE, False), printed


@pytest.mark.usefixtures("elastic", "operator")
async def test_who_may_patch_and_not_create_changes_no_size_where_nothing_answers(
    cluster: Cluster, job: Job, client: ApiWriter
) -> None:
    kubeconfig = account(cluster, job.namespace, "patches", verbs="get,list,watch,patch")
    may(cluster, "patches", "patch", "mpijobs.kubeflow.org", namespace=job.namespace)
    may(cluster, "patches", "list", "configmaps", namespace=job.namespace)
    user = Typed(kubeconfig, job.namespace)
    await job.create(replicas=1)
    await job.settled(1)
    code, printed = await user.run("scale", job.name, "--replicas=2", "--no-wait")
    assert code == Exit.DONE, printed
    await job.settled(2)
    await label(client, job.namespace, UNMUTATED)
    said = await user.refused("scale", job.name, "--replicas=3", "--no-wait")
    assert f"no webhook of mpijob-elastic answers for namespace {job.namespace}" in said
    assert (await job.state()).replicas == 2


def roles(lab: CommandLine) -> list[str]:
    """The ClusterRoles for users."""
    found = lab.get("clusterroles", "-l", "app.kubernetes.io/name=mpijob-elastic")["items"]
    names_of = [one["metadata"]["name"] for one in found]
    return sorted(name for name in names_of if name.endswith(("-view", "-edit")))


@pytest.mark.thorough
def test_the_roles_of_users_come_and_go_with_their_overlay(bare: CommandLine) -> None:
    bare.install("--jobs-namespace=jobs")
    assert roles(bare) == []
    bare.install("--overlay=user-roles", "--jobs-namespace=jobs")
    assert roles(bare) == ["mpijob-elastic-edit", "mpijob-elastic-view"]
    going = ("--jobs-namespace=jobs", "--remove-overlay=user-roles")
    said = bare.done("install", "--no-wait", *going)
    assert said.count("deleted     ClusterRole mpijob-elastic-") == 2
    assert roles(bare) == []
    bare.install("--overlay=user-roles", "--jobs-namespace=jobs")
    bare.done(*UNINSTALL)
    assert roles(bare) == []
