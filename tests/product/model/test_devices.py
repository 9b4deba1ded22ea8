"""The accelerators in the amounts of a worker: whole devices together, each kind of slice apart."""

from collections.abc import Mapping

import pytest

from mpijob_elastic.model import devices, requests

CLASS = "deviceclass.resource.kubernetes.io/"


def counted(**amounts: str) -> devices.Devices:
    return devices.of(requests.readable(amounts))


WHOLE = [
    "nvidia.com/gpu",
    "amd.com/gpu",
    "amd.com/spx_nps1",
    "iluvatar.ai/gpu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "habana.ai/gaudi",
    "huawei.com/Ascend910",
    "huawei.com/Ascend310P",
    "huawei.com/Ascend310P-V",
    "huawei.com/Ascend310P-IPro",
    "huawei.com/npu",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neurondevice",
    "google.com/tpu",
    f"{CLASS}gpu.nvidia.com",
    f"{CLASS}vfio.gpu.nvidia.com",
    f"{CLASS}gpu.amd.com",
    f"{CLASS}gaudi.intel.com",
    f"{CLASS}a100-gpu",
]
SLICES = [
    "nvidia.com/gpu.shared",
    "nvidia.com/mig-1g.10gb",
    "nvidia.com/mig-1g.10gb.me",
    "nvidia.com/mig-3g.20gb.shared",
    "amd.com/cpx_nps4",
    "amd.com/dpx_nps2",
    "huawei.com/Ascend910-16c",
    "huawei.com/Ascend310P-2c.1cpu",
    "huawei.com/npu-core",
    "aws.amazon.com/neuroncore",
    f"{CLASS}mig.nvidia.com",
    f"{CLASS}vgpu.gpu.nvidia.com",
]
NEITHER = [
    "cpu",
    "memory",
    "rdma/hca",
    "gpu.intel.com/i915_monitoring",
    "gpu.intel.com/xe_monitoring",
    "nvidia.com/gpumem",
    "nvidia.com/migrated",
    "example.com/gpu-memory",
    "huawei.com/Ascend910B-memory",
    f"{CLASS}dranet-ib",
    f"{CLASS}dra.cpu",
    f"{CLASS}compute-domain-daemon.nvidia.com",
    f"x.{CLASS}gpu.nvidia.com",
    "gpu",
]


@pytest.mark.parametrize("resource", WHOLE)
def test_a_whole_device(resource: str) -> None:
    assert counted(**{resource: "4"}) == devices.Devices(whole=4)


@pytest.mark.parametrize("resource", SLICES)
def test_a_slice_has_its_own_name_and_is_no_device(resource: str) -> None:
    assert counted(**{resource: "4"}) == devices.Devices(slices={resource: 4})


@pytest.mark.parametrize("resource", NEITHER)
def test_anything_else_does_not_count(resource: str) -> None:
    assert counted(**{resource: "4"}) == devices.Devices()


@pytest.mark.parametrize(
    ("amounts", "words"),
    [
        ({}, ""),
        ({"cpu": "4"}, ""),
        ({"nvidia.com/gpu": "4"}, "4"),
        ({"nvidia.com/mig-1g.10gb": "2"}, "2 mig-1g.10gb"),
        ({"nvidia.com/gpu": "4", "nvidia.com/mig-1g.10gb": "2"}, "4, 2 mig-1g.10gb"),
        ({"nvidia.com/gpu": "1", "amd.com/gpu": "2"}, "3"),
        (
            {"nvidia.com/mig-2g.20gb": "1", "nvidia.com/mig-1g.10gb": "2"},
            "2 mig-1g.10gb, 1 mig-2g.20gb",
        ),
        ({f"{CLASS}mig.nvidia.com": "3"}, "3 mig.nvidia.com"),
        ({"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "0"}, ""),
        ({"nvidia.com/gpu": "-1"}, ""),
        ({"nvidia.com/gpu": "1500m"}, "1"),
    ],
    ids=str,
)
def test_in_words(amounts: Mapping[str, str], words: str) -> None:
    assert str(counted(**amounts)) == words


def test_of_several_workers() -> None:
    each = counted(**{"nvidia.com/gpu": "4", "nvidia.com/gpu.shared": "2"})
    assert str(each.times(3)) == "12, 6 gpu.shared"
    assert each.times(0) == devices.Devices()


def test_each_row_of_the_table_has_a_source() -> None:
    assert all(kind.source.startswith("https://") for kind in devices.ACCELERATORS)


@pytest.mark.parametrize(
    ("resource", "keys"),
    [
        ("nvidia.com/gpu", []),
        ("cpu", []),
        (f"{CLASS}gpu.nvidia.com", ["gpu.nvidia.com.deviceclass.resource.k8s.io/devices"]),
        (f"{CLASS}dranet-ib", ["dranet-ib.deviceclass.resource.k8s.io/devices"]),
    ],
)
def test_the_key_of_a_quota_for_the_devices_of_a_class(resource: str, keys: list[str]) -> None:
    assert list(devices.quota_keys(resource)) == keys
