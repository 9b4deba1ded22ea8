"""The images that there are, and the one function that gets them."""

from collections.abc import Callable, Mapping
from pathlib import Path

from lab.build import Say
from lab.errors import LabError
from lab.images import delivery, horovod, mpi, operator
from lab.images.artifacts import Artifact, Store
from lab.images.product import image as product
from lab.layout import cache_dir

REFERENCES: Mapping[str, str] = {
    delivery.NAME: delivery.REFERENCE,
    operator.NAME: operator.REFERENCE,
    horovod.NAME: horovod.REFERENCE,
    mpi.NAME: mpi.REFERENCE,
    product.NAME: product.REFERENCE,
}
"""What a pod calls each image, by name."""
_ARTIFACTS: Mapping[str, Callable[[], Artifact]] = {
    delivery.NAME: delivery.artifact,
    operator.NAME: operator.artifact,
    horovod.NAME: horovod.artifact,
    mpi.NAME: mpi.artifact,
    product.NAME: product.artifact,
}


def ensure(name: str, say: Say) -> Path:
    """Return the archive of an image; build it first if it is missing or out of date.

    Raise LabError.

    `ctr -n k8s.io images import PATH` imports it, and pods find it by its reference (containerd
    puts docker.io/ and, where there is no slash, library/ before it). `say` gets progress: it may
    take ten minutes, once, and what was done before an interruption is not done again.
    """
    return _store().ensure(_artifact(name), say)


def built(name: str) -> Path | None:
    """Return the archive of an image if it is there and up to date; raise LabError for an unknown name."""
    path = _store().path(_artifact(name))
    return path if path.exists() else None


def lacking(name: str) -> list[str]:
    """Return the Debian packages without which an image that is not there cannot be built."""
    tools = [tool for one in _store().missing(_artifact(name)) for tool in one.tools]
    return sorted({tool.package for tool in tools if tool.find() is None})


def _artifact(name: str) -> Artifact:
    if name not in _ARTIFACTS:
        raise LabError(f"there is no image {name!r}; there are {', '.join(REFERENCES)}.")
    return _ARTIFACTS[name]()


def _store() -> Store:
    return Store(cache_dir() / "images")
