"""Own text: what programs of the world put around a person's words is taken away, and nothing else."""

from __future__ import annotations

import pytest
from pizzabot.adapters.email.reading.own import own_text

from .replies_of_programs import LANGUAGES, OURS, REQUEST, Language, as_html, headers, quoted

_OF = [pytest.param(x, id=x.name) for x in LANGUAGES]
_ATTRIBUTIONS = [
    pytest.param(x, a, id=f"{x.name}-{i}") for x in LANGUAGES for i, a in enumerate(x.attributions)
]
_FOOTERS = [pytest.param(x, f, id=f"{x.name}-{i}") for x in LANGUAGES for i, f in enumerate(x.footers)]


def own(text: str) -> str:
    found: str = own_text([text], [], OURS).text
    return found


def shown(html: str) -> str:
    found: str = own_text([], [html], OURS).text
    return found


@pytest.mark.parametrize(("language", "attribution"), _ATTRIBUTIONS)
@pytest.mark.parametrize("said", ["Approve", "Reject\n\nIt is 20 % too much,\nand late."])
def test_an_attribution_above_a_prefixed_quote_is_not_own_text(
    language: Language, attribution: str, said: str
) -> None:
    for text in (said, language.text):
        assert own(f"{text}\n\n{attribution}\n\n{quoted()}\n") == text
        assert own(f"{text}\n\n{attribution}\n{quoted(('Hello',))}\n") == text


@pytest.mark.parametrize(("language", "attribution"), _ATTRIBUTIONS)
def test_an_attribution_above_our_unprefixed_mail_is_not_own_text(
    language: Language, attribution: str
) -> None:
    assert own(f"{language.text}\n\n{attribution}\n\n" + "\n".join(REQUEST)) == language.text


@pytest.mark.parametrize(("language", "attribution"), _ATTRIBUTIONS)
def test_an_attribution_before_a_blockquote_is_not_own_text(language: Language, attribution: str) -> None:
    quote = f"<div>{as_html(attribution)}</div><blockquote type='cite'>"
    f"{as_html(chr(10).join(REQUEST))}</blockquote>"
    assert shown(f"<div>{as_html(language.text)}</div><br>{quote}") == language.text


@pytest.mark.parametrize("language", _OF)
@pytest.mark.parametrize(
    "style", ["{label}: {value}", "*{label}:* {value}", "{label}：{value}", "{label} : {value}"]
)
@pytest.mark.parametrize("rule", ["", "________________________________\n", "-----{original}-----\n"])
def test_a_copied_header_begins_the_original(language: Language, style: str, rule: str) -> None:
    rule = rule.format(original=language.original)
    for original in ("\n".join(REQUEST), "Hello,\n\nplease Approve\n"):
        assert own(f"{language.text}\n\n{rule}{headers(language, style)}\n\n{original}") == language.text


@pytest.mark.parametrize("language", _OF)
def test_outlooks_block_begins_the_original_in_html(language: Language) -> None:
    block = "<br>".join(
        f"<b>{line.replace(':', ':</b>', 1)}" for line in as_html(headers(language)).split("<br>\n")
    )
    html = (
        f'<div class="WordSection1"><p class="MsoNormal">{language.text}<o:p></o:p></p><p>&nbsp;</p>'
        f'<div><div style="border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0cm 0cm 0cm"><p>'
        f"{block}</p></div></div>"
        f"<p>Approve</p></div>"
    )
    assert shown(html) == language.text


@pytest.mark.parametrize("language", _OF)
def test_a_dashed_title_begins_the_original(language: Language) -> None:
    for dashes in ("-----", "-------- ", "---------- "):
        title = f"{dashes}{language.original}{dashes[::-1]}"
        assert own(f"{language.text}\n\n{title}\n{headers(language)}\n\nApprove") == language.text


@pytest.mark.parametrize(("language", "footer"), _FOOTERS)
def test_the_footer_of_a_phone_is_not_own_text(language: Language, footer: str) -> None:
    assert own(f"Approve\n\n{footer}\n\n{language.attributions[0]}\n{quoted()}") == "Approve"
    assert shown(f"<div>Approve</div><div><br></div><div>{as_html(footer)}</div>") == "Approve"
    assert own(f"{footer}\n\n{language.attributions[0]}\n{quoted()}") == ""


