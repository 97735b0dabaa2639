"""Does every firing happen once, when it is due, and is what was missed told? On both kinds of database."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from pizzabot.database.connection import Database, PostgresDatabase, SqliteDatabase
from pizzabot.database.schema import audit
from pizzabot.database.schema import threads as threads_table
from pizzabot.errors import Conflict
from pizzabot.inbox import runs
from pizzabot.people import People
from pizzabot.triggers import firing, store
from pizzabot.triggers.trigger import Occurrence, OccurrenceState
from pizzabot.triggers.triggers import TooMany
from tests.fakes.clock import FakeClock
from tests.fakes.rows import ADA, BOB, CAY
from tests.unit.triggers.unattended import Unattended

START = FakeClock().now()


def at(found: list[Occurrence]) -> list[str]:
    """When firings were due, as clock times."""
    return [f"{one.scheduled_at:%H:%M}" for one in found]


# -- when it fires ---------------------------------------------------------------------------------------


async def test_a_schedule_fires_at_its_minute_and_not_again_before_the_next(room: Unattended) -> None:
    trigger = await room.make()
    for seconds in (1, 30, 28, 1, 0):
        await room.tick(seconds=seconds)
    await room.end()
    for seconds in (1, 29, 29):
        await room.tick(seconds=seconds)
    assert at(await room.firings(trigger)) == ["09:01"]
    await room.tick(seconds=1)
    assert at(await room.firings(trigger)) == ["09:01", "09:02"]


async def test_the_tick_says_when_the_first_of_all_is_due(room: Unattended) -> None:
    await room.make(name="one", cron="30 9 * * *")
    await room.make(name="two", cron="10 9 * * *")
    assert await room.tick() == START + timedelta(minutes=10)


async def test_nothing_fires_for_the_minute_in_which_a_trigger_is_made(room: Unattended) -> None:
    trigger = await room.make(cron="0 9 * * *")
    await room.tick()
    await room.tick(seconds=59)
    assert await room.firings(trigger) == []
    assert (await room.trigger(trigger)).next_run_at == START + timedelta(days=1)


async def test_nothing_fires_for_the_time_before_a_first_start(room: Unattended) -> None:
    """The trigger is made, and the server first runs a day and a half later: one firing, said to be late."""
    trigger = await room.make(cron="0 12 * * *", grace="5m")
    await room.tick(seconds=30 * 3600)
    assert [(one.reason, one.missed) for one in await room.firings(trigger)] == [("catch_up", 1)]


@pytest.mark.parametrize("how", ["switched on", "another schedule", "another zone", "let go on"])
async def test_nothing_fires_for_the_time_before_a_change(room: Unattended, how: str) -> None:
    trigger = await room.make(cron="0 * * * *", enabled=how != "switched on")
    if how == "let go on":
        await room.database.write(
            lambda c: firing._pause(c, trigger, "failed 3 times in a row", room.clock.now())
        )
    room.clock.advance(timedelta(hours=5, minutes=30))
    changes: dict[str, dict[str, Any]] = {
        "switched on": {"enabled": True},
        "another schedule": {"cron": "15 * * * *"},
        "another zone": {"timezone": "Asia/Kathmandu"},
        "let go on": {"enabled": True},
    }
    await room.change(trigger, **changes[how])
    await room.tick()
    assert await room.firings(trigger) == []
    await room.tick(seconds=3600)
    assert len(await room.firings(trigger)) == 1


async def test_a_trigger_that_moves_to_a_zone_further_west_fires_there_on_the_same_day(
    room: Unattended,
) -> None:
    """Eleven in Amsterdam is at 10:00 UTC; eleven in New York is at 16:00 UTC of the same day."""
    trigger = await room.make(cron="0 11 * * *", timezone="Europe/Amsterdam", overlap="allow")
    await room.tick(seconds=3_600)
    await room.change(trigger, timezone="America/New_York")
    await room.tick(seconds=3_600)
    await room.tick(seconds=5 * 3_600)
    assert at(await room.firings(trigger)) == ["10:00", "16:00"]
    assert await room.states(trigger) == ["running", "running"]


async def test_a_change_of_anything_else_loses_no_firing(room: Unattended) -> None:
    trigger = await room.make(cron="0 10 * * *", grace="1h")
    room.clock.advance(hours := timedelta(hours=1, minutes=10))
    await room.change(trigger, prompt="Look closely.", grace="2h", name="Noon")
    await room.tick()
    (fired,) = await room.firings(trigger)
    assert fired.scheduled_at == START + hours - timedelta(minutes=10)
    assert await room.asked(fired.thread_id) == "Look closely."


async def test_what_is_off_does_not_fire(room: Unattended) -> None:
    trigger = await room.make(enabled=False)
    await room.tick(seconds=600)
    assert await room.firings(trigger) == []
    assert (await room.trigger(trigger)).next_run_at is None


@pytest.mark.parametrize("second", range(-3, 4))
async def test_a_restart_at_any_second_around_a_firing_makes_one(room: Unattended, second: int) -> None:
    trigger = await room.make(cron="1 9 * * *")
    room.clock.advance(seconds=60 + second)
    for moment in (0, 1, 1, 1):
        room.ticker = room.another_ticker()
        await room.tick(seconds=moment)
    await room.tick(seconds=10)
    assert at(await room.firings(trigger)) == ["09:01"]
    assert len(await room.runs()) == 1


async def test_a_crash_between_the_row_and_the_run_is_made_good(room: Unattended) -> None:
    """The firing was stored and its run was not: the next process begins it, once."""
    trigger = await room.make()
    now = room.clock.advance(seconds=60)
    assert await room.database.write(lambda c: firing.note_due(c, trigger.id, now, room.work)) == 1
    assert await room.states(trigger) == ["pending"]
    room.ticker = room.another_ticker()
    await room.tick()
    await room.tick()
    assert await room.states(trigger) == ["running"]
    assert len(await room.runs()) == 1


async def test_a_firing_that_was_noted_is_not_noted_again_when_the_mark_was_lost(room: Unattended) -> None:
    """Its key holds also when a row says that nobody looked yet."""
    trigger = await room.make()
    await room.tick(seconds=60)
    await room.database.write(lambda c: store.put(c, trigger, new=False))
    await room.tick()
    assert at(await room.firings(trigger)) == ["09:01"]
    assert len(await room.runs()) == 1


@pytest.fixture
def second_database(database: Database, sqlite_path: Path, request: pytest.FixtureRequest) -> Any:
    """Another connection to the same database, as another process has it."""
    if isinstance(database, SqliteDatabase):
        other: Database = SqliteDatabase(sqlite_path)
    else:
        other = PostgresDatabase(request.getfixturevalue("_migrated_url"))
    yield other
    other.close()


async def test_two_processes_at_the_same_moment_fire_once(
    room: Unattended, second_database: Database
) -> None:
    triggers = [await room.make(name=f"t{i}", overlap="allow") for i in range(3)]
    minutes, meet = 5, threading.Barrier(2, timeout=30)

    def process(database: Database) -> None:
        ticker = Unattended(database, room.clock).ticker
        for minute in range(1, minutes + 1):
            meet.wait()
            asyncio.run(ticker.tick(START + timedelta(minutes=minute)))

    await asyncio.gather(*(asyncio.to_thread(process, d) for d in (room.database, second_database)))
    for trigger in triggers:
        assert at(await room.firings(trigger)) == ["09:01", "09:02", "09:03", "09:04", "09:05"]
        assert set(await room.states(trigger)) == {"running"}
    assert len(await room.runs()) == len(triggers) * minutes


# -- what was missed -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "minutes", "reasons"),
    [
        ({"misfire": "latest"}, 4 * 60 + 30, ["catch_up"]),
        ({"misfire": "skip"}, 4 * 60 + 30, []),
        ({"misfire": "all", "misfire_max": 3}, 4 * 60 + 30, ["catch_up"] * 3),
        ({"misfire": "all"}, 4 * 60 + 30, ["catch_up"] * 4),
        ({"misfire": "latest"}, 4 * 60 + 3, ["cron"]),
        ({"misfire": "skip"}, 4 * 60 + 3, ["cron"]),
        ({"misfire": "all", "misfire_max": 2}, 4 * 60 + 3, ["catch_up", "catch_up", "cron"]),
        ({"misfire": "skip", "grace": "2h"}, 4 * 60 + 30, ["cron", "cron"]),
        ({"misfire": "skip", "grace": "never"}, 4 * 60 + 30, ["cron"] * 4),
        ({"misfire": "latest", "grace": "1s"}, 60, ["cron"]),
    ],
)
async def test_after_a_downtime_the_policy_and_the_grace_say_what_starts(
    room: Unattended, written: dict[str, Any], minutes: int, reasons: list[str]
) -> None:
    trigger = await room.make(cron="0 * * * *", overlap="allow", **written)
    await room.tick(seconds=60 * minutes)
    found = await room.firings(trigger)
    assert [one.reason for one in found] == reasons
    assert sum(one.missed for one in found) == (minutes // 60 - len(found) if found else 0)
    assert all(bool(one.late_seconds) == (one.reason == "catch_up") for one in found)


async def test_a_late_firing_says_how_late_it_is_and_how_many_were_missed(room: Unattended) -> None:
    trigger = await room.make(cron="0 * * * *")
    await room.tick(seconds=4 * 3600 + 1800)
    (fired,) = await room.firings(trigger)
    said = "(late by 30 minutes, 3 earlier ones missed)"
    assert (await room.thread(fired.thread_id)).title == f"Morning {said}"
    assert await room.asked(fired.thread_id) == f"Look.\n\n{said}"


async def test_a_long_name_leaves_room_for_why_it_comes_so_late(room: Unattended) -> None:
    trigger = await room.make(name="n" * 100, cron="0 * * * *")
    await room.tick(seconds=4 * 3600 + 1800)
    (fired,) = await room.firings(trigger)
    assert (await room.thread(fired.thread_id)).title.endswith(
        "… (late by 30 minutes, 3 earlier ones missed)"
    )


async def test_one_on_time_says_nothing_of_time(room: Unattended) -> None:
    trigger = await room.make()
    await room.tick(seconds=61)
    (fired,) = await room.firings(trigger)
    assert (await room.thread(fired.thread_id)).title == "Morning"
    assert await room.asked(fired.thread_id) == "Look."


async def test_all_that_is_caught_up_runs_one_after_the_other(room: Unattended) -> None:
    trigger = await room.make(cron="0 * * * *", misfire="all")
    await room.tick(seconds=3 * 3600 + 1800)
    assert await room.states(trigger) == ["running", "pending", "pending"]
    for _ in range(3):
        await room.end()
        await room.tick()
    assert await room.states(trigger) == ["succeeded"] * 3


@pytest.mark.parametrize("ahead", [timedelta(hours=30), timedelta(days=3650)])
async def test_after_a_clock_that_was_ahead_for_a_moment_a_trigger_fires_at_its_next_time(
    room: Unattended, ahead: timedelta
) -> None:
    trigger = await room.make(cron="0 10 * * *", overlap="allow")
    room.clock.advance(ahead)
    await room.tick()
    (wrong,) = await room.firings(trigger)
    room.clock.advance(-ahead)
    await room.tick()
    assert len(await room.firings(trigger)) == 1
    await room.tick(seconds=3_600)
    _, right = await room.firings(trigger)
    assert right.scheduled_at == START + timedelta(hours=1) < wrong.scheduled_at


async def test_a_clock_that_was_ahead_refuses_no_delivery_afterwards(
    room: Unattended, tmp_path: Path
) -> None:
    doors = room.doors(tmp_path)
    made = await doors.create({"name": "Hook", "kind": "webhook", "prompt": "Look."}, ADA, "web")

    async def body() -> bytes:
        return b"{}"

    async def deliver() -> None:
        await doors.receive(made.trigger.id, {"x-trigger-secret": str(made.secret)}, body)

    room.clock.advance(timedelta(days=1))
    for _ in range(60):
        await deliver()
    with pytest.raises(TooMany):
        await deliver()
    room.clock.advance(timedelta(days=-1))
    await deliver()


# -- while the one before is at work ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overlap", "during", "after"),
    [
        ("skip", ["running", "skipped"], ["succeeded", "skipped"]),
        ("queue", ["running", "pending"], ["succeeded", "running"]),
        ("allow", ["running", "running"], ["succeeded", "running"]),
    ],
)
async def test_what_happens_while_the_one_before_is_at_work(
    room: Unattended, overlap: str, during: list[str], after: list[str]
) -> None:
    trigger = await room.make(overlap=overlap)
    await room.tick(seconds=60)
    await room.tick(seconds=60)
    assert await room.states(trigger) == during
    await room.end()
    await room.tick()
    assert await room.states(trigger) == after


async def test_what_waited_for_the_one_before_says_how_late_it_starts(room: Unattended) -> None:
    trigger = await room.make(cron="0 10 * * *", overlap="queue")
    await room.tick(seconds=3_600)
    await room.tick(seconds=86_400)  # the first one waits for somebody's decision
    room.clock.advance(timedelta(days=3))
    await room.end()
    await room.tick()
    _, second, *_ = await room.firings(trigger)
    assert (second.state, second.late_seconds) == (OccurrenceState.RUNNING, 3 * 86_400)
    assert "(late by 3 days)" in await room.asked(second.thread_id)


async def test_a_queue_of_firings_does_not_grow_for_ever_while_somebody_is_asked(
    room: Unattended, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run waits for a decision for a day; then there is not one run for each minute of it."""
    monkeypatch.setattr(firing, "MAX_PENDING", 3)
    trigger = await room.make(overlap="queue")
    for _ in range(10):
        await room.tick(seconds=60)
    assert await room.states(trigger) == ["running"] + ["pending"] * 3
    missed = sa.select(audit.c.data).where(audit.c.event == "trigger.missed")
    rows = await room.database.read(lambda c: c.execute(missed).scalars().all())
    assert sum(json.loads(row)["missed"] for row in rows) == 6


