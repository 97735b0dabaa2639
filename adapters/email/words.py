"""What do we say to somebody who answered by mail? A headline, then what was understood and done."""

from __future__ import annotations

from pizzabot.messages import Action, ActionState, Verdict

from .writing.actions import PHRASES, about, outcome, standing, what_follows

SEVERAL_QUESTIONS = "your mail answers several questions at once. Please answer each in a mail of its own."
STOPPED = "Everything is stopped\n\nNothing goes on and nothing starts until an owner answers: Resume."
RESUMED = "Everything goes on\n\nWhat arrived meanwhile starts now."
NOT_BY_MAIL = "this cannot be decided by answering the mail; please open its link."
NOT_MEANT = "your mail does not name our address in To or Cc. Please answer the mail that asks, itself."
UNREADABLE = "your mail did not arrive whole, or was too large. Please send it again, without large files."
NO_DECISION = "your mail says something else."
_DONE = {
    Verdict.APPROVE: "Approved",
    Verdict.EDIT: "Approved with your changes",
    Verdict.REJECT: "Rejected",
    Verdict.RESPOND: "Answered in its place",
    Verdict.RETRY: "To be tried again",
    Verdict.DONE: "Noted as done",
    Verdict.FAILED: "Noted as failed",
}
_ANSWERS = {
    **{verdict: f"“{phrase}”" for verdict, phrase in PHRASES.items()},
    Verdict.EDIT: "changed values between the two lines",
}


def decided(action: Action) -> str:
    """What was understood and done, so that a misunderstanding is seen at once.

    The values that it runs with stand in the mail and on the card, each in its own place.
    """
    if action.state is ActionState.PENDING:
        return "\n\n".join(
            [f"Your approval counts: {about(action)}", *standing(action), what_follows(action)]
        )
    assert action.decision is not None
    said = [f"{_DONE[action.decision]}: {about(action)}"]
    said += [f"Reason: {action.reason}"] if action.reason else []
    said += [f"Answer: {action.response}"] if action.response else []
    return "\n\n".join(said)


def question(action: Action, why: str, page: str, *, kept: bool, is_last: bool = False) -> str:
    """One polite question back; nothing was decided. `kept`: there were words, which the agent gets.

    After the last one nothing is asked any more: it leads to the action's `page` and invites no answer.
    """
    written = "What you wrote is kept for the agent. " if kept else ""
    nothing = f"I could not tell: {why}\n\nNothing was decided. {written}".rstrip()
    title = action.title.rstrip("?")
    if is_last:
        return f"Please decide “{title}” on its page\n\n{nothing}\n\n{_last(page)}"
    answers = [_ANSWERS[verdict] for verdict in action.allowed_decisions]
    listed = ", ".join(answers[:-1]) + (" or " if len(answers) > 1 else "") + answers[-1]
    return (
        f"What shall become of “{title}”?\n\n{nothing} To decide, answer the mail that asks with {listed}, "
        "and nothing else.\n\n"
        "This is not asked again within the hour: only a clear word counts, by mail or on its page."
    )


def list_done(lines: str) -> str:
    """What was understood of an answer to a digest, a line for each number."""
    return f"What you decided\n\n{lines}"


def _last(page: str) -> str:
    return f"This was asked often enough, so no further question comes. It is decided here:\n{page}"


def list_question(why: str, page: str, *, is_last: bool = False) -> str:
    """One question back about an answer to a digest; nothing of it was done. The last one leads to `page`."""
    if is_last:
        return (
            f"Please decide what the digest lists on its page\n\nI could not tell: {why.rstrip('.')}.\n\n"
            f"Nothing was decided.\n\n{_last(page)}"
        )
    return (
        f"Which numbers do you decide, and how?\n\nI could not tell: {why.rstrip('.')}.\n\n"
        "Nothing was decided. Answer again with each decision by its numbers and nothing else, as in "
        "“approve 1, 3; reject 2: your reason”. Anything that is no decision goes to the agent."
    )


def too_late(action: Action) -> str:
    """A word on something that is settled."""
    if action.state is ActionState.PENDING:
        return (
            f"This was edited by {action.edited_by}: {about(action)}\n\nYour answer was to the arguments "
            "before that, and changed nothing. Answer the mail that shows the new ones, or open the inbox."
        )
    if action.state is ActionState.EXPIRED:
        why = "It expired: nobody decided in time. Nothing was changed."
        after_all = " Reopen it in the inbox to decide after all." if action.is_open else ""
        return f"Too late: {about(action)}\n\n{why}{after_all}"
    if action.decided_by is None:
        return f"This can no longer be decided: {about(action)}\n\nIt is {action.state}. Nothing was changed."
    return (
        f"Already {action.state}: {about(action)}\n\n{outcome(action)} before. Your answer changed nothing."
    )


def refused(why: str) -> str:
    """What was asked for is not possible."""
    return f"This was not done\n\n{why}"


def not_yours(waits_for: str) -> str:
    """Somebody else decides."""
    return f"This is not yours to decide; it waits for {waits_for}."


def too_large(subject: str) -> str:
    """What the agent reads in place of a mail that was left on the server."""
    return f"(A mail with the subject “{subject}” came, but it is larger than 25 MB, so nobody has read it.)"


def kept(*, waits: bool) -> str:
    """A message that another run takes."""
    if waits:
        when = "when the decision is made. To decide, answer the mail that asks, or use its link."
    else:
        when = "as soon as what is under way is done."
    return f"Your message is kept\n\nThe agent takes it up {when}"


def everything_stopped(by: str) -> str:
    """A message that came while everything is stopped."""
    return f"Your message is kept\n\nEverything is stopped by {by}. It starts after resume."


def headline_and_rest(text: str) -> tuple[str, str]:
    """A notice as it stands in a mail: its first line, and what follows."""
    headline, _, rest = text.partition("\n")
    return headline, rest.strip()
