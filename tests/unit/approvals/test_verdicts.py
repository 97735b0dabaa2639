"""Words that decide: a table of what people write, and what must hold for whatever they write."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pizzabot.approvals import verdicts, vocabulary
from pizzabot.approvals.grammar import grammar
from pizzabot.approvals.verdicts import ENGLISH, Words, read
from pizzabot.messages import Verdict

GERMAN = Words(
    approve=frozenset({"Freigegeben", "genehmigt"}), reject=frozenset({"abgelehnt", "nicht genehmigt"})
)
WORLD = Words(
    approve=frozenset({"承認します", "Zatwierdzam", "j'approuve", "согласовано", "onaylıyorum"}),
    reject=frozenset({"却下します", "nie zatwierdzam", "je refuse"}),
)

APPROVALS = """
approve | Approve | APPROVE | approve. | Approve! | Approve!!! | approved | Approved. | I approve
I approve. | i approve this | I approve it. | Approve it | approve this | Approve this request
please approve | Please approve. | Approve, please | approve please | Approve, thanks
Approved, thank you | Approved. Thank you! | Approve. Thanks! | Thanks, approved | Great, approved!
Ok, approved | ok approve | Okay, I approve | Sure, approve it | LGTM, approved | Looks good. Approved.
It is approved | It's approved | It’s approved. | This is approved | Yes | yes | YES! | yes. | Yes please
Yes, please. | Yes, thanks | yes, approve | Yes, I approve. | Yes. Approved. | Yes, go ahead | go ahead
Go ahead! | Please go ahead | go ahead with it | Please go ahead with this one | No problem, go ahead
No objections, approved | 👍 | 👍🏽 | 👍️ | 👍 thanks | ✅ | ✅️ | Approved 👍 | Approve ✅ | *Approve*
**Approved** | _Approve_ | Approve, cheers | Approve, danke | Approve. Merci ! | Approve 🙏 | Approved 🙂
"""
REJECTIONS = """
reject | Reject. | REJECTED | I reject | I reject this | Reject it. | Please reject
Please reject it, thanks | Decline | declined | Denied. | deny | Do not approve | do not approve this
Don't approve | Don’t approve it. | dont approve | Not approved | not approved. | I do not approve
I don't approve | I don’t approve this. | This is not approved | It is not approved. | No | no. | NO!
No, thanks | No, thank you. | No, grazie | no thanks | 👎 | ❌ | Wait, stop. Reject it. | Sorry, reject
No, reject it. | No. Reject. | Stop, reject this! | Hold on, reject it | *Reject*
"""
# Whatever else they are, these never decide.
UNCLEAR = """
Approve? | approved?? | Approve it? | Approve !? | Reject? | Yes? | No? | approve？ | approve؟ | ¿approve?
approve if cheaper | Approve if it is below 100 | approve unless Tom objects
Approve once Tom has seen it | approve after Friday | approve tomorrow | Approve, but change the amount
approve but only 40 | Approved with changes | Approve with a different amount | Approve - just kidding
Approve. Just kidding. | Approve... | Approve… | Approve, wait | Approve. Wait. | Approve. No.
Approve, actually no | Approve, not | Approve NOT | approve - not | Approve/Reject | Approve or reject
approve reject | approve all | approve A2 | approve both | Approve 1 | Approve half of it
Approve partially | Approve for now | A1: approve | I would approve but | I would approve
I might approve | I could approve that | I can approve | I'd approve this | I'll approve later
I will approve it | I think I approve | maybe approve | probably approved | perhaps yes
conditionally approved | almost approved | Should be approved | needs approval | to approve | approving
approval | Approve: | Approve: no | approve=false | Approve; | approve,no | "Approve" | 'approve'
“Approve” | (approve) | [approve] | [x] approve | > approve | `approve` | - approve | 1. approve | Yes but
Yes, but change it | yes and no | yes no | Yes, reject it | Yes, do not approve | no, approve
No. Approve. | No, yes | no yes | Yes if cheaper | yes? no | yes maybe | yes... | Yes, Tom | yes to what?
Yes, I think so | ok | OK | Okay. | ok thanks | Ok, thank you! | sure | Sure thing | fine | Fine by me
good | Sounds good | looks good | LGTM | yep | yeah | yup | ya | y | k | agreed | Accept | accepted
confirmed | proceed | Do it | go | Go for it | +1 | do not reject | don't reject | not rejected
Reject or not | reject if over 100 | Reject unless it is cheaper | Rejected? Why
reject, no wait, approve | Reject. Approve. | Reject it. Actually approve it | reject - kidding
Reject, never mind | maybe reject | I would reject | I might reject it | no worries | No problem
no objection | no idea | no need | No rush. | no, wait | No, it's fine | No, that is ok | No - go ahead
No, just do it | no doubt | nope | nah | not yet | Not now | not sure | never mind | nevermind | cancel
stop | Stop! | wait | hold on | abort | undo | forget it | never | not really | I can't approve this
Cannot approve | I won't approve this | can not approve | please approve this yourself
Please approve the other one | let's approve | Aprove | Approv | aproved | appove | Approvee | rejct
Reject3d | Аpprove | аррrоve | Aррrove | App rove | A p p r o v e | ap-prove | Ａｐｐｒｏｖｅ | 𝐀𝐩𝐩𝐫𝐨𝐯𝐞
⒜pprove | apprové | Yeѕ | ΝΟ | Genehmigt | Freigegeben | freigegeben! | Abgelehnt | 承認します。 | 却下
D'accord | Oui | Ja | Nein | Nein, danke | да | нет | Zgoda | sí | de acuerdo | Approuvé | Aprobado
approvato | 同意 | 好 | 승인 | موافق | מאשר | Hyväksytty | Schváleno | Onaylandı
👍 Maria Keller reacted via Gmail | Maria reacted to your message: 👍 | 👍👎 | 👍 or 👎 | 👍?
👍 but cheaper | 👌 | 🆗 | Tom will approve | Approved by Tom | See below | amount: 95 | it was done?
retry? | thanks | Thank you! | Hello | Hi Ledger, | Please | 🙂 | ... | - | ? | approved approved not
Answer: | Respond: | respond: approve | Answer: reject it | ok, and thanks, but approve
approve\u200b the\u200brest | ap\u200bprove | approve\u202ereject | No, approved | Reject\u202e
Approve A | approve it not | approve nothing | reject nothing | the approve button | Rejected by Tom
reject the other one
"""
MESSAGES = """
Why do we pay 120? Last month it was 100. | Is this the one we talked about on Monday?
can you show me the invoice first? | Is it urgent? | What is this? | Какая сумма была в прошлый раз?
C’est pour quel service ? | لماذا المبلغ 120؟ | 为什么这么多？ | Tom will approve it tomorrow.
This was approved by mistake last time, please explain. | Wieso höher als früher?
Please send me the invoice of last month so that I can check it.
Could you split the payment into two parts of 60 each?
The vendor changed its bank account last week and nobody told us. | Who approved this the last time?
What happens if I say yes?
"""


def _phrases(table: str) -> list[str]:
    found = [p.strip() for line in table.strip().splitlines() for p in line.split(" | ")]
    return [p.replace(r"\u200b", "\u200b").replace(r"\u202e", "\u202e") for p in found]


@pytest.mark.parametrize("text", _phrases(APPROVALS))
def test_a_clear_word_approves(text: str) -> None:
    assert read(text) == verdicts.Reading(Verdict.APPROVE)


@pytest.mark.parametrize("text", _phrases(REJECTIONS))
def test_a_clear_word_rejects(text: str) -> None:
    assert read(text) == verdicts.Reading(Verdict.REJECT)


@pytest.mark.parametrize("text", _phrases(UNCLEAR))
def test_what_only_sounds_like_a_decision_is_unclear(text: str) -> None:
    found = read(text)
    assert found.verdict is None
    assert found.unclear


@pytest.mark.parametrize("text", _phrases(MESSAGES))
def test_anything_else_is_a_message(text: str) -> None:
    assert read(text) == verdicts.MESSAGE


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Reject: too expensive", "too expensive"),
        ("Reject - too expensive", "too expensive"),
        ("reject, too expensive", "too expensive"),
        ("Rejected. Too expensive.", "Too expensive."),
        ("Reject – wrong vendor", "wrong vendor"),
        ("Reject too expensive", "too expensive"),
        ("Reject because it is late", "because it is late"),
        ("Reject it: wrong vendor", "wrong vendor"),
        ("No, too expensive", "too expensive"),
        ("no: wrong vendor", "wrong vendor"),
        ("Not approved: no budget left", "no budget left"),
        ("Do not approve, the vendor is wrong", "the vendor is wrong"),
        ("👎 way too much", "way too much"),
        ("Wait, stop. Reject it. Wrong vendor", "Wrong vendor"),
        (
            "Reject\n\nThe supplier changed its bank account\nand nobody checked it.",
            "The supplier changed its bank account\nand nobody checked it.",
        ),
        ("Reject: why was this approved without me?", "why was this approved without me?"),
        ("Reject: we approved the other one", "we approved the other one"),
        ("Hi,\n\nReject: wrong vendor\n\nKind regards\nMaria Keller", "wrong vendor"),
        ("Reject：太贵", "太贵"),
    ],
)
def test_a_rejection_gives_its_reason(text: str, reason: str) -> None:
    assert read(text) == verdicts.Reading(Verdict.REJECT, reason=reason)


@pytest.mark.parametrize(
    "text",
    [
        "Respond: use the blue one",
        "Answer:  use the blue one",
        "response:\nuse the blue one\n\nThanks,\nMaria",
        "REPLY: use the blue one",
    ],
)
def test_a_response_stands_behind_its_word_and_a_colon(text: str) -> None:
    assert read(text) == verdicts.Reading(Verdict.RESPOND, response="use the blue one")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        *((t, Verdict.RETRY) for t in ("Retry", "retry.", "Please retry", "Try again", "try again, please")),
        *((t, Verdict.DONE) for t in ("It was done", "Done.", "It is done, thanks", "it happened")),
        *((t, Verdict.FAILED) for t in ("It failed", "Failed.", "it did not happen", "It was not done.")),
    ],
)
def test_the_outcome_of_an_uncertain_call_can_be_said(text: str, verdict: Verdict) -> None:
    assert read(text) == verdicts.Reading(verdict)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Approve. Also, what time is it?", "Also, what time is it?"),
        ("Approved!\n\nBy the way, who is the vendor?", "By the way, who is the vendor?"),
    ],
)
def test_an_unrelated_question_goes_on_beside_the_approval(text: str, rest: str) -> None:
    assert read(text) == verdicts.Reading(Verdict.APPROVE, rest=rest)


@pytest.mark.parametrize(
    "text",
    [
        "Approve. Also, change the amount",
        "Approve. Also, not before Friday",
        "Approve. Also reject the other one",
        "Approve. Why so much?",
        "Approve. Also, is it the right amount if Tom pays?",
        "Approve. Also, make it 50",
        "Approve. Also, the vendor should be another one.",
        "Approve. By the way, the amount is wrong.",
        "Approve. Also, could you lower it?",
        "Approve. Also, how about 50?",
        "Approve. Also, what about paying less?",
        "Approve. Also, what is the weather like? Pay half of it.",
        "Approve. Also, nur die Hälfte bitte",
        "Approve. Also, pas aujourd'hui",
        "Approve. Separately, I take that back",
        "Also, approve",
    ],
)
def test_a_related_remark_makes_an_approval_unclear(text: str) -> None:
    assert read(text).unclear


@pytest.mark.parametrize(
    "around",
    [
        "Hi,\n\n{}\n\nKind regards\nMaria Keller",
        "Hello Ledger,\n{}\nThanks,\nMaria",
        "{}\n\nMit freundlichen Grüßen\nJörg Weiß",
        "{}\n\nBest,\nMaria Keller\nHead of Purchasing, Keller GmbH\n+49 30 555 "
        "0100\nmaria@example.com\nwww.example.com",
        "Bonjour,\n\n{}\n\nCordialement,\nHélène",
        "{}\n\nС уважением,\nИрина",
        "{}\r\n\r\nRegards\r\n",
        "\u200f{}\u200e",
        "\n\n \u00a0{}\u00a0\n",
    ],
)
def test_greetings_closings_and_signatures_are_courtesy(around: str) -> None:
    assert read(around.format("Approve")).verdict is Verdict.APPROVE
    assert read(around.format("Approve?")).verdict is None
    assert read(around.format("Reject")).verdict is Verdict.REJECT
    assert read(around.format("What is this?")) == verdicts.MESSAGE
    assert read(around.format("")).why == verdicts.EMPTY


@pytest.mark.parametrize(
    "below",
    [
        "Regards\nbut only on Friday",
        "Thanks,\nTomorrow",
        "Regards\nNot before Friday",
        "Thanks\nOnly half",
        "Best\nUnless Tom disagrees",
        "Regards\nWhat about Tom?",
        "Thanks\nHold",
        "Kind regards\n" + "\n".join("Abc" for _ in range(12)),
    ],
)
def test_words_on_the_matter_are_no_signature(below: str) -> None:
    assert read(f"Approve\n\n{below}").verdict is None


@pytest.mark.parametrize(
    "said",
    [
        "Hi, do not\napprove",
        "Hello, please don't.\nApprove",
        "Hey, not so fast! Approve",
        "Hi Tom, no\nApprove",
        "Dear Lord, no! Approve",
        "Hey, only half\nApprove",
        "Hi there, never mind\nApprove",
        "HI, DO NOT\nAPPROVE",
        "Hallo, bitte nicht\nApprove",
        "HALLO, BITTE NICHT\nAPPROVE",
        "Hola, Todavía No\nApprove",
        "Ciao, Niente\nApprove",
        "Bonjour, pas encore\nApprove",
        "Привет, Не Надо\nApprove",
        "Merhaba Hayır\nApprove",
        "Hei, Ei\nApprove",
        "Hej, Inte\nApprove",
        "你好，不要。Approve",
        "안녕하세요 아니\nApprove",
        "こんにちは、だめ\nApprove",
        "שלום, לא\nApprove",
        "مرحبا، لا\nApprove",
        "Approve\nHello don't ever",
        "Hello Wrong Amount\nApprove",
    ],
)
def test_a_word_against_it_is_no_part_of_a_greeting(said: str) -> None:
    assert read(said).verdict is None


@pytest.mark.parametrize(
    "said", ["Hi Ledger. {}", "Hello Ledger Agent!\n{}", "hi there\n{}", "你好，张经理\n{}", "Hi,\n{}"]
)
def test_a_greeting_may_name_somebody(said: str) -> None:
    assert read(said.format("Approve")).verdict is Verdict.APPROVE


@pytest.mark.parametrize(
    "below",
    [
        "Danke\nAber Nur 50 Euro",
        "Danke\nNicht Heute",
        "Merci\nMais seulement 50",
        "Grazie\nMa Solo 50",
        "Gracias\nPero Solo Mañana",
        "Obrigado\nMas Não Hoje",
        "Bedankt\nMaar Niet Alles",
        "Tack\nMen Inte Idag",
        "Dziękuję\nAle Tylko Połowę",
        "Спасибо\nНо Не Сегодня",
        "Teşekkürler\nAma Sadece Yarısı",
        "Ευχαριστώ\nΑλλά Μόνο Αύριο",
        "תודה\nאבל רק מחר",
        "شكرا\nلكن غدا",
        "谢谢\n但是只能50",
        "ありがとう\nただし50まで",
        "감사합니다\n하지만 내일",
        "Thanks\n95",
        "Thanks\n50 EUR",
        "Thanks\nPay €50",
        "Thanks\nReduce to 50",
        "Thanks\nWrong Vendor",
        "Thanks\nI Disagree",
        "Thanks\nWithout the note",
        "Thanks,\nMaria\nP.S. Pay Tom",
        "Thanks,\nMaria\nKeller disagrees",
    ],
)
def test_what_changes_an_approval_is_no_signature_in_any_language(below: str) -> None:
    for names in ((), ("Maria Keller",)):
        assert read(f"Approve\n\n{below}", names=names).verdict is None


@pytest.mark.parametrize("line", ["Bad Idea", "Other Vendor", "ACME Limited", "Tom Miller"])
def test_a_signature_begins_with_the_name_of_its_author(line: str) -> None:
    assert read(f"Approve\n\nThanks\n{line}", names=("Maria Keller",)).verdict is None
    for name in ("Maria", "M. Keller", "MK", "M.K.", "M"):
        assert read(f"Approve\n\nThanks,\n{name}", names=("Maria Keller",)).verdict is Verdict.APPROVE, name


def test_only_the_authors_own_name_may_stand_alone() -> None:
    names = ("Maria Keller", "maria")
    for text in (
        "Approve\n\nMaria",
        "Approve\nMaria Keller",
        "Approve\n/Maria",
        "Approve, thanks, Maria",
        "approve\nthanks\nmaria",
    ):
        assert read(text, names=names).verdict is Verdict.APPROVE, text
        assert read(text).verdict is None or "thanks" in text, text
    for text in ("Approve\nTomorrow", "Approve Maria?", "Approve\nTom", "Maria"):
        assert read(text, names=names).verdict is None, text
    assert read("Approve\nNot", names=("Not Approve", "No")).verdict is None


def test_more_words_come_by_configuration() -> None:
    for text in ("Freigegeben", "freigegeben.", "Genehmigt!", "Genehmigt, danke", "Ok, genehmigt"):
        assert read(text, GERMAN).verdict is Verdict.APPROVE, text
        assert read(text, ENGLISH).unclear, text
    for text in ("Abgelehnt: zu teuer", "Nicht genehmigt, zu teuer"):
        assert read(text, GERMAN) == verdicts.Reading(Verdict.REJECT, reason="zu teuer"), text
    for text in (
        "Genehmigt?",
        "nicht freigegeben",
        "Genehmigt, aber nur 40",
        "ungenehmigt",
        "Genehmigt. Abgelehnt.",
    ):
        assert read(text, GERMAN).verdict is None, text
    for text in ("承認します。", "zatwierdzam", "J’approuve.", "Согласовано", "Onaylıyorum"):
        assert read(text, WORLD).verdict is Verdict.APPROVE, text
    for text, reason in (
        ("却下します。高すぎます", "高すぎます"),
        ("Nie zatwierdzam, za drogo", "za drogo"),
        ("Je refuse : trop cher", "trop cher"),
    ):
        assert read(text, WORLD) == verdicts.Reading(Verdict.REJECT, reason=reason), text
    assert read("承認しますか？", WORLD).verdict is None


def test_a_reason_that_cannot_be_stored_is_unclear() -> None:
    assert read("Reject: " + "x" * 20_000).why == verdicts.TOO_LONG


# -- whatever they write ---------------------------------------------------------------------------------

_APPROVE_WORD = re.compile(r"approve|yes|go ahead|👍|✅", re.IGNORECASE)
_ALL = _phrases(APPROVALS) + _phrases(REJECTIONS) + _phrases(UNCLEAR) + _phrases(MESSAGES)
_TEXT = st.lists(
    st.sampled_from(
        [
            *_ALL,
            "\n",
            " ",
            ". ",
            ", ",
            "? ",
            "not",
            "but",
            "if",
            "Approve",
            "Reject",
            "yes",
            "no",
            "\n\n",
            "Thanks",
            "İ",
            "\x00",
            "\ud800",
        ]
    )
    | st.text(max_size=6),
    max_size=6,
).map("".join)


@settings(max_examples=500, deadline=None)
@given(_TEXT)
def test_nothing_raises_and_nothing_approves_without_a_word_for_it(text: str) -> None:
    found = read(text, GERMAN, names=("Maria Keller",))
    if found.verdict is Verdict.APPROVE and not re.search("freigegeben|genehmigt", text, re.IGNORECASE):
        assert _APPROVE_WORD.search(text)
    assert not (found.unclear and found.verdict)
    assert len(found.reason) <= len(text) + 1


_TAKES_BACK = st.sampled_from(
    [
        *(
            "not",
            "don't",
            "no",
            "never",
            "but",
            "if",
            "unless",
            "wait",
            "stop",
            "only",
            "reject",
            "maybe",
            "?",
            "tomorrow",
        ),
        *(
            "cancel",
            "kidding",
            "I reject",
            "do not",
            "if Tom agrees",
            "not yet",
            "why?",
            "hold",
            "Abgelehnt",
            "half",
            "…",
        ),
    ]
)


@settings(max_examples=500, deadline=None)
@given(
    st.sampled_from([t for t in _phrases(APPROVALS) if not t.lower().startswith("no ")]),
    _TAKES_BACK,
    st.sampled_from([" ", ", ", ". ", "\n", "\n\n", " - ", "! "]),
    st.booleans(),
)
@example("Yes", "no", ", ", True)
def test_an_approval_with_anything_that_takes_it_back_never_approves(
    approval: str, other: str, between: str, before: bool
) -> None:
    assume(not (before and other in ("?", "…", "why?")))
    text = f"{other}{between}{approval}" if before else f"{approval}{between}{other}"
    assert read(text, GERMAN).verdict is not Verdict.APPROVE


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(_phrases(APPROVALS)),
    st.text(alphabet="abcdefghijklmnopqrstuvwxyzäöü ", min_size=3, max_size=30),
)
def test_an_approval_with_unknown_words_never_approves(approval: str, words: str) -> None:
    patterns = grammar(ENGLISH)
    known = {w for p in _ALL for w in re.findall(r"\w+", p.lower())}
    assume(any(w not in known for w in words.split()))
    assume(not patterns.courtesy.fullmatch(" ".join(words.split())))
    assume(not vocabulary.CLOSING.fullmatch(" ".join(words.split())))  # "kr" ends a mail, too
    assert read(f"{approval} {words}").verdict is not Verdict.APPROVE
    assert read(f"{approval}\n{words}").verdict is not Verdict.APPROVE


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["approve", "yes", "approved"]), st.data())
def test_a_look_alike_letter_never_decides(word: str, data: st.DataObject) -> None:
    alike = {
        "a": "аɑａ𝐚",
        "p": "рｐ",
        "r": "гｒ",
        "o": "оο０0",
        "v": "ѵｖν",
        "e": "еｅé",
        "d": "ԁｄ",
        "y": "уｙ",
        "s": "ѕｓſ",
    }
    at = data.draw(st.integers(0, len(word) - 1))
    other = data.draw(st.sampled_from(alike[word[at]]))
    assert read(word[:at] + other + word[at + 1 :]).verdict is None


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["approve", "approved", "reject", "yes"]), st.data())
def test_an_unseen_character_inside_a_word_never_decides(word: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(word) - 1))
    unseen = data.draw(st.sampled_from("\u200b\u200d\u00ad\u2060\u202e\u200e\ufeff\x00\u0301"))
    assert read(word[:at] + unseen + word[at:]).verdict is None


@pytest.mark.parametrize(
    "text",
    [
        "no " * 50000,
        "Thanks\n" * 50000,
        "wait, " * 50000,
        "approve " * 50000,
        "*" * 200000,
        "?" * 200000,
        "reject\n" * 50000,
        "Reject: " + "." * 200000,
        "approve" + " " * 200000 + "x",
        "Kind regards\n" + "A\n" * 100000,
        "👍" * 50000,
    ],
)
def test_no_text_takes_long(text: str) -> None:
    began = time.thread_time()
    read(text, WORLD, names=("Maria Keller",))
    assert time.thread_time() - began < 1  # second, of this thread's own work
