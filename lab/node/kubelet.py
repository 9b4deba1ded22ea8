"""The kubelet on the node: its configuration, and how it is run.

Whatever decides when a pod learns of a change (how often it syncs pods, how long it caches
ConfigMaps) is left at its default: that is what is measured.
"""

import yaml

from lab.node.addresses import CONTAINERD_SOCKET, KUBELET_PORT, LAB, Place

CONFIGURATION = LAB / "kubelet.yaml"
KUBECONFIG = LAB / "kubeconfig"
AUTHORITY = LAB / "ca.crt"
CERTIFICATE = LAB / "kubelet.crt"
KEY = LAB / "kubelet.key"
RESOLVER = LAB / "resolv.conf"
PROGRAM = LAB / "kubelet"
# Nobody answers there, at once: the node has no DNS.
NO_RESOLVER = "127.0.0.1"


def configuration(place: Place) -> str:
    """Return a KubeletConfiguration (https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/)."""
    # The disk of a developer may well be fuller than a kubelet likes.
    thresholds = (
        "memory.available",
        "nodefs.available",
        "nodefs.inodesFree",
        "imagefs.available",
        "imagefs.inodesFree",
    )
    content = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": place.address,
        "port": KUBELET_PORT,
        "tlsCertFile": str(CERTIFICATE),
        "tlsPrivateKeyFile": str(KEY),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(AUTHORITY)},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "resolvConf": str(RESOLVER),
        "clusterDNS": [NO_RESOLVER],
        "makeIPTablesUtilChains": False,  # there is nothing to protect
        "failSwapOn": False,
        "imageGCHighThresholdPercent": 100,
        "evictionHard": dict.fromkeys((*thresholds, "pid.available"), "0%"),
        # What works with cgroup v1, v2 and both: no groups for classes of pods. containerd says
        # where containers are.
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
    }
    return yaml.safe_dump(content, sort_keys=False)


def command(place: Place, *, labels: dict[str, str]) -> list[str]:
    """Return how it is run on the node."""
    return [
        str(PROGRAM),
        f"--config={CONFIGURATION}",
        f"--kubeconfig={KUBECONFIG}",
        f"--hostname-override={place.name}",
        f"--node-ip={place.address}",
        f"--node-labels={','.join(f'{key}={value}' for key, value in labels.items())}",
    ]
