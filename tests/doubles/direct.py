"""A client without sockets: a function answers its requests."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mpijob_elastic.kube.reader import JSON, USUAL, Timeouts
from mpijob_elastic.kube.writer import ApiWriter


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A request. body: its content as JSON's own types, None if it has none."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    content_type: str = JSON
    limits: Timeouts = USUAL

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


class DirectClient(ApiWriter):
    """Its requests go to `answer`, which returns bytes or what is to be JSON, or raises as the transport does.

    `sent` holds them in their order.
    """

    def __init__(self, answer: Callable[[Sent], Awaitable[object]]) -> None:
        self.sent: list[Sent] = []
        self._answer = answer

    async def _call_api(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = JSON,
        limits: Timeouts = USUAL,
    ) -> bytes:
        content = (
            msgspec.json.decode(body) if isinstance(body, bytes) else msgspec.to_builtins(body)
        )
        sent = Sent(
            method=method,
            path=path,
            query=query or {},
            body=content,
            content_type=content_type,
            limits=limits,
        )
        self.sent.append(sent)
        answer = await self._answer(sent)
        return answer if isinstance(answer, bytes) else msgspec.json.encode(answer)
