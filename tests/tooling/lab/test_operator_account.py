"""An operator of the lab has the account of its release's manifest, and so its rights, neither more nor less."""

import asyncio

import pytest
import yaml

from bench.audit import Tail
from lab.cluster import Cluster
from lab.operator import Release, account, deployment
from lab.operator.process import Operator
from tests.lab.job import Job
from tests.lab.scalable import told

RELEASES = pytest.mark.parametrize("release", Release)


@RELEASES
def test_the_role_is_that_of_the_manifest(release: Release) -> None:
    [published] = (one for one in deployment.published(release) if one["kind"] == "ClusterRole")
    assert yaml.safe_load(account.role_file(release).read_text()) == published


@RELEASES
def test_only_the_old_release_needs_more_for_gangs(release: Release) -> None:
    usual, for_gangs = account.manifests(release), account.manifests(release, gangs=True)
    added = [one["metadata"]["name"] for one in for_gangs[len(usual) :]]
    assert for_gangs[: len(usual)] == usual
    assert added == {Release.V0_2_3: ["mpi-operator-v0.2.3-gangs"] * 2}.get(release, [])


@pytest.mark.lab
@RELEASES
async def test_an_operator_works_with_the_rights_of_its_release(
    cluster: Cluster, job: Job, release: Release
) -> None:
    tail, who = Tail(cluster.audit_log), f"{account.USERS}{account.account(release)}"
    with Operator.start(cluster, release=release, namespace=job.namespace) as operator:
        await job.create(replicas=1)
        await job.until(lambda state: "Running" in state.conditions, "all running")
        await job.scale(2)
        await job.until(lambda state: len(state.workers) == 2, "the operator made a worker")
        if release is Release.V0_3_0:
            await job.until(lambda state: len(state.exec_names) == 2, "and widened the Role")
        refused = [line for line in operator.log.read_text().splitlines() if "forbidden" in line]
    by = {write.user for write in tail.writes() if write.resource in {"roles", "rolebindings"}}
    assert by == {who}
    # v0.2.3 asks for PodGroups even without --gang-scheduling, once a second, and needs none.
    assert [line for line in refused if '"podgroups"' not in line] == []
    assert bool(refused) is (release in account.ADDED_FOR_GANGS)
    # So the API server looks whether it may do itself what the launcher's Role allows.
    escalates = ("auth", "can-i", "escalate", "roles.rbac.authorization.k8s.io", f"--as={who}")
    assert (await asyncio.to_thread(told, cluster, *escalates))[0] == 1