@pytest.mark.parametrize(
    "below",
    [
        # Yahoo's app on Android, with the address of its shop
        "Sent from Yahoo Mail on Android\n<https://go.onelink.me/1>\n\n> x",
        # a logo in a signature, as Outlook writes it into the text part
        "[cid:image001.png@01DA.1]\n\nSent from Outlook for Android<https://aka.ms/1>\n\n" + quoted(),
        # Notes, old and new
        "Ledger Agent <ledger@approvals.example.net> \n03.11.2026 09:14\n\nAn\nMaria "
        "Keller/ACME@ACME\nKopie\n\n"
        "Thema\n[Action] pay\n\n" + "\n".join(REQUEST),
        "From:\tLedger Agent <ledger@approvals.example.net>\nTo:\tMaria\nDate:\t03.11.2026 "
        "09:14\nSubject:\tx\n\nApprove",
        '"Ledger Agent" <ledger@approvals.example.net> wrote on 11/03/2026 09:14:10 AM:\n\n> From: x\n> hi',
        # Foxmail, QQ, NetEase
        "maria@example.com\n \nFrom: Ledger Agent\nDate: 2026-11-03 09:14\nTo: Maria\nSubject: x\nApprove",
        "------------------\u00a0Original\u00a0------------------\nFrom: x <a@b.c>\nApprove",
        "---- Replied Message ----\n| From | x<a@b.c> |\n| Date | 11/03/2026 09:14 |\n| To | y |\n| "
        "Subject | z |\n\nApprove",
        # the attribution inside the quote
        "> On 3 Nov 2026, at 09:14, Ledger Agent <ledger@approvals.example.net> wrote:\n> \n> \ufeffApprove",
        # GMX: the date first
        '*Gesendet:* Dienstag\n*Von:* "Ledger Agent" <ledger@approvals.example.net>\n*An:* '
        "x\n*Betreff:* y\nApprove",
        # a token in our address
        "On 3 Nov 2026, at 09:14, Ledger <ledger+r-k3v9q2m7x4t8@approvals.example.net> wrote:\n\n"
        + "\n".join(REQUEST),
        # further languages
        "Dňa ut 3. 11. 2026 o 9:14 Ledger Agent <ledger@approvals.example.net> napísal(a):\n> x",
        "На 3.11.2026 г., 9:14, Ledger Agent написа:\n> x",
        "Pe mar., 3 nov. 2026 la 09:14, Ledger Agent <ledger@approvals.example.net> a scris:\n> x",
        "Vào Th 3, 3 thg 11, 2026 vào lúc 09:14 Ledger Agent <ledger@approvals.example.net> đã viết:\n> x",
        "Uto, 3. stu 2026. u 09:14 Ledger Agent <ledger@approvals.example.net> napisao je:\n> x",
    ],
)
def test_odd_layouts_of_quotes_are_known(below: str) -> None:
    assert own(f"Why?\n\n{below}") == "Why?"


# -- structures of HTML ----------------------------------------------------------------------------------

