"""Files that take minutes to make: each is there, complete and up to date, or it is not."""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lab.build import Say
from lab.images.tools import Tool, check_tools
from lab.lock import alone


@dataclass(frozen=True, kw_only=True)
class Making:
    """Arguments of `make`: the path to write, inputs by name, an empty folder to work in, a function for progress."""

    target: Path
    needs: Mapping[str, Path]
    folder: Path
    say: Say


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A file and how it is made.

    `recipe`: everything that decides what comes out, apart from `needs`; `seconds` with two cores;
    `doing`: for people, while it is made; `tools`: programs that must be installed.
    """

    name: str
    suffix: str = ".tar"
    doing: str
    seconds: int
    recipe: tuple[str, ...]
    make: Callable[[Making], None]
    needs: tuple["Artifact", ...] = ()
    tools: tuple[Tool, ...] = ()

    @cached_property
    def digest(self) -> str:
        """Changes when something else would come out."""
        parts = (self.name, *self.recipe, *(one.digest for one in self.needs))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Store:
    """The artifacts in a folder, which several processes may use at the same time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, artifact: Artifact) -> Path:
        """Return its path; it need not exist yet."""
        return self._folder / f"{artifact.name}-{artifact.digest[:16]}{artifact.suffix}"

    def ensure(self, artifact: Artifact, say: Say) -> Path:
        """Return the artifact; make it first if it is missing.

        `say` gets the progress. Raise LabError.
        """
        if not self.path(artifact).exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            with alone(self._folder / ".lock", say, what="images"):
                # A holder of the lock that was killed could not clear up.
                for unfinished in self._folder.glob(".making-*"):
                    shutil.rmtree(unfinished)
                self._make_all(self.missing(artifact), say)
        return self.path(artifact)

    def missing(self, artifact: Artifact) -> list[Artifact]:
        """Return what must be made, in that order."""
        if self.path(artifact).exists():
            return []
        before = [one for need in artifact.needs for one in self.missing(need)]
        return list(dict.fromkeys([*before, artifact]))

    def _make_all(self, missing: list[Artifact], say: Say) -> None:
        check_tools([tool for one in missing for tool in one.tools])
        for index, artifact in enumerate(missing):
            left = sum(one.seconds for one in missing[index:])
            prefix = f"{artifact.doing}, {index + 1} of {len(missing)} (about {max(1, round(left / 60))} min left)"
            say(prefix)
            self._make(artifact, _prefixed(say, prefix))

    def _make(self, artifact: Artifact, say: Say) -> None:
        with tempfile.TemporaryDirectory(prefix=".making-", dir=self._folder) as folder:
            work = Path(folder) / "work"
            work.mkdir()
            target = Path(folder) / "target"
            needs = {need.name: self.path(need) for need in artifact.needs}
            artifact.make(Making(target=target, needs=needs, folder=work, say=say))
            target.replace(self.path(artifact))
        self._remove_older(artifact)

    def _remove_older(self, artifact: Artifact) -> None:
        same = f"{artifact.name}-{'[0-9a-f]' * 16}{artifact.suffix}"
        for path in self._folder.glob(same):
            if path != self.path(artifact):
                path.unlink()


def _prefixed(say: Say, prefix: str) -> Say:
    return lambda detail: say(f"{prefix}: {detail}")
