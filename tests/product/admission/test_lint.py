"""Warnings for the author of a job: each finding once, none where all is well, nothing on plain jobs."""

import copy
from typing import Any

import msgspec
import pytest

from mpijob_elastic import capabilities, names
from mpijob_elastic.admission import lint, review
from mpijob_elastic.capabilities import admission
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE
from mpijob_elastic.capabilities.run_policy import RUN_POLICY
from mpijob_elastic.model.mpijob import MPIJob
from tests.product.webhook import answers
from tests.product.webhook.objects import PLAIN, Object, mpi_job

SCRIPT = ["--host-discovery-script", "/etc/mpi/discover_hosts.sh"]
GOOD = ["horovodrun", "-np", "2", "--min-np", "1", "--max-np", "8", *SCRIPT, "python", "train.py"]
ONE_RANK = ["horovodrun", "-np", "1", "--min-np", "1", *SCRIPT, "x"]
ELASTIC, MIN, MAX = {names.ENABLED: "true"}, names.MIN_REPLICAS, names.MAX_REPLICAS


def said(job: Object) -> tuple[str, ...]:
    read = msgspec.convert(job, MPIJob)
    return lint.created(read, capabilities.of(read), admission.ALL)


def good(*, sidecar: bool = False, labels: Object | None = None, **fields: Any) -> Object:
    """A job about which nothing is said, with other fields of its spec, arguments and labels."""
    arguments = ("name", "replicas", "slots", "annotations", "conditions", "command")
    job = mpi_job(
        **{"command": GOOD, **{key: fields.pop(key) for key in arguments if key in fields}}
    )
    job["spec"] |= {"cleanPodPolicy": "Running", **fields}
    job["metadata"]["labels"] = labels or {}
    if sidecar:
        job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"].append(
            {"name": "proxy"}
        )
    return job


def probed(**probes: Any) -> Object:
    """A job whose workers have these probes."""
    job = good()
    worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    worker["containers"][0] |= probes
    return job


def plain(**fields: Any) -> Object:
    return good(command=PLAIN, **fields)


def runs(*command: str, annotations: Object | None = None) -> Object:
    return good(command=["horovodrun", *command, "x"], annotations=annotations)


def driven(*options: str, **fields: Any) -> Object:
    command = ["/etc/mpi/elastic.sh", *options, "--", "mpirun", "./train"]
    return good(command=command, **fields)


TEAM = {LABEL_QUEUE: "team"}
POLICY = {"activeDeadlineSeconds": 60}
CLEANING = "v0.2.3 ignores cleanPodPolicy of spec.runPolicy; write it directly below spec"
GROUPED = "v0.2.3 ignores schedulingPolicy of spec.runPolicy; for a gang annotate the job mpijob-elastic/gang"
ASKED, UNASKED = ({RUN_POLICY: value} for value in ("true", "false"))
IGNORED = (
    f'v0.2.3 ignores activeDeadlineSeconds of spec.runPolicy; annotate the job {RUN_POLICY}: "true"'
)
BY_CLEANING = "workers stay when this job has ended, but others get its quota; set spec.cleanPodPolicy to Running"


