"""Which version the pods of an installation run, and what `install` says of another one."""

from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import Any

import pytest
from aiohttp import web

from mpijob_elastic import __version__, names
from mpijob_elastic.install import NotInTime, Refused, pod_versions
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.exec import ExecResult
from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi, refused
from tests.doubles.direct import Sent
from tests.doubles.shells import (
    STATUS,
    STDERR,
    STDOUT,
    SUCCESS,
    Asked,
    Message,
    Shells,
    Talk,
    by_place,
    failure,
    prints,
    says,
)
from tests.faults.faults import Answer
from tests.faults.proxy import FaultProxy

LABELS = {"app.kubernetes.io/name": names.PROGRAM}
OURS = f"mpijob-elastic {__version__}\n"
BEFORE_IT_WAS_TOLD = ((STDERR, "No such option: --version"), (STATUS, failure("", "no", "2")))
NO_PROGRAM = ((STDERR, "nsenter: failed to execute"), (STATUS, failure("", "no", "127")))


# Stands between us and the pods.
Gateway = Callable[[web.Request], web.StreamResponse | None]


def result(code: int, out: str = "", err: str = "") -> ExecResult:
    return ExecResult(stdout=out, stderr=err, exit_code=code)


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        pytest.param(result(0, "mpijob-elastic 0.4.0\n"), "0.4.0", id="as the command prints it"),
        pytest.param(result(0, "mpijob-elastic 0.5.0.dev0"), "0.5.0.dev0", id="before a release"),
        pytest.param(result(2, err="No such option"), pod_versions.UNTOLD, id="0.2.0"),
        pytest.param(result(127, err="not found"), None, id="no such program"),
        pytest.param(result(0, "hello\n"), None, id="another program"),
        pytest.param(result(0, ""), None, id="nothing"),
    ],
)
def test_a_version_is_read_from_what_the_program_prints(
    answer: ExecResult, version: str | None
) -> None:
    assert pod_versions.printed_version(answer) == version


async def compared(
    talk: Talk, *pods: dict[str, Any], seconds: float = 0.0, gateway: Gateway | None = None
) -> list[str]:
    """Compare the versions of these pods; return what was said meanwhile.

    gateway: answers for the pods of which it does not return None.
    """
    shells, said = Shells(talk), list[object]()

    async def serve(raw: web.Request) -> web.StreamResponse:
        return (gateway(raw) if gateway else None) or await shells.serve(raw)

    async with TinyApi(selects=True) as api:
        api.streams["/exec"] = serve
        for one in pods or (pod("a"), pod("b")):
            api.objects[PODS.path(names.NAMESPACE, one["metadata"]["name"])] = one
        async with await connect(user_agent="test", kubeconfig=api.kubeconfig) as client:
            note = await pod_versions.compare(client, seconds=seconds, say=said.append)
    assert all(one.command == ["mpijob-elastic", "--version"] for one in shells.asked)
    assert {one.container for one in shells.asked} <= {"webhook"}
    return [*map(str, said), *filter(None, [note])]


def pod(
    name: str,
    *,
    image: str = "registry.example/ours:1",
    phase: str = "Running",
    ready: bool = True,
    **metadata: object,
) -> dict[str, Any]:
    """A pod of ours, into which a mesh has put a container before our own.

    ready: our own; that of the mesh is.
    """
    containers = [{"name": "proxy", "image": "mesh"}, {"name": "webhook", "image": image}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": names.NAMESPACE,
            "uid": f"uid-of-{name}",
            "labels": LABELS,
            **metadata,
        },
        "spec": {"nodeName": f"node-of-{name}", "containers": containers},
        "status": {
            "phase": phase,
            "containerStatuses": [
                {"name": "proxy", "ready": True},
                {"name": "webhook", "ready": ready},
            ],
        },
    }


async def test_pods_of_this_version_are_no_news() -> None:
    assert await compared(prints(OURS)) == []


async def test_a_pod_that_starts_again_meanwhile_is_asked_once_more() -> None:
    """The kubelet finds no container then."""
    tries = iter((refused(500, "InternalError", "container not found"), None))

    async def starts(_: Asked) -> AsyncIterator[Message]:
        if error := next(tries):
            raise error
        yield STDOUT, OURS
        yield STATUS, SUCCESS

    said = await compared(starts, pod("a"), seconds=60.0)
    assert len(said) == 1
    assert "pod a" in said[0]


@pytest.mark.parametrize(
    ("talk", "runs"),
    [
        (by_place({"a": "mpijob-elastic 0.3.9"}, OURS), "a on node-of-a 0.3.9"),
        (says(*BEFORE_IT_WAS_TOLD), f"a on node-of-a {pod_versions.UNTOLD}"),
    ],
)
async def test_another_version_is_refused_with_its_pods_and_what_to_do(
    talk: Talk, runs: str
) -> None:
    with pytest.raises(Refused) as told:
        await compared(talk, seconds=60.0)
    said = str(told.value)
    assert not isinstance(told.value, NotInTime)
    assert f"not {__version__}, the version of this command: pod {runs}" in said
    assert "(image registry.example/ours:1)" in said
    assert "imagePullPolicy: IfNotPresent" in said
    assert "@sha256:" in said
    assert "The webhook configurations were not touched" in said


