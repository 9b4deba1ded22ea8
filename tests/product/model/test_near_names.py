"""Which name somebody meant: capitals, one wrong letter or two, letters that changed places."""

import pytest

from mpijob_elastic.model import near_names, operator_types

# Fields of Kubernetes that are newer than the operator's types, by the struct that has them.
LATER = {
    "PodSpec": "ephemeralContainers hostUsers hostnameOverride os overhead resourceClaims resources"
    " schedulingGates setHostnameAsFQDN topologySpreadConstraints",
    "Container": "resizePolicy restartPolicy restartPolicyRules startupProbe",
    "PodSecurityContext": "appArmorProfile fsGroupChangePolicy seLinuxChangePolicy seccompProfile",
    "Volume": "ephemeral image",
    "Probe": "grpc terminationGracePeriodSeconds",
    "ResourceRequirements": "claims",
    "PodAffinityTerm": "matchLabelKeys mismatchLabelKeys namespaceSelector",
    "MPIJobSpec": "launcherCreationPolicy managedBy mpiImplementation runLauncherAsWorker"
    " sshAuthMountPath",
}


@pytest.mark.parametrize(
    ("struct", "written", "meant"),
    [
        ("Container", "imgae", "image"),
        ("Container", "Image", "image"),
        ("Container", "nmae", "name"),  # codespell:ignore
        ("Container", "evn", "env"),
        ("Container", "agrs", "args"),  # codespell:ignore
        ("Container", "comand", "command"),  # codespell:ignore
        ("Container", "resource", "resources"),
        ("PodSpec", "container", "containers"),
        ("PodSpec", "NodeSelectors", "nodeSelector"),
        ("PodSpec", "hostNetowrk", "hostNetwork"),
        ("ReplicaSpec", "replica", "replicas"),
        ("ReplicaSpec", "tempalte", "template"),  # codespell:ignore
        ("MPIJobSpec", "mpiReplicaSpec", "mpiReplicaSpecs"),
        ("MPIJobSpec", "slots_per_worker", "slotsPerWorker"),
        ("Container", "gpu", ""),
        ("Container", "", ""),
        ("Container", "image" * 10_000, ""),
        ("NoStruct", "image", ""),
    ],
)
def test_a_name_with_a_typing_error_is_known_again(struct: str, written: str, meant: str) -> None:
    assert near_names.nearest(written, operator_types.fields(struct)) == meant


@pytest.mark.parametrize(
    ("struct", "later"),
    [(struct, later) for struct, fields in LATER.items() for later in fields.split()],
)
def test_a_later_field_is_no_typing_error(struct: str, later: str) -> None:
    assert operator_types.fields(struct)
    assert near_names.nearest(later, operator_types.fields(struct)) == ""


CONTAINERS = "spec.mpiReplicaSpecs.Launcher.template.spec.containers"


@pytest.mark.parametrize(
    ("missing", "beside", "question"),
    [
        ("a.Worker", ["a.workers"], "did you mean Worker instead of workers?"),
        ("a.Worker", ["b.x", "a.y", "a.worker"], "did you mean Worker instead of worker?"),
        (CONTAINERS, ["spec.mpiReplicaSpec"], "mpiReplicaSpecs instead of mpiReplicaSpec?"),
        (f"{CONTAINERS}[0].image", [f"{CONTAINERS}[0].imgae"], "image instead of imgae?"),
        (f"{CONTAINERS}[0].image", [f"{CONTAINERS}[1].imgae"], None),
        ("a.Worker", ["b.worker", "worker", "a.b.worker", "a.Master"], None),
        ("spec.mpiReplicaSpecs.Worker", ["spec.mpiReplicaSpecs[a-b]"], None),
        ("a.Worker", [], None),
    ],
)
def test_a_name_that_stands_for_a_missing_one_is_asked_about(
    missing: str, beside: list[str], question: str | None
) -> None:
    found = near_names.stand_in(missing, beside)
    if question is None:
        assert found is None
    else:
        assert found is not None
        assert found.question.endswith(question)