async def test_a_delivery_that_waited_for_the_one_before_is_not_late(room: Unattended) -> None:
    trigger = await room.make(kind="webhook")
    for _ in range(2):
        await room.delivery(trigger)
    await room.tick()
    room.clock.advance(timedelta(days=3))
    await room.end()
    await room.tick()
    _, second = await room.firings(trigger)
    assert second.state == OccurrenceState.RUNNING
    assert "late by" not in await room.asked(second.thread_id)


async def test_a_skipped_one_says_why(room: Unattended) -> None:
    trigger = await room.make()
    await room.tick(seconds=60)
    await room.tick(seconds=60)
    assert (await room.firings(trigger))[1].error == "the one before was still at work"


async def test_a_run_that_has_ended_is_not_at_work_even_before_that_was_followed(room: Unattended) -> None:
    trigger = await room.make(overlap="skip")
    await room.tick(seconds=60)
    await room.end()
    assert not await room.database.read(lambda c: store.is_at_work(c, trigger.id))


async def test_what_waits_behind_one_trigger_holds_up_no_other(room: Unattended) -> None:
    busy = await room.make(name="busy", kind="webhook", prompt="Look.")
    other = await room.make(name="other", kind="webhook", prompt="Look.")
    for _ in range(55):
        await room.delivery(busy)
    await room.delivery(other)
    await room.tick()
    assert await room.states(other) == ["running"]
    assert (await room.states(busy)).count("pending") == 54


