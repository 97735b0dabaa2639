"""How is the house? Skills, servers, costs, the audit, health, and the switch that stops everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from pizzabot.errors import Invalid

from ..forms import Form
from ..render import audit_file
from .html import page, see_other
from .visit import VIA, Visit, local_path

_LINES = 100
_DAYS = 366


async def skills(visit: Visit) -> Response:
    """`GET /skills`."""
    return await page(visit, "skills", skills=visit.doors.reports.skills(visit.person))


async def switch_skill(visit: Visit, form: Form) -> Response:
    """`POST /skills`: enable or disable names a skill."""
    asked = [name for name in ("enable", "disable") if name in form.texts]
    if len(asked) != 1:
        raise Invalid("The form says nothing that can be done; go back and press a button there.")
    enabled = asked[0] == "enable"
    await visit.doors.switch_skill(form.texts[asked[0]], enabled=enabled, person=visit.person, via=VIA)
    return see_other("/skills")


async def servers(visit: Visit) -> Response:
    """`GET /mcp`."""
    return await page(visit, "mcp", servers=visit.doors.reports.servers())


async def reconnect(visit: Visit, form: Form) -> Response:
    """`POST /mcp` `reconnect`."""
    await visit.doors.reconnect(form.texts.get("reconnect", ""), visit.person)
    return see_other("/mcp")


async def memory(visit: Visit) -> Response:
    """`GET /memory`: this version's agent remembers nothing outside a thread, and says so."""
    return await page(visit, "memory")


async def usage(visit: Visit) -> Response:
    """`GET /usage?days=`."""
    found = await visit.doors.reports.usage(visit.person, visit.number("days", _DAYS) or 30)
    return await page(visit, "usage", usage=found, spans=(7, 30, 90, 366))


async def audit(visit: Visit) -> Response:
    """`GET /audit?before=&verify=`."""
    before = visit.number("before", 2**62)
    lines = await visit.doors.reports.audit(visit.person, limit=_LINES, before=before)
    verified: Mapping[str, Any] | None = None
    if visit.request.query_params.get("verify"):
        verified = await visit.doors.reports.verify_audit(visit.person)
    older = f"/audit?before={lines[-1]['seq']}" if len(lines) == _LINES else None
    return await page(visit, "audit", lines=lines, older=older, verified=verified, before=before)


async def export_audit(visit: Visit) -> Response:
    """`GET /audit/export`: the whole audit as a file."""
    return audit_file(await visit.doors.reports.audit_export(visit.person))


async def status(visit: Visit) -> Response:
    """`GET /status`."""
    return await page(visit, "status", found=await visit.doors.reports.status(visit.person))


async def stop_everything(visit: Visit, form: Form) -> Response:
    """`POST /stop`: at once, without a question; `Resume` undoes it."""
    await visit.doors.stop_everything(visit.person, VIA)
    return see_other(local_path(form.texts.get("back")))


async def resume_everything(visit: Visit, form: Form) -> Response:
    """`POST /resume`."""
    await visit.doors.resume_everything(visit.person, VIA)
    return see_other(local_path(form.texts.get("back")))
