from itertools import pairwise

import pytest

from mpijob_elastic import names
from mpijob_elastic.install import server_side_apply
from mpijob_elastic.install.installer import NOT_FOR_JOBS, Plan
from mpijob_elastic.install.objects import identity
from mpijob_elastic.install.overlays import Overlay


def test_hooks_come_last_and_rights_before_what_runs_under_them() -> None:
    kinds = [one["kind"] for one in Plan().manifests()]
    assert kinds[0] == "Namespace"
    assert kinds[-2:] == ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
    for before, after in pairwise(["ServiceAccount", "ClusterRole", "RoleBinding", "NetworkPolicy", "Deployment"]):
        assert last(kinds, before) < kinds.index(after)


def test_every_object_has_our_label_and_is_there_once() -> None:
    manifests = Plan(overlays=(Overlay.CERT_MANAGER, Overlay.PROMETHEUS)).manifests()
    assert len({identity(one) for one in manifests}) == len(manifests)
    assert all(one["metadata"]["labels"]["app.kubernetes.io/name"] == "mpijob-elastic" for one in manifests)


def test_the_order_of_overlays_does_not_matter() -> None:
    plans = [
        Plan(overlays=(Overlay.CERT_MANAGER, Overlay.SINGLE_NAMESPACE), jobs_namespaces=("a",)),
        Plan(overlays=(Overlay.SINGLE_NAMESPACE, Overlay.CERT_MANAGER), jobs_namespaces=("a",)),
        Plan(overlays=(Overlay.CERT_MANAGER,), jobs_namespaces=("a",)),
    ]
    first, second, implied = ({identity(one): one for one in plan.manifests()} for plan in plans)
    assert first == second == implied


def test_overlays_that_change_one_container_are_both_in_it() -> None:
    manifests = Plan(overlays=(Overlay.CERT_MANAGER,), jobs_namespaces=("a", "b")).manifests()
    [webhook] = [one for one in manifests if identity(one).name == names.WEBHOOK and one["kind"] == "Deployment"]
    [container] = webhook["spec"]["template"]["spec"]["containers"]
    assert "--certificate-directory=/certificates" in container["args"]
    assert container["env"] == [{"name": "MPIJOB_ELASTIC_JOBS_NAMESPACE", "value": "a b"}]


def test_the_overlay_for_namespaces_needs_them() -> None:
    with pytest.raises(ValueError, match="needs the namespaces whose jobs to manage"):
        Plan(overlays=(Overlay.SINGLE_NAMESPACE,))


@pytest.mark.parametrize("namespace", ["kube-system", "mpijob-elastic"])
def test_where_no_jobs_are_looked_after(namespace: str) -> None:
    with pytest.raises(ValueError, match=f"jobs in {namespace} are never managed"):
        Plan(jobs_namespaces=("a", namespace))


def test_the_webhook_is_asked_about_no_namespace_where_no_jobs_are_looked_after() -> None:
    for configuration in Plan().manifests()[-2:]:
        for hook in configuration["webhooks"]:
            assert set(hook["namespaceSelector"]["matchExpressions"][0]["values"]) == NOT_FOR_JOBS


def test_unknown_kinds_come_between_guards_and_workloads() -> None:
    assert server_side_apply.order("NetworkPolicy") < server_side_apply.order("PodMonitor")
    assert server_side_apply.order("PodMonitor") < server_side_apply.order("Deployment")


def last(kinds: list[str], kind: str) -> int:
    return len(kinds) - 1 - kinds[::-1].index(kind)
