"""Does the agent get what people wrote about a question without deciding it, once, and with it?"""

from __future__ import annotations

from typing import Any

from pizzabot.approvals import store
from pizzabot.database.connection import Database
from pizzabot.inbox import pages
from pizzabot.messages import Beginning
from tests.fakes.clock import FakeClock
from tests.fakes.rows import ADA, arrives, waits


async def test_what_was_said_about_a_question_is_found_again_by_the_run_that_was_told_of_it(
    database: Database, clock: FakeClock
) -> None:
    (action,) = await database.write(lambda c: waits(c, clock, id="q"))
    aside: dict[str, Any] = {"thread_id": action.thread_id, "aside_to": action.id}
    await database.write(lambda c: arrives(c, clock, "Less?", **aside))
    said = await database.read(lambda c: store.asides(c, "q", action.thread_id, action.run_id))
    assert [message.text for message in said] == ["Less?"]
    await database.write(lambda c: store.hand_over(c, said, action.run_id))
    again = await database.read(lambda c: store.asides(c, "q", action.thread_id, action.run_id))
    assert [message.text for message in again] == ["Less?"]
    other = await database.read(lambda c: store.asides(c, "q", action.thread_id, "another run"))
    assert other == []
    began = await database.read(lambda c: pages.beginning_of(c, action.run_id, ADA))
    assert began == Beginning(words=(("Ada", "Please look at this."),))


async def test_what_was_said_about_another_question_is_left_alone(
    database: Database, clock: FakeClock
) -> None:
    (action,) = await database.write(lambda c: waits(c, clock, id="q/1"))
    aside: dict[str, Any] = {"thread_id": action.thread_id, "aside_to": action.id}
    await database.write(lambda c: arrives(c, clock, "Less?", **aside))
    for question, found in (("q", 1), ("q/1", 1), ("q/", 0), ("q0", 0), ("", 0)):
        said = await database.read(
            lambda c, q=question: store.asides(c, q, action.thread_id, action.run_id)  # type: ignore[misc]
        )
        assert len(said) == found, question
