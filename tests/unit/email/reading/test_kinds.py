"""Which mails are of programs, by what they say of themselves or by their words, and which are of people?"""

from __future__ import annotations

import base64

import pytest
from pizzabot.adapters.email.letters import Bounce, Envelope, LetterKind
from pizzabot.adapters.email.reading import robot_phrases

from ..mails import PASS, letter

AUTO, BOUNCE, LIST, HUMAN = LetterKind.AUTO, LetterKind.BOUNCE, LetterKind.LIST, LetterKind.HUMAN

# -- headers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        "Auto-Submitted: auto-replied",
        "Auto-Submitted: auto-generated (rejected)",
        "AUTO-SUBMITTED: Auto-Replied; owner-token=x",
        "Auto-Submitted: yes",
        "Auto-Submitted: no\r\nAuto-Submitted: auto-replied",
        "X-Autoreply: yes",
        "X-Auto-Reply: 1",
        "X-Autorespond: Re: your mail",
        "X-Auto-Response: on",
        "X-Mail-Autoreply: x",
        "X-POST-MessageClass: 9; Autoresponder",
        "Delivered-To: Autoresponder",
        "Precedence: bulk",
        "Precedence: Junk",
        "Precedence: auto_reply",
        "X-Precedence: bulk",
        "Preference: auto_reply",
        "Return-Path: <>",
        "X-OTRS-Loop: yes",
        "RT-Originator: maria@example.com",
        "X-JIRA-FingerPrint: 1",
        "List-Unsubscribe: <https://x.example>\r\nAuto-Submitted: auto-replied",
    ],
)
def test_what_a_program_says_of_itself_decides(header: str) -> None:
    assert letter(header, PASS).kind is AUTO


@pytest.mark.parametrize(
    "header",
    [
        "Auto-Submitted: no",
        "Auto-Submitted: No (a person)",
        "X-Auto-Response-Suppress: All",
        "X-Autoreply: no",
        "Precedence: first-class",
        "Return-Path: <maria.keller@example.com>",
        "X-Priority: 1",
        "Importance: high",
        "X-Mailer: Microsoft Outlook 16.0",
        "Feedback-ID: 1:2:3",
        "Reply-To: noreply@example.com",
        "Disposition-Notification-To: maria.keller@example.com",
    ],
)
def test_what_people_s_programs_say_makes_no_robot(header: str) -> None:
    assert letter(header, PASS).kind is HUMAN


@pytest.mark.parametrize(
    "author", ["noreply@x.example", "no-reply@x.example", "Do.Not.Reply@x.example", "notifications@x.example"]
)
def test_a_sender_that_takes_no_answers_is_a_program(author: str) -> None:
    assert letter(author=f"From: X <{author}>").kind is AUTO


@pytest.mark.parametrize(
    "author", ["reply@x.example", "noreen@x.example", "rootham@x.example", "auto@x.example"]
)
def test_a_name_that_only_resembles_one_is_a_person(author: str) -> None:
    assert letter(author=f"From: X <{author}>").kind is HUMAN


def test_the_null_sender_of_the_envelope_counts_more_than_return_path() -> None:
    assert letter(envelope=Envelope(sender="")).kind is AUTO
    assert letter("Return-Path: <>", envelope=Envelope(sender="maria@example.com")).kind is HUMAN


@pytest.mark.parametrize(
    "header",
    [
        "List-Id: Team <team.lists.example.org>",
        "List-ID: <finance.example.com>\r\nPrecedence: list",
        "List-Post: <mailto:team@lists.example.org>",
        "List-Unsubscribe: <mailto:leave@news.example>",
        "Precedence: list",
        "Sender: owner-team@lists.example.org\r\nPrecedence: bulk",
        "Return-Path: <team-bounces+maria=example.com@lists.example.org>",
        "Mailing-List: contact team-help@example.org; run by ezmlm",
        "X-Mailing-List: linux-kernel@vger.example",
        "X-BeenThere: team@lists.example.org",
        "X-Google-Group-Id: 998877",
        "X-Sympa-To: team@example.org",
        "List-Id: <repo.forge.example>\r\nAuto-Submitted: auto-generated",
        "Precedence: bulk\r\nList-Id: <announce.example.org>",
    ],
)
def test_a_copy_of_a_mailing_list_is_one(header: str) -> None:
    assert letter(header, PASS).kind is LIST


# -- absence notes without a header ------------------------------------------------------------------------

