"""The MPIJob that `submit` makes of the words: each in pages/submit, and what is refused.

`UPDATE_PAGES=1 pytest tests/product/cli/test_submit.py` writes the files: read what git shows of
them.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from mpijob_elastic import capabilities, names
from mpijob_elastic.cli.jobs import submit
from mpijob_elastic.install import Refused
from mpijob_elastic.kube import kubectl_yaml
from mpijob_elastic.model import mpijob, operator_types, policy
from tests.product.cli.test_commands import typed

PAGES = Path(__file__).parent / "pages" / "submit"
TRAIN = ("submit", "--name=train", "--image=horovod:1", "--dry-run")
# The seed session of Arena's own guide (docs/training/etjob), as a user types it; the shell
# computes.
ARENA = """horovodrun
-np $((${workers}*${gpus}))
--min-np $((${minWorkers}*${gpus}))
--max-np $((${maxWorkers}*${gpus}))
--host-discovery-script /etc/edl/discover_hosts.sh
python /examples/elastic/tensorflow2_mnist_elastic.py"""
EVERYTHING = (
    *(
        "--workers=4",
        "--min-workers=2",
        "--max-workers=8",
        "--sizes=2,4,8",
        "--gpus=2",
        "--cpu=4",
        "--memory=8Gi",
    ),
    *(
        "--env",
        "SEED=1",
        "-e",
        "URL=http://a?b=c",
        "--data",
        "images:/data",
        "-d",
        "models:/models",
    ),
    *("--working-dir=/examples", "--np=4", "--queue=team", "--priority=low", "--gang=volcano"),
    *("--", "python", "train.py", "--lr", "0.1"),
)
JOBS = {
    "a command for horovodrun": (
        "--workers=2",
        "--np=2",
        "--max-workers=4",
        "--",
        "python",
        "train.py",
    ),
    "everything": EVERYTHING,
    "as arena": (
        "--gpus=1",
        "--workers=3",
        "--max-workers=9",
        "--min-workers=1",
        "--working-dir=/examples",
        ARENA,
    ),
    "mpi": (
        *("--workers=2", "--slots=2", "--np=2", "--min-workers=1", "--max-workers=4"),
        *("--driver=mpi", "--", "python", "train.py"),
    ),
    "not elastic": ("--workers=2", "--slots=2", "--", "mpirun", "-np", "4", "python", "train.py"),
}


@pytest.mark.parametrize("job", JOBS)
def test_it_makes(job: str) -> None:
    done = typed(*TRAIN, *JOBS[job])
    assert done.exit_code == 0
    text = f"{done.stdout}\n{done.stderr}" if done.stderr else done.stdout
    file = PAGES / f"{job.replace(' ', '-')}.txt"
    if os.environ.get("UPDATE_PAGES"):
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(text)
    assert text == file.read_text()
    facts = capabilities.of(mpijob.decode(yaml_to_json(done.stdout)))
    assert (facts.elastic, facts.problems) == (job != "not elastic", ())


def yaml_to_json(text: str) -> bytes:
    return json.dumps(yaml.safe_load(text)).encode()


def test_the_four_variables_of_arena_are_what_its_commands_count_with() -> None:
    made = yaml.safe_load(typed(*TRAIN, *JOBS["as arena"]).stdout)
    [container] = made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    environment = {one["name"]: one["value"] for one in container["env"]}
    shell, option, line = container["command"]
    printed = subprocess.check_output([shell, option, f"echo {line}"], env=environment, text=True)
    assert printed.startswith("horovodrun -np 3 --min-np 1 --max-np 9 --host-discovery-script")


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        pytest.param(("true",), {}, id="no bound"),
        pytest.param(("--min-workers=2", "--", "true"), {"minWorkers": "2"}, id="the least"),
        pytest.param(("--max-workers=8", "--", "true"), {"maxWorkers": "8"}, id="the most"),
        # Arena's own defaults.
        pytest.param(
            ("run -n $minWorkers -N ${maxWorkers}",),
            {"minWorkers": "1", "maxWorkers": "1000"},
            id="read by the command",
        ),
        pytest.param(
            ("-e", "maxWorkers=7", "--", "sh", "-c", "run $maxWorkers"),
            {"maxWorkers": "7"},
            id="set by the user",
        ),
    ],
)
def test_a_bound_that_nobody_gave_is_written_only_where_the_command_reads_it(
    words: tuple[str, ...], variables: dict[str, str]
) -> None:
    made = yaml.safe_load(typed(*TRAIN, "--workers=4", *words).stdout)
    [container] = made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    environment = {one["name"]: one["value"] for one in container["env"]}
    assert environment == {"workers": "4", "gpus": "0", **variables}


def test_what_looks_like_a_number_is_printed_as_a_text() -> None:
    words = ("-e", "ACCEPT_EULA=Y", "-e", "LR=1e-4", "-e", "SHA=1234e56", "-e", "PORTS=22:22")
    done = typed(*TRAIN, *words, "--np=1", "--", "python", "t.py", "--lr", "1e-4", "--flag", "y")
    [made] = kubectl_yaml.read_all(done.stdout)
    assert operator_types.judge(json.dumps(made).encode())[0] == []
    [container] = made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    values = [one["value"] for one in container["env"]]
    assert values[:4] == ["Y", "1e-4", "1234e56", "22:22"]
    assert container["command"][-4:] == ["--lr", "1e-4", "--flag", "y"]


def test_the_script_of_arenas_image_is_named() -> None:
    line = ARENA.replace("/etc/edl/", "/usr/local/bin/")
    said = typed(*TRAIN, "--workers=2", line).stderr
    assert "write /etc/mpi/discover_hosts.sh" in said


@pytest.mark.parametrize(
    ("option", "says"),
    [
        pytest.param("--host-discovery-script", "", id="the webhook warns"),
        pytest.param("$OPTION", policy.ARENA_SCRIPT, id="the webhook cannot read it"),
    ],
)
def test_the_webhook_is_not_repeated(option: str, says: str) -> None:
    line = ["horovodrun", "-np", "2", option, names.ARENA_DISCOVER_HOSTS_PATH, "x"]
    assert submit.warning(line, is_read=True) == says
    assert submit.warning(line, is_read=False) == policy.ARENA_SCRIPT


def test_with_np_a_single_worker_trains() -> None:
    """Without the interfaces Horovod waits for a second host (_get_min_start_hosts in horovod/runner/gloo_run.py)."""
    made = yaml.safe_load(typed(*TRAIN, "--np=1", "--", "python", "train.py").stdout)
    [container] = made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    assert " --network-interfaces eth0 " in " ".join(container["command"])


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ("--np=2", "--", "horovodrun", "-np", "2", "python"),
            1,
            "give --np, or horovodrun and its options",
        ),
        (
            ("--np=2", "--", "mpirun", "python"),
            1,
            "with --np horovodrun starts the command; for mpirun give --driver mpi",
        ),
        (
            ("--np=2", "--driver=mpi", "--", "elastic.sh", "--", "mpirun", "python"),
            1,
            "give --np, or elastic.sh and its options in the command, not both",
        ),
        (
            ("--driver=mpi", "--", "horovodrun", "-np", "2", "python"),
            1,
            "horovodrun starts the ranks itself; leave out --driver mpi",
        ),
        (("--driver=ssh", "--", "true"), 2, "'ssh' is not one of 'horovod', 'mpi'"),
        (
            (f"--name={'a' * 64}", "--np=2", "--", "python"),
            1,
            "--name has 64 characters, and the operator makes no pod for a name with more than 63",
        ),
        (
            ("--workers=300", "--min-workers=301", "--", "true"),
            1,
            "--workers is 300, which is below --min-workers 301",
        ),
        (
            ("--min-workers=2", "--", "true"),
            1,
            "--workers is 1, which is below --min-workers 2",
        ),
        (
            ("--workers=9", "--max-workers=8", "--", "true"),
            1,
            "--workers is 9, which is above --max-workers 8",
        ),
        (
            ("--workers=5", "--min-workers=5", "--max-workers=4", "--", "true"),
            1,
            "--min-workers is 5, which is above --max-workers 4",
        ),
        (("--env", "SEED", "--", "true"), 2, "SEED: each needs a = between its two parts"),
        (("--data", ":/data", "--", "true"), 2, ":/data: each needs a : between its two parts"),
        (("--workers=0", "--", "true"), 2, "greater than or equal to 1"),
        ((), 2, "the command is missing; or give -f FILE"),
    ],
)
def test_wrong_words_are_refused(words: tuple[str, ...], code: int, said: str) -> None:
    done = typed(*TRAIN, *words)
    if code == 1:
        assert isinstance(done.exception, Refused)
        assert said in str(done.exception)
    else:
        assert done.exit_code == code
        assert said in " ".join(done.stderr.replace("│", " ").split())


def mounts(text: str, role: str = "Worker") -> list[tuple[str, str]]:
    """The claim or the path on the node, and the path in the pod, of each mount."""
    spec = yaml.safe_load(text)["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
    sources = {
        one["name"]: one.get("persistentVolumeClaim", {}).get("claimName")
        or one.get("hostPath", {}).get("path")
        for one in spec["volumes"]
    }
    [container] = spec["containers"]
    assert len(sources) == len(spec["volumes"])
    return [(sources[one["name"]], one["mountPath"]) for one in container["volumeMounts"]]


@pytest.mark.parametrize("role", ["Launcher", "Worker"])
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("--data=c:/a", "--data=c:/b"), [("c", "/a"), ("c", "/b")]),
        (("-d", "c:/a", "-d", "d:/b", "-d", "c:/c"), [("c", "/a"), ("c", "/c"), ("d", "/b")]),
        (("--data=c:/a", "--data=c:/a"), [("c", "/a")]),
        (("--data-dir=/x:/a", "--data-dir=/x:/b"), [("/x", "/a"), ("/x", "/b")]),
        (("--data-dir=/x", "--dataDir=/x"), [("/x", "/x")]),
    ],
)
def test_each_path_that_is_given_is_mounted(
    words: tuple[str, ...], found: list[tuple[str, str]], role: str
) -> None:
    assert mounts(typed(*TRAIN, *words, "--", "true").stdout, role) == found


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (("--data=c:/a", "--data=d:/a"), "/a"),
        (("--data-dir=/x:/a", "--data-dir=/y:/a"), "/a"),
        (("--data=c:/a", "--data-dir=/a"), "/a"),
        (("--data=c:/dev/shm", "--shm-size=1Gi"), "/dev/shm"),  # noqa: S108
    ],
)
def test_two_volumes_at_one_path_are_refused(words: tuple[str, ...], path: str) -> None:
    """The API server takes the job, and no pod of it."""
    done = typed(*TRAIN, *words, "--", "true")
    assert isinstance(done.exception, Refused)
    assert str(done.exception).startswith(f"two volumes would be mounted at {path};")


@pytest.mark.parametrize(
    ("option", "key"),
    [
        ("--env", "LR"),
        ("-e", "LR"),
        ("--label", "team"),
        ("--annotation", "a/b"),
        ("--launcher-annotation", "a"),
        ("--worker-annotation", "a"),
        ("--selector", "disk"),
        ("--launcher-selector", "disk"),
        ("--device", "amd.com/gpu"),
    ],
)
def test_of_two_values_the_last_counts_and_that_is_said(option: str, key: str) -> None:
    """As with Arena and docker, where it is not said."""
    name = "--env" if option == "-e" else option
    words = (option, f"{key}=1", option, f"{key}=2")
    done = typed(*TRAIN, *words, "--np=1", "--", "true")
    assert done.exit_code == 0
    said = f"Warning: {name} {key} is given with more than one value; the last counts"
    assert said in done.stderr
    same = typed(*TRAIN, option, f"{key}=2", option, f"{key}=2", "--np=1", "--", "true")
    assert same.stdout == done.stdout
    assert "Warning" not in same.stderr


RUN = ["mpirun", "-np", "{np}", "-machinefile", "{hostfile}"]
TRAINS = [*RUN, "python", "train.py"]


@pytest.mark.parametrize(
    ("words", "command"),
    [
        pytest.param(("--", "python", "train.py"), ["--", *TRAINS], id="a program"),
        pytest.param(
            ("--np=2", "--slots=2", "--min-workers=1", "--max-workers=4", "--", "./a"),
            ["--np", "2", "--min-np", "2", "--max-np", "8", "--", *RUN, "./a"],
            id="limits",
        ),
        pytest.param(
            ("--", "mpirun", "-np", "4", "--oversubscribe", "python", "train.py"),
            ["--", *RUN, "--oversubscribe", "python", "train.py"],
            id="mpirun",
        ),
        pytest.param(
            ("--", "/opt/bin/mpiexec", "-f", "/etc/mpi/hostfile", "./a"),
            ["--", "/opt/bin/mpiexec", *RUN[1:], "./a"],
            id="mpiexec with a folder",
        ),
        pytest.param(
            ("--", *TRAINS),
            ["--", *TRAINS],
            id="mpirun as it is to be",
        ),
        pytest.param(
            ("--", "/etc/mpi/elastic.sh", "--min-np", "2", "--", *TRAINS),
            ["--min-np", "2", "--", *TRAINS],
            id="elastic.sh",
        ),
        pytest.param(("--", "elastic.sh", "--", "./a"), ["--", "./a"], id="without its folder"),
        pytest.param(("mpirun -np 4 python train.py",), ["--", *TRAINS], id="a line with mpirun"),
        pytest.param(("python train.py",), ["--", *TRAINS], id="a line"),
        pytest.param(
            ("python train.py > $OUT",),
            ["--", *RUN, "sh", "-c", "python train.py > $OUT"],
            id="a line for a shell",
        ),
    ],
)
def test_with_the_driver_mpi_elastic_sh_starts_the_mpirun(
    words: tuple[str, ...], command: list[str]
) -> None:
    done = typed(*TRAIN, "--workers=2", "--driver", "mpi", *words)
    assert done.exit_code == 0
    assert done.stderr == ""
    made = yaml.safe_load(done.stdout)
    [container] = made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    assert container["command"] == ["/etc/mpi/elastic.sh", *command]
    facts = capabilities.of(mpijob.decode(yaml_to_json(done.stdout)))
    assert (facts.elastic, facts.names_elastic) == (True, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(
            ("--", "mpirun", "-np", "4", "python"),
            "the job keeps its size; with --driver mpi, elastic.sh starts it again with each size",
            id="a plain mpirun",
        ),
        pytest.param(
            ("--driver=mpi", "--", "mpirun", "--own", "4", "python"),
            "the options of mpirun could not all be read",
            id="options that are not known",
        ),
        pytest.param(
            ("--driver=mpi", "mpirun -np 4 python > $OUT"),
            "the options of mpirun could not all be read",
            id="mpirun in a shell",
        ),
        pytest.param(
            ("--driver=mpi", "--np=4", "--max-workers=2", "--", "./a"),
            "elastic.sh ends at once: --max-np is below --np",
            id="no size",
        ),
    ],
)
def test_the_warning_of_a_command_says_what_to_type(words: tuple[str, ...], said: str) -> None:
    done = typed(*TRAIN, *words)
    assert done.exit_code == 0
    assert said in done.stderr


RFC = "is no name of an object; write lower-case letters, digits and dashes, such as"
QUANTITIES = [
    ("--cpu", "4x", '"4x" is not a quantity; write for example 500m or 4'),
    ("--cpu", "1 core", '"1 core" is not a quantity; write for example 500m or 4'),
    ("--cpu", "m", '"m" is not a quantity; write for example 500m or 4'),
    ("--cpu", "-1", '"-1" is below 0; write for example 500m or 4'),
    ("--cpu", "9" * 99 + "x", f'"{"9" * 64}" is not a quantity; write for example 500m or 4'),
    ("--memory", "8GB", '"8GB" is not a quantity; write for example 500Mi or 8Gi'),
    ("--memory", "8gi", '"8gi" is not a quantity; write for example 500Mi or 8Gi'),
    ("--memory", "1,5Gi", '"1,5Gi" is not a quantity; write for example 500Mi or 8Gi'),
    ("--memory", "1.2.3", '"1.2.3" is not a quantity; write for example 500Mi or 8Gi'),
    ("--device", "amd.com/gpu=1x", 'amd.com/gpu: "1x" is not a quantity; write for example 1'),
    ("--device", "amd.com/gpu=", 'amd.com/gpu: "" is not a quantity; write for example 1'),
    ("--device", "amd.com/gpu=-2", 'amd.com/gpu: "-2" is below 0; write for example 1'),
    (
        "--device",
        "amd.com/gpu=500m",
        'amd.com/gpu: "500m" is not a whole number; write for example 1',
    ),
]


@pytest.mark.parametrize(("option", "text", "says"), QUANTITIES)
def test_an_amount_that_is_none_is_refused_once_by_the_name_of_its_option(
    option: str, text: str, says: str
) -> None:
    done = typed(*TRAIN, f"{option}={text}", "--", "true")
    assert isinstance(done.exception, Refused)
    apart = " " if option == "--device" else ": "
    assert str(done.exception) == f"{option}{apart}{says}"


@pytest.mark.parametrize(
    "words",
    [
        (f"--cpu={cpu}", f"--memory={memory}", f"--device={device}")
        for cpu, memory, device in (
            ("4", "8Gi", "amd.com/gpu=1"),
            ("0.5", "8e9", "amd.com/gpu=1k"),
            ("500m", "1.5Gi", "hugepages-2Mi=100Mi"),
            (".5", "8G", "amd.com/gpu=0"),
        )
    ],
)
def test_an_amount_that_the_operator_reads_is_written(words: tuple[str, ...]) -> None:
    done = typed(*TRAIN, *words, "--", "true")
    assert done.exit_code == 0
    assert operator_types.judge(yaml_to_json(done.stdout))[0] == []


@pytest.mark.parametrize("output", ["name", "yaml", "text"])
@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("Train_1", "train-1"),
        ("train_1", "train-1"),
        ("TRAIN", "train"),
        ("train-", "train"),
        (".train", "train"),
        ("my train", "my-train"),
        ("a..b", "a.b"),
        ("", "train"),
        ("ä", "train"),
        ("train\n", "train"),
    ],
)
def test_a_name_that_no_object_may_have_is_refused(name: str, like: str, output: str) -> None:
    # The option stands twice, and the last one counts.
    done = typed(*TRAIN, f"--name={name}", "-o", output, "--", "true")
    assert isinstance(done.exception, Refused)
    assert str(done.exception) == f'--name: "{name}" {RFC} {like}'
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["train", "t", "1", "train-1", "a.b-c.d", "a" * 63, "x--y"])
def test_a_name_that_an_object_may_have_is_taken(name: str) -> None:
    done = typed(*TRAIN, f"--name={name}", "-o", "name", "--", "horovodrun")
    assert done.stdout == f"mpijob.kubeflow.org/{name}\n"


def test_the_output_is_chosen() -> None:
    assert typed(*TRAIN, "-o", "name", "--", "horovodrun").stdout == "mpijob.kubeflow.org/train\n"
    assert typed(*TRAIN, "-o", "json", "--", "horovodrun").stdout.startswith("{")
