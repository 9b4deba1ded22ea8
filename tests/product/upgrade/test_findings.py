"""What preflight finds: operators, Kueue, and what an upgrade means for a job."""

import re

import pytest

from mpijob_elastic import names
from mpijob_elastic.install.installer import InstallPlan
from mpijob_elastic.kube.resources import (
    BUDGETS,
    MPI_JOBS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NETWORK_POLICIES,
    SERVICES,
    Resource,
)
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.launch_command import Launch
from mpijob_elastic.model.memory import Memory
from mpijob_elastic.model.pod import Launcher, LauncherPhase
from mpijob_elastic.model.policy import Policy
from tests.builders import but, config, job, launcher
from tests.doubles.api import TinyApi
from tests.faults.faults import Answer
from tests.faults.proxy import FaultProxy
from tests.product.upgrade.definitions import definition
from upgrade import findings, operators, preflight
from upgrade.findings import Adoption, Advice, PreflightFinding, Readiness, Report
from upgrade.operators import Kind, Operator


def adoptions(*readiness: Readiness) -> list[Adoption]:
    return [
        Adoption(namespace="ml", name=str(index), readiness=one, why="")
        for index, one in enumerate(readiness)
    ]


def seen(tag: str) -> list[Operator]:
    found = operators.recognise("Deployment a/b", f"mpi-operator:{tag}")
    return [found] if found else []


@pytest.mark.parametrize(
    ("finding", "verdict", "text"),
    [
        (findings.kubernetes("v1.34.4", 34), Advice.GO, "serves everything"),
        (
            findings.kubernetes("v1.29.0", 29),
            Advice.CARE,
            "v1.29.0 has no ValidatingAdmissionPolicy",
        ),
        (findings.kubernetes("v1.28.0", 28), Advice.CARE, "v1.28.0 has no FlowSchema v1"),
        (findings.kubernetes("v1.27.0", 27), Advice.NO, "v1.27.0 is older than 1.28"),
        (findings.definition(None), Advice.NO, "install mpi-operator v0.2.3"),
        (
            findings.definition(definition("v0.2.3")),
            Advice.GO,
            "legacy (from before apiextensions v1), stored as v1",
        ),
        (findings.definition(definition("administrator")), Advice.GO, "stored as v1, v1alpha2"),
        (findings.definition(definition("v0.3.0")), Advice.NO, "v2beta1"),
        (findings.jobs(None), Advice.CARE, "may not list"),
        (findings.jobs([]), Advice.GO, "none"),
        (
            findings.jobs(adoptions(Readiness.FIXED, Readiness.LIVE, Readiness.LIVE)),
            Advice.GO,
            "2 live, 1 fixed",
        ),
        (findings.jobs(adoptions(Readiness.RESTART)), Advice.CARE, "1 restart"),
        (findings.jobs(adoptions(Readiness.FOREIGN)), Advice.CARE, "1 foreign"),
        (findings.operators(seen("v0.2.3"))[0], Advice.GO, "v0.2.3"),
        (findings.operators(seen("v0.3.0"))[0], Advice.NO, "v0.3.0"),
        (findings.operators(seen("v0.2.1"))[0], Advice.CARE, "v0.2.1"),
        (findings.operators(seen("latest"))[0], Advice.CARE, "latest"),
        (findings.operators([])[0], Advice.CARE, ""),
        (findings.operators(None)[0], Advice.CARE, ""),
        (findings.faults([])[0], Advice.GO, "none"),
        (findings.faults(["ml/a: bad", "ml/b: bad"])[1], Advice.CARE, "ml/b: bad"),
    ],
)
def test_findings(finding: PreflightFinding, verdict: Advice, text: str) -> None:
    assert finding.verdict is verdict
    assert text in finding.text


def test_the_worst_finding_is_the_verdict() -> None:
    care, job = (
        findings.jobs(None),
        {"namespace": "ml", "name": "0", "readiness": "live", "why": ""},
    )
    data = Report(findings=(findings.jobs([]), care), jobs=tuple(adoptions(Readiness.LIVE))).data()
    assert (data["verdict"], data["jobs"]) == ("care", [job])
    assert Report(findings=(care, findings.definition(None)), jobs=()).verdict is Advice.NO


STARTED = launcher(mounts_discovery=False, names_discovery=False, created_at=1000.0)
CONFIG = but(config([]), published=None, script=None, hostfile="", memory=Memory())
JOB = but(job(2), workers=(), launcher=STARTED, config=None, role=None)