NOTES = {
    "en": ("Automatic reply: Approval needed", "I am out of the office."),
    "en 2": ("Out of Office: Approval needed", "I'm on vacation until Monday."),
    "en 3": ("Auto: Re: Approval needed", "I am currently out of the office with no access to email."),
    "de": ("Automatische Antwort: Approval needed", "Ich bin im Urlaub."),
    "de 2": ("Abwesend: Approval needed", "Ich bin bis Montag nicht im Büro."),
    "fr": ("Réponse automatique : Approval needed", "Je suis absent."),
    "fr 2": ("Absence du bureau Re: Approval needed", "Je suis en congés jusqu'au 9."),
    "es": ("Respuesta automática: Approval needed", "Estoy de vacaciones."),
    "it": ("Risposta automatica: Approval needed", "Sono in ferie."),
    "pt": ("Resposta automática: Approval needed", "Estou de férias."),
    "nl": ("Automatisch antwoord: Approval needed", "Ik ben op vakantie."),
    "pl": ("Odpowiedź automatyczna: Approval needed", "Jestem na urlopie."),
    "ru": ("Автоматический ответ: Approval needed", "Я в отпуске."),
    "ja": ("自動応答: Approval needed", "不在にしております。"),
    "ja 2": ("【自動返信】Re: Approval needed", "ありがとうございます。"),
    "zh": ("自动回复：Approval needed", "我在休假。"),
    "zh 2": ("自動回覆: Approval needed", "我正在休假。"),
    "ko": ("자동 회신: Approval needed", "부재중입니다."),
    "sv": ("Autosvar: Approval needed", "Jag är på semester."),
    "da": ("Automatisk svar: Approval needed", "Jeg holder ferie."),
    "no": ("Fraværsmelding: Approval needed", "Jeg er på ferie."),
    "fi": ("Automaattinen vastaus: Approval needed", "Olen lomalla."),
    "cs": ("Automatická odpověď: Approval needed", "Jsem na dovolené."),
    "tr": ("Otomatik Yanıt: Approval needed", "İzindeyim."),
    "notes": ("Maria Keller is out of the office", "I will be out of the office until 9 November."),
    "notes 2": ("AUTO: Maria Keller is out of the office (returning 9.11.)", "I am out of the office."),
    "with your": ("Automatische Antwort auf Ihre Nachricht", "Danke."),
    "brackets": ("[Auto-Reply] Re: Approval needed", "Thanks."),
    "capital ß": ("AUSSER HAUS: Freigabe", "Ich bin außer Haus."),
    "text": ("Re: Approval needed", "This is an automated response. Your mail was received."),
    "text en": (
        "Re: Approval needed",
        "Thank you for your email.\n\nI am out of the office until 9 November.\nIn urgent cases please "
        "contact Tom.",
    ),
    "text de": (
        "Re: Approval needed",
        "Ich bin bis 9.11. nicht im Büro.\nIn dringenden Fällen hilft Herr Fuchs.",
    ),
    "text fr": (
        "Re: Approval needed",
        "Bonjour,\n\nJe suis absent du bureau. En cas d'urgence, appelez Tom.",
    ),
    "text ja": (
        "Re: Approval needed",
        "いつもお世話になっております。\n休暇中のため、戻り次第ご連絡いたします。",
    ),
}


def encoded(subject: str) -> str:
    return f"Subject: =?utf-8?B?{base64.b64encode(subject.encode()).decode()}?="


@pytest.mark.parametrize("language", NOTES)
def test_an_absence_note_is_known_by_its_words(language: str) -> None:
    subject, text = NOTES[language]
    found = letter(encoded(subject), PASS, body=text)
    assert found.kind is AUTO, found.why


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        ("Re: Automatic reply: Approval needed", "So who can approve it then?"),
        ("AW: Abwesenheitsnotiz: Freigabe", "Bitte trotzdem freigeben."),
        ("Out of office next week", "Please put this into the calendar."),
        ("Automatic reply texts", "Please write one for me."),
        ("Re: Tom is out of the office", "I am out of the office, too. Ask Ann."),
        ("Urlaub", "Bitte buche mir einen Flug."),
        ("Auto: Reparatur", "Bitte einen Termin suchen."),
        ("Re: Approval needed", "Approved. I'm on holiday until Monday, in urgent cases please contact Tom."),
        ("Re: Approval needed", "Approve, I'm on vacation until Monday, no access to email."),
        ("Re: Approval needed", "I'm on vacation, but yes: approve."),
        ("Re: Approval needed", "Reject: I am out of the office until Monday, please contact Tom."),
        (
            "Re: Approval needed",
            "No.\n\nOn Tue, Nov 3, 2026 Tom wrote:\n> I am out of the office. Please contact Ann, it "
            "is urgent.",
        ),
        ("Re: 不在", "承認します。"),
    ],
)
def test_people_who_write_of_absence_are_people(subject: str, text: str) -> None:
    found = letter(encoded(subject), PASS, body=text)
    assert found.kind is HUMAN, found.why


