"""A bad neighbour's MPIJobs: the largest that the API server stores, each costly to read in another way."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from bench import jobs
from mpijob_elastic import names
from tests.campaign.hostile_texts import compact, deep

# What etcd takes is 1.5 MiB with all that the API server adds. The sizes that are tried, in bytes, largest first.
SIZES = tuple(size * 2**10 for size in (1_500, 1_400, 1_200, 1_000, 700, 500))
# A launcher's argument may be so long (MAX_ARG_STRLEN of Linux is 128 KiB).
_SCRIPT = 64 * 2**10
# All annotations of an object (apimachinery, TotalAnnotationSizeLimitB: 256 KiB).
_ANNOTATIONS = 250 * 2**10


def small(name: str, *, replicas: int = 1, drain_timeout: str = "1s") -> dict[str, Any]:
    """Return a usual job."""
    return jobs.manifest(name, replicas=replicas, drain_timeout=drain_timeout)


def _scripts(random: Random, size: int) -> bytes:
    """Shell text in every container of the launcher, so that the launcher pod is as large."""
    job = small("scripts")
    line = random.choice(["a;", "horovodrun ", "echo 'x';", "$(a) "])
    [first] = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    script = ["sh", "-c", line * (_SCRIPT // len(line))]
    others = [{"name": f"c{n}", "image": first["image"], "command": script} for n in range(size // _SCRIPT)]
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"] = [first, *others]
    return compact(job)


def _fields(random: Random, size: int) -> bytes:
    unit = random.choice([b"{}", b'""', b"null", b'{"name":"a"}'])
    return _with("fields", b"[" + b",".join([unit] * (size // (len(unit) + 1))) + b"]")


def _towers(random: Random, size: int) -> bytes:
    """Lists in lists, as deep as Python's decoder does not follow and the API server does, side by side."""
    depth = random.randrange(2_000, 9_000)
    return _with("towers", b"[" + b",".join(b"[" * depth + b"]" * depth for _ in range(size // (2 * depth))) + b"]")


def _objects(random: Random, size: int) -> bytes:
    """Objects in objects, which the API server repeats in managedFields."""
    tower = deep(Random(0), 1)
    while not tower.startswith(b"{"):
        tower = deep(random, random.randrange(1_000, 3_000))
    return _with("objects", b"{" + b",".join(b'"k%d":%s' % (n, tower) for n in range(size // 3 // len(tower))) + b"}")


def _texts(random: Random, size: int) -> bytes:
    job = small("texts")
    text = random.choice(["\\", '"', "\x1b[2J", "horovodrun"])
    job["metadata"]["annotations"]["neighbour/text"] = text * (_ANNOTATIONS // len(text))
    return _with("texts", compact("a" * (size - len(compact(job)))), job)


def _with(name: str, value: bytes, job: dict[str, Any] | None = None) -> bytes:
    """Return a job with a field in its spec that no program knows, and that the API server stores all the same."""
    job = job or small(name)
    job["spec"]["unknown"] = "\x00HERE"
    return compact(job).replace(b'"\\u0000HERE"', value)


# Each makes a job of its name and about that many bytes.
LARGEST: Mapping[str, Callable[[Random, int], bytes]] = {
    "scripts": _scripts,
    "fields": _fields,
    "towers": _towers,
    "objects": _objects,
    "texts": _texts,
}


def edit(number: int) -> dict[str, Any]:
    """Return an edit of an annotation, as a merge patch, that the controller must look at each time."""
    return {"metadata": {"annotations": {names.DRAIN_TIMEOUT: f"{number % 600}s"}}}
