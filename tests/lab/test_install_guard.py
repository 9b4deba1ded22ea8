"""The admission policies let the two accounts do what they do, and refuse what their rights alone would allow."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from lab.cluster import Cluster
from lab.errors import LabError
from lab.install import Installed
from lab.operator.objects import Object
from mpijob_elastic import names
from mpijob_elastic.act import driver_looks, launcher_execs
from mpijob_elastic.act.worker_scripts import END as END_RANKS
from mpijob_elastic.act.worker_scripts import SCRIPT, TELL
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.exec import exec_in_pod
from mpijob_elastic.kube.resources import (
    CONFIG_MAPS,
    MPI_JOBS,
    MUTATING_WEBHOOKS,
    PODS,
    ROLES,
    SECRETS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from mpijob_elastic.kube.writer import JSON_PATCH
from mpijob_elastic.model import elastic_script, kubexec
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.kubexec import Exec
from tests.builders import KUBEXEC
from tests.lab.policies import (
    CONFIG,
    DRY_RUN,
    EVIL_IMAGE,
    GATED,
    HELD,
    JOB,
    LAUNCHER,
    MARKED,
    OTHERS,
    OURS,
    THEIRS,
    TOUCHED,
    UNLABELLED,
    UNOWNED,
    WORKER,
    Accounts,
    Sent,
    added,
    annotations,
    by_administrator,
    created,
    deleted,
    in_role,
    patched,
    removed,
    size,
)
from tests.lab.versions import needs
from tests.lab.waiting import PATIENCE

pytestmark = [pytest.mark.lab, needs("ValidatingAdmissionPolicy")]
PROBE, TOLD, ENDED = (["/bin/sh", "-c", script] for script in (SCRIPT, TELL, END_RANKS))
# No process has so high a number.
NO_EXEC = Exec(pid=4_194_305, ticks=5000, pod=WORKER, started_at=0.0)
END = launcher_execs.end_command([NO_EXEC, NO_EXEC])
# Other words in its places.
NOT_TO_END = (
    (2, f"{launcher_execs.END_SCRIPT}id\n"),
    (3, "$(id)"),
    (4, f"0 8 {WORKER}"),
    (5, f"-1 8 {WORKER}"),
    (5, "7 8"),
    (5, f"7 * {WORKER}"),
    (5, f"7 8 9 {WORKER}"),
    (4, "7 8 other-worker-0"),
    (5, "7 8 other-worker-0"),
    (5, f"7 8 {JOB}-launcher"),
    (5, f"7 8 {WORKER}*"),
    (5, f"7 8 x-{WORKER}"),
    (5, f"7 8 {WORKER}\n"),
)
NO_SCRIPTS = (
    "",
    "#!/bin/sh",
    "#!/bin/bash\n",
    "#!/bin/sh\nid\n",
    f"#!/bin/sh\necho {WORKER}:1",
    f"#!/bin/sh\necho {WORKER}\n",
    f"#!/bin/sh\necho {WORKER}:1 2\n",
    f"#!/bin/sh\necho {WORKER}:1; id\n",
    f"#!/bin/sh\necho {WORKER}:1\n\n",
    f"#!/bin/sh\necho {WORKER}:$(id)\n",
    f"#!/bin/sh\necho {WORKER}:0\n",
    f"#!/bin/sh\necho {WORKER}.r0:1\n",
    # A name without slots is the last line, and has a number that no host has.
    f"#!/bin/sh\necho {WORKER}:1\necho {WORKER}.r1:0\n",
    f"#!/bin/sh\necho {WORKER}:1\necho {WORKER}.r01:1\n",
    f"#!/bin/sh\necho {WORKER}:1\necho {WORKER}.r010:0\n",
    f"#!/bin/sh\necho {WORKER}.r01:0\necho {WORKER}:1\n",
    f"#!/bin/sh\necho {WORKER}:1\necho other-{WORKER}.r01:0\n",
    f"#!/bin/sh\necho {WORKER}.x:1\n",
    f"#!/bin/sh\necho {LAUNCHER}:1\n",
    f"#!/bin/sh\necho other-{WORKER}:1\n",
    "#!/bin/sh\necho other-worker-0:1\n",
    f"#!/bin/sh\necho {JOB}-worker-00:1\n",
    # What stands for the beginning of a line in the policy.
    "#!/bin/sh\nW0:1\n",
    f"#!/bin/sh\necho {WORKER}:1\nW0:1\n",
    f"#!/bin/sh\n echo {WORKER}:1\n",
    f"#!/bin/sh\r\necho {WORKER}:1\n",
    f"x\n#!/bin/sh\necho {WORKER}:1\n",
)
# A list for elastic.sh.
NUMBERED = "#!/bin/sh\n# list 7 drain 60\n"
NO_NUMBERED_SCRIPTS = (
    f"{NUMBERED}# list 8 drain 60\n",
    f"{NUMBERED}id\n",
    f"{NUMBERED}echo {WORKER}:1\n",
    f"{NUMBERED}echo {WORKER}:1 # 1a2b3c4\n",
    f"{NUMBERED}echo {WORKER}:1 # 1a2b3c4d5\n",
    f"{NUMBERED}echo {WORKER}:1 # 1A2B3C4D\n",
    f"{NUMBERED}echo {WORKER}:1 # 1a2b3c4d",
    f"{NUMBERED}echo {WORKER}:1 #1a2b3c4d\n",
    f"{NUMBERED}echo {WORKER}:1 # 1a2b3c4d; id\n",
    f"{NUMBERED}echo {WORKER}:1 # 1a2b3c4d\nid\n",
    f"{NUMBERED}echo {WORKER}:1; id # 1a2b3c4d\n",
    f"{NUMBERED}echo {WORKER}:0 # 1a2b3c4d\n",
    f"{NUMBERED}echo {LAUNCHER}:1 # 1a2b3c4d\n",
    f"{NUMBERED}echo other-worker-0:1 # 1a2b3c4d\n",
    f"{NUMBERED}W0:1 # 1a2b3c4d\n",
    # Only Horovod's driver is reminded.
    f"{NUMBERED}echo {WORKER}:1 # 1a2b3c4d\necho {WORKER}.r01:0\n",
    f"#!/bin/sh\necho {WORKER}:1 # 1a2b3c4d\n",
    f"#!/bin/sh\necho {WORKER}:1\n# list 7 drain 60\n",
    "#!/bin/sh\n# list drain 60\n",
    "#!/bin/sh\n# list 7\n",
    "#!/bin/sh\n# list 12345678901 drain 60\n",
    "#!/bin/sh\n# list 7 drain 123456\n",
    "#!/bin/sh\n# list 7 drain 60s\n",
    "#!/bin/sh\n# list 7 drain 60",
    "#!/bin/sh\n# list 7 drain 60; id\n",
    "#!/bin/sh\n# list 7 drain 60\r\nid\n",
    "#!/bin/sh\n#id\n",
    "#!/bin/sh\n#\n",
)
NO_HOSTFILES = (
    "x",
    "W0 slots=1\n",
    f"{WORKER}\n",
    f"{WORKER} slots=0\n",
    f"{WORKER} slots=1",
    f"{WORKER} slots=1 max_slots=2\n",
    f"{LAUNCHER} slots=1\n",
    "other-worker-0 slots=1\n",
)
NO_WORKERS = (
    "database-0",
    "other-worker-0",
    f"x-{WORKER}",
    f"{WORKER}0x",
    f"{JOB}-worker-01",
    f"{JOB}-worker-",
    LAUNCHER,
)
GATES, FIRST_GATE, NODES = (
    "/spec/schedulingGates",
    f"{'/spec/schedulingGates'}/2",
    added("/spec/nodeSelector", {"a": "b"}),
)
ENDED_AT_ONCE, ENDED_LATER = (
    [added("/spec/activeDeadlineSeconds", seconds)] for seconds in (1, 60)
)
PODS_SENT = [
    *patched(True, PODS, LAUNCHER, TOUCHED, annotations({names.REFRESHED: None}), MARKED),
    *patched(
        False,
        PODS,
        LAUNCHER,
        annotations({names.STATUS: "x"}),
        annotations({"kept": "no"}),
        annotations({"kept": None}),
    ),
    *patched(
        False, PODS, LAUNCHER, in_role(names.ROLE_WORKER), in_role(None), HELD, UNOWNED, EVIL_IMAGE
    ),
    *patched(False, PODS, "foreign", TOUCHED),
    # Of a pod's spec only our gates.
    *patched(
        False,
        PODS,
        GATED,
        [added(GATES, [OTHERS, OURS], instead=True)],
        [removed(GATES)],
        [NODES],
    ),
    *patched(False, PODS, GATED, [removed(FIRST_GATE), NODES], [removed(FIRST_GATE), *EVIL_IMAGE]),
    *patched(False, PODS, GATED, [removed(FIRST_GATE), *ENDED_AT_ONCE]),
    *patched(True, PODS, GATED, [added(GATES, [THEIRS], instead=True)]),
    # Only a launcher that is restarted, as this is without a restartPolicy of its own, and only at
    # once.
    *patched(False, PODS, LAUNCHER, ENDED_LATER),
    *patched(False, PODS, WORKER, ENDED_AT_ONCE),
    *patched(True, PODS, LAUNCHER, ENDED_AT_ONCE),
    deleted(False, PODS, "foreign"),
    deleted(True, PODS, WORKER),
]


def data(**keys: Any) -> Object:
    named = {
        "script": names.KEY_DISCOVER_HOSTS,
        "hostfile": names.KEY_HOSTFILE,
        "kubexec": names.KEY_KUBEXEC,
        "elastic": names.KEY_ELASTIC,
    }
    return {"data": {named.get(key, key): value for key, value in keys.items()}}


HOSTS = [names.worker(JOB, 0), names.host(names.worker(JOB, 11), 12)]
HOSTFILE = names.hostfile([names.worker(JOB, index) for index in range(1000)], slots=4)
MAPPED = kubexec.mapped(KUBEXEC)
EVERY_WORKER = [names.worker(JOB, index) for index in range(MOST_WORKERS)]
LONG_HOSTS = [names.host(pod, 999_999_999) for pod in EVERY_WORKER]


def numbered(hosts: list[str], *, slots: int, number: str, drain: str) -> str:
    lines = [f"echo {host}:{slots} # {index:08x}\n" for index, host in enumerate(hosts)]
    return f"#!/bin/sh\n# list {number} drain {drain}\n" + "".join(lines)


CONFIG_MAPS_SENT = [
    *(
        sent
        for script in (
            names.discover_hosts(HOSTS, slots=8),
            names.discover_hosts([], slots=1),
            names.discover_hosts(HOSTS, slots=8, reminder=names.reminder(WORKER, 9)),
            numbered(HOSTS, slots=8, number="7", drain="60"),
            numbered([], slots=8, number="4294967295", drain="86400"),
        )
        for body in (data(script=script, hostfile=HOSTFILE),)
        for sent in patched(
            True,
            CONFIG_MAPS,
            CONFIG,
            {**annotations({names.MEMORY: "{}", names.HISTORY: "[]"}), **body},
        )
    ),
    # Once, and never back.
    *patched(True, CONFIG_MAPS, CONFIG, data(kubexec=MAPPED), MARKED),
    *patched(
        False,
        CONFIG_MAPS,
        CONFIG,
        *(data(kubexec=text) for text in ("evil", KUBEXEC, f"{MAPPED}\n", None)),
    ),
    *patched(
        False,
        CONFIG_MAPS,
        CONFIG,
        data(more="x"),
        data(hostfile=None),
        {"binaryData": {"more": "eA=="}},
    ),
    *patched(
        False,
        CONFIG_MAPS,
        CONFIG,
        {"immutable": True},
        annotations({names.PHASE: "x"}),
        UNLABELLED,
        UNOWNED,
    ),
    *patched(
        False,
        CONFIG_MAPS,
        CONFIG,
        *(data(script=script) for script in (*NO_SCRIPTS, *NO_NUMBERED_SCRIPTS)),
    ),
    *patched(False, CONFIG_MAPS, CONFIG, *(data(hostfile=hostfile) for hostfile in NO_HOSTFILES)),
    *patched(False, CONFIG_MAPS, "foreign", data(kubexec=MAPPED), data(hostfile="evil")),
    *patched(False, CONFIG_MAPS, "kube-root-ca.crt", {"data": {"ca.crt": "evil"}}),
    # The API server bounds the cost of an expression: the script of the largest job under long
    # names must be within.
    *patched(
        True,
        CONFIG_MAPS,
        CONFIG,
        data(
            script=names.discover_hosts(
                LONG_HOSTS, slots=2**31 - 1, reminder=names.reminder(EVERY_WORKER[-1], 9)
            ),
            hostfile=names.hostfile(EVERY_WORKER, slots=2**31 - 1),
        ),
        data(
            script=numbered(LONG_HOSTS, slots=2**31 - 1, number="4294967295", drain="86400"),
            hostfile=names.hostfile(EVERY_WORKER, slots=2**31 - 1),
        ),
    ),
]
DRIVER_SENT = [
    *patched(
        False,
        CONFIG_MAPS,
        CONFIG,
        *(
            data(elastic=text)
            for text in (
                "#!/bin/sh\nid\n",
                f"{elastic_script.TEXT}id\n",
                elastic_script.TEXT.removesuffix("\n"),
                elastic_script.TEXT.replace("set -u", "set +u"),
            )
        ),
    ),
    *patched(True, CONFIG_MAPS, CONFIG, data(elastic=elastic_script.TEXT)),
    # What is there may stay, and neither changes nor goes.
    *patched(True, CONFIG_MAPS, CONFIG, data(hostfile=HOSTFILE, elastic=elastic_script.TEXT)),
    *patched(False, CONFIG_MAPS, CONFIG, data(elastic=f"{elastic_script.TEXT}#")),
]
LISTED = "/rules/1/resourceNames"
ROLES_SENT = [
    *patched(True, ROLES, LAUNCHER, [added(LISTED, EVERY_WORKER)], MARKED),
    *patched(False, ROLES, LAUNCHER, *([added(f"{LISTED}/-", name)] for name in NO_WORKERS)),
    *patched(
        False,
        ROLES,
        LAUNCHER,
        [added(LISTED, [], instead=True)],
        [removed(LISTED)],
        [removed("/rules/0")],
    ),
    *patched(False, ROLES, LAUNCHER, [added("/rules/0/resourceNames", ["x-worker-1"])]),
    *patched(False, ROLES, LAUNCHER, [added("/rules/0/verbs", ["get"], instead=True)], UNLABELLED),
    *patched(False, ROLES, "foreign", [added("/rules", [], instead=True)]),
]
MPI_JOBS_SENT = [
    *patched(
        True,
        MPI_JOBS,
        JOB,
        annotations({names.STATUS: "waiting"}),
        annotations({names.STATUS: None}),
        MARKED,
    ),
    *patched(
        True,
        MPI_JOBS,
        JOB,
        annotations({names.PHASE: "Scaling", names.CHANGE: "{}"}),
        annotations({names.PHASE: None}),
    ),
    *patched(
        False, MPI_JOBS, JOB, annotations({names.ENABLED: "true"}), annotations({"kept": "no"})
    ),
    *patched(False, MPI_JOBS, JOB, annotations({names.HISTORY: "[]"})),
    *patched(False, MPI_JOBS, JOB, annotations({"kept": None}), UNLABELLED, size(9)),
]
COUNTED = {
    "conditions": [{"type": "Created", "status": "True"}],
    "replicaStatuses": {"Worker": {"active": 1}},
}


def counts(**worker: Any) -> Object:
    return {"replicaStatuses": {"Worker": worker}}


SELECTOR = counts(selector=names.worker_selector(JOB))
STATUS_SENT = [
    by_administrator({"status": COUNTED}, "status"),
    *(
        sent
        for ok, status in (
            (False, {"conditions": []}),
            (False, {"startTime": "2026-01-01T00:00:00Z"}),
            (False, counts(active=2)),
            (False, counts(active=None)),
            (False, {"replicaStatuses": {"Launcher": {"active": 1}}}),
            (False, counts(selector="app=other")),
            (False, {"replicaStatuses": None}),
            (True, SELECTOR),
        )
        for sent in patched(ok, MPI_JOBS, JOB, {"status": status}, part="status")
    ),
]


@pytest.mark.parametrize(
    ("policy", "requests"),
    [
        pytest.param(
            "mpijob-elastic-pods", PODS_SENT, id="the launcher's touch, our gates, pods of jobs"
        ),
        pytest.param("mpijob-elastic-config-maps", CONFIG_MAPS_SENT, id="host lists and memory"),
        pytest.param("mpijob-elastic-driver", DRIVER_SENT, id="elastic.sh"),
        pytest.param(
            "mpijob-elastic-roles", ROLES_SENT, id="workers by name", marks=pytest.mark.thorough
        ),
        pytest.param("mpijob-elastic-mpijobs", MPI_JOBS_SENT, id="what we say of jobs"),
        pytest.param("mpijob-elastic-mpijob-status", STATUS_SENT, id="the selector of a status"),
    ],
)
async def test_only_what_we_write_goes_through(
    accounts: Accounts, policy: str, requests: list[Sent]
) -> None:
    await accounts.expect(policy, *requests)


async def test_roles_never_more_than_we_hold(accounts: Accounts) -> None:
    more = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    [sent] = patched(False, ROLES, LAUNCHER, [added("/rules/-", more)])
    with pytest.raises(errors.Forbidden):
        await accounts.goes_through(sent, "none")


async def executes(accounts: Accounts, pod: str, command: list[str]) -> str:
    client = accounts.clients["controller"]
    result = await exec_in_pod(
        client, accounts.namespace, pod, container="main", command=command, timeout=PATIENCE
    )
    return result.stdout


async def test_exec_only_the_five_commands_each_where_it_belongs(
    cluster: Cluster, accounts: Accounts
) -> None:
    for pod, command in (
        (WORKER, ["/bin/sh", "-c", "id"]),
        (WORKER, [*PROBE[:2], SCRIPT + "id\n"]),
        (WORKER, [*PROBE, "id"]),
        (WORKER, [*TOLD[:2], TELL.replace("ranks", "all")]),
        (LAUNCHER, PROBE),
        (WORKER, [*ENDED[:2], "kill -KILL -1"]),
        (LAUNCHER, TOLD),
        (LAUNCHER, ENDED),
        (LAUNCHER, ["/bin/sh", "-c", "id"]),
        (WORKER, launcher_execs.COMMAND),
        (WORKER, driver_looks.COMMAND),
        (LAUNCHER, [*driver_looks.COMMAND[:2], driver_looks.SCRIPT + "id\n"]),
        ("foreign", PROBE),
        ("foreign", launcher_execs.COMMAND),
        (WORKER, END),
        ("foreign", END),
        *((LAUNCHER, [*END[:at], word, *END[at + 1 :]]) for at, word in NOT_TO_END),
        (LAUNCHER, END[:-2]),
        (LAUNCHER, [*END, *END[4:] * 16]),
        (LAUNCHER, [*END, "id"]),
    ):
        # Who is refused a WebSocket is not told why; that it is not the rights, the last lines
        # show.
        with pytest.raises(errors.Forbidden):
            await executes(accounts, pod, command)
    if cluster.exec_offered:
        pods = (f"pod/{WORKER}", f"pod/{LAUNCHER}")
        cluster.kubectl(
            "wait", "-n", accounts.namespace, *pods, "--for=condition=Ready", "--timeout=240s"
        )
        answers = (
            (WORKER, PROBE, "idle"),
            (WORKER, TOLD, "told"),
            (WORKER, ENDED, "told"),
            (LAUNCHER, END, "gone\ngone"),
        )
        for pod, command, says in answers:
            assert await executes(accounts, pod, command) == f"{says}\n"
        # The launcher has no elastic.sh, which would have written something.
        assert await executes(accounts, LAUNCHER, driver_looks.COMMAND) == ""
        assert (await executes(accounts, LAUNCHER, launcher_execs.COMMAND)).startswith("main ")
        assert await executes(accounts, LAUNCHER, driver_looks.COMMAND) == ""


async def test_exec_no_input(cluster: Cluster, installed: Installed, accounts: Accounts) -> None:
    command = ("exec", "-i", "-n", accounts.namespace, WORKER, "--", *PROBE)
    with pytest.raises(
        LabError, match="ValidatingAdmissionPolicy 'mpijob-elastic-exec' with binding"
    ):
        cluster.kubectl(*command, stdin="id\n", kubeconfig=installed.controller_kubeconfig)


async def test_secrets_only_the_certificates(accounts: Accounts) -> None:
    token = {
        "metadata": {
            "name": names.CERTIFICATE_SECRET,
            "annotations": {"kubernetes.io/service-account.name": names.CONTROLLER},
        },
        "type": "kubernetes.io/service-account-token",
    }
    other = {"metadata": {"name": "other"}, "type": "Opaque"}
    ours = replace(accounts, namespace=names.NAMESPACE)
    await ours.expect(
        "mpijob-elastic-secrets", *created(False, SECRETS, other, token, by="webhook")
    )


@pytest.mark.parametrize("resource", [MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS])
async def test_of_the_webhook_configurations_only_the_bundle(
    accounts: Accounts, resource: Resource
) -> None:
    client, hook = accounts.clients["webhook"], "/webhooks/0"
    path = resource.path(name=names.WEBHOOK_CONFIGURATION)

    async def changes(*patch: Object) -> None:
        await client.patch_object(path, body=[*patch], content_type=JSON_PATCH, query=DRY_RUN)

    async def refuses(*patch: Object) -> None:
        with pytest.raises(
            errors.Forbidden, match="'mpijob-elastic-webhook-configurations' with binding"
        ):
            await changes(*patch)

    await changes(added(f"{hook}/clientConfig/caBundle", "eA=="))
    for change in (
        added(f"{hook}/clientConfig/url", "https://127.0.0.1:1/", instead=True),
        added(f"{hook}/rules/0/resources/-", "secrets"),
        added(f"{hook}/rules/0/operations", ["DELETE"], instead=True),
        added(f"{hook}/failurePolicy", "Fail", instead=True),
        added(f"{hook}/timeoutSeconds", 30, instead=True),
        removed(f"{hook}/namespaceSelector"),
        added(f"{hook}/matchConditions", [{"name": "never", "expression": "false"}]),
        added(f"{hook}/objectSelector", {"matchLabels": {"x": "y"}}),
        removed(hook),
        {"op": "move", "from": hook, "path": "/webhooks/1"},
        removed("/webhooks"),
        added("/metadata/labels/x", "y"),
        added("/metadata/finalizers", ["x.example/y"]),
    ):
        await refuses(change)
    await refuses(
        {"op": "copy", "from": hook, "path": "/webhooks/-"},
        added(f"{hook}/name", "more.webhook.mpijob-elastic", instead=True),
    )
    for number, found in enumerate(msgspec.json.decode(await client.get(path))["webhooks"]):
        field, secret = f"/webhooks/{number}/clientConfig/url", f"/evict/{'0' * 64}"
        origin = "/".join(found["clientConfig"]["url"].split("/")[:3])
        for value in (f"https://127.0.0.1:1{secret}", f"{origin}/evict/1", f"{origin}/validated"):
            await refuses(added(field, value, instead=True))
        may = found["name"] == names.EVICTIONS_HOOK
        await (changes if may else refuses)(added(field, origin + secret, instead=True))
