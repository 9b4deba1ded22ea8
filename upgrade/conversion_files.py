"""Convert a file, a folder with its subfolders, standard input, or a job in the cluster."""

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mpijob_elastic.install import Refused
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import Resource
from upgrade import conversion, kustomizations
from upgrade.conversion import Converted
from upgrade.notes import ConversionNote

STANDARD_INPUT = Path("-")
_STDIN = "standard input"
_SUFFIXES = (".yaml", ".yml", ".json")
_KINDS = {
    "mpijob": Resource(group="kubeflow.org", version="v1alpha2", plural="mpijobs", kind="MPIJob"),
    "trainingjob": Resource(
        group="kai.alibabacloud.com", version="v1alpha1", plural="trainingjobs", kind="TrainingJob"
    ),
}


@dataclass(frozen=True, kw_only=True)
class File:
    """A file and its objects."""

    #: Relative to the path that the user gave.
    name: Path
    objects: tuple[Converted, ...] = ()
    #: What messages call the file; "" for its name.
    known_as: str = ""
    #: Why the file was skipped; "" if it was not.
    skipped: str = ""
    #: The file was skipped, although it seems to hold a job.
    to_do: bool = False
    #: Notes on a kustomization, whether it was skipped or not.
    notes: tuple[ConversionNote, ...] = ()

    @property
    def called(self) -> str:
        """What messages call the file."""
        return self.known_as or str(self.name)


def convert(source: Path) -> list[File]:
    """Convert everything before anything is written.

    A folder may hold templates, values and patches: a file there that is not YAML, or has no
    objects, is skipped, and so is a patch of a job of an old kind. Raises `Refused` and OSError.
    """
    if source == STANDARD_INPUT:
        text = _decoded(sys.stdin.buffer.read(), _STDIN)
        return [_converted(text, Path("stdin.yaml"), known_as=_STDIN)]
    if not source.is_dir():
        return [_converted(_decoded(source.read_bytes(), source.name), Path(source.name))]
    found = sorted(path for path in source.rglob("*") if _is_read(path))
    if not found:
        raise Refused(
            f"{source} holds no {', '.join(_SUFFIXES)} files; name a folder with manifests"
        )
    patches = _patches(found)
    return [_converted_or_skipped(path, source, patches.get(_real(path))) for path in found]


async def convert_live(client: ApiReader, wanted: str, namespace: str) -> File:
    """Convert `KIND/NAME`. Raises `Refused` and `errors.KubeError`."""
    kind, _, name = wanted.partition("/")
    resource = _KINDS.get(kind.lower().removesuffix("s"))
    if resource is None or not name:
        raise Refused(f"--live {wanted}: use mpijob/NAME or trainingjob/NAME")
    try:
        raw = await client.get(resource.path(namespace, name))
    except errors.NotFound as error:
        if not error.reason:  # no answer of the kind itself, so there is no such kind
            raise Refused(
                f"--live {wanted}: this cluster has no {resource.kind} ({resource.api_version})"
            ) from error
        raise Refused(
            f"--live {wanted}: {error.message} in namespace {namespace} ({resource.api_version})"
        ) from error
    return File(name=Path(f"{name}.yaml"), objects=(conversion.convert(msgspec.json.decode(raw)),))


def write(files: Iterable[File], folder: Path | None, *, say: Callable[[str], None]) -> bool:
    """Write YAML to standard output, or to files of the same names below `folder`.

    Notes go to `say`. Returns True if there is nothing to do by hand. Raises `Refused` if a file
    already exists, or two would become one, before anything is written, and OSError.
    """
    files = list(files)
    for file in files:
        for line in _told(file):
            say(line)
    kept = [file for file in files if not file.skipped]
    if folder is None:
        sys.stdout.write(conversion.render(one for file in kept for one in file.objects))
    else:
        _write_into(folder, kept)
    notes = [note for file in kept for one in file.objects for note in one.notes]
    notes += [note for file in files for note in file.notes]
    return not any(file.to_do for file in files) and not any(note.to_do for note in notes)


def _write_into(folder: Path, files: Iterable[File]) -> None:
    targets: dict[Path, File] = {}
    for file in files:
        path = folder / file.name.with_suffix(".yaml")
        if (other := targets.setdefault(path, file)) is not file:
            raise Refused(
                f"{other.called} and {file.called} would both become {path}; rename one of them"
            )
    if there := [str(path) for path in targets if path.exists()]:
        raise Refused(f"{', '.join(there)}: already exists; choose an empty folder for --output")
    for path, file in targets.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(conversion.render(file.objects))


def _told(file: File) -> list[str]:
    """Return the lines about a file."""
    name = file.called
    lines = [f"{name}: {note}" for note in file.notes]
    if file.skipped:
        return [f"{name}: {'to do: ' if file.to_do else ''}skipped: {file.skipped}", *lines]
    return lines + [f"{name}: {one.subject}: {note}" for one in file.objects for note in one.notes]


def _is_read(path: Path) -> bool:
    is_known = path.suffix in _SUFFIXES or path.name in kustomizations.FILE_NAMES
    return is_known and path.is_file()


def _real(path: Path) -> str:
    return os.path.realpath(path)


def _patches(found: Iterable[Path]) -> dict[str, Path]:
    """Return the kustomization that names a file as a patch, by the real path of the file."""
    return {
        _real(path.parent / patch): path
        for path in found
        if path.name in kustomizations.FILE_NAMES
        for patch in kustomizations.read(path.read_bytes().decode(errors="replace")).paths
    }


def _converted_or_skipped(path: Path, folder: Path, named_by: Path | None) -> File:
    """Convert a file of a folder; `named_by` is the kustomization that names it as a patch."""
    name, content = path.relative_to(folder), path.read_bytes()
    text = content.decode(errors="replace")
    if named_by and (job := kustomizations.job_of(text)):
        where = f"{named_by.relative_to(folder)} names the file as a patch"
        skipped = f"{where}; {kustomizations.advice(job)}"
        return File(name=name, skipped=skipped, to_do=True)
    try:
        return _converted(_decoded(content, str(name)), name, is_patch=named_by is not None)
    except Refused as refused:
        found = _kustomization(text, name)
        # The notes on a kustomization name the jobs in it.
        to_do = not found and conversion.names_a_job(text)
        advice = "; it seems to hold a job: render it first, or convert it by hand"
        skipped = f"{refused}{advice if to_do else ''}"
        return File(name=name, skipped=skipped, to_do=to_do, notes=found.notes if found else ())


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"{name} is not UTF-8: {error}") from error


def _converted(text: str, name: Path, *, known_as: str = "", is_patch: bool = False) -> File:
    where = known_as or str(name)
    objects = tuple(conversion.convert_text(text, where=where, is_patch=is_patch))
    found = _kustomization(text, name)
    if name.name in kustomizations.FILE_NAMES:
        # kustomize does not find Kustomization.yaml.
        name, known_as = name.with_name(kustomizations.FILE_NAMES[0]), where
    return File(name=name, known_as=known_as, objects=objects, notes=found.notes if found else ())


def _kustomization(text: str, name: Path) -> kustomizations.Kustomization | None:
    """Return what a kustomization says; None for another file, or if the text is no YAML."""
    if name.name not in kustomizations.FILE_NAMES:
        return None
    found = kustomizations.read(text)
    return found if found.readable else None