@pytest.mark.parametrize(
    ("job", "warning"),
    [
        pytest.param(good(), "", id="good"),
        pytest.param(runs("-np", "1", *SCRIPT), "", id="-np 1"),
        pytest.param(
            good(command=[word.replace("/mpi/", "/edl/") for word in GOOD]),
            "",
            id="et-operator's path",
        ),
        pytest.param(driven(), "", id="elastic.sh"),
        pytest.param(
            driven("--min-np", "3", annotations={MIN: "2"}, replicas=4),
            "elastic.sh waits with fewer than 3 slots (--min-np), but min-replicas gives 2",
            id="elastic.sh needs more than the job may have",
        ),
        pytest.param(
            driven("--np", "4", annotations={MIN: "2"}, replicas=4),
            "elastic.sh starts with 4 slots (--np), but min-replicas gives 2: it waits for more",
            id="elastic.sh starts with more than the job may have",
        ),
        pytest.param(driven("--np", "4", annotations={MIN: "4"}, replicas=4), "", id="no more"),
        pytest.param(
            driven("--min-np", "$N"),
            "elastic.sh's --min-np cannot be read in the launcher's command",
            id="unread options of elastic.sh",
        ),
        pytest.param(
            good(command=["sh", "-c", f"horovodrun -np $N {' '.join(SCRIPT)} x"]),
            "horovodrun's -np, --min-np cannot be read in the launcher's command",
            id="unread",
        ),
        pytest.param(
            good(command=["/start.sh"], annotations=ELASTIC),
            "no horovodrun can be read in the launcher's command: its -np, --min-np, --max-np are",
            id="own script",
        ),
        pytest.param(
            good(command=["/start.sh", SCRIPT[1]], replicas=1, annotations={MIN: "1"}),
            "no horovodrun can be read",
            id="own script at its least",
        ),
        pytest.param(
            good(command=["sh", "-c", f"wc -l /etc/mpi/hostfile; {' '.join(GOOD)}"]),
            "",
            id="the hostfile of a job without a least size",
        ),
        pytest.param(
            good(
                command=["sh", "-c", f"wc -l /etc/mpi/hostfile; {' '.join(ONE_RANK)}"],
                replicas=3,
                annotations={MIN: "1"},
            ),
            "waits for all 3 workers, not for min-replicas: its command names the hostfile",
            id="the hostfile",
        ),
        pytest.param(
            good(command=[*ONE_RANK[:-1], "--output-filename", "/logs", "x"]),
            "with -np 1, --output-filename starts no rank",
            id="files of one rank",
        ),
        pytest.param(good(command=[*GOOD[:-2], "--output-filename", "/logs", "x"]), "", id="files"),
        pytest.param(
            good(command=["horovodrun", "--min-np", "1", *SCRIPT, "x"]),
            "horovodrun ends at once without -np; add -np",
            id="no -np",
        ),
        pytest.param(
            good(command=[*GOOD[:-2], "--blacklist-cooldown-range", "0", "300", "x"]),
            "ends at once with --blacklist-cooldown-range 0 300; use 1 to 3600",
            id="too short a cooldown",
        ),
        pytest.param(
            good(command=[*GOOD[:-2], "--blacklist-cooldown-range", "60", "7200", "x"]),
            "ends at once with --blacklist-cooldown-range 60 7200; use 1 to 3600",
            id="too long a cooldown",
        ),
        pytest.param(
            good(command=[*GOOD[:-2], "--blacklist-cooldown-range", "1", "3600", "x"]),
            "",
            id="the longest cooldown",
        ),
        pytest.param(
            good(command=["sh", "-c", f"mpirun hostname && {' '.join(GOOD)}"]),
            "",
            id="mpirun before",
        ),
        pytest.param(
            good(command=["sh", "-c", f"horovodrun --check-build; {' '.join(GOOD)}"]),
            "",
            id="check-build before",
        ),
        pytest.param(good(replicas=2, annotations={MIN: "2"}), "", id="at its least"),
        pytest.param(runs("-np", "1", "--reset-limit", "100", *SCRIPT), "", id="enough resets"),
        pytest.param(plain(), "", id="plain"),
        pytest.param(plain(annotations={names.ENABLED: "false", MAX: "3"}), "", id="switched off"),
        pytest.param(runs("-np", "9"), "", id="static horovodrun"),
        pytest.param(good(name="n" * 54), "", id="name fits"),
        pytest.param(good(sidecar=True, mainContainer="worker"), "", id="main container"),
        pytest.param(
            good(command=["x"], annotations={MAX: "3"}),
            "not elastic: run horovodrun",
            id="unknown program",
        ),
        pytest.param(
            runs("-np", "1", annotations=ELASTIC),
            "has no --host-discovery-script; give",
            id="no script",
        ),
        pytest.param(
            good(replicas=4, annotations={MIN: "1"}),
            "2 slots (-np), but min-replicas",
            id="high -np",
        ),
        pytest.param(
            runs("-np", "1", SCRIPT[0], "/x.sh"),
            f"--host-discovery-script is not {SCRIPT[1]}",
            id="another script",
        ),
        pytest.param(
            runs("-np", "1", SCRIPT[0], names.ARENA_DISCOVER_HOSTS_PATH),
            f"of Arena's image prints another operator's list; write {SCRIPT[1]}",
            id="the script of Arena's image",
        ),
        pytest.param(
            runs("-np", "2", *SCRIPT),
            "no --min-np: with fewer slots than -np 2 training",
            id="no --min-np",
        ),
        pytest.param(
            good(replicas=5, slots=2),
            "--max-np is 8, but 10 slots are asked for: 2",
            id="above --max-np",
        ),
        pytest.param(
            runs("-np", "2", "--min-np", "3", *SCRIPT),
            "--min-np is 3, but 2 slots are asked for",
            id="below --min-np",
        ),
        pytest.param(
            runs("-np", "1", "--reset-limit=10", *SCRIPT),
            "ends the job at reset 11 (--reset-limit)",
            id="few resets",
        ),
        pytest.param(
            runs("--gloo-timeout-seconds=5", *GOOD[1:-1]),
            "a Gloo timeout of 5 s",
            id="short Gloo timeout",
        ),
        pytest.param(
            good(sidecar=True), "2 containers and no spec.mainContainer:", id="which container"
        ),
        pytest.param(
            probed(livenessProbe={"exec": {"command": ["true"]}}),
            "the livenessProbe of workers looks like a rank",
            id="a command again and again",
        ),
        pytest.param(
            probed(
                livenessProbe={"exec": None, "grpc": {"port": 1}},
                readinessProbe={"exec": {"command": ["true"]}},
            ),
            "the readinessProbe of workers looks like a rank",
            id="the same before it is Ready",
        ),
        pytest.param(
            probed(
                startupProbe={"exec": {"command": ["true"]}},
                livenessProbe={"httpGet": {"port": 1}},
                readinessProbe="none",
            ),
            "",
            id="a command once",
        ),
        pytest.param(
            good(name="n" * 54, annotations={MAX: "11"}),
            "worker names exceed 63",
            id="long worker names",
        ),
        pytest.param(
            good(runPolicy=POLICY, annotations=UNASKED), IGNORED, id="run policy without effect"
        ),
        pytest.param(good(runPolicy=POLICY, annotations=ASKED), "", id="run policy asked for"),
        pytest.param(
            plain(runPolicy=POLICY, annotations=UNASKED), IGNORED, id="plain with run policy"
        ),
        *(
            pytest.param(
                made(runPolicy={key: value}, annotations=asked), warning, id=f"{key}, in vain"
            )
            for made in (good, plain)
            for asked in (ASKED, UNASKED)
            for key, value, warning in (
                ("cleanPodPolicy", "Running", CLEANING),
                ("schedulingPolicy", {"minAvailable": 2}, GROUPED),
            )
        ),
        pytest.param(good(runPolicy={"cleanPodPolicy": None}), "", id="no policy"),
        pytest.param(
            plain(name="n" * 55, replicas=2),
            "worker names exceed 63",
            id="plain, long worker names",
        ),
        pytest.param(plain(name="n" * 55, replicas=1), "", id="plain, one long worker name"),
        pytest.param(
            good(labels=TEAM, cleanPodPolicy=None), BY_CLEANING, id="queued workers that stay"
        ),
        pytest.param(
            plain(labels=TEAM, cleanPodPolicy=None), BY_CLEANING, id="those of a plain job"
        ),
        pytest.param(good(labels=TEAM), "", id="queued workers that go"),
        pytest.param(good(labels=TEAM, cleanPodPolicy="All"), "", id="all go"),
    ],
)
def test_a_new_job_is_told_what_is_doubtful(job: Object, warning: str) -> None:
    warnings = said(job)
    assert [warning in found for found in warnings] == [True] * bool(warning)
    assert all(len(found) <= 120 for found in warnings)


