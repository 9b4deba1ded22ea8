"""References to images: what kubelets accept passes, and everything else is named."""

import pytest

from mpijob_elastic import __version__
from mpijob_elastic.install import image

DIGEST = "sha256:" + "0a" * 32


@pytest.mark.parametrize(
    "reference",
    [
        "mpijob-elastic",
        f"mpijob-elastic:{__version__}",
        "team/mpijob-elastic:Latest_1",
        "localhost/mpijob-elastic:1",
        "localhost:5000/mpijob-elastic",
        "registry.example.com:5000/a/b_c/d__e/f--g.h:1",
        "REGISTRY/mpijob-elastic:1",
        "Registry.example.com/mpijob-elastic:1",
        "[::1]:5000/mpijob-elastic:1",
        f"registry.example.com/mpijob-elastic@{DIGEST}",
        f"registry.example.com/mpijob-elastic:1@{DIGEST}",
    ],
)
def test_what_a_kubelet_accepts_passes(reference: str) -> None:
    assert image.fault(reference) == ""


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("", "'' is no name"),
        ("bad image", "it has a space"),
        ("mpijob-elastic:0.4.0\n", "it has a space"),
        ("registry.example.com/Team/mpijob-elastic:1", "'Team/mpijob-elastic' has capital letters"),
        ("Mpijob-elastic:1", "'Mpijob-elastic' has capital letters"),
        ("team/mpijob-elastic:", "'' is no tag"),
        ("team/mpijob-elastic:-1", "'-1' is no tag"),
        ("team/mpijob-elastic:" + "a" * 129, "is no tag"),
        ("team/mpijob-elastic@sha256:12", "what stands behind the @ is no digest"),
        ("team/mpijob-elastic@", "what stands behind the @ is no digest"),
        ("https://registry.example.com/mpijob-elastic", "'https:' is no registry"),
        ("-a.b/mpijob-elastic:1", "'-a.b' is no registry"),
        ("team//mpijob-elastic:1", "'team//mpijob-elastic' is no name"),
        ("team/mpijob---:1", "is no name"),
        ("a" * 256, "more than 255 characters"),
    ],
)
def test_what_no_kubelet_accepts_is_named(reference: str, why: str) -> None:
    said = image.fault(reference)
    assert why in said
    assert said.endswith(f"write it as registry.example.com/team/mpijob-elastic:{__version__}")


def test_the_word_of_the_documentation_is_no_registry() -> None:
    said = image.fault(f"REPOSITORY/mpijob-elastic:{__version__}")
    assert said.startswith("REPOSITORY stands for your registry and path; write it as ")
