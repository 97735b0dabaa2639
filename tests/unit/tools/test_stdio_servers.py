"""What happens to calls, tools and siblings when processes hang, crash, come back and misbehave."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from pizzabot.errors import Conflict, NotFound, OutcomeUnknown, ToolFailed
from pizzabot.tools.catalogue import Pace
from pizzabot.tools.server import delay_seconds
from tests.fakes.patience import PATIENCE_SECONDS
from tests.unit.tools.conftest import QUICK, Ledger, error_of, running, state_of, until

Stdio = Callable[..., dict[str, Any]]


async def test_a_connected_server_offers_its_tools_and_answers(stdio: Stdio, ledger: Ledger) -> None:
    async with running({"ledger": stdio()}) as catalogue:
        tools = catalogue.tools()
        assert list(tools)[:2] == ["mcp:ledger:submit_expense", "mcp:ledger:pay_invoice"]
        assert tools["mcp:ledger:lookup"].read_only
        expense = tools["mcp:ledger:submit_expense"]
        assert (expense.read_only, expense.destructive, expense.idempotent) == (False, True, False)
        assert expense.input_schema["properties"]["amount"]["minimum"] == 0

        output = await catalogue.call("mcp:ledger:submit_expense", {"amount": 3, "note": "pizza"})

    assert output.text == "filed 3 EUR for pizza"
    assert output.content == [{"type": "text", "text": "filed 3 EUR for pizza"}]
    assert [row["args"] for row in ledger.rows("end")] == [{"amount": 3, "note": "pizza"}]


async def test_a_server_that_never_answers_delays_nobody_and_its_own_callers_a_moment(stdio: Stdio) -> None:
    servers = {"sleepy": stdio(LEDGER_START_DELAY="60"), "awake": stdio()}
    began = time.monotonic()
    async with running(servers, settle=0, pace=Pace(call_patience_seconds=0.2)) as catalogue:
        assert time.monotonic() - began < 0.5
        await until(lambda: state_of(catalogue, "awake") == "connected")
        assert state_of(catalogue, "sleepy") == "connecting"
        assert "mcp:awake:lookup" in catalogue.tools()

        began = time.monotonic()
        with pytest.raises(ToolFailed, match="still connecting; the call was not sent"):
            await catalogue.call("mcp:sleepy:lookup", {"query": "a"})
        assert time.monotonic() - began < 1


async def test_a_server_that_gives_no_answer_in_time_is_down_and_a_call_is_not_sent(stdio: Stdio) -> None:
    servers = {"sleepy": stdio(LEDGER_START_DELAY="60") | {"start_timeout_seconds": 0.2}}
    pace = Pace(first_delay_seconds=60)
    async with running(servers, pace=pace) as catalogue:
        assert state_of(catalogue, "sleepy") == "down"
        with pytest.raises(ToolFailed, match=r"is down: it gave no answer within 0\.2 s.*not sent") as caught:
            await catalogue.call("mcp:sleepy:lookup", {"query": "a"})
        assert not isinstance(caught.value, OutcomeUnknown)


async def test_a_crash_in_a_call_leaves_its_outcome_unknown_and_the_next_call_works(stdio: Stdio) -> None:
    async with running({"ledger": stdio()}) as catalogue:
        with pytest.raises(OutcomeUnknown, match="it may have run"):
            await catalogue.call("mcp:ledger:crash", {})
        output = await catalogue.call("mcp:ledger:lookup", {"query": "abc"})
        assert output.text == "abc means cba"


async def test_an_idle_death_is_noticed_at_once_and_tools_are_withdrawn_and_restored(
    stdio: Stdio, ledger: Ledger
) -> None:
    asleep, awake = asyncio.Event(), asyncio.Event()

    async def sleep(seconds: float) -> None:
        asleep.set()
        await awake.wait()

    pace = Pace(sleep=sleep, ping_every_seconds=60)
    async with running({"mortal": stdio(), "sibling": stdio()}, pace=pace) as catalogue:
        await catalogue.call("mcp:mortal:lookup", {"query": "a"})
        version, changes = catalogue.version, []
        catalogue.on_change.append(lambda: changes.append(catalogue.version))
        os.kill(ledger.rows("start")[0]["pid"], signal.SIGKILL)
        async with asyncio.timeout(1):
            await asleep.wait()

        assert state_of(catalogue, "mortal") == "down"
        assert error_of(catalogue, "mortal") == "the process ended"
        assert {tool.server for tool in catalogue.tools().values()} == {"sibling"}
        assert catalogue.version == version + 1
        sibling = await catalogue.call("mcp:sibling:lookup", {"query": "abc"})
        assert sibling.text == "abc means cba"
        assert changes

        awake.set()
        await until(lambda: state_of(catalogue, "mortal") == "connected")
        assert {tool.server for tool in catalogue.tools().values()} == {"mortal", "sibling"}
        assert catalogue.version == version + 2


async def test_back_off_doubles_up_to_its_cap_and_names_the_reason() -> None:
    waits: list[float] = []
    enough = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 9:
            enough.set()
            await asyncio.Event().wait()

    servers = {"gone": {"command": "/nowhere/ledger"}}
    async with running(servers, pace=Pace(sleep=sleep, random=lambda: 1.0)) as catalogue:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await enough.wait()
        assert waits == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
        assert error_of(catalogue, "gone") == "No such file or directory: /nowhere/ledger"


def test_jitter_takes_at_most_half_of_a_delay() -> None:
    assert delay_seconds(1, Pace(random=lambda: 0.0)) == 0.5
    assert delay_seconds(10_000, Pace(random=lambda: 1.0)) == 60


@pytest.mark.parametrize(("stable_after_seconds", "second_wait"), [(0.0, 0.5), (60.0, 1.0)])
async def test_only_a_stable_connection_resets_the_back_off(
    stdio: Stdio, stable_after_seconds: float, second_wait: float
) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    pace = Pace(sleep=sleep, random=lambda: 1.0, stable_after_seconds=stable_after_seconds)
    async with running({"ledger": stdio()}, pace=pace) as catalogue:
        for crashes in (1, 2):
            with pytest.raises(OutcomeUnknown):
                await catalogue.call("mcp:ledger:crash", {})
            await until(lambda crashes=crashes: len(waits) == crashes)  # type: ignore[misc]
        assert waits == [0.5, second_wait]


async def test_cancelling_a_call_tells_the_server_and_leaves_the_connection_usable(
    stdio: Stdio, ledger: Ledger
) -> None:
    async with running({"ledger": stdio()}) as catalogue:
        call = asyncio.create_task(catalogue.call("mcp:ledger:slow", {"seconds": 30}))
        await until(lambda: len(ledger.rows("start")) == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: len(ledger.rows("cancelled")) == 1)

        output = await catalogue.call("mcp:ledger:lookup", {"query": "abc"})

    assert output.text == "abc means cba"
    assert len({row["pid"] for row in ledger.rows("start")}) == 1


async def test_a_call_that_takes_too_long_has_an_unknown_outcome(stdio: Stdio, ledger: Ledger) -> None:
    async with running({"ledger": stdio()}) as catalogue:
        with pytest.raises(OutcomeUnknown, match=r"no answer within 0\.2 s"):
            await catalogue.call("mcp:ledger:slow", {"seconds": 30}, timeout=0.2)
        await catalogue.call("mcp:ledger:lookup", {"query": "a"})
    assert len({row["pid"] for row in ledger.rows("start")}) == 1


async def test_calls_to_one_server_run_side_by_side(stdio: Stdio) -> None:
    async with running({"ledger": stdio()}) as catalogue:
        began = time.monotonic()
        await asyncio.gather(*(catalogue.call("mcp:ledger:slow", {"seconds": 0.4}) for _ in range(5)))
        assert time.monotonic() - began < 1.2


async def test_an_error_result_is_told_in_the_words_of_the_tool(stdio: Stdio) -> None:
    async with running({"ledger": stdio()}) as catalogue:
        with pytest.raises(ToolFailed, match=r"^no such invoice$") as caught:
            await catalogue.call("mcp:ledger:fail", {"message": "no such invoice"})
        assert not isinstance(caught.value, OutcomeUnknown)


async def test_unknown_tools_and_servers_are_refused_without_a_call(stdio: Stdio, ledger: Ledger) -> None:
    async with running({"ledger": stdio()}) as catalogue:
        for name in ("mcp:ledger:nothing", "mcp:nobody:lookup", "builtin:eval", "nonsense"):
            with pytest.raises(ToolFailed, match=r"no tool|no MCP server"):
                await catalogue.call(name, {})
        with pytest.raises(NotFound):
            await catalogue.reconnect("nobody")
    assert ledger.rows("start") == []


async def test_secrets_on_stderr_and_in_errors_are_blotted_out(stdio: Stdio) -> None:
    entry = stdio(TOKEN="${LEDGER_TOKEN}", LEDGER_STDERR="hello ${LEDGER_TOKEN}, line 2")
    async with running({"ledger": entry}, environ={"LEDGER_TOKEN": "tok-4711"}) as catalogue:
        await until(lambda: bool(catalogue.states()[0].stderr))
        with pytest.raises(ToolFailed, match=r"^bad token \*\*\*$"):
            await catalogue.call("mcp:ledger:fail", {"message": "bad token tok-4711"})
        assert "tok-4711" not in repr(catalogue.states())
        assert "tok-4711" not in repr(catalogue.__dict__["_servers"]["ledger"].spec)


async def test_the_last_hundred_lines_of_stderr_are_kept_and_the_last_one_is_named() -> None:
    script = "import sys\nfor i in range(150): print('line', i, file=sys.stderr)\nsys.exit('no ${TOKEN}')"
    entry = {"command": "python3", "args": ["-c", script]}
    pace = Pace(first_delay_seconds=60)
    async with running({"talker": entry}, environ={"TOKEN": "tok-4711"}, pace=pace) as catalogue:
        stderr = catalogue.states()[0].stderr
        assert len(stderr) == 100
        assert stderr[0] == "line 51"
        assert error_of(catalogue, "talker").endswith("its last words: no ***")


async def test_an_unset_variable_makes_one_server_invalid(stdio: Stdio) -> None:
    async with running({"bad": stdio(TOKEN="${NOT_SET}"), "good": stdio()}) as catalogue:
        assert state_of(catalogue, "bad") == "invalid"
        assert error_of(catalogue, "bad").startswith('server "bad": env.TOKEN: ${NOT_SET} is not set')
        assert state_of(catalogue, "good") == "connected"
        with pytest.raises(ToolFailed, match=r"is invalid: .*NOT_SET"):
            await catalogue.call("mcp:bad:lookup", {"query": "a"})
        with pytest.raises(Conflict):
            await catalogue.reconnect("bad")


async def test_a_disabled_server_is_not_started(stdio: Stdio) -> None:
    async with running({"off": stdio(TOKEN="${NOT_SET}") | {"enabled": False}}) as catalogue:
        assert (state_of(catalogue, "off"), error_of(catalogue, "off")) == ("disabled", "")
        with pytest.raises(ToolFailed, match="is disabled"):
            await catalogue.call("mcp:off:lookup", {"query": "a"})


async def test_reconnect_starts_a_new_process_at_once(stdio: Stdio, ledger: Ledger) -> None:
    async with running({"ledger": stdio()}) as catalogue:
        await catalogue.call("mcp:ledger:lookup", {"query": "a"})
        await catalogue.reconnect("ledger")
        assert state_of(catalogue, "ledger") == "connecting"
        assert catalogue.tools() == {}
        await catalogue.settle(5)
        await catalogue.call("mcp:ledger:lookup", {"query": "b"})
    assert len({row["pid"] for row in ledger.rows("start")}) == 2


async def test_reconnect_does_not_wait_out_the_back_off(stdio: Stdio) -> None:
    async with running({"ledger": stdio()}, pace=Pace(first_delay_seconds=600)) as catalogue:
        with pytest.raises(OutcomeUnknown):
            await catalogue.call("mcp:ledger:crash", {})
        await until(lambda: state_of(catalogue, "ledger") == "down")
        await catalogue.reconnect("ledger")
        await catalogue.settle(5)
        assert state_of(catalogue, "ledger") == "connected"


async def test_tools_announced_later_appear(stdio: Stdio) -> None:
    async with running({"ledger": stdio(LEDGER_LEARNING="1")}) as catalogue:
        version = catalogue.version
        await catalogue.call("mcp:ledger:learn", {"name": "bake"})
        await until(lambda: "mcp:ledger:bake" in catalogue.tools())
        assert catalogue.version == version + 1


async def test_hostile_entries_are_left_out_and_shown_while_the_rest_works(stdio: Stdio) -> None:
    good = {"type": "object"}
    extra = [
        {"name": "", "inputSchema": good},
        {"name": "x" * 129, "inputSchema": good},
        {"name": "rm -rf\n", "inputSchema": good},
        {"name": "no_schema"},
        {"name": "text_schema", "inputSchema": "object"},
        {"name": "bad_type", "inputSchema": {"type": "object", "properties": {"a": {"type": "banana"}}}},
        {"name": "remote", "inputSchema": good | {"properties": {"a": {"$ref": "http://127.0.0.1:1/x"}}}},
        {"name": "lookup", "inputSchema": good, "description": "an impostor"},
        {"name": "sly", "inputSchema": good, "annotations": {"readOnlyHint": "true"}},
        "not even an object",
    ]
    async with running({"ledger": stdio(LEDGER_EXTRA_TOOLS=json.dumps(extra))}) as catalogue:
        assert state_of(catalogue, "ledger") == "connected"
        names = [tool.name for tool in catalogue.tools().values()]
        assert names[-1] == "sly"
        assert len(names) == len(set(names))
        assert not {"", "rm -rf\n", "no_schema", "text_schema", "bad_type", "remote"} & set(names)
        assert not catalogue.tools()["mcp:ledger:sly"].read_only
        assert catalogue.tools()["mcp:ledger:lookup"].description == "Look a word up."
        error = error_of(catalogue, "ledger")
        for part in ("no_schema", "text_schema", "banana", "another document", "listed twice"):
            assert part in error
        assert "\n" not in error
        assert (await catalogue.call("mcp:ledger:lookup", {"query": "abc"})).text == "abc means cba"


async def test_a_silent_server_is_restarted_and_a_busy_one_is_not(stdio: Stdio, ledger: Ledger) -> None:
    pace = Pace(first_delay_seconds=0.05, ping_every_seconds=0.1, ping_timeout_seconds=0.2)
    async with running({"ledger": stdio()}, pace=pace) as catalogue:
        await catalogue.call("mcp:ledger:slow", {"seconds": 0.8})
        pid = ledger.rows("start")[0]["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            busy = asyncio.create_task(catalogue.call("mcp:ledger:lookup", {"query": "a"}))
            await asyncio.sleep(0.6)
            assert state_of(catalogue, "ledger") == "connected"
            os.kill(pid, signal.SIGCONT)
            await busy
            os.kill(pid, signal.SIGSTOP)
            await until(lambda: not catalogue.tools())
        finally:
            os.kill(pid, signal.SIGCONT)
        await catalogue.settle(5)
        await until(lambda: state_of(catalogue, "ledger") == "connected")
        await catalogue.call("mcp:ledger:lookup", {"query": "b"})
    assert len({row["pid"] for row in ledger.rows("start")}) == 2


async def test_stopping_ends_the_process_and_is_silent_about_it(
    stdio: Stdio, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    async with running({"ledger": stdio()}, pace=QUICK) as catalogue:
        await catalogue.call("mcp:ledger:lookup", {"query": "a"})
        await asyncio.sleep(0.1)
    with pytest.raises(ProcessLookupError):
        os.kill(ledger.rows("start")[0]["pid"], 0)
    with pytest.raises(ToolFailed, match="it was stopped"):
        await catalogue.call("mcp:ledger:lookup", {"query": "a"})
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