_ATTR = as_html(LANGUAGES[0].attributions[0])
_REQUEST = as_html("\n".join(REQUEST))
_HEADERS = as_html(headers(LANGUAGES[0]))
_STRUCTURES = {
    "gmail": '<div dir="ltr">{text}</div><br><div class="gmail_quote"><div class="gmail_attr">{attr}<br>'
    "</div>"
    '<blockquote class="gmail_quote">{request}</blockquote></div>',
    "gmail-forward": '<div dir="ltr">{text}<br><br><div class="gmail_quote"><div class="gmail_attr">'
    "---------- Forwarded "
    "message ---------<br>{headers}<br></div><br><br>Approve</div></div>",
    "gmail-old": '<div>{text}<div class="gmail_quote">{attr}<br><blockquote>{request}</blockquote></div>'
    "</div>",
    "owa": '<div class="elementToProof">{text}</div><div id="appendonsend"></div><hr><div '
    'id="divRplyFwdMsg">{headers}</div>'
    "<div>{request}</div><div>Approve</div>",
    "outlook-mobile": '<div>{text}</div><div id="ms-outlook-mobile-signature">Get <a href="x">Outlook '
    "for iOS</a></div>"
    '<div id="mail-editor-reference-message-container"><hr><div id="divRplyFwdMsg">{headers}</div><div>'
    "Approve</div></div>",
    "outlook-2003": "<p class=MsoNormal>{text}</p><div><div class=MsoNormal align=center><hr></div><p "
    "class=MsoNormal>"
    "{headers}</p></div><p class=MsoNormal>Approve</p>",
    "outlook-mac": '<div class="WordSection1"><p>{text}</p><div style="border:none;border-top:solid '
    "#B5C4DF 1.0pt;"
    'padding:3.0pt 0in 0in 0in"><p><b>From: </b>X &lt;x@example.com&gt;<br><b>Date: </b>Tuesday</p>'
    "</div><p>Approve</p></div>",
    "outlook-2011": '<div>{text}</div><span id="OLK_SRC_BODY_SECTION"><div>{headers}</div><div>'
    "Approve</div></span>",
    "apple": "{text}<br><div><br><blockquote type='cite'><div>{attr}</div><br><div>{request}</div>"
    "</blockquote></div><br>",
    "iphone": '<div dir="ltr">{text}</div><div><br></div><div dir="ltr">Sent from my iPhone</div><div '
    'dir="ltr"><br>'
    '<blockquote type="cite">{attr}<br><br></blockquote></div><blockquote type="cite"><div>'
    "{request}</div></blockquote>",
    "yahoo": '<div class="ydp1yahoo-style-wrap"><div>{text}</div></div><div id="ydp2yahoo_quoted_1" '
    'class="ydp2yahoo_quoted"><div>{attr}<div>{request}</div></div></div>',
    "thunderbird": '<p>{text}</p><div class="moz-cite-prefix">On 03.11.26 09:14, Ledger Agent wrote:<br>'
    "</div>"
    '<blockquote type="cite" cite="mid:1@x">{request}</blockquote><br>',
    "thunderbird-forward": '<p>{text}</p><div class="moz-forward-container">-------- Forwarded Message '
    "--------<table>"
    "<tr><th>Subject: </th><td>Re</td></tr></table>Approve</div>",
    "thunderbird-signature": '<p>{text}</p><pre class="moz-signature" cols="72">-- \nMaria</pre><div '
    'class="moz-cite-prefix">'
    '{attr}</div><blockquote type="cite">{request}</blockquote>',
    "proton": '<div>{text}</div><div class="protonmail_signature_block"><div>Sent with <a href="x">'
    "Proton Mail</a> secure "
    'email.</div></div><div class="protonmail_quote">{attr}<br><blockquote class="protonmail_quote" '
    'type="cite">{request}'
    "</blockquote></div>",
    "fastmail": "<div>{text}</div><div><br></div><div>On Tue, 3 Nov 2026, at 9:14 AM, Ledger Agent "
    "wrote:</div>"
    '<blockquote type="cite" id="qt" style="">{request}</blockquote><div id="sig1"><div '
    'class="signature">Maria</div></div>',
    "tutanota": "<div>{text}</div><div><br></div><div>Nov 3, 2026, 09:14 by "
    "ledger@approvals.example.net:<br></div>"
    '<blockquote class="tutanota_quote" style="border-left: 1px solid #93A3B8;">{request}</blockquote>',
    "notes": '<span style="font-size:10pt">{text}</span><br><br><span>From: &nbsp; &nbsp;</span><span>'
    '"Ledger Agent" '
    "&lt;ledger@approvals.example.net&gt;</span><br><span>To: &nbsp;</span><span>Maria/ACME@ACME</span>"
    "<br><span>Date: &nbsp;"
    "</span><span>03.11.2026 09:14</span><br><span>Subject: &nbsp;</span><span>[Action] x</span><br><hr "
    "noshade><br><tt>{request}"
    "</tt>",
    "samsung": '<div>{text}</div><div id="composer_signature"><div>Sent from my Galaxy</div></div><div>'
    "<div>-------- Original "
    "message --------<br>{headers}</div></div>{request}",
    "mail.ru": "<div>{text}</div><div>&nbsp;</div><blockquote style='border-left:1px solid #0857A6;'>"
    "Вторник, 3 ноября 2026"
    "<div>{request}</div></blockquote>",
    "yandex": '<div>{text}</div><div> </div><div>03.11.2026, 09:14, "Ledger Agent" '
    "&lt;ledger@approvals.example.net&gt;:</div>"
    "<blockquote><p>Approve</p></blockquote><div> </div>",
    "zoho": '<div>{text}</div><br><div id="Zm-_Id_-Sgn" data-sigid="1">Maria</div><br><div '
    'class="zmail_extra"><div>---- On Tue, '
    '03 Nov 2026 <b>Ledger Agent &lt;x@y.z&gt;</b> wrote ----</div><blockquote id="blockquote_zmail">'
    "Approve</blockquote></div>",
    "qq": '<div>{text}</div><div><br></div><div style="font-size:12px">'
    "------------------&nbsp;原始邮件&nbsp;------------------"
    '</div><div style="background:#efefef;"><div><b>发件人:</b>&nbsp;"Ledger";</div><div><b>'
    "发送时间:</b>&nbsp;2026年11月3日</div>"
    "<div><b>收件人:</b>&nbsp;x@y.z</div><div><b>主题:</b>&nbsp;x</div></div><div>Approve</div>",
    "foxmail": '<div>{text}</div><hr id="FMSigSeperator" style="width: 210px"><div>'
    "maria@example.com</div><blockquote>Approve"
    "</blockquote>",
    "netease": '<div>{text}</div><div id="isReplyContent">---- 回复的原邮件 ----<table><tr><td>'
    "发件人</td><td>x</td></tr></table>"
    "Approve</div>",
    "naver": "<p>{text}</p><p>&nbsp;</p><p>-----Original Message-----<br>{headers}</p><p>Approve</p>",
    "gmx": '<div>{text}</div><div name="quote" style="border-left: 2px solid #C3D9E5;"><div><b>'
    "Gesendet:</b> Dienstag</div>"
    "<div>Approve</div></div>",
    "spark": '<div>{text}</div><div name="messageSignatureSection">Maria</div><div '
    'name="messageReplySection">{attr}<blockquote '
    'type="cite">{request}</blockquote></div>',
    "roundcube": '<p>{text}</p><p id="reply-intro">On 2026-11-03 09:14, Ledger Agent wrote:</p>'
    '<blockquote type="cite">{request}'
    "</blockquote>",
    "windows-mail": "<div>{text}<div><br></div>Sent from Mail for Windows<div "
    'style="border:none;border-top:solid #E1E1E1 1.0pt">'
    "<p><b>From: </b>x@example.com<br><b>Sent: </b>Tuesday</p></div><p>Approve</p></div>",
}


