"""Changes by the page's server: asked for, agreed to, made; and what is no change of its own page."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from mpijob_elastic import names
from mpijob_elastic.cli.dashboard import post
from mpijob_elastic.install.server import REVIEWS
from mpijob_elastic.kube.resources import LEASES, MPI_JOBS, PODS
from tests.doubles.api import Object, TinyApi, refused
from tests.doubles.direct import Sent
from tests.faults.waiting import PATIENCE
from tests.product.cli.served import LEADS, TOKEN, admit, put_job, served

JOB = MPI_JOBS.path("ml", "train")
PATH = "/api/jobs/ml/train"


class Page:
    """The page, as the server meets it."""

    def __init__(self, address: str, session: aiohttp.ClientSession) -> None:
        self.address, self.session = address, session
        self.headers = {
            "Authorization": f"Bearer {TOKEN}",
            "Origin": address,
            "Content-Type": "application/json",
        }

    async def parts(
        self, change: str, number: int = 0, confirmed: str = "", *, until: str = "refused"
    ) -> Object:
        """The newest value of each part that comes, until one has."""
        found: Object = {}
        body = json.dumps({"change": change, "number": number, "confirmed": confirmed})
        posted = self.session.post(f"{self.address}{PATH}/change", headers=self.headers, data=body)
        async with asyncio.timeout(PATIENCE), posted as answer:
            assert answer.status == 200
            async for line in answer.content:
                if line.strip():
                    part = json.loads(line)
                    found[part["part"]] = part["value"]
                if until in found:
                    break
        return found

    async def agreed(self, change: str, number: int = 0, *, until: str = "refused") -> Object:
        """The same of a change that is agreed to as soon as it is asked."""
        question = await self.parts(change, number)
        return await self.parts(change, number, question["confirms"], until=until)

    async def may(self) -> bool:
        """Whether buttons are to be shown."""
        async with (
            asyncio.timeout(PATIENCE),
            self.session.get(self.address + PATH, headers=self.headers) as answer,
        ):
            async for line in answer.content:
                if line.strip() and (part := json.loads(line))["part"] == "may":
                    return bool(part["value"])
        raise AssertionError("not told")

    async def status(
        self,
        body: bytes,
        headers: dict[str, str | None] | None = None,
        *,
        path: str = PATH,
        method: str = "POST",
    ) -> int:
        """The status for a request with other headers; None leaves one out."""
        sent = {
            key: value
            for key, value in {**self.headers, **(headers or {})}.items()
            if value is not None
        }
        async with self.session.request(
            method, f"{self.address}{path}/change", headers=sent, data=body
        ) as answer:
            return answer.status


async def test_nothing_is_asked_or_made_where_nobody_would_carry_it_out(
    page: Page, api: TinyApi
) -> None:
    api.remove(LEASES.path(names.NAMESPACE, names.LEASE))
    for agreed in ("", "train: 3 → 2 workers"):
        told = (await page.parts("scale", 2, agreed))["refused"]
        assert told.startswith("mpijob-elastic is not installed in this cluster")
        assert told.endswith("an administrator runs `mpijob-elastic install`")


@pytest.fixture
async def page(api: TinyApi) -> AsyncIterator[Page]:
    async with served(api) as address, aiohttp.ClientSession() as session:
        yield Page(address, session)


def asked_for(api: TinyApi) -> tuple[int, Object]:
    """The size and the annotations of the job."""
    job = api.objects[JOB]
    return job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"], job["metadata"].get(
        "annotations", {}
    )


@pytest.mark.parametrize(
    ("change", "number", "words"),
    [
        ("scale", 4, ""),
        ("scale", 2, "train-worker-2 leaves: it drains for at most 1m, and then is deleted."),
        (
            "scale",
            1,
            "train-worker-2, train-worker-1 leave: they drain for at most 1m, and then are deleted.",
        ),
        ("park", 0, "train-worker-0 leaves: it drains for at most 1m, and then is deleted."),
        (
            "suspend",
            0,
            "train-worker-2, train-worker-1, train-worker-0 leave: they drain for at most 1m, and "
            "then are deleted.",
        ),
    ],
)
async def test_it_is_said_who_leaves(page: Page, change: str, number: int, words: str) -> None:
    assert (await page.parts(change, number))["foretold"] == words


async def test_of_many_who_leave_the_first_are_named(api: TinyApi, page: Page) -> None:
    put_job(api, "train", size=12)
    words = (await page.parts("scale", 1))["foretold"]
    assert "train-worker-5, train-worker-4 and 3 more leave: they drain" in words


@pytest.mark.parametrize(("change", "number"), [("scale", 2), ("resume", 0)])
async def test_of_a_suspended_job_nobody_leaves(
    api: TinyApi, page: Page, change: str, number: int
) -> None:
    put_job(api, "train", size=3, annotations={names.SUSPEND: "true"})
    for index in range(3):
        api.remove(PODS.path("ml", f"train-worker-{index}"))
    assert (await page.parts(change, number))["foretold"] == ""


async def test_the_question_says_that_nobody_carries_the_change_out(
    api: TinyApi, page: Page
) -> None:
    api.put(LEASES.path(names.NAMESPACE, names.LEASE), {"spec": {"holderIdentity": ""}})
    assert (await page.parts("scale", 2))["foretold"] == (
        "No controller of mpijob-elastic is the leader: changes of the size wait until one runs; "
        "`mpijob-elastic status` says more. "
        "train-worker-2 leaves: it drains for at most 1m, and then is deleted."
    )


async def test_the_manifest_is_yaml_without_its_writers(api: TinyApi, page: Page) -> None:
    api.objects[JOB]["metadata"]["managedFields"] = [{"manager": "somebody"}]
    async with page.session.get(f"{page.address}{PATH}/yaml", headers=page.headers) as answer:
        assert answer.status == 200
        text = await answer.text()
    assert "\n  name: train\n" in text
    assert "managedFields" not in text
    path = f"{page.address}/api/jobs/ml/other/yaml"
    async with page.session.get(path, headers=page.headers) as answer:
        assert answer.status == 502
    async with page.session.get(path) as answer:
        assert answer.status == 401


@pytest.mark.parametrize(
    ("change", "number", "words", "size", "annotations"),
    [
        ("scale", 4, "train: 3 → 4 workers", 4, {}),
        ("scale", 1, "train: 3 → 1 worker", 1, {}),
        (
            "park",
            1,
            "train: 3 → 2 workers; parked: train-worker-1",
            3,
            {"mpijob-elastic/parked": "1"},
        ),
        (
            "suspend",
            0,
            "train is being suspended: its workers drain, and training ends until it is resumed",
            3,
            {"mpijob-elastic/suspend": "true"},
        ),
    ],
)
async def test_a_change_is_made_once_it_is_agreed_to(
    api: TinyApi,
    page: Page,
    change: str,
    number: int,
    words: str,
    size: int,
    annotations: dict[str, str],
) -> None:
    assert (await page.parts(change, number))["asks"] == words
    assert api.writes == []
    found = await page.agreed(change, number, until="progress")
    assert found["says"] == words
    assert api.writes == [("PATCH", JOB)]
    assert asked_for(api) == (size, annotations)


@pytest.mark.parametrize(
    ("change", "annotation", "words"),
    [
        ("resume", "suspend", "train is being resumed"),
        ("unpark", "parked", "train: 2 → 3 workers; back: train-worker-1"),
    ],
)
async def test_what_was_changed_is_taken_back(
    api: TinyApi, page: Page, change: str, annotation: str, words: str
) -> None:
    put_job(
        api,
        "train",
        size=3,
        annotations={f"mpijob-elastic/{annotation}": "true" if change == "resume" else "1"},
    )
    assert (await page.parts(change, 1))["asks"] == words
    await page.agreed(change, 1, until="progress")
    assert asked_for(api) == (3, {})


async def test_the_end_of_a_change_is_told(api: TinyApi, page: Page) -> None:
    put_job(api, "train", size=3, annotations={"mpijob-elastic/suspend": "true"})
    found = await page.agreed("scale", 4)
    assert found["ended"] == ["train is suspended by annotation mpijob-elastic/suspend."]
    assert asked_for(api)[0] == 4


async def test_a_scale_in_goes_on_until_its_worker_is_gone(api: TinyApi, page: Page) -> None:
    following = asyncio.create_task(page.agreed("scale", 2))
    async with asyncio.timeout(PATIENCE):
        while asked_for(api)[0] != 2:
            await asyncio.sleep(0.01)
    put_job(api, "train", size=2)
    api.remove(PODS.path("ml", "train-worker-2"))
    found = await following
    assert found["ended"] == ["train has 2 workers; removed: 1."]
    assert found["progress"] == "off the host list 1 of 1, gone 1 of 1"


async def test_what_is_so_already_needs_no_agreement(api: TinyApi, page: Page) -> None:
    found = await page.parts("scale", 3)
    assert (found["says"], found.get("asks")) == (
        "train already has size 3; nothing was changed",
        None,
    )
    assert api.writes == []


async def test_a_job_that_has_changed_since_is_asked_about_again(api: TinyApi, page: Page) -> None:
    question = await page.parts("scale", 5)
    assert question["asks"] == "train: 3 → 5 workers"
    put_job(api, "train", size=4)
    found = await page.parts("scale", 5, question["confirms"])
    assert found["refused"] == (
        "train has changed since you were asked, so nothing was written: now it would be: train: 4 → 5 workers"
    )
    assert asked_for(api)[0] == 4


async def test_who_agrees_that_a_worker_leaves_does_not_agree_to_another(
    api: TinyApi, page: Page
) -> None:
    question = await page.parts("scale", 2)
    put_job(api, "train", size=4, annotations={names.PARKED: "1"})  # workers 0, 2 and 3
    again = await page.parts("scale", 2)
    assert question["asks"] == again["asks"] == "train: 3 → 2 workers"
    found = await page.parts("scale", 2, question["confirms"])
    assert found["refused"] == (
        "train has changed since you were asked, so nothing was written: now it would be: "
        "train: 3 → 2 workers. train-worker-3 leaves: it drains for at most 1m, and then is deleted."
    )
    assert api.writes == []
    await page.parts("scale", 2, again["confirms"], until="progress")
    assert api.writes == [("PATCH", JOB)]


async def test_of_many_who_leave_all_are_agreed_to(api: TinyApi, page: Page) -> None:
    put_job(api, "train", size=14, annotations={names.PARKED: "4"})
    question = await page.parts("scale", 2)
    put_job(api, "train", size=14, annotations={names.PARKED: "3"})
    again = await page.parts("scale", 2)
    assert (question["asks"], question["foretold"]) == (again["asks"], again["foretold"])
    found = await page.parts("scale", 2, question["confirms"])
    assert found["refused"].startswith("train has changed since you were asked")
    assert api.writes == []


async def test_a_change_holds_while_only_the_controller_comes_and_goes(
    api: TinyApi, page: Page
) -> None:
    api.put(LEASES.path(names.NAMESPACE, names.LEASE), {"spec": {"holderIdentity": ""}})
    question = await page.parts("scale", 2)
    assert question["foretold"].startswith("No controller")
    api.put(LEASES.path(names.NAMESPACE, names.LEASE), LEADS)
    await page.parts("scale", 2, question["confirms"], until="progress")
    assert api.writes == [("PATCH", JOB)]


async def test_a_refusal_comes_before_the_question_in_one_line(api: TinyApi, page: Page) -> None:
    admit(api, denies="spec.mpiReplicaSpecs.Worker.replicas: 9 is above max-replicas (8)")
    refused = (await page.parts("scale", 9))["refused"]
    assert refused.endswith("9 is above max-replicas (8)")
    assert "\n" not in refused
    assert (await page.parts("scale", 0))["refused"].startswith(
        "train has 3 workers, and at least one must stay"
    )
    assert (await page.parts("park", 7))[
        "refused"
    ] == "train has no train-worker-7: it has 3 workers"
    assert api.writes == []


@pytest.mark.parametrize("allowed", [True, False])
async def test_who_may_patch_the_job_gets_buttons(
    api: TinyApi, page: Page, *, allowed: bool
) -> None:
    asked: list[Any] = []

    def allows(spec: Object) -> bool:
        asked.append(spec["resourceAttributes"])
        return allowed

    api.allows = allows
    assert await page.may() is allowed
    right = {
        "verb": "patch",
        "group": "kubeflow.org",
        "resource": "mpijobs",
        "namespace": "ml",
        "name": "train",
    }
    assert asked == [right]


@pytest.mark.parametrize(("status", "reason"), [(503, "ServiceUnavailable"), (500, ""), (429, "")])
async def test_a_question_of_rights_that_fails_for_a_moment_is_asked_again(
    api: TinyApi, page: Page, monkeypatch: pytest.MonkeyPatch, *, status: int, reason: str
) -> None:
    monkeypatch.setattr(post, "ASK_AGAIN", 0.05, raising=False)
    left = [1, 1]

    def fails(sent: Sent) -> object | None:
        if sent.path == REVIEWS and left:
            left.pop()
            raise refused(status, reason, "the API server is shutting down")
        return None

    api.hook = fails
    assert await page.may()
    assert left == []


async def test_who_may_not_even_ask_for_rights_gets_no_buttons(api: TinyApi, page: Page) -> None:
    def fails(sent: Sent) -> object | None:
        if sent.path == REVIEWS:
            raise refused(403, "Forbidden", "no")
        return None

    api.hook = fails
    assert not await page.may()


BODY = b'{"change":"scale","number":4,"confirmed":"train: 3 \xe2\x86\x92 4 workers"}'


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (401, {"Authorization": None}),
        (401, {"Authorization": "Bearer guess"}),
        (401, {"Authorization": None, "Cookie": f"token={TOKEN}"}),
        (403, {"Origin": None}),
        (403, {"Origin": "null"}),
        (403, {"Origin": "https://evil.example"}),
        (403, {"Origin": "http://127.0.0.1:1"}),
        (403, {"Sec-Fetch-Site": "cross-site"}),
        (403, {"Sec-Fetch-Site": "same-site"}),
        (
            403,
            {
                "Sec-Fetch-Site": "cross-site",
                "Sec-Fetch-Mode": "navigate",
                "Sec-Fetch-Dest": "document",
            },
        ),
        (403, {"Host": "evil.example", "Origin": "http://evil.example"}),
        (415, {"Content-Type": "text/plain"}),
        (415, {"Content-Type": "application/x-www-form-urlencoded"}),
        (415, {"Content-Type": "multipart/form-data; boundary=x"}),
    ],
)
async def test_nobody_else_changes_anything(
    api: TinyApi, page: Page, status: int, headers: dict[str, str | None]
) -> None:
    assert await page.status(BODY, headers) == status
    assert api.writes == []


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, b""),
        (400, b"[]"),
        (400, b'{"change":"delete"}'),
        (400, b'{"change":"scale","number":-1}'),
        (400, b'{"change":"scale","number":10001}'),
        (400, b'{"change":"scale","number":2.5}'),
        (400, b'{"change":"scale","number":"2"}'),
        (400, b'{"change":"scale","number":null}'),
        (400, b'{"change":"scale","number":2,"confirmed":true}'),
        (400, b'{"change":"scale","number":2,"patch":{}}'),
        (400, b"[" * 4000),
        (413, b'{"change":"scale","confirmed":"' + b"x" * 5000 + b'"}'),
    ],
)
async def test_only_a_change_is_read(api: TinyApi, page: Page, status: int, body: bytes) -> None:
    assert await page.status(body) == status
    assert api.writes == []


async def test_a_change_is_posted_to_a_job(api: TinyApi, page: Page) -> None:
    assert [
        await page.status(BODY, method=method) for method in ("GET", "PUT", "PATCH", "DELETE")
    ] == [405] * 4
    assert await page.status(BODY, path="/api/jobs/..%2f..%2fsecrets/train") == 404
    assert await page.status(BODY, path="/api/jobs/ml/UPPER") == 404
    assert api.writes == []
