"""Builds the programs, once, into a cache that all labs of a user share."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from lab import modules, programs
from lab.downloads import Downloads
from lab.estimate import left
from lab.golang import end_calls, ensure_go, run_go
from lab.layout import cache_dir
from lab.lock import alone
from lab.programs import Program, Programs
from lab.versions import PINNED_KUBERNETES, KubernetesVersion

Say = Callable[[str], None]
# Two beside one another: a link takes one core, and as long as the compilation before it.
BESIDE = min(2, len(os.sched_getaffinity(0)))
# Seconds between two lines of progress: on a terminal, and in a file, which keeps them all.
PACE, PACE_IN_FILE = 5.0, 15.0
TICK = 1.0  # seconds between two looks whether it is time


def ensure_programs(version: KubernetesVersion, say: Say, *, real_node: bool = False) -> Programs:
    """Return all programs, also those for a real node if asked for; build missing programs first.

    Raise LabError.

    `say` is told what is built, and how long that may take.
    """
    wanted = (*programs.ALL, *(programs.OF_REAL_NODE if real_node else ()))
    built = _Cache(version).ensure(wanted, say)
    return Programs(**{one.field: built[one.name] for one in wanted})


def ensure_compared(version: KubernetesVersion, say: Say) -> dict[str, Path]:
    """Return the paths of the operator's other release by name; build them first if need be.

    Raise LabError.
    """
    return _Cache(version).ensure(programs.COMPARED, say)


def is_built(version: KubernetesVersion) -> bool:
    """Tell whether a lab of that version starts without building anything."""
    return not _Cache(version).missing(programs.ALL)


def ensure_peers(say: Say, wanted: Sequence[Program] = programs.PEERS) -> dict[str, Path]:
    """Return the path of each peer by its name; build missing peers first. Raise LabError."""
    return _peers().ensure(wanted, say)


def built_peer(name: str) -> Path | None:
    """Return the path of a peer that is built and up to date, else None."""
    [peer] = (one for one in programs.PEERS if one.name == name)
    return None if _peers().missing([peer]) else _peers().path(peer)


def _peers() -> "_Cache":
    # They are the same for every version of Kubernetes.
    return _Cache(PINNED_KUBERNETES, cache_dir() / "bin-peers")


class _Cache:
    """Built programs of one Kubernetes version.

    A program is there, complete and up to date, or it is not.
    """

    def __init__(self, version: KubernetesVersion, directory: Path | None = None) -> None:
        self._version = version
        self._directory = directory or cache_dir() / f"bin-{version}"

    def path(self, program: Program) -> Path:
        return self._directory / program.name

    def ensure(self, wanted: Sequence[Program], say: Say) -> dict[str, Path]:
        """Return the path of each by name; build what is missing.

        Of two at once, one builds and the other waits.
        """
        if self.missing(wanted):
            ensure_go(say)
            self._directory.mkdir(parents=True, exist_ok=True)
            with alone(self._directory / ".lock", say, what="the programs"):
                if missing := self.missing(wanted):
                    self._build_all(missing, say)
        return {one.name: self.path(one) for one in wanted}

    def missing(self, wanted: Sequence[Program]) -> list[Program]:
        """Return those that are not there, or were built from something else than they would be now."""
        return [one for one in wanted if not self._up_to_date(one)]

    def _up_to_date(self, program: Program) -> bool:
        stamp = self._stamp(program)
        fingerprint = modules.fingerprint(modules.module_directory(program, self._version))
        return self.path(program).exists() and stamp.exists() and stamp.read_text() == fingerprint

    def _build_all(self, missing: Sequence[Program], say: Say) -> None:
        progress = _Progress(missing, say)
        with ThreadPoolExecutor(BESIDE) as pool, Downloads() as downloads:
            waiting = [(call, self._begin(call[0], downloads)) for call in _calls(missing)]
            running: set[Future[Sequence[Program]]] = set()
            try:
                while waiting or running:
                    ready = [one for one in waiting if all(each.done() for each in one[1])]
                    for one in ready[: progress.room() - len(running)]:
                        waiting.remove(one)
                        running.add(pool.submit(self._build, one[0]))
                    awaited: list[Future[Any]] = [*running]
                    awaited += [each for one in waiting for each in one[1] if not each.done()]
                    wait(awaited, timeout=TICK, return_when=FIRST_COMPLETED)
                    ended = {build for build in running if build.done()}
                    running -= ended
                    progress.tell([build.result() for build in ended], downloads)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                end_calls()
                raise

    def _begin(self, program: Program, downloads: Downloads) -> Sequence[Future[None]]:
        """Begin to fetch what a program's module requires; one that has to be made first fetches it then."""
        module = modules.module_directory(program, self._version)
        return downloads.begin(module) if module.is_dir() else ()

    def _build(self, wanted: Sequence[Program]) -> Sequence[Program]:
        """Build programs of one module by one call of Go, in which they share what they have in common."""
        first = wanted[0]
        module = modules.module_directory(first, self._version)
        if not module.is_dir():
            modules.make_module(module, self._version)
        fingerprint = modules.fingerprint(module)
        new = self._directory / f".{first.name}.new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        # The linker drops what debuggers read (-s -w); the compiler need not write it.
        flags = ["-trimpath", "-buildvcs=false", "-mod=readonly", "-gcflags=all=-dwarf=false"]
        flags.append(f"-ldflags={_linker_flags(first, self._version)}")
        # Go names a program by its package; a program that we call otherwise is built alone.
        target = f"{new}/" if _named_by_go(first) else f"{new}/{first.name}"
        packages = [one.package for one in wanted]
        place = modules.prepared(first, module)
        run_go("build", *flags, *_tags(self._version), "-o", target, *packages, directory=place)
        for program in wanted:
            self._stamp(program).unlink(missing_ok=True)
            (new / program.name).replace(self.path(program))
            self._stamp(program).write_text(fingerprint)
        new.rmdir()
        return wanted

    def _stamp(self, program: Program) -> Path:
        return self._directory / f".{program.name}.built-from"