# -- delivery reports --------------------------------------------------------------------------------------

RETURNED = "\n\nFrom: ledger@approvals.example.net\nSubject: [Action] pay_invoice\n\nAnswer APPROVE"
PLAIN = {
    "qmail": (
        "From: MAILER-DAEMON@mx.example.com",
        "failure notice",
        "Hi. This is the qmail-send program at mx.example.com.\nI'm afraid I wasn't able to deliver "
        "your message "
        "to the following addresses.\nThis is a permanent error; I've given up. Sorry it didn't work out.\n\n"
        "<maria@example.com>:\n192.0.2.1 does not like recipient.\n550 5.1.1 No such user.\n\n"
        "--- Below this line is a copy of the message." + RETURNED,
        Bounce("maria@example.com", "failed", "5.1.1", ""),
    ),
    "exim": (
        "From: Mail Delivery System <Mailer-Daemon@mx.example.com>",
        "Mail delivery failed: returning message to sender",
        "This message was created automatically by mail delivery software.\n\nA message that you sent "
        "could not "
        "be delivered to one or more of its\nrecipients. This is a permanent error. The following "
        "address(es) "
        "failed:\n\n  maria@example.com\n    host mx.example.com [192.0.2.1]: 550 unknown user\n\n"
        "------ This is a copy of the message, including all the headers. ------" + RETURNED,
        Bounce("maria@example.com", "failed", None, ""),
    ),
    "exim delayed": (
        "From: Mail Delivery System <Mailer-Daemon@mx.example.com>",
        "Warning: message 1kX delayed 24 hours",
        "This message was created automatically by mail delivery software.\nA message that you sent "
        "has not yet "
        "been delivered to one or more of its\nrecipients after more than 24 hours.\n\n  "
        "maria@example.com\n\n"
        "No action is required on your part. Delivery attempts will continue.",
        Bounce("maria@example.com", "delayed", None, ""),
    ),
    "sendmail": (
        "From: Mail Delivery Subsystem <MAILER-DAEMON@mx.example.com>",
        "Returned mail: see transcript for details",
        "The original message was received at Tue, 3 Nov 2026 09:14:10 +0100\n\n"
        "   ----- The following addresses had permanent fatal errors -----\n<maria@example.com>\n"
        "    (reason: 550 5.1.1 User unknown)",
        Bounce("maria@example.com", "failed", "5.1.1", ""),
    ),
    "sendmail delayed": (
        "From: Mail Delivery Subsystem <MAILER-DAEMON@mx.example.com>",
        "Warning: could not send message for past 4 hours",
        "    **********************************************\n    **      THIS IS A WARNING MESSAGE "
        "ONLY      **\n"
        "    **  YOU DO NOT NEED TO RESEND YOUR MESSAGE  **\n\n"
        "   ----- The following addresses had transient non-fatal errors -----\n<maria@example.com>",
        Bounce("maria@example.com", "delayed", None, ""),
    ),
    "exchange": (
        "From: Microsoft Outlook <MicrosoftExchange329e71ec88ae4615bbc36ab6ce41109e@example.com>",
        "Undeliverable: [Action] pay_invoice",
        "Delivery has failed to these recipients or groups:\n\nmaria@example.com\nThe email address "
        "you entered "
        "couldn't be found.\n\nRemote Server returned '550 5.1.10 RESOLVER.ADR.RecipientNotFound'",
        Bounce("maria@example.com", "failed", "5.1.10", ""),
    ),
    "exchange de": (
        "From: postmaster@example.com",
        "Unzustellbar: [Action] pay_invoice",
        "Fehler bei der Nachrichtenzustellung an folgende Empfänger oder "
        "Gruppen:\n\nmaria@example.com\n550 5.1.1",
        Bounce("maria@example.com", "failed", "5.1.1", ""),
    ),
    "gmail": (
        "From: Mail Delivery Subsystem <mailer-daemon@googlemail.example>",
        "Delivery Status Notification (Failure)",
        "** Address not found **\n\nYour message wasn't delivered to maria@example.com because the address "
        "couldn't be found.\n\n550 5.1.1 The email account does not exist.",
        Bounce("maria@example.com", "failed", "5.1.1", ""),
    ),
    "domino": (
        "From: postmaster@example.com",
        "DELIVERY FAILURE: User maria (maria@example.com) not listed in Domino Directory",
        "Your message\n\n  Subject: [Action] pay_invoice\n\nwas not delivered to:\n\n  maria@example.com\n\n"
        "because:\n\n  User not listed in Domino Directory",
        Bounce("maria@example.com", "failed", None, ""),
    ),
    "no domain": (
        "From: MAILER-DAEMON (Mail Delivery System)",
        "Undelivered Mail Returned to Sender",
        "This is the mail system at host mx.example.com.\n\n<maria@example.com>: unknown user",
        Bounce("maria@example.com", "failed", None, ""),
    ),
    "empty from": (
        "From: <>\r\nReturn-Path: <>",
        "Mail System Error - Returned Mail",
        "Your message to maria@example.com could not be delivered.",
        Bounce("maria@example.com", "failed", None, ""),
    ),
}  # fmt: skip