@pytest.mark.parametrize(
    "leaves",
    [
        pytest.param(pod("a", deletionTimestamp="2026-11-30T00:00:00Z"), id="deleted"),
        pytest.param(pod("a", phase="Failed"), id="evicted"),
        pytest.param(pod("a", phase="Succeeded"), id="ended"),
    ],
)
async def test_a_pod_that_is_on_its_way_out_does_not_count(leaves: dict[str, Any]) -> None:
    assert await compared(by_place({"a": "mpijob-elastic 0.3.9"}, OURS), leaves, pod("b")) == []


@pytest.mark.parametrize(
    ("talk", "why"),
    [
        (by_place({"a": None, "b": None}, ""), "no"),
        (says(*NO_PROGRAM), "nsenter: failed to execute"),
    ],
)
async def test_what_cannot_be_asked_is_said_and_fails_nothing(talk: Talk, why: str) -> None:
    [*_, last] = await compared(talk)
    assert last.startswith("The versions of these pods are not known")
    assert why in last
    assert "mpijob-elastic --version" in last


def refuses(status: int, *pods: str) -> Gateway:
    """A gateway that lets no exec pass into these pods; into none if none is named."""

    def answer(raw: web.Request) -> web.StreamResponse | None:
        if pods and raw.path.split("/")[-2] not in pods:
            return None
        return web.Response(status=status, text="<html>no upgrade</html>")

    return answer


def drops(raw: web.Request) -> web.StreamResponse | None:
    """Close the connection without an answer."""
    assert raw.transport is not None
    raw.transport.close()
    return web.Response()


@pytest.mark.parametrize(
    "gateway",
    [*map(refuses, (200, 400, 403, 404, 405, 426, 500, 501, 502, 503, 504)), drops],
    ids=lambda gateway: getattr(gateway, "__name__", ""),
)
async def test_where_no_exec_gets_through_the_installation_goes_on(gateway: Gateway) -> None:
    """A gateway before the API server answers each upgrade to a WebSocket itself."""
    [*_, last] = await compared(prints(OURS), gateway=gateway)
    assert last.startswith("The versions of these pods are not known: a, b (")
    assert "mpijob-elastic --version" in last


STARTS = failure("InternalError", "container is not running")


@pytest.mark.parametrize(
    ("talk", "gateway", "pods"),
    [
        pytest.param(
            prints(OURS), refuses(502), [pod("a"), pod("b", ready=False)], id="one does not run yet"
        ),
        pytest.param(prints(OURS), refuses(502, "b"), [], id="the other one has answered"),
        pytest.param(says((STATUS, STARTS)), None, [], id="the kubelet answers"),
        pytest.param(
            says((STATUS, STARTS)), refuses(502, "b"), [], id="the kubelet answers for one"
        ),
    ],
)
async def test_what_may_still_come_is_waited_for_and_then_the_way_on_is_named(
    talk: Talk, gateway: Gateway | None, pods: list[dict[str, Any]]
) -> None:
    with pytest.raises(NotInTime) as told:
        await compared(talk, *pods, gateway=gateway)
    assert "The webhook configurations were not touched" in str(told.value)
    assert "--no-wait" in str(told.value)


async def test_another_version_is_refused_although_another_pod_is_cut_off() -> None:
    with pytest.raises(Refused, match=r"pod a on node-of-a 0\.3\.9") as told:
        await compared(prints("mpijob-elastic 0.3.9"), gateway=refuses(502, "b"))
    assert not isinstance(told.value, NotInTime)
    assert "--no-wait" not in str(told.value)


async def test_refusals_of_the_api_server_are_no_gateway() -> None:
    async def refuses_itself(_: Asked) -> AsyncIterator[Message]:
        raise refused(503, "ServiceUnavailable", "policies do not answer")
        yield STDOUT, ""

    with pytest.raises(NotInTime, match="--no-wait"):
        await compared(refuses_itself)


async def test_without_a_last_look_at_the_pods_nothing_is_known_of_them() -> None:
    """The API server goes away after the first look."""
    lists = count()

    def hook(sent: Sent) -> object | None:
        if sent.path == PODS.path(names.NAMESPACE) and next(lists):
            raise refused(503, "", "away")
        return None

    async def serve(_: web.Request) -> web.StreamResponse:
        return web.Response(status=502)

    async with TinyApi(selects=True) as api:
        api.streams["/exec"], api.hook = serve, hook
        api.objects[PODS.path(names.NAMESPACE, "a")] = pod("a")
        async with await connect(user_agent="test", kubeconfig=api.kubeconfig) as client:
            with pytest.raises(NotInTime, match="away"):
                await pod_versions.compare(client, seconds=0.1, say=lambda _: None)


async def test_an_account_that_may_not_list_pods_is_told_what_is_not_known(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    with proxy.inject(Answer(status=403, reason="Forbidden"), on=lambda one: "/pods" in one.path):
        said = await pod_versions.compare(client, seconds=0.0, say=lambda _: None)
    assert said.startswith("The versions of the pods are not known: ")
    assert "mpijob-elastic --version" in said
