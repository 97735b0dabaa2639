"""The one error tree. Which errors may a person see, and which may be tried again?

    PizzaBotError
    ├── ConfigError          a file of the operator is wrong: file, key, cure
    ├── Refused              what was asked is not possible; carries the HTTP status and a code
    │   ├── NotFound         404  also for what the person may not see
    │   ├── Forbidden        403
    │   ├── Conflict         409
    │   ├── Invalid          422
    │   └── Unavailable      503  nothing was stored; send it again
    ├── ModelFailed          the language model gave no answer; `code` says why
    ├── ToolFailed           a tool answered with an error: told to the model
    │   └── OutcomeUnknown   the call was sent and no answer came: never repeated by itself
    ├── DeliveryFailed       a channel did not take an item; `retryable` says whether to go on
    │   └── DeliveryUnknown  the item may have arrived: looked up, not sent again blindly
    └── HomeLocked           another process owns this home

Messages are written for the person who reads them: one line, what is wrong, what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class PizzaBotError(Exception):
    """Root of all errors of this project; `str(error)` is one line for a person."""

    code = "error"


class ConfigError(PizzaBotError):
    """A configuration file is wrong. Reads `FILE:LINE: KEY: what is wrong; what to do`."""

    code = "config"

    def __init__(self, file: str, problem: str, *, key: str | None = None, line: int | None = None) -> None:
        self.file, self.problem, self.key, self.line = file, problem, key, line
        place = f"{file}:{line}" if line is not None else file
        super().__init__(": ".join(part for part in (place, key, problem) if part))


class HomeLocked(PizzaBotError):
    """Another process holds the home directory."""

    code = "home_locked"


class Refused(PizzaBotError):
    """A request that changes nothing. `status` is the HTTP status, `code` the stable word for programs."""

    status = 400
    code = "bad_request"

    def __init__(
        self, message: str, *, code: str | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        self.details: Mapping[str, Any] = details or {}


class NotFound(Refused):
    """There is no such thing, or this person may not see it."""

    status, code = 404, "not_found"


class Forbidden(Refused):
    """The person is known and may see the thing, but not do this."""

    status, code = 403, "forbidden"


class Conflict(Refused):
    """The thing changed meanwhile; `details` holds its present state."""

    status, code = 409, "conflict"


class Invalid(Refused):
    """The request is understood and wrong; `details["errors"]` names the places."""

    status, code = 422, "invalid"


class Unavailable(Refused):
    """Nothing was stored, and the same request can succeed later."""

    status, code = 503, "storage_unavailable"


class ModelFailed(PizzaBotError):
    """The model gave no answer.

    `code` is one of auth, rate_limit, context_length, timeout, unavailable, not_found, other.
    """

    def __init__(self, code: str, message: str, *, retryable: bool, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code, self.retryable, self.retry_after_seconds = code, retryable, retry_after


class ToolFailed(PizzaBotError):
    """A tool call ended with an error that the model may read and work around."""

    code = "tool_failed"


class OutcomeUnknown(ToolFailed):
    """A tool call was sent and its end was not seen: it may or may not have happened."""

    code = "outcome_unknown"


class DeliveryFailed(PizzaBotError):
    """A channel did not take an item."""

    code = "delivery_failed"

    def __init__(self, message: str, *, retryable: bool, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retryable, self.retry_after_seconds = retryable, retry_after


class DeliveryUnknown(DeliveryFailed):
    """The connection broke after the item was sent: it may have arrived."""

    code = "delivery_unknown"

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message, retryable=True, retry_after=retry_after)
