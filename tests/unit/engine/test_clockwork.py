"""Does every regular work get its turn, whatever happens to the others?"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from pizzabot.engine.clockwork import LONGEST_SECONDS, Clockwork
from tests.fakes.clock import FakeClock
from tests.fakes.patience import PATIENCE_SECONDS


class _Noted:
    """A tick that notes when it was called, and tells what it was given."""

    def __init__(self, due: Callable[[datetime], datetime | None] = lambda _now: None) -> None:
        self.called: list[datetime] = []
        self._due, self._again = due, asyncio.Event()

    async def tick(self, now: datetime) -> datetime | None:
        self.called.append(now)
        self._again.set()
        return self._due(now)

    async def times(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.called) < count:
                self._again.clear()
                await self._again.wait()


def _fails(_now: datetime) -> datetime | None:
    raise OSError("the disk is full")


async def test_the_next_turn_is_when_the_first_tick_is_due(clock: FakeClock) -> None:
    ticks = [_Noted(lambda now: now + timedelta(seconds=20)), _Noted(lambda now: now + timedelta(seconds=7))]
    assert await Clockwork(ticks, clock).turn() == 7
    assert [tick.called for tick in ticks] == [[clock.now()]] * 2


@pytest.mark.parametrize("due", [lambda _now: None, lambda now: now + timedelta(days=9)])
async def test_a_tick_is_called_now_and_then_also_when_nothing_is_due(
    clock: FakeClock, due: Callable[[datetime], datetime | None]
) -> None:
    assert await Clockwork([_Noted(due)], clock).turn() == LONGEST_SECONDS


async def test_what_stays_due_does_not_keep_the_processor_busy(clock: FakeClock) -> None:
    assert await Clockwork([_Noted(lambda now: now - timedelta(hours=1))], clock).turn() >= 1


async def test_a_tick_that_fails_is_logged_tried_again_and_stops_no_other(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    broken, sound = _Noted(_fails), _Noted()
    with caplog.at_level(logging.ERROR):
        wait = await Clockwork([broken, sound], clock).turn()
    assert (len(broken.called), len(sound.called)) == (1, 1)
    assert wait < LONGEST_SECONDS
    assert "the disk is full" in caplog.text


async def test_it_begins_at_once_and_goes_on_when_it_is_woken(clock: FakeClock) -> None:
    noted = _Noted()
    clockwork = Clockwork([noted], clock)
    await clockwork.start()
    await noted.times(1)
    clockwork.wake()
    await noted.times(2)
    await clockwork.stop()


async def test_nothing_is_called_after_it_was_stopped(clock: FakeClock) -> None:
    noted = _Noted()
    clockwork = Clockwork([noted], clock)
    await clockwork.start()
    await noted.times(1)
    await clockwork.stop()
    clockwork.wake()
    await asyncio.sleep(0)
    assert len(noted.called) == 1


async def test_being_woken_in_quick_succession_is_nothing_to_warn_of(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    tick = _Noted()
    clockwork = Clockwork([tick], clock)
    await clockwork.start()
    for _ in range(50):
        clockwork.wake()
        await asyncio.sleep(0)
    await tick.times(2)
    await clockwork.stop()
    assert caplog.records == []