@pytest.mark.parametrize("structure", _STRUCTURES)
@pytest.mark.parametrize("text", ["Wieso so viel?", "Approve", "为什么？"])
def test_the_structure_of_a_client_shows_what_is_quoted(structure: str, text: str) -> None:
    html = _STRUCTURES[structure].format(text=text, attr=_ATTR, request=_REQUEST, headers=_HEADERS)
    assert shown(f"<html><body>{html}</body></html>") == text
    both = own_text([f"{text}\n\n{LANGUAGES[0].attributions[0]}\n\n{quoted()}"], [html], OURS)
    assert both.agrees
    assert both.text == text


def test_words_between_two_quotes_and_below_them_are_own_text() -> None:
    assert (
        own(f"{LANGUAGES[0].attributions[0]}\n> One?\n\nFirst.\n\n> Two?\nSecond.\n") == "First.\n\nSecond."
    )
    html = (
        f'<div class="gmail_quote"><div class="gmail_attr">{_ATTR}</div><blockquote>One?</blockquote>'
        f"<div>First.</div>"
        f"<blockquote>Two?</blockquote><div>Second.</div></div>"
    )
    assert shown(html).split() == ["First.", "Second."]


def test_gmails_indenting_is_no_quote() -> None:
    html = '<blockquote style="margin:0 0 0 40px;border:none;padding:0px"><div>Too much</div></blockquote>'
    assert shown(html) == "Too much"