MPIRUN = ["mpirun", "-np", "{np}", "-machinefile", "{hostfile}", "python", "train.py"]


def starts(*words: str, annotations: Object | None = None, **fields: Any) -> Object:
    """A job that elastic.sh starts with these words."""
    return good(command=["/etc/mpi/elastic.sh", *words], annotations=annotations, **fields)


@pytest.mark.parametrize(
    ("job", "warning"),
    [
        pytest.param(starts("--", *MPIRUN), "", id="good"),
        pytest.param(starts("--np", "2", "--max-np", "8", "--", *MPIRUN), "", id="bounded"),
        # mpirun reads the hosts from variables, and has a rank in each slot.
        pytest.param(starts("--", "mpirun", "python", "train.py"), "", id="no option of mpirun"),
        pytest.param(starts("--", "python", "-m", "own.launcher"), "", id="own launcher"),
        pytest.param(
            good(command=["sh", "-c", "exec /etc/mpi/elastic.sh --min-np $N -- mpirun ./a"]),
            "elastic.sh's --min-np cannot be read in the launcher's command",
            id="unread",
        ),
        pytest.param(
            starts("--np", "3", "--", *MPIRUN, replicas=3, annotations={MIN: "1"}),
            "elastic.sh starts with 3 slots (--np), but min-replicas gives 1: it waits for more",
            id="high --np",
        ),
        pytest.param(
            starts("--min-np", "2", "--", *MPIRUN, replicas=3, annotations={MIN: "1"}),
            "elastic.sh waits with fewer than 2 slots (--min-np), but min-replicas gives 1",
            id="high --min-np",
        ),
        pytest.param(
            starts("--min-np", "2", "--", *MPIRUN, replicas=3), "", id="--min-np without a bound"
        ),
        pytest.param(
            starts("--np", "4", "--", *MPIRUN, replicas=4, annotations={MIN: "4"}),
            "",
            id="as small as it may be",
        ),
        pytest.param(
            starts("--max-np", "2", "--", *MPIRUN, replicas=3),
            "elastic.sh's --max-np is 2, but 3 slots are asked for: 1 stays unused",
            id="above --max-np",
        ),
        pytest.param(
            starts("--min-np", "4", "--", *MPIRUN, replicas=3),
            "elastic.sh's --min-np is 4, but 3 slots are asked for: training waits for more",
            id="below --min-np",
        ),
        pytest.param(
            starts("--min-np", "4", "--max-np", "3", "--", *MPIRUN, replicas=4, slots=1),
            "elastic.sh ends at once: --max-np is below --min-np",
            id="no size",
        ),
        pytest.param(
            starts(*MPIRUN), "elastic.sh ends at once: 'mpirun' is no option; write --", id="no --"
        ),
        pytest.param(
            starts("--", "mpirun", "--hostfile", "/etc/mpi/hostfile", "python"),
            "elastic.sh ends at once: /etc/mpi/hostfile names all workers; write {hostfile}",
            id="the operator's hostfile",
        ),
        pytest.param(
            starts("--implementation", "intel-mpi", "--", "mpirun", "-f", "{hostfile}", "./a"),
            "Intel MPI counts the slots only with -machinefile; write -machinefile {hostfile}",
            id="slots of Intel MPI",
        ),
        pytest.param(
            starts("--", "mpirun", "-np", "4", "python", "train.py"),
            "mpirun -np 4 keeps 4 ranks at any size; write -np {np}",
            id="a number of ranks",
        ),
        pytest.param(
            starts("--", "mpiexec.hydra", "-n", "4", "python", "train.py"),
            "mpiexec.hydra -n 4 keeps 4 ranks at any size; write -n {np}",
            id="a number of ranks of hydra",
        ),
        pytest.param(
            starts("--", "mpirun", "--hostfile", "/work/hosts", "python"),
            "/work/hosts does not follow the job's hosts; write --hostfile {hostfile}",
            id="a hostfile",
        ),
        pytest.param(
            starts("--", "mpirun", "-H", "a,b", "python"),
            "-H names hosts, which change; write -machinefile {hostfile} instead",
            id="hosts",
        ),
        pytest.param(starts("--", "mpirun", "-np", "$N", "python"), "", id="a computed number"),
        pytest.param(
            good(command=["elastic.sh", "--", *MPIRUN], annotations={MAX: "8"}),
            "this job is not elastic: write /etc/mpi/elastic.sh with its folder",
            id="no folder",
        ),
        pytest.param(
            good(command=["elastic.sh", "--", *MPIRUN], annotations=ELASTIC),
            "write /etc/mpi/elastic.sh with its folder; only then it is in the launcher",
            id="no folder, said to be elastic",
        ),
    ],
)
def test_a_job_of_elastic_sh_is_told_what_is_doubtful(job: Object, warning: str) -> None:
    warnings = said(job)
    assert [warning in found for found in warnings] == [True] * bool(warning)
    assert all(len(found) <= 120 for found in warnings)


