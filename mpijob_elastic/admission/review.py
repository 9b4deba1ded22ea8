"""AdmissionReview v1 on the wire: requests, verdicts on them, and answers.

https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#request
The API server does not authenticate itself to webhooks, so every body is treated as hostile: it is
decoded into typed structs, the objects inside stay bytes until a handler decodes a few fields, and
a body that does not fit is `Malformed`, with a message that says where.
"""

from dataclasses import dataclass

import msgspec

from mpijob_elastic.admission.json_patch import Patch

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
CREATE = "CREATE"
UPDATE = "UPDATE"
# The API server cuts longer warnings
# (https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#response).
LONGEST_WARNING = 256
# The most warnings of a kind; nobody reads more than a handful.
MOST = 5


class Malformed(ValueError):
    """The body is no AdmissionReview that can be answered; the text is for the caller."""


class GroupVersionKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind; `group` is "" for the core group."""

    group: str = ""
    version: str
    kind: str


class UserInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The user who sends a request."""

    username: str = ""


class Request(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An admission request.

    `kind` is as our rules name it, even if the caller used another version.
    """

    uid: str
    kind: GroupVersionKind
    operation: str
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    dry_run: bool = False
    user_info: UserInfo = UserInfo()
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")


class _Review(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str
    kind: str
    request: Request | None = None


_decoder = msgspec.json.Decoder(_Review)
_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """The fault of a field: its path, and a message with its value and the allowed values."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict on a request."""

    refusals: tuple[Refusal, ...] = ()
    #: Why the same request must be sent again after `retry_after` seconds, "" if it need not be.
    postponed: str = ""
    #: Seconds.
    retry_after: int = 0
    #: The user sees these in any case.
    warnings: tuple[str, ...] = ()
    patch: Patch = ()

    @property
    def allowed(self) -> bool:
        """True if the request may pass."""
        return not (self.refusals or self.postponed)


UNCHANGED = Verdict()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A verdict and a word for it, for metrics and logs."""

    verdict: Verdict
    outcome: str


def answered(verdict: Verdict) -> Answer:
    """Return the answer with the verdict, and with the word for it."""
    if verdict.allowed:
        outcome = "patched" if verdict.patch else "warned" if verdict.warnings else "unchanged"
    else:
        outcome = "postponed" if verdict.postponed else "rejected"
    return Answer(verdict=verdict, outcome=outcome)


def parse(body: bytes) -> Request:
    """Return the request in an AdmissionReview. Raises `Malformed`."""
    try:
        # The API server sends no space between the parts. `check_cost` relies on that; a hostile
        # caller might add some.
        review = _decoder.decode(msgspec.json.format(body, indent=-1))
    except RecursionError:
        raise Malformed("the AdmissionReview is nested too deeply to be read") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"the body is not an AdmissionReview: {error}") from None
    if review.api_version != API_VERSION or review.kind != KIND:
        found = f"{review.api_version[:64]} {review.kind[:64]}"
        raise Malformed(f"{found} is not supported; send {API_VERSION} {KIND}")
    if review.request is None or not review.request.uid:
        raise Malformed("request.uid is missing; it is needed to answer")
    return review.request


def answer(request: Request, verdict: Verdict) -> bytes:
    """Return the AdmissionReview with the verdict."""
    response: dict[str, object] = {"uid": request.uid, "allowed": verdict.allowed}
    if not verdict.allowed:
        response["status"] = (
            _postponed(request, verdict)
            if verdict.postponed
            else _status(request, verdict.refusals)
        )
    if verdict.warnings:
        response["warnings"] = [_shortened(text) for text in verdict.warnings]
    if verdict.patch:
        # msgspec writes bytes as base64, which is what the API asks for.
        response |= {"patchType": "JSONPatch", "patch": _encoder.encode(verdict.patch)}
    return _encoder.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _postponed(request: Request, verdict: Verdict) -> dict[str, object]:
    """Return the Status that postpones an eviction.

    The API server itself postpones an eviction that a budget forbids with the same Status.
    """
    details = {
        "name": request.name,
        "kind": request.kind.kind,
        "retryAfterSeconds": verdict.retry_after,
    }
    return {
        "code": 429,
        "reason": "TooManyRequests",
        "message": verdict.postponed,
        "details": details,
    }


def _status(request: Request, refusals: tuple[Refusal, ...]) -> dict[str, object]:
    """Return the Status for the user.

    `kubectl edit` shows its causes when it opens the editor again.
    """
    causes = [
        {"reason": "FieldValueInvalid", "field": refusal.field, "message": refusal.message}
        for refusal in refusals
    ]
    details = {
        "name": request.name,
        "group": request.kind.group,
        "kind": request.kind.kind,
        "causes": causes,
    }
    message = "; ".join(map(str, refusals))
    return {"code": 422, "reason": "Invalid", "message": message, "details": details}


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_WARNING else text[: LONGEST_WARNING - 1] + "…"