@pytest.mark.parametrize(
    ("view", "readiness"),
    [
        (JOB, Readiness.RESTART),
        (but(JOB, launcher=None), Readiness.LIVE),
        (but(JOB, launcher=but(STARTED, phase=LauncherPhase.WAITING)), Readiness.LIVE),
        (but(JOB, launcher=but(STARTED, phase=LauncherPhase.DELIVERING)), Readiness.LIVE),
        (but(JOB, launcher=but(STARTED, mounts_discovery=True)), Readiness.LIVE),
        (but(JOB, launcher=but(STARTED, mounts_discovery=True), config=CONFIG), Readiness.ELASTIC),
        (but(JOB, launcher=but(STARTED, phase=LauncherPhase.FINISHED)), Readiness.FINISHED),
        (but(JOB, spec_elastic=False), Readiness.FIXED),
        (but(JOB, finished=True), Readiness.FINISHED),
        (but(JOB, deleting=True), Readiness.FINISHED),
        (but(JOB, foreign="its pods carry labels"), Readiness.FOREIGN),
        (but(JOB, notices="HandedOver: to another"), Readiness.FOREIGN),
    ],
)
def test_readiness(view: JobView, readiness: Readiness) -> None:
    assert findings.adoption(view, now=2000.0).readiness is readiness


MPIRUN = Launch(program="mpirun", np=4)
PLAIN = but(JOB, launch=MPIRUN, spec_elastic=False)
NO_PLAIN = "no running job starts a plain mpirun"
ONE_PLAIN = (
    "1 running job starts a plain mpirun, and could change the size with /etc/mpi/elastic.sh "
    "(docs/mpi.md): default/j"
)


@pytest.mark.parametrize(
    ("views", "text"),
    [
        pytest.param([], NO_PLAIN, id="no job"),
        pytest.param([PLAIN], ONE_PLAIN, id="one"),
        pytest.param([PLAIN, JOB], ONE_PLAIN, id="one beside others"),
        pytest.param([but(PLAIN, finished=True)], NO_PLAIN, id="it has ended"),
        pytest.param([but(PLAIN, deleting=True)], NO_PLAIN, id="it is deleted"),
        pytest.param([but(PLAIN, launcher=None)], NO_PLAIN, id="it does not run"),
        pytest.param([but(PLAIN, foreign="its pods")], NO_PLAIN, id="another operator's"),
        pytest.param([but(PLAIN, policy=Policy(enabled=False))], NO_PLAIN, id="switched off"),
        pytest.param([but(PLAIN, launch=None)], NO_PLAIN, id="another program"),
        pytest.param([but(PLAIN, spec_elastic=True)], NO_PLAIN, id="edited already"),
    ],
)
def test_the_running_jobs_with_a_plain_mpirun_are_counted(views: list[JobView], text: str) -> None:
    found = findings.plain_mpirun(views)
    assert (found.topic, found.verdict, found.text) == ("mpirun", Advice.GO, text)


def test_many_jobs_with_a_plain_mpirun_are_one_line() -> None:
    found = findings.plain_mpirun([PLAIN] * 30)
    assert found.text.startswith("30 running jobs start a plain mpirun, ")
    assert found.text.endswith("default/j, default/j and 22 more")


MPI = but(JOB, names_elastic=True)


@pytest.mark.parametrize(
    ("views", "tag", "verdict"),
    [
        pytest.param([MPI], "v0.2.3", Advice.GO, id="v0.2.3"),
        pytest.param([MPI, JOB], "v0.3.0", Advice.CARE, id="v0.3.0"),
        pytest.param([JOB], "v0.3.0", None, id="no such job"),
        pytest.param([but(MPI, finished=True)], "v0.3.0", None, id="it has ended"),
    ],
)
def test_a_handover_of_jobs_with_elastic_sh_is_foretold(
    views: list[JobView], tag: str, verdict: Advice | None
) -> None:
    found = findings.handover(views, seen(tag))
    assert [one.verdict for one in found] == ([] if verdict is None else [verdict])
    assert all("replaces v0.2.3, wait for the end of: default/j" in one.text for one in found)


def test_a_restart_says_what_it_costs_and_how_it_is_done() -> None:
    why = findings.adoption(JOB, now=1000.0 + 3 * 3600).why
    for said in ("has run for 3h", "last checkpoint", "mpijob-elastic upgrade adopt j -n default"):
        assert said in why


PLACE = "/api/v1/namespaces/kueue-system/configmaps"
OFF = 'integrations:\n  frameworks:\n  - "batch/job"\n'
ON = f"{OFF}  - pod\n"
LEFT_ALONE = f"{ON}  externalFrameworks: [MPIJob.v1.kubeflow.org]\n"


@pytest.fixture
def installed(api: TinyApi) -> None:
    for served in ("kueue.x-k8s.io", "kueue.x-k8s.io/v1beta2"):
        api.objects[f"/apis/{served}"] = {"name": served}