async def test_more_than_a_handful_that_may_overlap_all_begin_at_once(room: Unattended) -> None:
    trigger = await room.make(kind="webhook", overlap="allow")
    for _ in range(55):
        await room.delivery(trigger)
    await room.tick()
    assert set(await room.states(trigger)) == {"running"}


async def test_deliveries_wait_while_a_trigger_is_paused_and_are_left_out_when_it_is_switched_off(
    room: Unattended,
) -> None:
    trigger = await room.make(kind="webhook")
    await room.database.write(lambda c: firing._pause(c, trigger, "failed", room.clock.now()))
    await room.delivery(trigger)
    await room.tick()
    assert await room.states(trigger) == ["pending"]
    await room.delivery(trigger, reason="manual")
    await room.tick()
    assert await room.states(trigger) == ["pending", "running"]
    await room.change(trigger, enabled=False)
    await room.tick()
    assert [one.error for one in await room.firings(trigger)] == ["the trigger was switched off", None]


async def test_firings_that_wait_for_the_morning_hold_up_nothing(room: Unattended) -> None:
    sleeps = replace(ADA, quiet_hours="20:00-07:00", timezone="UTC")
    room.people = People([sleeps, BOB, CAY])
    room.ticker = room.another_ticker()
    room.clock.advance(datetime(2026, 3, 2, 23, tzinfo=UTC) - room.clock.now())
    digest = await room.make(name="digest:Ada", kind="digest", cron="0 8 * * *", prompt=None)
    for number in range(60):
        await room.delivery(digest, reason="cron", key=f"cron/{number}")
    later = await room.make(name="later", owner="Bob")
    await room.tick(seconds=60)
    assert await room.states(later) == ["running"]