def test_a_start_that_cannot_be_read_waits_for_all_workers() -> None:
    job = starts("--np", "$N", "--", *MPIRUN, replicas=3, annotations={MIN: "1"})
    assert list(said(job)) == [
        "elastic.sh's --np cannot be read in the launcher's command",
        "the launcher waits for all 3 workers, not for min-replicas: its --np cannot be read",
    ]


LINE = (
    "mpirun keeps its size, unless elastic.sh starts it: command: [/etc/mpi/elastic.sh, --, "
    'mpirun, -np, "{np}", -machinefile, "{hostfile}", python, train.py]'
)
GENERAL = LINE.replace("python, train.py", "...")
LONG = ["mpirun", "-np", "4", "python", *(f"--argument={number}" for number in range(99))]


@pytest.mark.parametrize(
    ("job", "warnings"),
    [
        pytest.param(plain(annotations=ELASTIC), [LINE], id="said to be elastic"),
        pytest.param(
            plain(annotations={MAX: "3"}), [f"this job is not elastic: {LINE}"], id="bounded"
        ),
        pytest.param(
            good(command=["mpirun", "--own-option", "x"], annotations=ELASTIC),
            [GENERAL],
            id="an option that is not known",
        ),
        pytest.param(
            good(command=["sh", "-c", "mpirun -np 2 python train.py"], annotations=ELASTIC),
            [GENERAL],
            id="a script",
        ),
        pytest.param(plain(), [], id="not asked"),
        pytest.param(plain(annotations={names.ENABLED: "false", MAX: "3"}), [], id="switched off"),
    ],
)
def test_a_plain_mpirun_that_asks_for_more_gets_the_line_to_type(
    job: Object, warnings: list[str]
) -> None:
    assert list(said(job)) == warnings