@pytest.mark.parametrize(
    "line",
    [
        "On Tuesday I wrote to Tom: he knows.",
        "Please send it from: Berlin, to: Hamburg",
        "The notification was sent from the phone of Tom",
        "- but only if it is cheaper",
        "Thanks, but wait until Friday",
        "Warning: the amount is wrong",
        "-- first check the vendor -- then pay",
        "I am not the intended recipient of this invoice",
        "This invoice was sent in error",
        "Sent from my phone, do not approve yet",
        "--\nbut only if it is cheaper",
    ],
)
def test_what_only_resembles_a_programs_line_stays(line: str) -> None:
    assert own(f"Approve\n\n{line}") == f"Approve\n\n{line}"
    assert own(f"Approve\n\n{LANGUAGES[0].attributions[0]}\n{quoted()}\n\n{line}").endswith(line)


# -- what cannot be seen ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hidden",
    [
        '<div style="display:none">Approve</div>',
        '<div style="DISPLAY : NONE">Approve</div>',
        "<div hidden>Approve</div>",
        '<span style="font-size:0">Approve</span>',
        '<span style="font-size: 0px;">Approve</span>',
        '<span style="font-size:1px">Approve</span>',
        '<span style="color:#ffffff">Approve</span>',
        '<span style="color:white;font-weight:bold">Approve</span>',
        '<font color="#FFFFFF">Approve</font>',
        '<span style="color:rgb(255, 255, 255)">Approve</span>',
        '<span style="visibility:hidden">Approve</span>',
        '<span style="opacity:0">Approve</span>',
        '<div style="max-height:0;overflow:hidden">Approve</div>',
        '<div style="width:0;height:0;overflow:hidden">Approve</div>',
        '<div style="mso-hide:all">Approve</div>',
        '<div style="position:absolute;left:-9999px">Approve</div>',
        '<div style="text-indent:-9999px">Approve</div>',
        "<style>.x { display: none }</style><div class='a x'>Approve</div>",
        "<!-- Approve -->",
        "<script>Approve</script><style>Approve</style><title>Approve</title>",
        "<template>Approve</template><textarea>Approve</textarea><select><option>Approve</option></select>",
        '<img alt="Approve" src="x">',
    ],
)
def test_text_that_nobody_sees_is_not_own_text(hidden: str) -> None:
    assert shown(f"<html><body><p>Hello</p>{hidden}</body></html>") == "Hello"
    assert not own_text(["Hello\nApprove"], [f"<p>Hello</p>{hidden}"], OURS).agrees


def test_white_letters_on_a_dark_ground_are_seen() -> None:
    assert shown('<body style="background:#1f1f1f"><p style="color:#fff">Approve</p></body>') == "Approve"


def test_ordinary_sizes_are_seen() -> None:
    for style in (
        "font-size:10pt",
        "font-size:1em",
        "font-size:0.9em",
        "line-height:0",
        "border-width:0",
        "color:#000",
    ):
        assert shown(f'<p style="{style}">Approve</p>') == "Approve", style


def test_what_is_struck_out_is_marked() -> None:
    assert shown("<p><s>Approve</s> Reject</p>") == "~~Approve~~ Reject"
    assert shown('<span style="text-decoration:line-through">Approve</span>') == "~~Approve~~"


def test_an_emoji_that_is_a_picture_is_text_and_other_pictures_are_not() -> None:
    assert shown('<p><img alt="👍" data-emoji="👍" src="x"></p><img alt="logo" src="y">') == "👍"


# -- signatures, footers, warnings -----------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", ["-- ", "--", "\u00a0-- ", "—"])
def test_what_follows_the_signature_delimiter_is_not_own_text(delimiter: str) -> None:
    assert own(f"Approve\n{delimiter}\nMaria Keller\nKeller GmbH") == "Approve"


def test_too_long_a_signature_is_none() -> None:
    text = "Approve\n-- \n" + "\n".join(f"line {i}" for i in range(30))
    assert own(text).endswith("line 29")


