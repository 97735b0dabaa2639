"""Which requests concern the whole installation? Health, skills, servers, costs, audit, stop everything."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from pizzabot import __version__

from ..render import answer, audit_file
from . import parse
from .call import Call

_MAX_AUDIT_LINES = 1000
_MAX_DAYS = 366


async def health(request: Request) -> Response:  # noqa: ARG001 - the same answer for everybody
    """`GET /healthz`, for whoever asks: this server serves."""
    return answer({"status": "ok", "version": __version__})


async def me(call: Call) -> Response:
    """`GET /api/me`: whose token this is."""
    person = call.person
    return answer(
        {"name": person.name, "role": person.role, "timezone": person.timezone, "version": __version__}
    )


async def login_link(call: Call) -> Response:
    """`POST /api/login-links` `{"person"?}`: 201, a URL that logs one person in, once, for ten minutes."""
    wanted = parse.login_link(await call.json(empty={}))
    name = call.person.name if wanted is None else wanted
    issued = await call.doors.sessions.issue_code(name, call.person, call.via)
    url = f"{call.request.app.state.public_url}/login?code={issued.code}"
    return answer({"person": issued.person, "url": url, "expires_at": issued.expires_at.isoformat()}, 201)


async def status(call: Call) -> Response:
    """`GET /api/status`."""
    return answer(await call.doors.reports.status(call.person))


async def skills(call: Call) -> Response:
    """`GET /api/skills`."""
    return answer({"skills": call.doors.reports.skills(call.person)})


async def switch_skill(call: Call) -> Response:
    """`PATCH /api/skills/{skill_id}` `{"enabled": bool}`; for owners."""
    enabled = parse.enabled(await call.json())
    skill_id = str(call.request.path_params["skill_id"])
    await call.doors.switch_skill(skill_id, enabled=enabled, person=call.person, via=call.via)
    found = [
        row for row in call.doors.reports.skills(call.person) if row["id"].casefold() == skill_id.casefold()
    ]
    return answer(found[0])


async def servers(call: Call) -> Response:
    """`GET /api/mcp`."""
    return answer({"servers": call.doors.reports.servers()})


async def reconnect(call: Call) -> Response:
    """`POST /api/mcp/{name}/reconnect`: 202; the outcome stands in `GET /api/mcp`."""
    parse.nothing(await call.json(empty={}))
    name = str(call.request.path_params["name"])
    await call.doors.reconnect(name, call.person)
    return answer({"name": name}, 202)


async def usage(call: Call) -> Response:
    """`GET /api/usage?days=`."""
    return answer(await call.doors.reports.usage(call.person, call.number("days", 30, most=_MAX_DAYS)))


async def audit(call: Call) -> Response:
    """`GET /api/audit?limit=&before=&since=&until=`, newest first; for owners."""
    limit = call.number("limit", 100, most=_MAX_AUDIT_LINES)
    before = call.number("before", 0, most=2**62) or None
    since, until = call.moment("since"), call.moment("until")
    lines = await call.doors.reports.audit(call.person, limit=limit, before=before, since=since, until=until)
    return answer({"lines": lines, "next_before": lines[-1]["seq"] if len(lines) == limit else None})


async def verify_audit(call: Call) -> Response:
    """`GET /api/audit/verify`: walks the chain; for owners."""
    return answer(await call.doors.reports.verify_audit(call.person))


async def export_audit(call: Call) -> Response:
    """`GET /api/audit/export?since=&until=`: JSON lines that can be verified elsewhere; for owners."""
    since, until = call.moment("since"), call.moment("until")
    return audit_file(await call.doors.reports.audit_export(call.person, since=since, until=until))


async def old(call: Call) -> Response:
    """`GET /api/retention`: what would be removed now; for owners."""
    return answer(await call.doors.old(call.person))


async def remove_old(call: Call) -> Response:
    """`POST /api/retention`: removes some of it; again until `finished`. For owners."""
    parse.nothing(await call.json(empty={}))
    return answer(await call.doors.remove_old(call.person, call.via))


async def stop_everything(call: Call) -> Response:
    """`POST /api/stop`."""
    parse.nothing(await call.json(empty={}))
    await call.doors.stop_everything(call.person, call.via)
    return answer({"stopped": True})


async def resume_everything(call: Call) -> Response:
    """`POST /api/resume`: `resumed` is false when nothing was stopped."""
    parse.nothing(await call.json(empty={}))
    return answer({"stopped": False, "resumed": await call.doors.resume_everything(call.person, call.via)})