# -- what goes wrong -------------------------------------------------------------------------------------


async def test_one_that_cannot_be_started_is_dead_and_holds_up_nothing(
    room: Unattended, caplog: pytest.LogCaptureFixture
) -> None:
    trigger = await room.make(name="broken")
    # No door lets a trigger without a prompt in: it stands for a row that nobody thought of.
    await room.database.write(lambda c: store.put(c, replace(trigger, prompt=""), new=False))
    sound = await room.make(name="sound")
    await room.tick(seconds=60)
    assert await room.states(sound) == ["running"]
    (found,) = await room.firings(trigger)
    assert found.state is OccurrenceState.DEAD
    assert found.error == f"It could not be started; the log has the details under {found.id}."
    assert found.id in caplog.text


@pytest.mark.parametrize("kind", ["cron", "webhook"])
async def test_firings_that_cannot_be_started_are_told_and_the_third_in_a_row_pauses(
    room: Unattended, kind: str
) -> None:
    trigger = await room.make(kind=kind, owner="Cay", overlap="allow")
    await room.database.write(lambda c: store.put(c, replace(trigger, prompt=""), new=False))
    for _ in range(5):
        if kind == "webhook":
            await room.delivery(trigger)
        await room.tick(seconds=60)
    found, dead = await room.trigger(trigger), await room.firings(trigger)
    waiting = ["pending"] * 2 if kind == "webhook" else []
    assert await room.states(trigger) == ["dead"] * 3 + waiting
    last = f"It could not be started; the log has the details under {dead[2].id}."
    assert (found.paused, found.failures) == (f"failed 3 times in a row. The last time: {last}", 3)
    told = await room.said()
    assert [(person, channel) for person, channel, _ in told] == [("Cay", "slack")] * 3
    assert [text for _, _, text in told[:2]] == [f"“Morning” did not work. {one.error}" for one in dead[:2]]
    cure = "Change it, then switch it on again."
    assert told[2][2] == f"“Morning” is paused: failed 3 times in a row. The last time: {last} {cure}"


