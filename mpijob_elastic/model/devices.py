"""GPUs and other accelerators, by the names that a cluster gives them.

A resource is a whole device or a slice of one. Whole devices of all kinds are added up. A slice has
its own name and count, and is never added to anything: two slices of 10 GB are not two GPUs.

Dynamic Resource Allocation (DRA) serves an extended resource either under the name that its
DeviceClass chooses, often that of a device plugin, or under
`deviceclass.resource.kubernetes.io/CLASS`. The latter may be of any class, such as network cards,
so only classes of accelerators count. A name that an administrator has chosen freely is unknown.
https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from mpijob_elastic.model import requests

_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
# [k8s.io/api core/v1 ResourceClaimsPerClass] A ResourceQuota counts the devices of a class by the
# key CLASS + this.
CLASS_QUOTA = ".deviceclass.resource.k8s.io/devices"


# GPUs or slices of a node: no node has more.
MOST_WEIGHT = 1024


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """A row of the table of accelerators."""

    #: Matches the whole name of the resource.
    name: re.Pattern[str]
    #: True for a part of a device.
    is_slice: bool = False
    #: The page or file that says so.
    source: str


_NVIDIA = "https://github.com/NVIDIA/k8s-device-plugin"
_NVIDIA_DRA = "https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu"
_AMD = "https://instinct.docs.amd.com/projects/k8s-device-plugin/en/latest/user-guide/configuration.html"
_INTEL = "https://intel.github.io/intel-device-plugins-for-kubernetes/cmd/gpu_plugin/README.html"
_INTEL_DRA = "https://github.com/intel/intel-resource-drivers-for-kubernetes"
_GAUDI = "https://docs.habana.ai/en/latest/Orchestration/Gaudi_Kubernetes/index.html"
_ASCEND = (
    "https://www.hiascend.com/document/detail/zh/mindcluster/730/clustersched/dlug/mxdlug_005.html"
)
_NEURON = "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/containers/tutorials/k8s-neuron-device-plugin.html"
_TPU = "https://cloud.google.com/kubernetes-engine/docs/how-to/tpus"


def _row(name: str, source: str, *, is_slice: bool = False) -> Accelerator:
    return Accelerator(name=re.compile(name), is_slice=is_slice, source=source)


def _class_row(name: str, source: str, *, is_slice: bool = False) -> Accelerator:
    """Return the row of device classes; `name` is a pattern of their names."""
    return _row(re.escape(_CLASS_PREFIX) + name, source, is_slice=is_slice)


# The first row that matches counts.
ACCELERATORS = (
    # Time slices and MPS (renameByDefault), and MIG (mig.strategy=mixed).
    _row(r"nvidia\.com/gpu\.shared", _NVIDIA, is_slice=True),
    _row(r"nvidia\.com/mig-[0-9][0-9a-z.+-]*", _NVIDIA, is_slice=True),
    # A partition of a GPU by compute and memory; in the mode SPX the GPU is in one piece.
    _row(r"amd\.com/spx_nps[0-9]", _AMD),
    _row(r"amd\.com/[a-z]px_nps[0-9]", _AMD, is_slice=True),
    # The monitoring resources of the same driver give access to all GPUs of a node.
    _row(r"gpu\.intel\.com/(i915|xe)", _INTEL),
    _row(r"habana\.ai/gaudi", _GAUDI),
    # So many AI cores of a chip.
    _row(r"huawei\.com/Ascend[0-9A-Za-z]+-[0-9]+c[0-9a-z.]*", _ASCEND, is_slice=True),
    _row(r"huawei\.com/npu-core", _ASCEND, is_slice=True),
    _row(r"huawei\.com/Ascend[0-9A-Za-z]+(-(V|VPro|IPro))?", _ASCEND),
    _row(r"huawei\.com/npu", _ASCEND),
    # A core of a device; `neurondevice` is the device's former name.
    _row(r"aws\.amazon\.com/neuroncore", _NEURON, is_slice=True),
    _row(r"aws\.amazon\.com/neuron(device)?", _NEURON),
    # Chips.
    _row(r"google\.com/tpu", _TPU),
    _class_row(r"mig\.nvidia\.com", _NVIDIA_DRA, is_slice=True),
    _class_row(r"vgpu\.gpu\.nvidia\.com", _NVIDIA_DRA, is_slice=True),
    _class_row(r"vfio\.gpu\.nvidia\.com", _NVIDIA_DRA),
    _class_row(r"gaudi\.intel\.com", _INTEL_DRA),
    # gpu.nvidia.com, gpu.amd.com, gpu.intel.com, or a class of the cluster, such as gpu-a100.
    _class_row(r"([a-z0-9-]*-)?gpu(-[a-z0-9-]*)?(\.[a-z0-9.-]*)?", _NVIDIA_DRA),
    # Other vendors' GPUs, and what a DeviceClass is named after.
    _row(r"[a-z0-9.-]+/gpu", _NVIDIA),
)


class Devices(msgspec.Struct, frozen=True, kw_only=True):
    """Accelerators, counted."""

    #: Whole devices, of any vendor.
    whole: int = 0
    #: Slices of devices, by the names of their resources.
    slices: Mapping[str, int] = {}

    def times(self, number: int) -> "Devices":
        """Return the devices of so many workers."""
        slices = {name: count * number for name, count in self.slices.items() if number}
        return Devices(whole=self.whole * number, slices=slices)

    def __bool__(self) -> bool:
        """True if there are any."""
        return bool(self.whole or self.slices)

    @property
    def weight(self) -> int:
        """Whole devices, else slices, for GPU-seconds; 1 without either.

        A tenant may ask for any number, so it is bounded.
        """
        return min(self.whole or sum(self.slices.values()) or 1, MOST_WEIGHT)

    def __str__(self) -> str:
        """The devices in words, such as `4, 2 mig-1g.10gb`; "" for none."""
        return in_words(self.whole, self.slices)


def in_words(whole: int, slices: Mapping[str, int]) -> str:
    """Return counts in words, such as `4, 2 mig-1g.10gb`; "" if there are none."""
    parts = [str(whole)] if whole else []
    parts += [f"{count} {_short(name)}" for name, count in slices.items()]
    return ", ".join(parts)


def of(amounts: Mapping[str, int]) -> Devices:
    """Return the accelerators in amounts of resources (`requests.Amounts`)."""
    whole, slices = 0, dict[str, int]()
    for name, amount in sorted(amounts.items()):
        kind, count = kind_of(name), amount // requests.UNIT
        if kind is None or count <= 0:
            continue
        if kind.is_slice:
            slices[name] = count
        else:
            whole += count
    return Devices(whole=whole, slices=slices)


def kind_of(resource: str) -> Accelerator | None:
    """Return the row of a resource; None if it is no accelerator."""
    return next((kind for kind in ACCELERATORS if kind.name.fullmatch(resource)), None)


def quota_keys(resource: str) -> Iterator[str]:
    """Yield the key by which a ResourceQuota counts a class that the resource names, if it does.

    The scheduler makes a claim for such a resource, and the claim counts; the key of the resource
    itself counts the pod.
    """
    if resource.startswith(_CLASS_PREFIX):
        yield f"{resource.removeprefix(_CLASS_PREFIX)}{CLASS_QUOTA}"


def _short(resource: str) -> str:
    return resource.rpartition("/")[2]
