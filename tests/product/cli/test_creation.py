"""`submit -f`, `--wait`, `--logs`, `--shm-size` and the dry run of the API server."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mpijob_elastic import names
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import logs, manifest_file, submit
from mpijob_elastic.cli.jobs.creation import Creation
from mpijob_elastic.cli.jobs.write_change import Patience
from mpijob_elastic.cli.target import Where
from mpijob_elastic.install import Refused, webhook_call
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import LEASES, MPI_JOBS
from mpijob_elastic.telemetry import terminal
from tests.doubles.api import TinyApi, refused
from tests.doubles.direct import Sent
from tests.product.cli import worlds
from tests.product.cli.served import put_job
from tests.product.cli.test_commands import typed
from tests.product.cli.test_write_change import at_work_lease

SUBMIT = ("submit", "--name=train", "--image=i", "--dry-run")
LINE = ["horovodrun", "-np", "1", "--host-discovery-script", names.DISCOVER_HOSTS_PATH, "true"]


def manifest(name: object = "train", **metadata: Any) -> dict[str, Any]:
    launcher = {"template": {"spec": {"containers": [{"command": LINE}]}}}
    spec = {"mpiReplicaSpecs": {"Launcher": launcher, "Worker": {"replicas": 1}}}
    head = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob"}
    return {**head, "metadata": {"name": name, **metadata}, "spec": spec}


@pytest.fixture
async def api() -> AsyncIterator[TinyApi]:
    async with TinyApi(selects=True) as found:
        found.put(LEASES.path(names.NAMESPACE, names.LEASE), at_work_lease())
        yield found


def stored(folder: Path, *objects: object) -> str:
    """Write a file of objects, and return its path."""
    file = folder / "job.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return str(file)


async def submitted(api: TinyApi, file: str, **asked: Any) -> Exit:
    where = Where(kubeconfig=api.kubeconfig, namespace=asked.pop("namespace", "ml"))
    return await submit.submit_file(where, file, Creation(**asked))


async def test_the_job_of_a_file_is_created_as_it_is(
    api: TinyApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = manifest(labels={"team": "vision"})
    assert await submitted(api, stored(tmp_path, body)) == Exit.DONE
    made = api.objects[MPI_JOBS.path("ml", "train")]
    assert (made["spec"], made["metadata"]["labels"]) == (body["spec"], {"team": "vision"})
    out, err = capsys.readouterr()
    assert out.startswith("MPIJob train created. Follow it")
    assert err == ""
    with pytest.raises(Refused, match="there is an MPIJob ml/train"):
        await submitted(api, stored(tmp_path, body))


async def test_a_job_that_kubectl_has_printed_is_created_anew(api: TinyApi, tmp_path: Path) -> None:
    """The API server refuses a resourceVersion, and a status would be that of the other job."""
    written = {
        "uid": "u",
        "resourceVersion": "7",
        "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{}],
    }
    body = {**manifest(**written, labels={"a": "b"}), "status": {"conditions": []}}
    assert await submitted(api, stored(tmp_path, body), dry_run="server") == Exit.DONE
    assert manifest_file.read(stored(tmp_path, body)) == manifest(labels={"a": "b"})


async def test_the_namespace_is_that_of_the_file(api: TinyApi, tmp_path: Path) -> None:
    file = stored(tmp_path, manifest(namespace="other"))
    with pytest.raises(Refused, match=r"metadata.namespace is other, and not ml as --namespace"):
        await submitted(api, file)
    assert await submitted(api, file, namespace=None) == Exit.DONE
    assert MPI_JOBS.path("other", "train") in api.objects


async def test_a_command_that_keeps_its_size_is_warned_of(
    tmp_path: Path, api: TinyApi, capsys: pytest.CaptureFixture[str]
) -> None:
    body = manifest()
    body["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"] = [
        {"command": ["mpirun"], "args": ["-np", "2", "true"]}
    ]
    assert await submitted(api, stored(tmp_path, body)) == Exit.DONE
    assert "Warning: the command names no discover_hosts.sh" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ([], "job.yaml has nothing, and not one MPIJob kubeflow.org/v1"),
        ([{"kind": "Pod", "apiVersion": "v1"}], "has Pod v1, and not one MPIJob"),
        ([manifest(), manifest("b")], "has MPIJob kubeflow.org/v1, MPIJob kubeflow.org/v1, and"),
        ([["x"]], "has no object, and not one MPIJob"),
        ([{**manifest(), "metadata": {}}], r"the MPIJob has no metadata.name"),
        ([{**manifest(), "metadata": 3}], r"the MPIJob has no metadata.name"),
        ([manifest(1234)], r"metadata.name is 1234, which is no text: quote it"),
        ([manifest(True)], r"metadata.name is true, which is no text"),
        ([manifest(["a"])], r'metadata.name is \["a"\], which is no text'),
        ([manifest(namespace=7)], r"metadata.namespace is 7, which is no text"),
        ([manifest("", generateName=1.5)], r"metadata.generateName is 1.5, which is no text"),
        ([manifest("a" * 70)], "the operator makes no pod for the name a+: it has 70 characters"),
    ],
)
async def test_what_is_not_one_job_is_refused(
    api: TinyApi, tmp_path: Path, objects: list[object], words: str
) -> None:
    with pytest.raises(Refused, match=words):
        await submitted(api, stored(tmp_path, *objects))
    assert api.writes == []


async def test_a_file_that_is_no_text_is_refused(api: TinyApi, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_bytes(b"\xff\xfekind")
    with pytest.raises(Refused, match=r"job.yaml: 'utf-8' codec can't decode byte 0xff"):
        await submitted(api, str(tmp_path / "job.yaml"))


async def test_what_is_no_yaml_is_refused(api: TinyApi, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("a: [")
    with pytest.raises(Refused, match=r"job.yaml: "):
        await submitted(api, str(tmp_path / "job.yaml"))
    with pytest.raises(FileNotFoundError):
        await submitted(api, str(tmp_path / "none.yaml"))


@pytest.mark.parametrize("spoilt", [None, [], [3], [{"command": "x"}], {}])
def test_a_launcher_of_any_form_has_a_command_or_none(spoilt: object) -> None:
    body = manifest()
    body["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"] = spoilt
    assert manifest_file.launcher_line(body) == []
    assert manifest_file.launcher_line({"spec": spoilt}) == []


def test_standard_input_is_a_file() -> None:
    done = typed("submit", "-f", "-", "--dry-run", "-o", "json", input=json.dumps(manifest()))
    assert (done.exit_code, json.loads(done.stdout)) == (0, manifest())


async def test_the_api_server_tries_a_job_in_a_dry_run(
    api: TinyApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[dict[str, str]] = []

    def tried(sent: Any) -> object | None:
        if sent.method != "POST" or sent.body["metadata"]["name"] == webhook_call.NAME:
            return None
        asked.append(dict(sent.query))
        return manifest()

    api.hook = tried
    assert await submitted(api, stored(tmp_path, manifest()), dry_run="server") == Exit.DONE
    assert [query.get("dryRun") for query in asked] == ["All"]
    assert capsys.readouterr().out == "MPIJob train created (server dry run)\n"


@pytest.mark.parametrize(
    ("words", "code"), [("--dry-run=client", 0), ("--dry-run=server", 1), ("--dry-run=none", 1)]
)
def test_the_dry_run_has_kubectls_words(words: str, code: int, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "none"
    kubeconfig.write_text("{}")
    done = typed("submit", "--name=a", "--image=i", f"--kubeconfig={kubeconfig}", words, "--", "x")
    assert done.exit_code == code  # 1: there is no cluster


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--workers=2 --gpus 1", "so write --gpus, --image, --name, --workers into the file"),
        ("-- python train.py", "so write the command, --image, --name into the file"),
    ],
)
def test_a_file_goes_with_no_option_of_a_job(words: str, says: str) -> None:
    done = typed("submit", "-f", "job.yaml", "--name=a", "--image=i", *words.split())
    assert done.exit_code == Exit.USAGE
    said = " ".join(done.stderr.replace("│", " ").split())
    assert f"-f FILE describes the whole job, {says}" in said


@pytest.mark.parametrize(
    "words",
    [("-f", "a.yaml", "-f", "b.yaml"), ("-fa.yaml", "--filename=b.yaml"), ("-f", "-", "-f", "-")],
)
def test_one_file_is_taken_and_two_are_refused(words: tuple[str, ...]) -> None:
    """Kubectl creates what both files have."""
    done = typed("submit", *words, "--dry-run")
    assert (done.exit_code, done.stdout) == (Exit.USAGE, "")
    said = " ".join(done.stderr.replace("│", " ").split())
    assert "submit creates one job, and there are 2 files: `kubectl create -f" in said


def test_without_a_file_three_things_are_needed() -> None:
    done = typed("submit")
    assert done.exit_code == Exit.USAGE
    assert "--name, --image, the command is missing; or give -f FILE" in done.stderr


def test_shared_memory_is_a_volume_of_the_workers() -> None:
    made = yaml.safe_load(typed(*SUBMIT, "--shm-size=2Gi", "--data=c:/d", "--", "x").stdout)
    roles = made["spec"]["mpiReplicaSpecs"]
    spec = roles["Worker"]["template"]["spec"]
    assert spec["volumes"][1:] == [
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}}
    ]
    assert spec["containers"][0]["volumeMounts"][1:] == [{"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108
    assert [one["name"] for one in roles["Launcher"]["template"]["spec"]["volumes"]] == ["data-0"]


def test_a_size_of_shared_memory_that_is_none_is_refused() -> None:
    done = typed(*SUBMIT, "--shm-size=2 GB", "--", "x")
    assert isinstance(done.exception, Refused)
    assert str(done.exception).startswith('--shm-size: "2 GB" is not a quantity')


async def test_waiting_ends_at_the_timeout_with_what_is_missing(
    api: TinyApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    patience = Patience(wait=True, seconds=0.1, look=False)
    assert await submitted(api, stored(tmp_path, manifest()), patience=patience) == Exit.NOT_KNOWN
    out, err = capsys.readouterr()
    assert out.startswith("MPIJob train created.\n")
    assert "the change still goes on" in err


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("create", "It is unknown whether an MPIJob was created; `mpijob-elastic get -n ml`"),
        ("read", "The job goes on: `mpijob-elastic watch train -n ml`"),
        ("wait", "Nothing is undone, the change goes on: `mpijob-elastic watch train -n ml`"),
    ],
)
async def test_ctrl_c_leaves_the_job_and_says_so(
    api: TinyApi, tmp_path: Path, capsys: pytest.CaptureFixture[str], when: str, said: str
) -> None:
    patience = Patience(wait=True, seconds=60.0, look=False)
    running = asyncio.create_task(submitted(api, stored(tmp_path, manifest()), patience=patience))
    reads = 0

    def interrupted(sent: Sent) -> object | None:
        nonlocal reads
        creates = sent.method == "POST" and "dryRun" not in sent.query
        reads += bool(api.writes) and sent.path.endswith("/pods")
        if {"create": creates, "read": reads == 1, "wait": reads == 2}[when]:
            running.cancel()
        return None

    api.hook = interrupted
    with pytest.raises(asyncio.CancelledError):
        await running
    assert capsys.readouterr().err.splitlines() == [f"Interrupted. {said} shows it."]


@pytest.mark.parametrize(
    ("conditions", "code"),
    [(("Created", "Succeeded"), Exit.DONE), (("Created", "Failed"), Exit.REFUSED)],
)
async def test_the_log_ends_with_the_end_of_the_job(
    api: TinyApi,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    conditions: tuple[str, ...],
    code: Exit,
) -> None:
    asked = list[Any]()

    async def logged(_where: Where, *, job: str, wanted: Any) -> None:
        asked.append((job, wanted.follow))
        put_job(api, job, phase="Succeeded", conditions=conditions)

    monkeypatch.setattr(logs, "logs", logged)
    assert await submitted(api, stored(tmp_path, manifest()), logs=True) == code
    assert asked == [("train", True)]


@pytest.mark.parametrize("is_fast", [False, True])
@pytest.mark.parametrize(("ends", "code"), [("Succeeded", Exit.DONE), ("Failed", Exit.REFUSED)])
async def test_with_the_log_the_exit_code_is_that_of_the_job(
    api: TinyApi,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    is_fast: bool,
    ends: str,
    code: Exit,
) -> None:
    """Not that of the wait: the job trains too late, or has ended when the wait begins."""

    def end(name: str) -> worlds.Object:
        over: dict[str, Any] = {"completionTime": worlds.CREATED_TEXT}
        put_job(api, name, phase=ends, conditions=("Created", ends), **over)
        return worlds.mpi_job(name=name)

    def created(sent: Any) -> object | None:
        is_real = sent.method == "POST" and "dryRun" not in sent.query
        return end("train") if is_real and is_fast else None

    async def logged(_where: Where, *, job: str, wanted: Any) -> None:
        assert wanted.follow
        end(job)

    api.hook = created
    monkeypatch.setattr(logs, "logs", logged)
    patience = Patience(wait=True, seconds=0.1, look=False)
    assert await submitted(api, stored(tmp_path, manifest()), patience=patience, logs=True) == code
    out, err = capsys.readouterr()
    assert (f"train has ended: {ends}." in out) == is_fast
    assert ("the change still goes on" in err) != is_fast


@pytest.mark.parametrize("output", ["name", "json", "yaml"])
async def test_what_programs_read_is_the_job_alone(
    api: TinyApi,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    output: str,
) -> None:
    """The steps of the wait, its end and the log are for people, on standard error."""

    async def logged(_where: Where, *, job: str, wanted: Any) -> None:
        assert wanted.follow
        terminal.copy(b"[0]<stdout>:step 1")
        put_job(api, job, phase="Succeeded", conditions=("Created", "Succeeded"))

    monkeypatch.setattr(logs, "logs", logged)
    asked = {"patience": Patience(wait=True, seconds=0.1, look=False), "logs": True}
    assert await submitted(api, stored(tmp_path, manifest()), output=output, **asked) == Exit.DONE
    out, err = capsys.readouterr()
    if output == "name":
        assert out == "mpijob.kubeflow.org/train\n"
    else:
        placed = {"name": "train", "namespace": "ml"}
        assert yaml.safe_load(out) == {**manifest(), "metadata": placed}
    assert "  pods 0 of 1" in err
    assert "step 1" in err


@pytest.mark.parametrize(
    ("words", "namespace"),
    [(("-n", "ml"), "ml"), (("--namespace=ml",), "ml"), ((), None)],
)
@pytest.mark.parametrize("output", ["text", "yaml", "json"])
def test_a_dry_run_keeps_the_namespace_that_was_given(
    words: tuple[str, ...], namespace: str | None, output: str, tmp_path: Path
) -> None:
    """`kubectl create -f` would create the job in the namespace of the context."""
    line = (*SUBMIT, *words, "-o", output)
    made = yaml.safe_load(typed(*line, "--queue=q", "--", "true").stdout)
    assert made["metadata"].get("namespace") == namespace
    file = stored(tmp_path, manifest(namespace=None))
    made = yaml.safe_load(typed("submit", "-f", file, "--dry-run", *words, "-o", output).stdout)
    assert made["metadata"].get("namespace") == namespace


async def test_a_name_may_be_made_by_the_api_server(
    api: TinyApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = manifest()
    body["metadata"] = {"generateName": "train-"}
    api.hook = lambda sent: worlds.mpi_job(name="train-x7") if sent.method == "POST" else None
    assert await submitted(api, stored(tmp_path, body), output="name") == Exit.DONE
    assert capsys.readouterr().out == "mpijob.kubeflow.org/train-x7\n"


@pytest.mark.parametrize(
    ("reason", "message", "words"),
    [
        ("", "404 page not found", "does not serve MPIJob kubeflow.org/v1; install mpi-operator"),
        ("NotFound", "the server could not find the requested resource", "does not serve MPIJob"),
        ("NotFound", 'namespaces "ml" not found', 'namespaces "ml" not found'),
    ],
)
async def test_what_is_not_found_is_named(
    api: TinyApi, tmp_path: Path, reason: str, message: str, words: str
) -> None:
    def absent(sent: Any) -> object | None:
        if sent.path.endswith("/mpijobs"):
            raise refused(404, reason, message)
        return None

    api.hook = absent
    with pytest.raises(errors.KubeError, match=words):
        await submitted(api, stored(tmp_path, manifest()))