async def test_one_that_cannot_be_started_is_one_of_the_failures_in_a_row(room: Unattended) -> None:
    trigger = await room.make()
    await room.fail(trigger, 1)
    await room.database.write(
        lambda c: store.put(c, replace(trigger, prompt="", failures=1, last_run_at=None), new=False)
    )
    await room.tick(seconds=60)
    assert (await room.trigger(trigger)).failures == 2


async def test_when_its_owner_is_gone_a_trigger_pauses_and_says_so(room: Unattended) -> None:
    trigger = await room.make(owner="Cay")
    room.people = type(room.people)(person for person in room.people if person.name != "Cay")
    room.ticker = room.another_ticker()
    await room.tick(seconds=60)
    (fired,) = await room.firings(trigger)
    gone = "Cay, to whom it belongs, is nobody of [[people]] any more"
    assert (fired.state, fired.error) == (OccurrenceState.DEAD, gone)
    assert (await room.trigger(trigger)).paused == gone
    (told,) = await room.said()
    assert told == ("Ada", "slack", f"“Morning” is paused: {gone}. Change it, then switch it on again.")
    await room.tick(seconds=600)
    assert len(await room.firings(trigger)) == 1


async def test_when_a_skill_of_it_is_gone_a_trigger_pauses_and_its_owner_is_told(room: Unattended) -> None:
    trigger = await room.make(owner="Cay", skills=["books", "cellar"])
    await room.tick(seconds=60)
    gone = "its skill cellar is not there any more, or cannot be read"
    assert [(one.state, one.error) for one in await room.firings(trigger)] == [(OccurrenceState.DEAD, gone)]
    assert (await room.trigger(trigger)).paused == gone
    (told,) = await room.said()
    assert told == ("Cay", "slack", f"“Morning” is paused: {gone}. Change it, then switch it on again.")