@pytest.mark.parametrize(
    "more",
    [
        "Only if Bob agrees",
        "But not before Friday",
        "but only below 50",
        "Wait for Bob",
        "Not the second one",
        "Unless it was paid already",
        "Please ask Bob first",
        "Aber nur bis 50 Euro",
        "Seulement si Bob est d'accord",
        "Pero solo la mitad",
    ],
)
@pytest.mark.parametrize("delimiter", ["-- ", "--", "—"])
def test_a_sentence_that_goes_on_behind_dashes_is_no_signature(delimiter: str, more: str) -> None:
    assert own(f"Approve\n\n{delimiter}\n{more}").endswith(more)


@pytest.mark.parametrize(
    "more",
    [
        "But delete the old distribution list first",
        "Please delete the unauthorized copy before distribution",
        "The confidential appendix must be taken out before copying and distribution to the subsidiaries",
        "_____\nConfidential: only half",
        "Der Empfänger ist falsch geschrieben, das ist vertraulich",
        "Supprimer le destinataire confidentiel avant",
    ],
)
def test_what_a_person_says_of_confidential_things_is_no_disclaimer(more: str) -> None:
    assert own(f"Approve\n\n{more}").endswith(more)


@pytest.mark.parametrize(
    "banner",
    [
        "[EXTERNAL] Only approve if you know the sender.",
        "[EXTERNAL]",
        "EXTERNAL SENDER",
        "EXTERNAL EMAIL: Do not click links or open attachments.",
        "CAUTION: This email originated from outside of the organization. Do not click links or open\n"
        "attachments unless you recognize the sender and know the content is safe.",
        "CAUTION\n\nThis email originated outside of your organization. Recognize the sender before you "
        "click links.",
        "You don't often get email from maria@example.com. Learn why this is important",
        "ACHTUNG: Diese E-Mail kommt von einem externen Absender. Öffnen Sie keine Anhänge.",
        "Sie erhalten nicht oft E-Mails von maria@example.com. Absender außerhalb der Organisation.",
        "ATTENTION : cet expéditeur est en dehors de l'organisation. N'ouvrez pas les pièces jointes.",
    ],
)
def test_the_warning_of_a_gateway_is_not_own_text(banner: str) -> None:
    assert own(f"{banner}\n\nWhat is this?") == "What is this?"
    assert own(f"{banner}\nWhat is this?") == "What is this?"


@pytest.mark.parametrize(
    "disclaimer",
    [
        "This e-mail and its attachments are confidential. If you are not the intended recipient please "
        "delete it.",
        "Diese E-Mail ist vertraulich. Wenn Sie nicht der richtige Adressat sind, vernichten Sie sie.",
        "Ce message est confidentiel et réservé à son destinataire.",
        "Este mensaje es confidencial y para su destinatario.",
        "本邮件含有保密信息，仅限于收件人使用。",
        "Virus-free. www.avast.com",
    ],
)
def test_a_disclaimer_is_not_own_text(disclaimer: str) -> None:
    assert own(f"Approve\n\n{disclaimer}") == "Approve"
    assert (
        own(f"Approve\n\n{LANGUAGES[0].attributions[0]}\n{quoted()}\n\n_________\n{disclaimer}\n_________")
        == "Approve"
    )


def test_a_clear_signed_message_is_read_without_its_armour() -> None:
    text = (
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nReject\n- -- \nMaria\n"
        "-----BEGIN PGP SIGNATURE-----\n\niHUEARYI\n=abcd\n-----END PGP SIGNATURE-----\n\n> quoted"
    )
    assert own(text) == "Reject"


