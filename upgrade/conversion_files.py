"""Convert a file, a folder with its subfolders, standard input, or a job in the cluster."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from mpijob_elastic.install import Refused
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import Resource
from upgrade import conversion
from upgrade.conversion import Converted

STANDARD_INPUT = Path("-")
_SUFFIXES = (".yaml", ".yml", ".json")
_KINDS = {
    "mpijob": Resource(group="kubeflow.org", version="v1alpha2", plural="mpijobs", kind="MPIJob"),
    "trainingjob": Resource(
        group="kai.alibabacloud.com", version="v1alpha1", plural="trainingjobs", kind="TrainingJob"
    ),
}

# A name, relative to the given path, and its objects.
File = tuple[Path, list[Converted]]


def convert(source: Path) -> list[File]:
    """Convert everything before anything is written. Raises `Refused` and OSError."""
    if source == STANDARD_INPUT:
        return [_converted(sys.stdin.read(), Path("stdin.yaml"))]
    if not source.is_dir():
        return [_converted(source.read_text(), Path(source.name))]
    found = sorted(
        path for path in source.rglob("*") if path.suffix in _SUFFIXES and path.is_file()
    )
    if not found:
        raise Refused(
            f"{source} holds no {', '.join(_SUFFIXES)} files; name a folder with manifests"
        )
    return [_converted(path.read_text(), path.relative_to(source)) for path in found]


async def convert_live(client: ApiReader, wanted: str, namespace: str) -> File:
    """Convert `KIND/NAME`. Raises `Refused` and `errors.KubeError`."""
    kind, _, name = wanted.partition("/")
    resource = _KINDS.get(kind.lower().removesuffix("s"))
    if resource is None or not name:
        raise Refused(f"--live {wanted}: use mpijob/NAME or trainingjob/NAME")
    try:
        raw = await client.get(resource.path(namespace, name))
    except errors.NotFound as error:
        raise Refused(
            f"--live {wanted}: {error.message} in namespace {namespace} ({resource.api_version})"
        ) from error
    return Path(f"{name}.yaml"), [conversion.convert(msgspec.json.decode(raw))]


def write(files: Iterable[File], folder: Path | None, *, say: Callable[[str], None]) -> None:
    """Write YAML to standard output, or to files of the same names below `folder`.

    Notes go to `say`. Raises `Refused` if a file already exists, or two would become one, before
    anything is written, and OSError.
    """
    files = list(files)
    for name, objects in files:
        for one in objects:
            for note in one.notes:
                say(f"{name}: {one.subject}: {note}")
    if folder is None:
        sys.stdout.write(conversion.render(one for _, objects in files for one in objects))
        return
    targets: dict[Path, File] = {}
    for file in files:
        name = file[0]
        path = folder / name.with_suffix(".yaml")
        if (other := targets.setdefault(path, file)) is not file:
            raise Refused(f"{other[0]} and {name} would both become {path}; rename one of them")
    if there := [str(path) for path in targets if path.exists()]:
        raise Refused(f"{', '.join(there)}: already exists; choose an empty folder for --output")
    for path, (_, objects) in targets.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(conversion.render(objects))


def _converted(text: str, name: Path) -> File:
    return name, conversion.convert_text(text, where=str(name))