class _Progress:
    """What is built and what is left, said every few seconds."""

    def __init__(self, missing: Sequence[Program], say: Say) -> None:
        self._left = {one.name: one.seconds for one in missing}
        self._all, self._everything = len(missing), sum(self._left.values())
        self._say = say
        self._began = self._said = self._ended = time.monotonic()
        self._pace = PACE if sys.stderr.isatty() else PACE_IN_FILE
        say(f"building {', '.join(self._left)}: {_expect(self._everything)} on 2 free cores, once")

    def room(self) -> int:
        """Return how many builds may run at once.

        The first is alone: the standard library, which it compiles, a second would compile too.
        """
        return BESIDE if len(self._left) < self._all else 1

    def tell(self, ended: Sequence[Sequence[Program]], downloads: Downloads) -> None:
        """Say what is left, if a build has ended or it is time."""
        now = time.monotonic()
        for program in (one for built in ended for one in built):
            self._left.pop(program.name)
            self._ended = now
        if self._left and (ended or now >= self._said + self._pace):
            self._said = now
            facts = (f"{self._all - len(self._left)} of {self._all} programs built", str(downloads))
            told = ", ".join(filter(None, (*facts, self._expected(now))))
            self._say(f"building {', '.join(self._left)}: {told}")

    def _expected(self, now: float) -> str:
        seconds = left(
            done=self._everything - sum(self._left.values()),
            everything=self._everything,
            took=self._ended - self._began,
            elapsed=now - self._began,
        )
        return "" if seconds is None else f"{_expect(seconds)} left"


def _calls(missing: Sequence[Program]) -> list[list[Program]]:
    """Return what one call of Go builds each: the shortest, which begins alone, and then the longest first."""
    calls: dict[str, list[Program]] = {}
    for program in missing:
        calls.setdefault(program.module if _named_by_go(program) else program.name, []).append(
            program
        )
    shortest, *others = sorted(calls.values(), key=lambda call: sum(one.seconds for one in call))
    return [shortest, *reversed(others)]


def _named_by_go(program: Program) -> bool:
    return program.package.rpartition("/")[2] == program.name


def _linker_flags(program: Program, version: KubernetesVersion) -> str:
    # Kubernetes' own build scripts leave the version to the linker; without it the API server says
    # v0.0.0-master. Older ones answer /version from client-go.
    told = {"gitVersion": version, "gitMajor": version.major, "gitMinor": version.minor}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    flags = [f"-X {package}.{name}={value}" for package in packages for name, value in told.items()]
    return " ".join(("-s", "-w", *(flags if program.module == "kubernetes" else ())))


def _tags(version: KubernetesVersion) -> tuple[str, ...]:
    # Up to 1.30 Kubernetes contained cloud providers, which take minutes to build. No lab is in a
    # cloud.
    return ("-tags=providerless",) if version < KubernetesVersion(1, 31, 0) else ()


def _expect(seconds: int) -> str:
    return f"about {round(seconds / 60)} min" if seconds > 90 else f"about {seconds} s"
