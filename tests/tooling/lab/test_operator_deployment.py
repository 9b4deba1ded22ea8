"""The manifest that mpi-operator v0.2.3 publishes, and what is changed for a lab."""

from pathlib import PurePosixPath

from lab.images import operator
from lab.operator import KUBECTL_DELIVERY_IMAGE, OPERATOR_IMAGE, deployment


def test_only_the_images_of_the_published_manifest_are_changed() -> None:
    before = {one["kind"]: one for one in deployment.published()}
    after = {one["kind"]: one for one in deployment.manifests()}
    assert before.keys() - after.keys() == {"CustomResourceDefinition"}
    assert {kind for kind, one in after.items() if one != before[kind]} == {"Deployment"}
    old, new = (one["Deployment"]["spec"]["template"]["spec"]["containers"][0] for one in (before, after))
    assert {key for key, value in new.items() if value != old[key]} == {"image", "args", "imagePullPolicy"}
    assert new["image"] == OPERATOR_IMAGE
    assert new["args"] == [*old["args"][:-1], KUBECTL_DELIVERY_IMAGE]


def test_the_image_has_the_program_where_the_manifest_looks() -> None:
    [container] = [
        one["spec"]["template"]["spec"]["containers"][0]
        for one in deployment.manifests()
        if one["kind"] == "Deployment"
    ]
    assert container["command"] == [str(PurePosixPath("/", operator.PROGRAM))]
