"""A cluster that answers what the test says."""

import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from mpijob_elastic import names
from mpijob_elastic.cli.jobs import explain, show
from mpijob_elastic.cli.jobs.show import JobsAsked
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.lease import micro_time
from mpijob_elastic.kube.writer import ApiWriter
from tests.faults.kubeconfig import write_plain
from tests.product.cli import worlds

Answers = dict[str, web.Response | list[worlds.Object] | Callable[[], web.Response]]


def status(code: int, reason: str, message: str = "") -> web.Response:
    return web.json_response(
        {"kind": "Status", "code": code, "reason": reason, "message": message}, status=code
    )


def forbidden(resource: str) -> web.Response:
    return status(
        403, "Forbidden", f'{resource} is forbidden: User "u" cannot list resource "{resource}"'
    )


def lease() -> web.Response:
    """Return a Lease that a leader renewed 5 s ago: before the caller looked at its clock, and not too long before."""
    spec = {
        "holderIdentity": "a",
        "renewTime": micro_time(datetime.fromtimestamp(time.time() - 5.0, UTC)),
    }
    return web.json_response({"metadata": {"name": "lease", "resourceVersion": "1"}, "spec": spec})


def world(*extra: dict[str, Any], replicas: int = 2, **answers: Any) -> Answers:
    """A job whose first two workers are published, with a refreshed launcher."""
    config = worlds.config_map(worlds.workers(0, 1))
    launcher = worlds.launcher(refreshed=worlds.shown(config, at=worlds.CREATED))
    return {
        "mpijobs": [worlds.mpi_job(replicas=replicas)],
        "pods": [launcher, worlds.worker(0), worlds.worker(1), *extra],
        "configmaps": [config],
        "roles": [worlds.role(worlds.workers(*range(replicas)))],
        "mpijob-elastic-controller": lease,
        "events": web.json_response({"metadata": {}, "items": []}),
        **answers,
    }


@asynccontextmanager
async def serving(directory: Path, answers: Answers) -> AsyncIterator[tuple[Where, list[str]]]:
    """A cluster with these objects or answers, by plural or version/plural; and the requests it got.

    `POST` before a plural: what it answers to a creation, which it refuses otherwise.
    """
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.path_qs)
        if request.path == "/version":
            return web.json_response({})
        parts = request.path.split("/")
        version, plural = parts[3], parts[-1]
        usual: Callable[[], web.Response] | list[worlds.Object]
        usual = lease if plural == names.LEASE else []
        longer = f"{parts[-2]}/{plural}"
        content = answers.get(
            longer, answers.get(f"{version}/{plural}", answers.get(plural, usual))
        )
        if isinstance(content, list):
            return web.json_response(page(content, request))
        if callable(content):
            return content()
        # A response can be sent once only.
        return web.Response(status=content.status, headers=content.headers, body=content.body)

    application = web.Application()

    async def created(request: web.Request) -> web.StreamResponse:
        asked.append(f"POST {request.path_qs}")
        content = answers.get(
            f"POST {request.path.split('/')[-1]}", status(405, "MethodNotAllowed")
        )
        assert isinstance(content, web.Response)
        return web.Response(status=content.status, headers=content.headers, body=content.body)

    application.router.add_get("/{path:.*}", answer)
    application.router.add_post("/{path:.*}", created)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        write_plain(directory / "kubeconfig", f"http://127.0.0.1:{runner.addresses[0][1]}")
        yield Where(kubeconfig=directory / "kubeconfig"), asked
    finally:
        await runner.cleanup()


@asynccontextmanager
async def reaching(folder: Path, served: Answers) -> AsyncIterator[tuple[ApiWriter, list[str]]]:
    """A client of a cluster that answers so, and the requests it made."""
    async with (
        serving(folder, served) as (where, asked),
        await connect(user_agent="test", kubeconfig=where.kubeconfig) as client,
    ):
        yield client, asked


def page(items: Iterable[worlds.Object], request: web.Request) -> dict[str, Any]:
    """Return a page with one of the selected objects."""
    kept = [item for item in items if selected(item, request)]
    start = int(request.query.get("continue", 0))
    more = str(start + 1) if start + 1 < len(kept) else ""
    return {
        "metadata": {"resourceVersion": "9", "continue": more},
        "items": kept[start : start + 1],
    }


def selected(item: worlds.Object, request: web.Request) -> bool:
    field = request.query.get("fieldSelector", "").removeprefix("metadata.name=")
    job = request.query.get("labelSelector", "").partition("mpi-job-name=")[2]
    owners = [owner["name"] for owner in item["metadata"].get("ownerReferences", [])]
    return (not field or item["metadata"]["name"] == field) and (not job or job in owners)


class Commands:
    """Run a command in a cluster with these answers. asked: the requests it got."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder, self._capsys = folder, capsys
        self.asked: list[str] = []

    async def get(self, answers: Answers, job: str | None = "train", output: str = "table") -> str:
        """Return what `get` prints."""
        async with serving(self._folder, answers) as (where, self.asked):
            asked = JobsAsked(jobs=[job] if job else [], output=output)
            await show.get([where], asked)
        return self._capsys.readouterr().out

    async def explain(self, answers: Answers, **options: Any) -> tuple[bool | None, str]:
        """Return whether all train as `explain` says, and what it prints without its line breaks."""
        options = {"job": "train", "worker": None, "output": "table", "look": False, **options}
        async with serving(self._folder, answers) as (where, self.asked):
            all_train = await explain.explain(where, **options)
        printed = self._capsys.readouterr().out
        return all_train, printed if options["output"] != "table" else " ".join(printed.split())