async def test_what_a_webhook_brought_waits_until_the_trigger_can_do_its_work(room: Unattended) -> None:
    trigger = await room.make(kind="webhook", skills=["cellar"])
    await room.delivery(trigger, payload="{}")
    await room.tick()
    assert await room.states(trigger) == ["pending"]
    assert (await room.trigger(trigger)).paused is not None
    room.skills.add("cellar")
    await room.change(trigger, enabled=True)
    await room.tick()
    assert await room.states(trigger) == ["running"]


async def test_a_second_pause_is_told_in_the_same_thread(room: Unattended) -> None:
    trigger = await room.make(skills=["cellar"])
    await room.tick(seconds=60)
    await room.change(trigger, enabled=True)
    await room.tick(seconds=60)
    assert len(await room.said()) == 2
    count = sa.select(sa.func.count()).select_from(threads_table)
    assert await room.database.read(lambda c: c.execute(count).scalar_one()) == 1


async def test_a_pause_is_told_to_somebody_who_is_there_also_when_an_earlier_one_was_told_to_one_who_left(
    room: Unattended,
) -> None:
    trigger = await room.make(owner="Bob", skills=["cellar"])
    await room.tick(seconds=60)
    await room.change(trigger, enabled=True, skills=None)
    room.leaves("Bob")
    await room.tick(seconds=60)
    assert (await room.trigger(trigger)).paused is not None
    assert [person for person, _, _ in await room.said()] == ["Bob", "Ada"]


async def test_when_its_zone_is_gone_a_trigger_pauses_and_says_so(room: Unattended) -> None:
    trigger = await room.make()
    await room.database.write(lambda c: store.put(c, replace(trigger, timezone="Mars/Olympus"), new=False))
    await room.tick(seconds=60)
    found = await room.trigger(trigger)
    assert found.paused is not None
    assert '"Mars/Olympus" is not a time zone' in found.paused
    assert found.spoken() == "* * * * * (Mars/Olympus)"
    ((person, _, said),) = await room.said()
    assert person == "Ada"
    assert said == f"“Morning” is paused: {found.paused.rstrip('.')}. Change it, then switch it on again."
    assert await room.firings(trigger) == []


# -- stop everything -------------------------------------------------------------------------------------


