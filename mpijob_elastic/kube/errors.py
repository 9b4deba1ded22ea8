"""Error answers of the API server, as a small tree of types.

A caller catches the error that it can handle (`NotFound` on a delete, `Conflict` on a patch) and
lets others pass. The reasons are those of Kubernetes' Status object
(https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/).
"""

import msgspec


class KubeError(Exception):
    """Any error between us and the API server."""


class Unreachable(KubeError):
    """No answer: refused, reset, timed out, TLS failure.

    A write may or may not have taken place.
    """


class Unconfigured(KubeError):
    """No usable configuration of a cluster: nothing was asked."""


class ApiError(KubeError):
    """The API server answered with an error status.

    Attributes: `status` is the HTTP code, `reason` the machine-readable word of the Status object
    ("" if the answer had no Status), `message` its text for people, `retry_after` seconds that the
    server asks us to wait, or None.
    """

    def __init__(
        self, *, status: int, reason: str, message: str, retry_after: float | None = None
    ) -> None:
        super().__init__(f"{status} {reason}: {message}" if reason else f"{status}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


class Forbidden(ApiError):
    """403: RBAC or an admission plugin refuses."""


class NotFound(ApiError):
    """404."""


class Conflict(ApiError):
    """409: the object has changed (resourceVersion, uid)."""


class AlreadyExists(Conflict):
    """409 with reason AlreadyExists."""


class Gone(ApiError):
    """410: the resourceVersion is too old; list again."""


class Invalid(ApiError):
    """400 or 422: the request itself is wrong and never succeeds."""


class Throttled(ApiError):
    """429: try again after `retry_after` seconds; nothing was done."""


class TooSlow(ApiError):
    """504 with reason Timeout: the API server gave up at the time that the request allowed.

    The server is alive, and this request took too long: mostly an admission webhook did not answer.
    """


_BY_STATUS: dict[int, type[ApiError]] = {
    400: Invalid,
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
    """Return True if the same request may succeed a moment later.

    There was no answer, or the server was in trouble.
    """
    return not isinstance(error, ApiError) or error.status == 429 or error.status >= 500


def is_away(error: KubeError) -> bool:
    """Return True if another request would most likely fail too.

    There was no answer, or the server had no time for one. A 500 and `TooSlow` do not count: if an
    admission webhook is in trouble, the API server answers so for that kind of object alone.
    """
    if isinstance(error, TooSlow):
        return False
    if isinstance(error, ApiError):
        return error.status in (429, 502, 503, 504)
    return isinstance(error, Unreachable | Unconfigured)


def is_refusal(error: KubeError) -> bool:
    """Return True if the API server refused this request, and may well accept others.

    An `AlreadyExists` is a refusal. Any other conflict is none, because it says that the request
    came from an outdated object.
    """
    if isinstance(error, AlreadyExists):
        return True
    return not isinstance(error, Conflict) and not is_away(error)


def from_event(status: bytes) -> ApiError:
    """Return the error for the Status object in a watch event of type ERROR."""
    code = msgspec.json.decode(status, type=_Status).code
    return from_response(code or 500, status, None)


def from_response(status: int, body: bytes, retry_after: str | None) -> ApiError:
    """Return the error for an answer; `body` is a Status object, or any text from a proxy."""
    try:
        parsed = msgspec.json.decode(body, type=_Status)
    except msgspec.DecodeError:
        parsed = _Status(message=body[:200].decode(errors="replace"))
    kind = _BY_STATUS.get(status, ApiError)
    if parsed.reason == "AlreadyExists":
        kind = AlreadyExists
    elif (status, parsed.reason) == (504, "Timeout"):
        kind = TooSlow
    # An HTTP date is allowed too; the API server sends whole seconds only.
    seconds = float(retry_after) if retry_after and retry_after.isdigit() else None
    return kind(status=status, reason=parsed.reason, message=parsed.message, retry_after=seconds)