UNREADABLE = (
    "MPICH and Intel MPI cannot read /etc/mpi/hostfile; write /etc/mpijob-elastic/hostfile.hydra"
)
OPERATORS = "/etc/mpi/hostfile"


@pytest.mark.parametrize(
    ("words", "annotations", "warnings"),
    [
        (["mpiexec", "-f", OPERATORS], {}, [UNREADABLE]),
        (["/opt/mpich/bin/mpiexec.hydra", f"-machinefile={OPERATORS}"], {}, [UNREADABLE]),
        (["mpirun", "-machinefile", OPERATORS], {}, []),
        (["mpiexec", "-f", "/etc/mpijob-elastic/hostfile.hydra"], {}, []),
        (["mpiexec", "-f", OPERATORS], {names.ENABLED: "false"}, []),
        (["mpiexec", "-f", OPERATORS], {names.MPI_VARIABLES: "false"}, []),
        (["mpiexec", "--own-option", "-f", OPERATORS], {}, []),
    ],
)
def test_a_new_job_whose_hydra_cannot_read_its_hostfile_is_told(
    words: list[str], annotations: dict[str, str], warnings: list[str]
) -> None:
    job = good(command=[*words, "./train"], annotations=annotations)
    assert list(said(job)) == warnings
    later = good(command=[*words, "./train"], annotations={**annotations, "theirs": "1"})
    assert answers.verdict(later, good(annotations=annotations)).warnings == ()