async def test_without_it_there_is_nothing_to_say_and_an_older_one_queues_no_job(
    api: TinyApi, client: ApiWriter
) -> None:
    assert (await preflight.kueue(client)).text == "not installed"
    api.objects["/apis/kueue.x-k8s.io"] = {"name": "kueue.x-k8s.io"}
    found = await preflight.kueue(client)
    assert found.verdict is Advice.CARE
    assert "older than 0.15" in found.text


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("configuration", "verdict", "said"),
    [
        (OFF, Advice.GO, "its integration `pod` is off"),
        ("integrations: {}", Advice.GO, "its integration `pod` is off"),
        (ON, Advice.CARE, "a second time"),
        (LEFT_ALONE, Advice.GO, "leaves the pods of MPIJobs alone"),
        ("integrations: [pod]", Advice.CARE, "is not in"),
        ("{", Advice.CARE, "cannot read"),
        (None, Advice.CARE, "is not in"),
    ],
)
async def test_its_integration_for_pods_is_judged(
    api: TinyApi, client: ApiWriter, configuration: str | None, verdict: Advice, said: str
) -> None:
    if configuration is not None:
        await api.create(
            PLACE, "kueue-manager-config", data={"controller_manager_config.yaml": configuration}
        )
    found = await preflight.kueue(client)
    assert (found.verdict, said in found.text) == (verdict, True), found.text
    assert ("add MPIJob.v1.kubeflow.org to" in found.text) is (verdict is Advice.CARE)


@pytest.mark.usefixtures("installed")
async def test_without_the_right_to_read_it_nothing_is_claimed(
    client: ApiWriter, proxy: FaultProxy
) -> None:
    with proxy.inject(Answer(status=403), on=lambda request: request.path.startswith(PLACE)):
        found = await preflight.kueue(client)
    assert (found.verdict, "cannot read" in found.text) == (Advice.CARE, True)


@pytest.mark.parametrize(
    ("image", "version", "kind"),
    [
        ("mpioperator/mpi-operator:0.2.3", "0.2.3", Kind.KNOWN),
        ("host:5000/team/mpi-operator:v0.2.3@sha256:00", "0.2.3", Kind.KNOWN),
        ("mpi-operator:0.2.1", "0.2.1", Kind.OTHER),
        ("mpi-operator:v0.3.0", "0.3.0", Kind.ELASTIC),
        ("mpi-operator:0.10.0", "0.10.0", Kind.ELASTIC),
        ("mpi-operator:v1.0", "1.0", Kind.ELASTIC),
        ("mpi-operator:latest", "", Kind.UNKNOWN),
        ("host:5000/mpi-operator", "", Kind.UNKNOWN),
        ("mpi-operator@sha256:00", "", Kind.UNKNOWN),
        ("kubeflow/training-operator", "", Kind.ELASTIC),
    ],
)
def test_images(image: str, version: str, kind: Kind) -> None:
    found = operators.recognise("Deployment a/b", image)
    assert (found.version, found.kind) == (version, kind)


def test_the_command_of_a_newer_one_tells_and_other_images_are_no_operators() -> None:
    found = operators.recognise("Pod a/b", "mpi-operator:latest", ("/opt/mpi-operator.v2beta1",))
    assert found.kind is Kind.ELASTIC
    assert operators.recognise("Pod a/b", "my-mpi-operator-dashboard:0.2.3") is None


BENCH = {"app": "bench"}
MATCHING = {"matchLabels": BENCH}
BEGINS = "begins to match its new pods, by labels that mpi-operator v0.2.3 drops"


async def bench(api: TinyApi) -> None:
    """A job with a label in its workers' template, and with a rule that begins to match by it."""
    term = {"labelSelector": MATCHING, "topologyKey": "node"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    template = {"metadata": {"labels": BENCH}, "spec": {"affinity": apart}}
    spec = {"mpiReplicaSpecs": {"Worker": {"replicas": 1, "template": template}}}
    await put(api, MPI_JOBS, "train", spec=spec)


async def put(api: TinyApi, resource: Resource, name: str, **content: object) -> None:
    """Store an object of the namespace ml, as a list over all namespaces has it."""
    await api.create(resource.path(), name, **content)
    await api.update(resource.path(), name, metadata={"namespace": "ml"})


async def test_each_rule_that_begins_to_match_by_labels_is_named(
    api: TinyApi, client: ApiWriter
) -> None:
    await bench(api)
    await put(api, NETWORK_POLICIES, "deny", spec={"podSelector": MATCHING})
    await put(api, NETWORK_POLICIES, "all", spec={"podSelector": {}})
    await put(api, BUDGETS, "keep", spec={"selector": MATCHING})
    await put(api, SERVICES, "web", spec={"selector": BENCH})
    found = await preflight.labels(client, InstallPlan(), await preflight.job_texts(client))
    assert {one.verdict for one in found} == {Advice.CARE}
    assert [one.text.partition(f" {BEGINS}")[0] for one in found] == [
        "ml/train: Worker.template: the required anti-affinity to app=bench (by node)",
        "ml/train: NetworkPolicy deny (app=bench)",
        "ml/train: PodDisruptionBudget keep (app=bench)",
        "ml/train: Service web (app=bench)",
    ]


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (InstallPlan(jobs_namespaces=("other",)), "no rule begins to match"),
        (InstallPlan(template_labels=False), "are not put back"),
    ],
)
async def test_no_rule_is_named_where_no_label_is_put_back(
    api: TinyApi, client: ApiWriter, plan: InstallPlan, words: str
) -> None:
    await bench(api)
    [found] = await preflight.labels(client, plan, await preflight.job_texts(client))
    assert (found.verdict, words in found.text) == (Advice.GO, True)


