"""The files that a real node finds: configuration and credentials.

What it had before is gone, but its images.
"""

import shutil
from pathlib import Path

from lab.credentials import Credentials
from lab.kubeconfig import Server, write_certificate_kubeconfig
from lab.layout import Layout
from lab.node import addresses, containerd, kubelet, proxy
from lab.node.addresses import Place
from lab.pki import KeyPair


def write(layout: Layout, place: Place, credentials: Credentials) -> None:
    """Recreate the node's directories, but keep containerd's: it takes a minute to unpack an image again."""
    _clear(place.lib(layout))
    shutil.rmtree(place.log(layout), ignore_errors=True)
    for directory in (
        place.log(layout),
        *(place.there(layout, one) for one in (addresses.LAB, containerd.NETWORK_CONFIGURATIONS)),
    ):
        directory.mkdir(parents=True)
    plugins = containerd.plugin_directory()
    assert plugins is not None, "requirements were not checked"
    written = {
        containerd.CONFIGURATION: containerd.configuration(plugins),
        containerd.NETWORK_CONFIGURATIONS / "lab.conflist": containerd.network(place),
        kubelet.CONFIGURATION: kubelet.configuration(place),
        kubelet.RESOLVER: f"nameserver {kubelet.NO_RESOLVER}\n",
    }
    for path, text in written.items():
        place.there(layout, path).write_text(text)
    _write_credentials(layout, place, credentials.kubelets[place], credentials.authority)


def _clear(lib: Path) -> None:
    for path in lib.iterdir() if lib.exists() else ():
        if path.name != addresses.CONTAINERD.name:
            shutil.rmtree(path)


def _write_credentials(layout: Layout, place: Place, pair: KeyPair, authority: Path) -> None:
    server = Server(url=proxy.API_SERVER, ca=authority.read_bytes())
    write_certificate_kubeconfig(
        place.there(layout, kubelet.KUBECONFIG), server, user=place.user, pair=pair
    )
    copies = {
        kubelet.AUTHORITY: authority,
        kubelet.CERTIFICATE: pair.certificate,
        kubelet.KEY: pair.key,
    }
    for path, source in copies.items():
        shutil.copy(source, place.there(layout, path))