async def test_while_everything_is_stopped_nothing_fires_and_afterwards_what_was_missed_is_told(
    room: Unattended,
) -> None:
    trigger = await room.make(cron="0 * * * *")
    await room.stop_everything()
    for _ in range(3):
        await room.tick(seconds=3600)
    assert await room.firings(trigger) == []
    await room.database.write(runs.resume_everything)
    await room.tick(seconds=600)
    (fired,) = await room.firings(trigger)
    assert (fired.reason, fired.missed) == ("catch_up", 2)


async def test_stopped_stays_stopped_over_a_restart(room: Unattended) -> None:
    trigger = await room.make()
    await room.stop_everything()
    room.ticker = room.another_ticker()
    await room.tick(seconds=60)
    assert await room.firings(trigger) == []


HOOK = {"kind": "webhook", "name": "Hook", "prompt": "Look.", "secret": "correct-horse-battery"}
PROOF = {"x-trigger-secret": "correct-horse-battery"}


async def body() -> bytes:
    return b"{}"


async def test_what_a_webhook_brings_while_everything_is_stopped_begins_when_somebody_resumes(
    room: Unattended, tmp_path: Path
) -> None:
    doors = room.doors(tmp_path)
    hook = (await doors.create(HOOK, ADA, "web")).trigger
    await room.stop_everything()
    taken = await doors.receive(hook.id, PROOF, body)
    assert (taken.state, taken.thread_id) == (OccurrenceState.PENDING, None)
    await room.tick(seconds=60)
    assert await room.states(hook) == ["pending"]
    await room.database.write(runs.resume_everything)
    await room.tick()
    assert await room.states(hook) == ["running"]


async def test_run_now_is_refused_while_everything_is_stopped_but_for_one_that_was_taken_before(
    room: Unattended, tmp_path: Path
) -> None:
    doors, trigger = room.doors(tmp_path), await room.make(overlap="allow")
    taken = await doors.run_now(trigger.id, ADA, "web", "once")
    await room.stop_everything()
    with pytest.raises(Conflict, match="An owner can resume") as refused:
        await doors.run_now(trigger.id, ADA, "web", "twice")
    assert refused.value.code == "stopped"
    assert (await doors.run_now(trigger.id, ADA, "web", "once")).id == taken.id
    assert await room.states(trigger) == ["running"]


@pytest.mark.parametrize("asked", ["delivery", "run now"])
async def test_whoever_asks_for_one_firing_begins_no_other(
    room: Unattended, tmp_path: Path, asked: str
) -> None:
    """What catches up waits for its tools, and a digest for the morning: neither begins beside."""
    doors, other = room.doors(tmp_path), await room.make(name="Other")
    wanted = (await doors.create(HOOK, ADA, "web")).trigger
    now = room.clock.advance(seconds=60)
    assert await room.database.write(lambda c: firing.note_due(c, other.id, now, room.work)) == 1
    if asked == "delivery":
        taken = await doors.receive(wanted.id, PROOF, body)
    else:
        taken = await doors.run_now(wanted.id, ADA, "web")
    assert taken.state is OccurrenceState.RUNNING
    assert await room.states(other) == ["pending"]


# -- clocks that change ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "cron", "expected"),
    [
        # 2026-03-29 02:00 +01:00 -> 03:00 +02:00; 2026-10-25 03:00 +02:00 -> 02:00 +01:00
        (datetime(2026, 3, 29, 0, 50, tzinfo=UTC), "30 2 * * *", ["01:00"]),
        (datetime(2026, 10, 24, 23, 50, tzinfo=UTC), "30 2 * * *", ["00:30"]),
        (datetime(2026, 10, 24, 23, 50, tzinfo=UTC), "30 * * * *", ["00:30", "01:30"]),
    ],
)
async def test_the_ticker_fires_as_the_clock_on_the_wall_says(
    database: Database, start: datetime, cron: str, expected: list[str]
) -> None:
    room = Unattended(database, FakeClock(start))
    trigger = await room.make(cron=cron, timezone="Europe/Amsterdam", overlap="allow")
    for _ in range(24):
        await room.tick(seconds=300)
    assert at(await room.firings(trigger)) == expected