@pytest.mark.parametrize("server", PLAIN)
def test_a_delivery_report_in_plain_text_is_read(server: str) -> None:
    author, subject, text, expected = PLAIN[server]
    found = letter(f"Subject: {subject}", author=author, body=text)
    assert found.kind is BOUNCE, found.why
    assert found.bounce is not None
    assert (found.bounce.recipient, found.bounce.action, found.bounce.status) == (
        expected.recipient,
        expected.action,
        expected.status,
    )
    assert "APPROVE" not in found.bounce.said


def test_a_header_with_the_failed_address_makes_a_report() -> None:
    found = letter("X-Failed-Recipients: maria@example.com", body="Whatever.")
    assert found.kind is BOUNCE
    assert found.bounce == Bounce("maria@example.com", "failed", None, "Whatever.")


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        (
            "Fwd: Undelivered Mail Returned to Sender",
            "What does this mean?\n\nThis is the mail system at host x.",
        ),
        ("Undeliverable parcels", "Please list them."),
        ("Delivery failed again", "The supplier did not come. Please write to him."),
        ("failure notice", "Please write a failure notice to the tenant."),
    ],
)
def test_people_who_write_of_deliveries_are_people(subject: str, text: str) -> None:
    assert letter(f"Subject: {subject}", PASS, body=text).kind is HUMAN


def report(fields: str, kind: str = "delivery-status", part: str = "message/delivery-status") -> LetterKind:
    return reported(fields, kind, part)[0]


def reported(fields: str, kind: str, part: str) -> tuple[LetterKind, Bounce | None]:
    found = letter(
        f"Content-Type: multipart/report; report-type={kind}; boundary=b",
        "Subject: Report",
        author="From: postmaster@example.com",
        body=f"--b\n\nWords.\n--b\nContent-Type: {part}\n\n{fields}\n--b--\n",
    )
    return found.kind, found.bounce


STATUS = "delivery-status", "message/delivery-status"


def test_the_gravest_action_of_a_report_counts() -> None:
    fields = (
        "Reporting-MTA: dns; mx.example.com\n\n"
        "Final-Recipient: rfc822; ann@example.com\nAction: delivered\nStatus: 2.0.0\n\n"
        "Original-Recipient: rfc822;Maria@Example.com\nFinal-Recipient: rfc822; m.k@inner.example\n"
        "Action: FAILED (bounced)\nStatus: 5.1.1 (bad mailbox)\nDiagnostic-Code: smtp; 550 5.1.1\n  "
        "unknown user\n"
    )
    assert reported(fields, *STATUS) == (
        BOUNCE,
        Bounce("maria@example.com", "failed", "5.1.1", "550 5.1.1 unknown user"),
    )


@pytest.mark.parametrize("action", ["delivered", "relayed", "expanded"])
def test_a_report_of_success_is_a_receipt(action: str) -> None:
    kind, bounce = reported(
        f"Final-Recipient: rfc822; m@example.com\nAction: {action}\nStatus: 2.0.0", *STATUS
    )
    assert kind is LetterKind.RECEIPT
    assert bounce == Bounce("m@example.com", action, "2.0.0", "")


def test_a_delayed_report_is_a_bounce_that_did_not_fail() -> None:
    kind, bounce = reported("Final-Recipient: rfc822; m@example.com\nAction: delayed\nStatus: 4.4.1", *STATUS)
    assert (kind, bounce) == (BOUNCE, Bounce("m@example.com", "delayed", "4.4.1", ""))


