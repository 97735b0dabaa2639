"""How do mail programs of the world lay out a reply? What the tests of own text are built of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pizzabot.adapters.email.letters import BEGIN_VALUES, END_VALUES, REPLY_ABOVE, Ours

ADDRESS = "ledger@approvals.example.net"
OURS = Ours((ADDRESS,), "test")
AGENT = f"Ledger Agent <{ADDRESS}>"
VALUES = ("vendor: Northwind Paper", "amount: 120", "currency: EUR", "note: Invoice 2291")
REQUEST = (
    REPLY_ABOVE,
    "",
    "Ledger wants to do this and waits for you:",
    "",
    "Action: pay_invoice",
    "",
    BEGIN_VALUES,
    *VALUES,
    END_VALUES,
    "",
    "Answer APPROVE to let it happen, REJECT with a reason to stop it.",
    "Without an answer nothing happens.",
)


@dataclass(frozen=True)
class Language:
    """What programs write in one language; `headers` are From, Sent, To, Subject; `footers` whole lines."""

    name: str
    attributions: tuple[str, ...]
    headers: tuple[str, str, str, str]
    original: str
    footers: tuple[str, ...]
    text: str


_SEP = "approvals.example.net"
LANGUAGES = (
    Language(
        "en",
        (
            f"On Tue, Nov 3, 2026 at 9:14 AM {AGENT} wrote:",
            f"On Tue, Nov 3, 2026 at 9:14 AM Ledger Agent\n<{ADDRESS}> wrote:",
            "On 03/11/2026 09:14, Ledger Agent wrote:",
            f"On Tuesday, 3 November 2026 09:14:10 CET {AGENT} wrote:",
            "On Tue, 2026-11-03 at 09:14 +0100, Ledger Agent wrote:",
            f"On 3 Nov 2026, 09:14 +0100, {AGENT}, wrote:",
            f"Nov 3, 2026, 09:14 by {ADDRESS}:",
            f"---- On Tue, 03 Nov 2026 09:14:10 +0100 {AGENT} wrote ---",
            f'At 2026-11-03 09:14:10, "Ledger Agent" <{ADDRESS}> wrote:',
            f"Quoting {AGENT}:",
        ),
        ("From", "Sent", "To", "Subject"),
        "Original Message",
        (
            "Sent from my iPhone",
            "Get Outlook for iOS<https://aka.ms/o0ukef>",
            "Sent from Yahoo Mail on Android",
            "Sent from Mail for Windows",
            "Sent via the Samsung Galaxy S21, an AT&T 5G smartphone",
        ),
        "Why is it so much?",
    ),
    Language(
        "de",
        (
            f"Am Di., 3. Nov. 2026 um 09:14 Uhr schrieb {AGENT}:",
            f"Am Di., 3. Nov. 2026 um 09:14 Uhr schrieb Ledger Agent <\n{ADDRESS}>:",
            "Am 03.11.26 um 09:14 schrieb Ledger Agent:",
            f"Am 03.11.2026 um 09:14 schrieb {AGENT}:",
            f"3. Nov. 2026, 09:14 von {ADDRESS}:",
            f"Zitat von {AGENT}:",
            f"{AGENT} schrieb am Di., 3. Nov. 2026, 09:14:",
            f"{AGENT} hat am 03.11.2026 09:14 CET geschrieben:",
        ),
        ("Von", "Gesendet", "An", "Betreff"),
        "Ursprüngliche Nachricht",
        (
            "Von meinem iPhone gesendet",
            "Gesendet von Mail für Windows",
            "Holen Sie sich Outlook für Android",
            "Gesendet mit der GMX iPhone App",
            "Diese Nachricht wurde von meinem Android-Gerät mit K-9 Mail gesendet.",
        ),
        "Wieso ist das so viel?",
    ),
    Language(
        "fr",
        (
            f"Le mar. 3 nov. 2026 à 09:14, {AGENT} a écrit :",
            f"Le mar. 3 nov. 2026 à 09:14, {AGENT} a\nécrit :",
            "Le 03/11/2026 à 09:14, Ledger Agent a écrit :",
        ),
        ("De", "Envoyé", "À", "Objet"),
        "Message d'origine",
        ("Envoyé de mon iPhone", "Télécharger Outlook pour iOS", "Envoyé depuis mon Galaxy"),
        "C’est pour quel service ?",
    ),
    Language(
        "es",
        (
            f"El mar, 3 nov 2026 a las 9:14, Ledger Agent (<{ADDRESS}>)\nescribió:",
            f"El 3 nov 2026, a las 9:14, {AGENT} escribió:",
            "El 3/11/26 a las 9:14, Ledger Agent escribió:",
        ),
        ("De", "Enviado el", "Para", "Asunto"),
        "Mensaje original",
        ("Enviado desde mi iPhone", "Obtener Outlook para Android", "Enviado desde mi Galaxy"),
        "¿Por qué es tanto?",
    ),
    Language(
        "it",
        (
            f"Il giorno mar 3 nov 2026 alle ore 09:14 {AGENT}\nha scritto:",
            "Il 03/11/26 09:14, Ledger Agent ha scritto:",
            f"Il giorno 3 nov 2026, alle ore 09:14, {AGENT} ha scritto:",
        ),
        ("Da", "Inviato", "A", "Oggetto"),
        "Messaggio originale",
        ("Inviato da iPhone", "Inviato dal mio iPad", "Scarica Outlook per iOS"),
        "Perché così tanto?",
    ),
    Language(
        "pl",
        (
            f"wt., 3 lis 2026 o 09:14 {AGENT} napisał(a):",
            "W dniu 3.11.2026 o 09:14, Ledger Agent pisze:",
            f"Wiadomość napisana przez {AGENT} w dniu 3 lis 2026, o godz. 09:14:",
            f"Dnia 3 listopada 2026 09:14 {AGENT} napisał(a):",
        ),
        ("Od", "Wysłano", "Do", "Temat"),
        "Wiadomość oryginalna",
        (
            "Wysłane z iPhone'a",
            "Pobierz program Outlook dla systemu iOS",
            "Wysłane z mojego smartfona Samsung Galaxy.",
        ),
        "Dlaczego tak dużo?",
    ),
    Language(
        "ru",
        (
            f"вт, 3 нояб. 2026 г. в 09:14, {AGENT}:",
            f"Вторник, 3 ноября 2026, 9:14 +03:00 от {AGENT}:",
            f'03.11.2026, 09:14, "Ledger Agent" <{ADDRESS}>:',
            "03.11.2026 09:14, Ledger Agent пишет:",
            f"3 нояб. 2026 г., в 09:14, {AGENT} написал(а):",
        ),
        ("От", "Отправлено", "Кому", "Тема"),
        "Исходное сообщение",
        (
            "Отправлено с iPhone",
            "Отправлено из мобильной Почты Mail.ru",
            "Отправлено с устройства Samsung Galaxy",
        ),
        "Почему так много?",
    ),
    Language(
        "ja",
        (
            f"2026年11月3日(火) 9:14 {AGENT}:",
            f"2026/11/03 9:14、{AGENT}のメール:",
            "On 2026/11/03 9:14, Ledger Agent wrote:",
        ),
        ("差出人", "送信日時", "宛先", "件名"),
        "元のメッセージ",
        ("iPhoneから送信", "Outlook for iOS を入手"),
        "なぜこんなに高いのですか？",
    ),
    Language(
        "zh",
        (
            f"{AGENT} 于2026年11月3日周二 09:14写道：",
            "在 2026/11/3 9:14, Ledger Agent 写道:",
            f"{AGENT} 於 2026年11月3日 週二 上午9:14寫道：",
            f"在 2026年11月3日，09:14，{AGENT} 写道：",
        ),
        ("发件人", "发送时间", "收件人", "主题"),
        "原始邮件",
        ("发自我的iPhone", "發自我的 iPhone", "获取 Outlook for iOS"),
        "为什么这么多？",
    ),
    Language(
        "ko",
        (
            f"2026년 11월 3일 (화) 오전 9:14, {AGENT}님이 작성:",
            f"2026. 11. 3. 오전 9:14, {AGENT} 작성:",
            f"2026년 11월 3일 (화) 09:14 {AGENT}님이 작성하였습니다:",
        ),
        ("보낸 사람", "보낸 날짜", "받는 사람", "제목"),
        "원본 메시지",
        ("나의 iPhone에서 보냄", "iOS용 Outlook 다운로드"),
        "왜 이렇게 많아요?",
    ),
    Language(
        "ar",
        (
            f"\u202bفي الثلاثاء، 3 نوفمبر 2026 في 9:14 ص تمت كتابة ما يلي بواسطة "
            f"\u202aLedger Agent\u202c\u200f <\u202a{ADDRESS}\u202c\u200f>:\u202c",
            f"في 3 نوفمبر 2026، الساعة 9:14 ص، كتب {AGENT}:",
        ),
        ("من", "تاريخ الإرسال", "إلى", "الموضوع"),
        "الرسالة الأصلية",
        ("أُرسلت من الـ iPhone الخاص بي", "الحصول على Outlook for iOS"),
        "لماذا هذا المبلغ؟",
    ),
    Language(
        "pt",
        (
            f"{AGENT} escreveu no dia terça, 3/11/2026 à(s)\n09:14:",
            f"Em ter., 3 de nov. de 2026 às 09:14, {AGENT}\nescreveu:",
            "Em 03/11/2026 09:14, Ledger Agent escreveu:",
        ),
        ("De", "Enviada em", "Para", "Assunto"),
        "Mensagem original",
        ("Enviado do meu iPhone", "Obter o Outlook para iOS", "Enviado do meu Galaxy"),
        "Por que tanto?",
    ),
    Language(
        "nl",
        (
            f"Op di 3 nov 2026 om 09:14 schreef {AGENT}:",
            "Op 03-11-2026 om 09:14 schreef Ledger Agent:",
            f"Op 3 nov 2026 om 09:14 heeft {AGENT} het volgende geschreven:",
        ),
        ("Van", "Verzonden", "Aan", "Onderwerp"),
        "Oorspronkelijk bericht",
        ("Verstuurd vanaf mijn iPhone", "Outlook voor iOS downloaden", "Verzonden vanaf mijn Galaxy"),
        "Waarom zo veel?",
    ),
    Language(
        "sv",
        (
            f"Den tis 3 nov. 2026 kl 09:14 skrev {AGENT}:",
            "Den 2026-11-03 kl. 09:14, skrev Ledger Agent:",
            f"3 nov. 2026 kl. 09:14 skrev {AGENT}:",
        ),
        ("Från", "Skickat", "Till", "Ämne"),
        "Ursprungligt meddelande",
        ("Skickat från min iPhone", "Hämta Outlook för iOS"),
        "Varför så mycket?",
    ),
    Language(
        "da",
        (
            f"Den tirs. 3. nov. 2026 kl. 09.14 skrev {AGENT}:",
            f"Den 3. nov. 2026 kl. 09.14 skrev Ledger Agent\n<{ADDRESS}>:",
        ),
        ("Fra", "Sendt", "Til", "Emne"),
        "Oprindelig meddelelse",
        ("Sendt fra min iPhone", "Hent Outlook til iOS"),
        "Hvorfor så meget?",
    ),
    Language(
        "no",
        (f"tir. 3. nov. 2026 kl. 09:14 skrev {AGENT}:", f"3. nov. 2026 kl. 09:14 skrev {AGENT}:"),
        ("Fra", "Sendt", "Til", "Emne"),
        "Opprinnelig melding",
        ("Sendt fra min iPhone", "Skaff deg Outlook for iOS"),
        "Hvorfor så mye?",
    ),
    Language(
        "fi",
        (
            f"ti 3. marrask. 2026 klo 9.14 {AGENT} kirjoitti:",
            "Ledger Agent kirjoitti 3.11.2026 klo 9.14:",
        ),
        ("Lähettäjä", "Lähetetty", "Vastaanottaja", "Aihe"),
        "Alkuperäinen viesti",
        ("Lähetetty iPhonesta", "Hanki Outlook iOS:lle"),
        "Miksi niin paljon?",
    ),
    Language(
        "cs",
        (
            f"út 3. 11. 2026 v 9:14 odesílatel {AGENT} napsal:",
            "Dne 03. 11. 26 v 9:14 Ledger Agent napsal(a):",
            f"3. 11. 2026 v 9:14, {AGENT}:",
        ),
        ("Od", "Odesláno", "Komu", "Předmět"),
        "Původní zpráva",
        ("Odesláno z iPhonu", "Získat Outlook pro iOS"),
        "Proč tolik?",
    ),
    Language(
        "tr",
        (
            f"{AGENT}, 3 Kas 2026 Sal, 09:14 tarihinde\nşunu yazdı:",
            f"3 Kas 2026 Sal 09:14 tarihinde {AGENT} şunu yazdı:",
            f"{AGENT} şunları yazdı (3 Kas 2026 09:14):",
        ),
        ("Kimden", "Gönderildi", "Kime", "Konu"),
        "Orijinal Mesaj",
        ("iPhone’umdan gönderildi", "iOS için Outlook'u edinin"),
        "Neden bu kadar çok?",
    ),
    Language(
        "he",
        (
            f"\u202bבתאריך יום ג׳, 3 בנוב׳ 2026 ב-9:14 מאת \u202aLedger Agent\u202c\u200f "
            f"<\u202a{ADDRESS}\u202c\u200f>:\u202c",
            f"ב-3 בנוב׳ 2026, בשעה 9:14, {AGENT} כתב/ה:",
        ),
        ("מאת", "נשלח", "אל", "נושא"),
        "הודעה מקורית",
        ("נשלח מה-iPhone שלי", "קבל את Outlook עבור iOS"),
        "למה כל כך הרבה?",
    ),
    Language(
        "hu",
        (
            f"{AGENT} ezt írta (időpont: 2026. nov. 3., K, 9:14):",
            "2026. 11. 03. 9:14 keltezéssel, Ledger Agent írta:",
        ),
        ("Feladó", "Elküldve", "Címzett", "Tárgy"),
        "Eredeti üzenet",
        ("Elküldve az iPhone-omról", "Az iOS-hez készült Outlook letöltése"),
        "Miért ilyen sok?",
    ),
    Language(
        "el",
        (
            f"Στις Τρί 3 Νοε 2026 στις 9:14 π.μ., ο χρήστης {AGENT}\nέγραψε:",
            "Στις 3/11/2026 9:14 π.μ., ο/η Ledger Agent έγραψε:",
        ),
        ("Από", "Στάλθηκε", "Προς", "Θέμα"),
        "Αρχικό μήνυμα",
        ("Στάλθηκε από το iPhone μου", "Λήψη του Outlook για iOS"),
        "Γιατί τόσο πολλά;",
    ),
)


def quoted(lines: Sequence[str] = REQUEST, prefix: str = "> ") -> str:
    return "\n".join(f"{prefix}{line}".rstrip() for line in lines)


def headers(language: Language, style: str = "{label}: {value}") -> str:
    values = (
        AGENT,
        "Tuesday, November 3, 2026 9:14 AM",
        "Maria Keller <maria@example.com>",
        "[Action] pay_invoice",
    )
    return "\n".join(style.format(label=a, value=b) for a, b in zip(language.headers, values, strict=True))


def as_html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\n", "<br>\n")
