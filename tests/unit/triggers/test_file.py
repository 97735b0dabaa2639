"""Are triggers what `[[triggers]]` says, whatever was done to them elsewhere?"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pizzabot import audit
from pizzabot.errors import Invalid
from pizzabot.messages import ActionState
from pizzabot.people import People
from pizzabot.triggers import store
from pizzabot.triggers.triggers import Triggers
from pizzabot.triggers.webhooks import hashed
from tests.fakes.rows import ADA, BOB
from tests.unit.triggers.unattended import Unattended

SECRET = "correct-horse-battery"
MORNING = {"name": "Morning", "cron": "0 8 * * *", "prompt": "Look."}
HOOK = {"name": "Hook", "kind": "webhook", "prompt": "Look.", "secret": SECRET}


@pytest.fixture
def triggers(room: Unattended, tmp_path: Path) -> Triggers:
    return room.doors(tmp_path)


async def test_a_skill_that_cannot_be_used_is_refused_when_it_is_written(triggers: Triggers) -> None:
    made = (await triggers.create(MORNING | {"skills": ["books"]}, ADA, "web")).trigger
    with pytest.raises(Invalid, match='skills: names what cannot be used: "cellar"'):
        await triggers.change(made.id, {"skills": ["books", "cellar"]}, ADA, "web")
    with pytest.raises(Invalid, match="pizzabot skills list"):
        await triggers.create(MORNING | {"name": "Other", "skills": ["cellar"]}, ADA, "web")


async def names(triggers: Triggers) -> list[tuple[str, str]]:
    return [(one.name, one.source) for one in await triggers.all(ADA)]


async def test_what_the_file_names_is_there_and_what_it_named_once_is_gone(triggers: Triggers) -> None:
    await triggers.create(MORNING | {"name": "By hand"}, ADA, "web")
    await triggers.keep_in_step([MORNING, HOOK])
    assert await names(triggers) == [("By hand", "web"), ("Hook", "file"), ("Morning", "file")]
    await triggers.keep_in_step([HOOK])
    assert await names(triggers) == [("By hand", "web"), ("Hook", "file")]
    await triggers.keep_in_step([])
    assert await names(triggers) == [("By hand", "web")]


async def test_another_start_with_the_same_file_changes_nothing(room: Unattended, triggers: Triggers) -> None:
    tables = [MORNING, HOOK, HOOK | {"name": "Signed", "signing": "hmac"}]
    await triggers.keep_in_step(tables)
    before = await room.database.read(store.everything)
    lines = len(await room.database.read(lambda c: audit.page(c, limit=100)))
    room.clock.advance(seconds=3600)
    await triggers.keep_in_step(tables)
    assert await room.database.read(store.everything) == before
    assert len(await room.database.read(lambda c: audit.page(c, limit=100))) == lines


async def test_an_unchanged_schedule_catches_up_over_a_restart(room: Unattended, triggers: Triggers) -> None:
    table = MORNING | {"cron": "0 * * * *"}
    await triggers.keep_in_step([table])
    room.clock.advance(seconds=2 * 3600 + 1800)
    await triggers.keep_in_step([table])
    await room.tick()
    (fired,) = await room.firings(await triggers.get("Morning", ADA))
    assert fired.reason == "catch_up"


async def test_a_changed_schedule_begins_anew(room: Unattended, triggers: Triggers) -> None:
    await triggers.keep_in_step([MORNING | {"cron": "0 * * * *"}])
    room.clock.advance(seconds=2 * 3600 + 1800)
    await triggers.keep_in_step([MORNING | {"cron": "15 * * * *"}])
    await room.tick()
    assert await room.firings(await triggers.get("Morning", ADA)) == []


async def test_what_was_changed_elsewhere_is_changed_back(triggers: Triggers) -> None:
    await triggers.keep_in_step([MORNING])
    known = await triggers.get("Morning", ADA)
    await triggers.change(
        known.id, {"prompt": "Look away.", "overlap": "allow", "model": "demo:x"}, ADA, "web"
    )
    await triggers.keep_in_step([MORNING])
    found = await triggers.get("Morning", ADA)
    assert (found.id, found.prompt, found.overlap, found.model) == (known.id, "Look.", "skip", None)


async def test_what_a_person_switched_off_stays_off_unless_the_file_says_on(triggers: Triggers) -> None:
    await triggers.keep_in_step([MORNING])
    known = await triggers.get("Morning", ADA)
    await triggers.change(known.id, {"enabled": False}, ADA, "web")
    await triggers.keep_in_step([MORNING])
    assert not (await triggers.get("Morning", ADA)).enabled
    await triggers.keep_in_step([MORNING | {"enabled": True}])
    assert (await triggers.get("Morning", ADA)).enabled


async def test_a_restart_ends_no_pause_also_when_the_file_says_on(
    room: Unattended, triggers: Triggers
) -> None:
    table = MORNING | {"cron": "* * * * *", "enabled": True}
    await triggers.keep_in_step([table])
    known = await triggers.get("Morning", ADA)
    await room.fail(known, 3)
    await triggers.keep_in_step([table])
    found = await triggers.get("Morning", ADA)
    assert (found.paused, found.next_run_at) == ("failed 3 times in a row", None)
    assert len(await room.questions()) == 1


async def test_a_file_that_switches_it_off_withdraws_the_question(
    room: Unattended, triggers: Triggers
) -> None:
    table = MORNING | {"cron": "* * * * *", "enabled": True}
    await triggers.keep_in_step([table])
    await room.fail(await triggers.get("Morning", ADA), 3)
    (asked,) = await room.questions()
    await triggers.keep_in_step([table | {"enabled": False}])
    assert await room.questions() == []
    assert (await room.action(asked)).state is ActionState.WITHDRAWN


async def test_one_that_was_made_elsewhere_is_taken_over_by_its_name(triggers: Triggers) -> None:
    made = await triggers.create(MORNING | {"name": "MORNING", "prompt": "By hand."}, ADA, "web")
    await triggers.keep_in_step([MORNING])
    found = await triggers.get("morning", ADA)
    assert (found.id, found.name, found.prompt, found.source) == (made.trigger.id, "Morning", "Look.", "file")


async def test_another_kind_of_the_same_name_is_another_trigger(triggers: Triggers) -> None:
    await triggers.keep_in_step([MORNING])
    known = await triggers.get("Morning", ADA)
    await triggers.keep_in_step([HOOK | {"name": "Morning"}])
    found = await triggers.get("Morning", ADA)
    assert (found.kind, found.cron, found.next_run_at) == ("webhook", None, None)
    assert found.id != known.id


async def test_a_new_secret_in_the_file_is_the_secret(triggers: Triggers) -> None:
    await triggers.keep_in_step([HOOK])
    await triggers.keep_in_step([HOOK | {"secret": "another-horse-battery"}])
    assert (await triggers.get("Hook", ADA)).secret == hashed("another-horse-battery")


async def test_a_secret_that_was_made_anew_elsewhere_is_the_files_again(triggers: Triggers) -> None:
    await triggers.keep_in_step([HOOK])
    known = await triggers.get("Hook", ADA)
    await triggers.change(known.id, {"secret": None}, ADA, "web")
    await triggers.keep_in_step([HOOK])
    assert (await triggers.get("Hook", ADA)).secret == hashed(SECRET)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (MORNING | {"cron": "99 * * * *"}, '[[triggers]] "Morning": cron: "99 * * * *" is no schedule: '),
        ({"name": "T", "prompt": "x"}, '[[triggers]] "T": kind: is missing; write "cron" with a `cron`, or'),
        (MORNING | {"prompt": " "}, '[[triggers]] "Morning": prompt: is missing; write what is to be done.'),
        (MORNING | {"kind": "webhook"}, '[[triggers]] "Morning": cron: is not for webhooks; leave it out.'),
        (
            MORNING | {"signing": "hmac"},
            '[[triggers]] "Morning": signing: is for webhooks only; leave it out.',
        ),
        (
            MORNING | {"channels": ["fax"]},
            '[[triggers]] "Morning": channels: does not know "fax"; write "slack"',
        ),
        (MORNING | {"misfire_max": 101}, '[[triggers]] "Morning": misfire_max: is at most 100.'),
        (
            HOOK | {"prompt": "{{ x }}"},
            '[[triggers]] "Hook": prompt: The prompt cannot be filled in: "x" is not known.',
        ),
        (
            HOOK | {"secret": None},
            '[[triggers]] "Hook": secret: is missing; write one of at least 16 characters',
        ),
        (
            HOOK | {"secret": "with a space in it"},
            '[[triggers]] "Hook": secret: has 16 to 500 ASCII characters',
        ),
    ],
)
async def test_a_table_that_cannot_be_is_named_with_the_cure_and_nothing_is_changed(
    triggers: Triggers, wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(Invalid, match=re.escape(said)):
        await triggers.keep_in_step([MORNING | {"name": "First"}, wrong])
    assert await names(triggers) == []


async def test_a_change_that_comes_while_it_fires_takes_nothing_back(
    room: Unattended, triggers: Triggers
) -> None:
    """A page that was open while a trigger fired, failed and paused says only what was typed."""
    known = (await triggers.create(MORNING | {"cron": "* * * * *"}, ADA, "web")).trigger
    await room.fail(known, 3)
    await triggers.change(known.id, {"prompt": "Look closely."}, ADA, "web")
    found = await triggers.get(known.id, ADA)
    assert (found.paused, found.failures, found.last_run_at) == (
        "failed 3 times in a row",
        3,
        room.clock.now(),
    )
    assert len(await room.questions()) == 1


@pytest.mark.parametrize("enabled", [True, False])
async def test_switching_a_paused_one_on_or_off_answers_its_question(
    room: Unattended, triggers: Triggers, enabled: bool
) -> None:
    known = (await triggers.create(MORNING | {"cron": "* * * * *"}, ADA, "web")).trigger
    await room.fail(known, 3)
    (asked,) = await room.questions()
    await triggers.change(known.id, {"enabled": enabled}, ADA, "web")
    found = await triggers.get(known.id, ADA)
    assert (found.enabled, found.paused, found.paused_action, found.failures) == (enabled, None, None, 0)
    assert (found.next_run_at is not None) is enabled
    assert (await room.action(asked)).state is ActionState.WITHDRAWN
    assert (await room.thread(asked.thread_id)).action_count == 0


async def test_removing_a_paused_one_withdraws_its_question(room: Unattended, triggers: Triggers) -> None:
    known = (await triggers.create(MORNING | {"cron": "* * * * *"}, ADA, "web")).trigger
    await room.fail(known, 3)
    (asked,) = await room.questions()
    await triggers.remove(known.id, ADA, "web")
    assert (await room.action(asked)).state is ActionState.WITHDRAWN
    assert await room.database.read(lambda c: store.of_trigger(c, known.id, limit=9)) == []


@pytest.mark.parametrize(
    ("written", "overlap"),
    [({}, "skip"), ({"misfire": "all"}, "queue"), ({"misfire": "all", "overlap": "skip"}, "skip")],
)
async def test_what_is_caught_up_is_not_left_out_as_overlapping_unless_that_is_said(
    triggers: Triggers, written: dict[str, str], overlap: str
) -> None:
    made = await triggers.create(MORNING | written, ADA, "web")
    assert made.trigger.overlap == overlap


async def test_an_overlap_that_nobody_wrote_follows_what_is_changed_and_a_written_one_stays(
    triggers: Triggers,
) -> None:
    id = (await triggers.create(MORNING, ADA, "web")).trigger.id

    async def change(**written: str | None) -> str:
        return (await triggers.change(id, written, ADA, "web")).trigger.overlap

    assert await change(misfire="all") == "queue"
    assert await change(prompt="Look closely.") == "queue"
    assert await change(misfire=None) == "skip"
    assert await change(overlap="skip") == "skip"
    assert await change(misfire="all") == "skip"
    assert await change(overlap=None) == "queue"


@pytest.mark.parametrize(("written", "zone"), [({}, "Asia/Tokyo"), ({"timezone": "UTC"}, "UTC")])
async def test_a_zone_that_nobody_wrote_is_that_of_its_owner_also_of_a_new_one(
    room: Unattended, tmp_path: Path, written: dict[str, str], zone: str
) -> None:
    room.people = People([replace(ADA, timezone="UTC"), replace(BOB, timezone="Asia/Tokyo")])
    triggers = room.doors(tmp_path)
    made = (await triggers.create(MORNING | written, ADA, "web")).trigger
    assert made.timezone == "UTC"
    changed = (await triggers.change(made.id, {"owner": "Bob"}, ADA, "web")).trigger
    assert changed.timezone == zone
    hour = 8 if zone == "UTC" else 23  # of the day before, in UTC
    assert changed.next_run_at is not None
    assert changed.next_run_at.hour == hour


@pytest.mark.parametrize(("written", "zone"), [({}, "Asia/Tokyo"), ({"timezone": "UTC"}, "UTC")])
async def test_a_zone_that_nobody_wrote_moves_with_its_owner_at_the_next_start(
    room: Unattended, tmp_path: Path, written: dict[str, str], zone: str
) -> None:
    room.people = People([replace(ADA, timezone="UTC")])
    made = (await room.doors(tmp_path).create(MORNING | written, ADA, "web")).trigger
    room.people = People([replace(ADA, timezone="Asia/Tokyo")])
    await room.doors(tmp_path).keep_in_step([])
    after = await room.trigger(made)
    assert after.timezone == zone
    assert (after == made) is (zone == "UTC")


@pytest.mark.parametrize("grace", ["45s", "5m", "90m", "2h", "36h", "7d", "never"])
async def test_the_grace_reads_as_it_was_written(triggers: Triggers, grace: str) -> None:
    made = await triggers.create(MORNING | {"grace": grace}, ADA, "web")
    assert made.trigger.grace == grace
    changed = await triggers.change(made.trigger.id, {"prompt": "x"}, ADA, "web")
    assert changed.trigger.grace_seconds == made.trigger.grace_seconds
