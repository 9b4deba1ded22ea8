"""Answers of the API server that are not success, as a small typed tree.

A caller catches the one it can mend (`NotFound` on a delete, `Conflict` on a patch) and lets the others pass.
The reasons are those of Kubernetes' Status object
(https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/).
"""

from __future__ import annotations

import msgspec


class KubeError(Exception):
    """Anything that went wrong between us and the API server."""


class Unreachable(KubeError):
    """No answer: refused, reset, timed out, TLS failure. Whether a write took place is unknown."""


class ApiError(KubeError):
    """The API server answered with an error status.

    Attributes: `status` is the HTTP code, `reason` the machine-readable word of the Status object ("" where the
    answer was none), `message` its text for people, `retry_after` seconds the server asked us to wait, or None.
    """

    def __init__(self, *, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{status} {reason}: {message}" if reason else f"{status}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


class Unauthorized(ApiError):
    """401: the credentials are not accepted (any more)."""


class Forbidden(ApiError):
    """403: RBAC or an admission plugin refuses."""


class NotFound(ApiError):
    """404."""


class Conflict(ApiError):
    """409: the object is not what we thought (resourceVersion, uid)."""


class AlreadyExists(Conflict):
    """409 with reason AlreadyExists."""


class Gone(ApiError):
    """410: the resourceVersion is too old; list again."""


class Invalid(ApiError):
    """400 or 422: the request itself is wrong, so the same request never succeeds."""


class Throttled(ApiError):
    """429: try again after `retry_after` seconds; nothing was done."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: Throttled,
}


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""
    code: int = 0


def may_pass(error: KubeError) -> bool:
    """Whether the same request may be answered a moment later: nobody answered, or the server was in trouble."""
    return not isinstance(error, ApiError) or error.status == 429 or error.status >= 500


def from_event(status: bytes) -> ApiError:
    """The error that the Status object in a watch event of type ERROR stands for."""
    code = msgspec.json.decode(status, type=_Status).code
    return from_response(code or 500, status, None)


def from_response(status: int, body: bytes, retry_after: str | None) -> ApiError:
    """The error an answer stands for; `body` may be a Status object or anything else a proxy put there."""
    try:
        parsed = msgspec.json.decode(body, type=_Status)
    except msgspec.DecodeError:
        parsed = _Status(message=body[:200].decode(errors="replace"))
    kind = AlreadyExists if parsed.reason == "AlreadyExists" else _BY_STATUS.get(status, ApiError)
    return kind(status=status, reason=parsed.reason, message=parsed.message, retry_after=_seconds(retry_after))


def _seconds(retry_after: str | None) -> float | None:
    # An HTTP date is allowed too; the API server sends whole seconds only.
    return float(retry_after) if retry_after and retry_after.isdigit() else None