async def test_rules_that_may_not_be_listed_are_an_open_question(
    api: TinyApi, client: ApiWriter, proxy: FaultProxy
) -> None:
    await bench(api)
    with proxy.inject(Answer(status=403), on=lambda one: "/services" in one.path):
        [found] = await preflight.labels(client, InstallPlan(), await preflight.job_texts(client))
    assert found == findings.unknown("labels", "list services in all namespaces")


@pytest.mark.parametrize(
    ("checks", "changes", "registered", "words"),
    [
        (True, True, True, "installed; it answers"),
        (True, False, True, "installed; it answers"),
        (True, False, False, "half installed: .*no MutatingWebhookConfiguration"),
        (False, True, True, "half installed: .*no ValidatingWebhookConfiguration"),
        (False, False, False, "not installed yet"),
    ],
)
async def test_half_a_webhook_is_no_webhook_that_answers(
    api: TinyApi, client: ApiWriter, checks: bool, changes: bool, registered: bool, words: str
) -> None:
    api.put("/version", {"minor": "34", "gitVersion": "v1.34.4"})
    hooks = {"metadata": {}, "webhooks": [{"name": "x", "clientConfig": {"caBundle": "eA=="}}]}
    if registered:
        api.put(MUTATING_WEBHOOKS.path(name=names.WEBHOOK_CONFIGURATION), hooks)
    api.webhook, api.webhook_changes = checks, changes
    found = (await preflight.look(client, InstallPlan(), now=0.0)).findings
    [said] = [one.text for one in found if one.topic == "webhook"]
    assert re.match(words, said)


async def test_a_namespace_that_leaves_the_webhook_out_does_not_stand_for_it(
    api: TinyApi, client: ApiWriter
) -> None:
    """A dry run is stored there as without a webhook."""
    api.put("/version", {"minor": "34", "gitVersion": "v1.34.4"})
    registered = {"metadata": {}, "webhooks": [{"name": "x", "clientConfig": {"caBundle": "eA=="}}]}
    api.put(MUTATING_WEBHOOKS.path(name=names.WEBHOOK_CONFIGURATION), registered)
    labels = {names.NAMESPACE_OPT_OUT: "disabled"}
    api.put(NAMESPACES.path(name="default"), {"metadata": {"name": "default", "labels": labels}})
    api.webhook = False
    found = (await preflight.look(client, InstallPlan(), now=0.0)).findings
    [said] = [one.text for one in found if one.topic == "webhook"]
    assert said == "installed; namespace default leaves it out, so it was not asked"


ANNOTATED = but(JOB, policy=Policy(enabled=True))
SCRIPT = Launch(program="horovodrun", discovery_script=names.DISCOVER_HOSTS_PATH)
MOUNTED = but(STARTED, mounts_discovery=True)


@pytest.mark.parametrize(
    ("launch", "is_vain"),
    [
        (Launch(program="horovodrun", np=2), True),
        (Launch(program="mpirun"), True),
        (SCRIPT, False),
        (Launch(program="horovodrun", np=2, unread=True), False),
        (None, False),
    ],
)
def test_a_restart_is_vain_if_the_command_reads_no_list(
    launch: Launch | None, is_vain: bool
) -> None:
    why = findings.vain_restart(but(ANNOTATED, launch=launch))
    assert bool(why) is is_vain
    assert is_vain is ("edit mpijob j" in why)


@pytest.mark.parametrize(
    ("started", "launch", "is_older"),
    [
        (MOUNTED, SCRIPT, True),
        (MOUNTED, Launch(program="horovodrun", np=2), False),
        (MOUNTED, None, False),
        (but(MOUNTED, names_discovery=True), SCRIPT, False),
        (STARTED, SCRIPT, False),
    ],
)
def test_a_launcher_may_run_a_command_from_before_an_edit(
    started: Launcher, launch: Launch | None, is_older: bool
) -> None:
    why = findings.older_command(but(ANNOTATED, launcher=started, launch=launch))
    assert bool(why) is is_older
    assert is_older is ("mpijob-elastic suspend j -n default" in why)