# -- both parts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("Approve", "<p>Approve</p>"),
        ("*Approve*", "<b>Approve</b>"),
        ("It's “fine” - ok", '<p>It’s "fine" – ok</p>'),
        ("* one\n* two", "<ul><li>one</li><li>two</li></ul>"),
        ("1. one\n2. two", "<ol><li>one</li><li>two</li></ol>"),
        (
            "see https://x.example <https://x.example>",
            '<a href="https://x.example">see https://x.example</a>',
        ),
        ("see [x](https://x.example)", '<a href="https://x.example">see x</a>'),
        ("a very long line that was\nwrapped", "<p>a very long line that was wrapped</p>"),
        ("👍️", '<img alt="👍">'),
        ("Approve\n\n[image: logo.png]", '<p>Approve</p><img alt="logo.png">'),
        (
            "Approve\n\nMaria Keller\nKeller GmbH",
            '<p>Approve</p><div id="Signature">Maria Keller<br>Keller GmbH</div>',
        ),
        ("a\u00a0 b", "<p>a&nbsp; b</p>"),
        (" \n", "<p>Approve</p>"),
    ],
)
def test_parts_that_say_the_same_agree(text: str, html: str) -> None:
    assert own_text([text], [html], OURS).agrees


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("Approve", "<p>Reject</p>"),
        ("Approve", "<p>Do not approve</p>"),
        ("Approve", "<p></p>"),
        ("Approve", "<p><s>Approve</s></p>"),
        ("> Approve", "<p>Approve</p>"),
        ("Approve", "<blockquote type=cite>Approve</blockquote>"),
        ("Approve 1.00", "<p>Approve 100</p>"),
        ("Approve, not", "<p>Approve</p>"),
    ],
)
def test_parts_that_say_different_things_do_not_agree(text: str, html: str) -> None:
    assert not own_text([text], [html], OURS).agrees


def test_all_parts_of_a_kind_count() -> None:
    found = own_text(["Approve", "wait, not before Friday"], [], OURS)
    assert found.text.split("\n") == ["Approve", "", "wait, not before Friday"]


def test_a_mail_without_words_says_nothing() -> None:
    assert own_text([], [], OURS).text == ""
    assert own_text(["", " "], ["<p>\u00a0</p>"], OURS).text == ""


@pytest.mark.parametrize(
    "below",
    [
        "--\nNot before Friday",
        "--\nBut only if Tom agrees",
        "—\nOnly half of it",
        "--\nErst am Freitag",
        "--\nSeulement la moitié",
        "But delete this confidential attachment first.",
        "Only after you delete it, this is confidential and privileged.",
        "Not a word of this to the intended recipient, it is confidential!\n\nAnd wait till Friday",
        "Nur wenn der Empfänger stimmt und die Anlage geschützt ist",
        "Sauf si le destinataire l'imprimer par erreur",
        "-----\nNot before the virus scan",
        "Sent only after Friday from my phone",
        "Sent from the wrong vendor",
        "Send my phone the new amount first",
        "Send half of it via Windows",
        "Get the money from Samsung first",
        "Get a second quote by phone",
        "Virus-free. only half",
    ],
)
def test_a_word_that_takes_something_back_is_not_taken_for_a_programs(below: str) -> None:
    assert own(f"Approve\n\n{below}") == f"Approve\n\n{below}"
    assert own(f"Approve,\n{below}") == f"Approve,\n{below}"


@pytest.mark.parametrize(
    "above",
    [
        "Caution: wait. Do I recognise the sender, is safe?",
        "Attention: do not approve, the external sender is one that I do not recognise",
        "External vendor: never pay. Outside of the contract, originated in Cyprus",
        "Warning: wrong account, unbekannt absender",
        "Achtung: nicht zahlen! Absender unbekannt, Anhänge auch",
    ],
)
def test_a_warning_of_a_person_is_own_text(above: str) -> None:
    assert own(f"{above}\n\nApprove") == f"{above}\n\nApprove"


@pytest.mark.parametrize(
    "line", ["To: half of it", "From: the savings account", "*** only half ***", "== not today =="]
)
def test_a_line_above_our_marker_that_tells_nothing_of_a_mail_is_own_text(line: str) -> None:
    for gap in ("\n", "\n\n"):
        assert own(f"Approve\n{line}{gap}" + "\n".join(REQUEST)) == f"Approve\n{line}"


@pytest.mark.parametrize(
    "line", ["On 10.3. only this:", "am Freitag 10:00, nicht vorher:", "Le 3.4. seulement:"]
)
def test_a_condition_above_a_quote_is_no_attribution(line: str) -> None:
    assert own(f"Approve\n\n{line}\n> What we asked\n") == f"Approve\n\n{line}"