def test_a_report_in_base64_or_with_global_addresses_is_read() -> None:
    fields = base64.b64encode(
        b"Final-Recipient: rfc822; m@example.com\nAction: failed\nStatus: 5.0.0\n"
    ).decode()
    part = "message/delivery-status\nContent-Transfer-Encoding: base64"
    assert reported(fields, "delivery-status", part)[1] == Bounce("m@example.com", "failed", "5.0.0", "")
    fields = "Final-Recipient: utf-8; m@example.com\nAction: failed\nStatus: 5.0.0"
    assert reported(fields, "global-delivery-status", "message/global-delivery-status")[0] is BOUNCE


def test_a_report_without_fields_is_a_bounce() -> None:
    assert reported("", *STATUS)[0] is BOUNCE


def test_an_attached_report_is_no_report() -> None:
    inner = "Content-Type: multipart/report; report-type=delivery-status; boundary=c\n\n--c\n"
    inner += "Content-Type: message/delivery-status\n\nAction: failed\n--c--\n"
    found = letter(
        "Content-Type: multipart/mixed; boundary=b",
        PASS,
        body=f"--b\n\nWhat is this?\n--b\nContent-Type: message/rfc822\n\n{inner}\n--b--\n",
    )
    assert found.kind is HUMAN


# -- receipts, calendars, other reports --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("disposition-notification", "message/disposition-notification"),
        ("global-disposition-notification", "message/global-disposition-notification"),
        ("disposition-notification", "text/plain"),
    ],
)
def test_a_disposition_notification_is_a_receipt(kind: str, part: str) -> None:
    assert report("Disposition: manual-action/MDN-sent-manually; displayed", kind, part) is LetterKind.RECEIPT


def test_a_report_of_another_kind_is_of_a_program() -> None:
    assert report("Feedback-Type: abuse", "feedback-report", "message/feedback-report") is AUTO


def calendar(method: str, parameter: str = "") -> LetterKind:
    event = f"BEGIN:VCALENDAR\n{method}VERSION:2.0\nEND:VCALENDAR\n"
    kind: LetterKind = letter(
        "Content-Type: multipart/alternative; boundary=b",
        PASS,
        body=f"--b\n\nSee you.\n--b\nContent-Type: text/calendar{parameter}\n\n{event}\n--b--\n",
    ).kind
    return kind


@pytest.mark.parametrize("method", ["REPLY", "reply", "COUNTER", "DECLINECOUNTER", "REFRESH"])
def test_an_answer_to_an_invitation_is_known_by_its_method(method: str) -> None:
    assert calendar(f"METHOD:{method}\n") is LetterKind.CALENDAR
    assert calendar("", f"; method={method}") is LetterKind.CALENDAR


@pytest.mark.parametrize("method", ["METHOD:REQUEST\n", "METHOD:PUBLISH\n", ""])
def test_an_invitation_is_a_mail_like_any_other(method: str) -> None:
    assert calendar(method) is HUMAN


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        (
            "Read: [Action] pay_invoice",
            "Your message\n\n  To: Maria\n\nwas read on Tuesday, 3 November 2026 09:20.",
        ),
        ("Gelesen: [Action] pay_invoice", "Ihre Nachricht wurde gelesen am Dienstag."),
    ],
)
def test_a_receipt_without_its_structure_is_known_by_its_words(subject: str, text: str) -> None:
    assert letter(f"Subject: {subject}", PASS, body=text).kind is LetterKind.RECEIPT


def test_read_as_a_wish_is_no_receipt() -> None:
    assert letter("Subject: Read: the new contract", PASS, body="Please read it for me.").kind is HUMAN


def test_a_note_in_html_alone_is_known_by_its_words() -> None:
    note = "<style>p {}</style><p>Ich bin bis 9.11. <b>nicht</b>&nbsp;im B&uuml;ro.</p>"
    headers = ("Subject: Abwesend", "Content-Type: text/html", PASS)
    assert letter(*headers, body=note).kind is AUTO
    assert letter(*headers, body="<!-- nicht im büro --><p>Freigeben</p>").kind is HUMAN


def test_every_phrase_is_written_as_it_is_compared() -> None:
    lists = [value for value in vars(robot_phrases).values() if isinstance(value, tuple)]
    assert len(lists) == 11
    for words in lists:
        assert list(words) == list(map(robot_phrases.folded, words))
        assert len(set(words)) == len(words)


def test_a_robot_without_a_from_is_a_robot() -> None:
    assert letter("Auto-Submitted: auto-replied", author="").kind is AUTO
