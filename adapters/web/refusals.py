"""Which requests does HTTP itself refuse? The statuses that the core has no reason to know.

Refused (pizzabot.errors)
├── BadBody               400  not what the content type says it is
├── Unauthorized          401  no token, or not one of ours (RFC 6750)
├── ForeignOrigin         403  sent by a page of somebody else
├── NoSuchPath            404
├── MethodNotAllowed      405
├── TooSlow               408
├── TooLarge              413
├── UnsupportedMediaType  415
├── ForeignHost           421  asked for under a name that is not ours (RFC 9110, 15.5.20)
├── TooMany               429  too often wrong
└── Internal              500  the fault is ours: nothing but where the log has it
"""

from __future__ import annotations

from pizzabot.errors import Refused


class BadBody(Refused):
    status, code = 400, "invalid_json"


class Unauthorized(Refused):
    status, code = 401, "unauthorized"


class ForeignOrigin(Refused):
    status, code = 403, "foreign_origin"


class NoSuchPath(Refused):
    status, code = 404, "not_found"


class MethodNotAllowed(Refused):
    status, code = 405, "method_not_allowed"


class TooSlow(Refused):
    status, code = 408, "too_slow"


class TooLarge(Refused):
    status, code = 413, "too_large"


class UnsupportedMediaType(Refused):
    status, code = 415, "unsupported_media_type"


class ForeignHost(Refused):
    status, code = 421, "foreign_host"


class TooMany(Refused):
    status, code = 429, "too_many_attempts"


class Internal(Refused):
    status, code = 500, "internal"

    def __init__(self, log_id: str) -> None:
        super().__init__(f"Something went wrong inside Pizza Bot; see the log under {log_id}.")
