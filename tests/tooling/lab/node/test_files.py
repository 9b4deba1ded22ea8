"""A node that comes back finds nothing of what it had, but its images."""

import datetime as dt
from pathlib import Path

import pytest

from lab.credentials import Credentials, write_credentials
from lab.layout import Layout
from lab.node import addresses, files, kubelet, network
from lab.node.addresses import Place

ONE, OTHER = addresses.places(2)


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    for plugin in network.PLUGINS:
        (plugins / plugin).touch(mode=0o755)
    monkeypatch.setenv("CNI_PATH", str(plugins))
    layout = Layout(tmp_path / "lab")
    for directory in (layout.pki, layout.kubeconfigs):
        directory.mkdir(parents=True)
    return layout


@pytest.fixture
def credentials(layout: Layout) -> Credentials:
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    return write_credentials(layout, "https://127.0.0.1:1", now=now, real_nodes=(ONE, OTHER))


def test_a_node_that_comes_back_has_its_images_and_nothing_else(layout: Layout, credentials: Credentials) -> None:
    files.write(layout, ONE, credentials)
    image, pod = ONE.there(layout, addresses.CONTAINERD / "image"), ONE.there(layout, addresses.LIB / "kubelet" / "pod")
    for path in (image, pod, ONE.log(layout) / "pods"):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    ONE.prepared(layout).touch()
    files.write(layout, ONE, credentials)
    assert image.exists()
    assert not pod.exists()
    assert not ONE.prepared(layout).exists()
    assert list(ONE.log(layout).iterdir()) == []


def test_each_kubelet_has_its_own_certificate(layout: Layout, credentials: Credentials) -> None:
    def certificate(place: Place) -> bytes:
        files.write(layout, place, credentials)
        return place.there(layout, kubelet.CERTIFICATE).read_bytes()

    assert certificate(ONE) != certificate(OTHER)