def test_a_long_command_does_not_cut_the_line() -> None:
    [told] = said(good(command=LONG, annotations={MAX: "3"}))
    assert len(told) <= review.LONGEST_WARNING
    assert told.endswith(", ...]")
    assert ', "{hostfile}", python, "--argument=0"' in told.replace(
        "--argument=0", '"--argument=0"'
    )


KEEPS = "keeps the workers and their resources after the job's end"
REFUSES = "the API server refuses such pods"


@pytest.mark.parametrize("made", [good, plain])
@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("running", f"{KEEPS}: did you mean Running?"),
        ("Runing", f"{KEEPS}: did you mean Running?"),  # codespell:ignore
        ("Rnuning", f"{KEEPS}: did you mean Running?"),
        ("all", f"{KEEPS}: did you mean All?"),
        (" All", f"{KEEPS}: did you mean All?"),
        ("Delete", f"{KEEPS}; to have them deleted, write Running"),
        ("Running" * 1000, f"{KEEPS}; to have them deleted, write Running"),
        ("Running", ""),
        ("All", ""),
        # The workers of these jobs stay on purpose.
        ("None", ""),
        ("none", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_a_clean_pod_policy_that_keeps_the_workers_by_a_mistake_is_told(
    made: Any, written: str | None, says: str
) -> None:
    shown = "" if written is None else written[:64]
    told = [f'spec.cleanPodPolicy: "{shown}" {says}'] if says else []
    assert list(said(made(cleanPodPolicy=written))) == told


@pytest.mark.parametrize("role", ["Launcher", "Worker"])
@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("never", f"{REFUSES}; did you mean Never?"),
        ("onFailure", f"{REFUSES}; did you mean OnFailure?"),
        ("Sometimes", f"{REFUSES}; use Never, OnFailure or Always"),
        ("exitcode", f"{REFUSES}; did you mean ExitCode?"),
        (5, ""),  # refused before
        ("ExitCode", ""),
        ("Always", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_a_restart_policy_that_no_pod_may_have_is_told(
    role: str, written: object, says: str
) -> None:
    job = plain()
    job["spec"]["mpiReplicaSpecs"][role]["restartPolicy"] = written
    field = f"spec.mpiReplicaSpecs.{role}.restartPolicy"
    assert list(said(job)) == ([f'{field}: "{written}": {says}'] if says else [])


def test_an_edit_of_a_value_is_told_once() -> None:
    before, after = good(cleanPodPolicy="Running"), good(cleanPodPolicy="running")
    [told] = answers.verdict(after, before).warnings
    assert told.endswith("did you mean Running?")
    assert answers.verdict(after, copy.deepcopy(after)).warnings == ()


def test_a_handful_at_most() -> None:
    command = ["horovodrun", "-np", "99", "--max-np", "4", "--host-discovery-script", "/x.sh", "x"]
    assert (
        len(said(good(name="n" * 64, sidecar=True, command=command, slotsPerWorker=9)))
        == review.MOST
    )


def edited(before: Object, *, role: str = "Worker", **container: Any) -> Object:
    """The job with these fields in a container of its template."""
    after = copy.deepcopy(before)
    after["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["containers"][0] |= container
    return after


def reordered(before: Object) -> Object:
    after = copy.deepcopy(before)
    template = after["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    template["containers"] = [
        dict(reversed(container.items())) for container in template["containers"]
    ]
    return after


STARTED, ENDED = (good(conditions=["Created", state]) for state in ("Running", "Succeeded"))
DOUBTFUL = plain(annotations=ELASTIC)
QUEUED = good(labels=TEAM, conditions=["Created", "Running"])
LABELLED = good(labels=TEAM | {"a": "b"}, conditions=["Created"])
THREE, ONE = (good(replicas=replicas, conditions=["Created"]) for replicas in (3, 1))
NEW_WORKERS = "Worker.template: existing workers keep the old template; only workers created later get the new one"
NEW_LAUNCHER = (
    "Launcher.template: for the next launcher: suspend and resume the job (this restarts training)"
)
BECOMES = (
    "this job becomes elastic with a new launcher; a running launcher keeps its workers until you "
    "type `mpijob-elastic upgrade adopt train -n default`, which restarts training from its last "
    "checkpoint"
)
OLD_QUOTA = (
    "the job keeps the quota that its old pods asked for; to ask again, suspend and resume it"
)
SHRINKS = "would scale 3→1: worker-2, worker-1 drain for at most 1m, then are deleted"
MAIN = "workers have 2 containers and no spec.mainContainer: ranks start in the first, worker"


@pytest.mark.parametrize(
    ("before", "after", "request_fields", "warnings"),
    [
        pytest.param(DOUBTFUL, plain(annotations=ELASTIC, labels={"a": "b"}), {}, (), id="a label"),
        pytest.param(
            good(cleanPodPolicy=None),
            good(cleanPodPolicy=None, labels=TEAM),
            {},
            (BY_CLEANING,),
            id="a label that is a queue",
        ),
        pytest.param(
            DOUBTFUL, plain(sidecar=True, annotations=ELASTIC), {}, (MAIN,), id="another doubt"
        ),
        pytest.param(
            STARTED, edited(STARTED, image="new"), {}, (NEW_WORKERS,), id="an image of workers"
        ),
        pytest.param(
            STARTED,
            edited(STARTED, role="Launcher", image="new"),
            {},
            (NEW_LAUNCHER,),
            id="of the launcher",
        ),
        pytest.param(
            plain(conditions=["Created", "Running"]),
            STARTED,
            {},
            (BECOMES,),
            id="a command that makes a plain job elastic",
        ),
        pytest.param(
            good(),
            edited(good(), image="new"),
            {},
            (),
            id="an image before the operator saw the job",
        ),
        pytest.param(ENDED, edited(STARTED, image="new"), {}, (), id="an image after its end"),
        pytest.param(
            QUEUED,
            edited(QUEUED, image="new"),
            {},
            (NEW_WORKERS, OLD_QUOTA),
            id="an image of a queued job",
        ),
        pytest.param(STARTED, reordered(STARTED), {}, (), id="the order of keys"),
        pytest.param(QUEUED, LABELLED, {}, (), id="a label of a queued job"),
        pytest.param(THREE, ONE, {"dryRun": True}, (SHRINKS,), id="a size in a dry run"),
        pytest.param(THREE, ONE, {}, (), id="a size"),
    ],
)
def test_an_edit_is_told_only_what_it_brings_in(
    before: Object, after: Object, request_fields: dict[str, Any], warnings: tuple[str, ...]
) -> None:
    assert answers.verdict(after, before, **request_fields).warnings == warnings
    assert all(len(warning) <= 120 for warning in warnings if warning != BECOMES)


def test_a_job_without_templates_is_judged_all_the_same() -> None:
    before, after = (
        good(conditions=["Created"]),
        good(conditions=["Created"], annotations={MAX: "1"}),
    )
    before["spec"]["mpiReplicaSpecs"]["Worker"] = None
    assert answers.answer(after, before).outcome == "rejected"
