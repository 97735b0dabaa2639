"""Which words do absence notes and delivery reports of the world begin with?

Lists of words only, written as `folded` makes them; `absence.py` and `kinds.py` say what follows from them.
"""

from __future__ import annotations

import unicodedata


def folded(text: str) -> str:
    """`text` as it is compared with the lists: one form of each letter, small, with the plain apostrophe."""
    return unicodedata.normalize("NFKC", text).casefold().replace("’", "'")


# A subject that begins with one of these, and then a colon, a bracket or nothing more, was written by a
# program.
AUTOMATIC_SUBJECTS = (
    # English
    "automatic reply", "automatic response", "automated reply", "automated response", "auto reply",
    "auto-reply",
    "autoreply", "auto response", "auto-response", "autoresponse", "automatic message", "automated message",
    "out of office autoreply", "out of office auto-reply", "out of office reply",
    "out of office notification",
    "out of office message", "vacation reply", "vacation response", "vacation message", "away message",
    "absence notification", "yahoo! auto response",
    # German
    "automatische antwort", "automatische rückantwort", "automatische rückmeldung", "automatische nachricht",
    "autoantwort", "abwesenheitsnotiz", "abwesenheitsnachricht", "abwesenheitsmeldung",
    "abwesenheitsassistent",
    "automatische abwesenheitsnotiz",
    # French
    "réponse automatique", "reponse automatique", "message d'absence", "notification d'absence",
    "avis d'absence", "message automatique",
    # Spanish, Catalan
    "respuesta automática", "respuesta automatica", "contestación automática", "mensaje automático",
    "aviso de ausencia", "resposta automàtica",
    # Italian
    "risposta automatica", "risponditore automatico", "messaggio automatico", "avviso di assenza",
    # Portuguese
    "resposta automática", "resposta automatica", "mensagem automática", "aviso de ausência",
    # Dutch
    "automatisch antwoord", "automatische reactie", "automatische beantwoording", "automatisch bericht",
    "afwezigheidsbericht", "afwezigheidsmelding",
    # Polish
    "automatyczna odpowiedź", "odpowiedź automatyczna", "autoodpowiedź", "wiadomość automatyczna",
    # Russian, Ukrainian, Bulgarian
    "автоматический ответ", "автоматическое уведомление", "автоматическое сообщение", "автоответ",
    "автоответчик", "автоматична відповідь", "автовідповідь", "автоматичен отговор",
    # Japanese
    "自動返信", "自動応答", "自動返答", "自動送信", "自動回答", "不在通知", "不在のお知らせ", "不在連絡",
    # Chinese
    "自动回复", "自動回覆", "自动答复", "自動回复", "自動答覆", "自動回應", "自动应答", "自动回覆",
    "休假通知",
    # Korean
    "자동 회신", "자동회신", "자동 응답", "자동응답", "자동 답장", "부재중 자동", "부재 알림",
    # Swedish, Danish, Norwegian
    "automatiskt svar", "automatiskt svarsmeddelande", "autosvar", "frånvaromeddelande", "automatisk svar",
    "autosvarsmeddelelse", "fraværsmeddelelse", "fraværsmelding",
    # Finnish, Estonian
    "automaattinen vastaus", "automaattivastaus", "poissaoloilmoitus", "automaatvastus",
    # Czech, Slovak
    "automatická odpověď", "automatická odpoveď", "oznámení o nepřítomnosti",
    # Turkish
    "otomatik yanıt", "otomatik yanit", "otomatik cevap",
    # Hungarian, Romanian, Greek, Croatian, Slovenian, Lithuanian, Latvian
    "automatikus válasz", "răspuns automat", "αυτόματη απάντηση", "automatski odgovor", "samodejni odgovor",
    "automatinis atsakymas", "automātiska atbilde",
    # Hebrew, Arabic, Persian, Hindi, Vietnamese, Thai, Indonesian
    "תשובה אוטומטית", "מענה אוטומטי", "رد تلقائي", "الرد التلقائي", "پاسخ خودکار", "स्वचालित उत्तर",
    "trả lời tự động", "tự động trả lời", "ตอบกลับอัตโนมัติ", "balasan otomatis", "jawaban otomatis",
)  # fmt: skip

# Subjects that people write as well; the text must tell of an absence, too.
ABSENCE_SUBJECTS = (
    "out of office", "out-of-office", "out of the office", "ooo", "auto", "vacation", "on vacation",
    "on holiday",
    "holiday", "annual leave", "on leave", "away", "away from my mail", "away from office", "absence",
    "abwesenheit", "abwesend", "urlaub", "im urlaub", "ausser haus", "nicht im büro",
    "absence du bureau", "absent du bureau", "absent", "en congé", "congés",
    "fuera de la oficina", "fuera de oficina", "ausencia", "vacaciones", "de vacaciones",
    "fuori sede", "fuori ufficio", "assenza", "assente", "ferie", "in ferie",
    "fora do escritório", "ausência", "ausente", "férias", "de férias",
    "afwezig", "afwezigheid", "niet aanwezig", "vakantie", "op vakantie",
    "poza biurem", "nieobecność", "nieobecny", "nieobecna", "urlop",
    "нет на месте", "вне офиса", "отсутствие", "отпуск", "в отпуске",
    "不在", "休暇", "外出中", "休业", "不在办公室", "不在辦公室", "外出", "休假", "出差",
    "부재중", "부재 중", "휴가", "출장",
    "frånvaro", "frånvarande", "semester", "ledig", "fravær", "fraværende", "ikke på kontoret",
    "ikke til stede", "poissa", "poissa toimistosta", "lomalla", "loma",
    "mimo kancelář", "nepřítomnost", "nepřítomen", "dovolená", "neprítomnosť",
    "ofis dışında", "ofis dışındayım", "ofiste değilim", "izin", "izindeyim", "házon kívül",
)  # fmt: skip

# How such a note greets and thanks before it comes to the absence.
POLITE = (
    "hello", "hi", "dear", "good ", "thank", "guten ", "hallo", "liebe", "sehr geehrte", "vielen dank",
    "danke",
    "bonjour", "madame", "merci", "hola", "buen", "gracias", "estimad", "ciao", "grazie", "gentile", "olá",
    "bom dia", "obrigad", "prezad", "beste", "geachte", "bedankt", "dank", "dzień dobry", "dziękuj", "witam",
    "szanown", "здравствуйте", "добрый", "спасибо", "благодар", "уважаем", "いつも", "お世話", "メール",
    "ご連絡", "您好", "你好", "感谢", "谢谢", "感謝", "안녕", "감사", "메일", "hej", "tack", "tak ", "takk",
    "hei", "kiitos", "dobrý", "děkuj", "merhaba", "teşekkür", "sayın",
)  # fmt: skip

# Sentences of absence notes. People write them, too; one of them is no proof.
ABSENT = (
    # English
    "will be out of the office", "i am out of office", "i'm out of office", "i am out of the office",
    "i'm out of the office", "i am currently out of", "i'm currently out of",
    "i will be out of the office", "i'll be out of the office", "out of the office until",
    "out of office until",
    "i am on holiday", "i'm on holiday", "i am on vacation", "i'm on vacation", "i am on leave",
    "i'm on leave",
    "on annual leave", "on parental leave", "on maternity leave", "i am away from", "i'm away from",
    "i am currently away", "i'm currently away", "i am away until", "i am traveling", "i am travelling",
    "i am not in the office", "currently unavailable", "am currently on",
    # German
    "nicht im büro", "ausser haus", "abwesend", "im urlaub", "nicht erreichbar",
    "in elternzeit",
    # French
    "absent du bureau", "absente du bureau", "je suis absent", "je suis actuellement absent", "en congé",
    "en congés",
    "je suis en vacances", "je serai absent",
    # Spanish
    "fuera de la oficina", "estoy de vacaciones", "estaré ausente", "estoy ausente", "me encuentro fuera",
    "me encuentro de vacaciones",
    # Italian
    "fuori ufficio", "fuori sede", "sono in ferie", "sono assente", "sarò assente", "non sono in ufficio",
    # Portuguese
    "fora do escritório", "estou de férias", "estou ausente", "estarei ausente", "encontro-me ausente",
    # Dutch
    "niet op kantoor", "ik ben afwezig", "met vakantie", "op vakantie", "niet aanwezig", "ben ik afwezig",
    # Polish
    "poza biurem", "na urlopie", "jestem nieobecn", "przebywam na", "nie ma mnie w biurze",
    # Russian
    "в отпуске", "нет на рабочем месте", "вне офиса", "отсутствую", "буду отсутствовать",
    # Japanese
    "不在に", "不在にして", "休暇中", "休暇を", "外出して", "出張中", "休業",
    # Chinese
    "正在休假", "休假中", "在休假", "外出", "出差", "不在办公室", "不在辦公室", "度假", "暂时无法",
    # Korean
    "부재중", "부재 중", "휴가", "출장 중", "출장중", "자리를 비",
    # Swedish, Danish, Norwegian
    "inte på kontoret", "på semester", "är frånvarande", "har semester", "är ledig", "ikke på kontoret",
    "på ferie",
    "holder ferie", "har ferie", "er fraværende", "ikke til stede",
    # Finnish
    "olen poissa", "olen lomalla", "poissa toimistosta", "en ole paikalla", "lomalla",
    # Czech
    "mimo kancelář", "na dovolené", "nejsem v kanceláři", "nejsem přítom", "jsem nepřítom",
    # Turkish
    "ofis dışında", "izindeyim", "tatildeyim", "ofiste değilim", "yıllık izin",
)  # fmt: skip

# What such a note says next: until when, who stands in, that the mail waits or is read seldom.
STAND_IN = (
    "limited access", "no access to", "without access", "urgent", "in my absence", "upon my return",
    "when i return", "when i am back", "will be back", "will not return until", "i return on",
    "i will return", "respond as soon as",
    "reply as soon as", "get back to you", "please contact", "will not be read", "not be forwarded",
    "my deputy",
    "thank you for your email", "thank you for your message", "thanks for your email",
    "thanks for your message",
    "dringend", "in meiner abwesenheit", "wenden sie sich", "nicht weitergeleitet", "wieder erreichbar",
    "wieder im büro", "vertretung", "vielen dank für ihre nachricht", "danke für ihre nachricht",
    "ihre e-mail",
    "urgence", "en mon absence", "de retour le", "veuillez contacter", "merci de contacter",
    "je répondrai", "accès limité",
    "urgente", "en mi ausencia", "vuelvo el", "regreso el", "póngase en contacto", "acceso limitado",
    "in mia assenza", "rientro", "rientrerò", "contattare", "sarò di ritorno",
    "na minha ausência", "regresso", "retorno", "contacte", "entre em contato", "contato com",
    "acesso limitado",
    "dringende", "tijdens mijn afwezigheid", "contact opnemen", "weer aanwezig", "terug op",
    "w pilnych sprawach", "w sprawach pilnych", "proszę o kontakt", "wracam", "ograniczony dostęp",
    "срочн", "обращайтесь", "вернусь", "по возвращении",
    "お急ぎ", "ご連絡", "戻り次第", "返信いたします", "返信が遅れ", "ご了承",
    "尽快回复", "盡快回覆", "紧急", "緊急", "请联系", "請聯絡", "回来后", "无法回复", "及时回复",
    "收到您的邮件",
    "긴급", "급한", "연락", "복귀", "회신드리",
    "brådskande", "tillbaka", "kontakta", "haster", "hastesager", "tilbage", "tilbake", "kontakt",
    "kiireellis", "palaan", "ota yhteyttä", "v naléhav", "vrátím se", "kontaktujte", "zpět",
    "acil", "dönüş", "iletişime geç", "başvur", "döneceğim",
)  # fmt: skip

# A whole first line that only programs write.
AUTOMATIC_TEXTS = (
    "this is an automatic reply", "this is an automated reply", "this is an automatic response",
    "this is an automated response", "this is an automated message", "this is an automatic message",
    "this is an auto-reply", "this is an autoreply", "this is an auto reply",
    "this message was generated automatically",
    "this email was generated automatically", "this is an automatically generated",
    "do not reply to this", "please do not reply to this", "##- please type your reply above",
    "dies ist eine automatisch", "dies ist eine automatische antwort", "diese nachricht wurde automatisch",
    "diese e-mail wurde automatisch", "ceci est une réponse automatique", "ceci est un message automatique",
    "este es un mensaje automático", "esta es una respuesta automática", "questa è una risposta automatica",
    "questo è un messaggio automatico", "esta é uma resposta automática", "esta é uma mensagem automática",
    "dit is een automatisch", "to jest automatyczna", "ta wiadomość została wygenerowana automatycznie",
    "это автоматическ", "данное письмо сформировано автоматически", "このメールは自動", "本メールは自動",
    "これは自動", "这是一封自动", "此为自动", "本邮件为自动", "這是自動", "이 메일은 자동", "자동 회신 메일",
    "자동으로 발송", "detta är ett automatiskt", "dette er et automatisk", "tämä on automaattinen",
    "toto je automatick", "bu otomatik bir", "bu bir otomatik",
)  # fmt: skip

# Receipts that are no multipart/report: how their subject begins, and what the text then says.
RECEIPT_SUBJECTS = (
    "read:", "not read:", "return receipt", "read receipt", "gelesen:", "ungelesen gelöscht:",
    "lesebestätigung",
    "lu :", "lu:", "non lu", "accusé de lecture", "leído:", "leido:", "confirmación de lectura", "letto:",
    "non letto:", "conferma di lettura", "lida:", "lido:", "gelezen:", "ongelezen verwijderd:",
    "przeczytane:",
    "прочитано:", "開封済み:", "开封", "已读:", "已讀:", "읽음:", "läst:", "læst:", "lest:", "luettu:",
    "přečteno:",
    "okundu:",
)  # fmt: skip
READ = (
    "was read", "was displayed", "was deleted without being read", "has been read", "wurde gelesen",
    "wurde angezeigt", "ungelesen gelöscht", "a été lu", "a été affiché", "fue leído", "ha sido leído",
    "è stato letto", "foi lida", "foi lido", "is gelezen", "został przeczytan", "была прочитан",
    "было прочитан",
    "開封され", "已被阅读", "已于", "읽었습니다", "lästes", "blev læst", "ble lest", "on luettu",
    "byla přečten",
    "okundu",
)  # fmt: skip

# Subjects of reports of mail servers.
UNDELIVERED_SUBJECTS = (
    "undelivered mail returned to sender", "undeliverable", "undeliverable mail", "undeliverable message",
    "undelivered mail", "mail delivery failed", "mail delivery failure", "mail delivery subsystem",
    "mail delivery system", "delivery status notification", "delivery failure", "delivery failed",
    "delivery notification", "delivery has failed", "failure notice", "failure delivery", "returned mail",
    "returned to sender", "mail system error", "message undeliverable", "could not be delivered",
    "message not delivered", "nondeliverable mail", "non-deliverable", "non delivery report", "ndn:",
    "mail could not be delivered", "unable to deliver", "rejected mail", "address not found",
    "warning: could not send", "warning: message", "delayed mail", "delivery delayed", "message delayed",
    "delivery status", "mail delivery delayed", "mail delivery warning",
    "unzustellbar", "nicht zustellbar", "nicht zugestellt", "nachricht konnte nicht zugestellt",
    "non remis", "non distribué", "échec de la remise", "échec de remise", "non délivrable",
    "impossible de remettre",
    "no se puede entregar", "no entregado", "error de entrega", "no se ha podido entregar",
    "non recapitabile", "mancato recapito", "impossibile recapitare", "non è possibile recapitare",
    "não é possível entregar", "não entregue", "falha na entrega", "não foi possível entregar",
    "onbestelbaar", "niet bezorgd", "niet te bezorgen", "niedostarczalne", "nie można dostarczyć",
    "niedostarczona", "недоставлено", "не удается доставить", "не доставлено", "недоставленное сообщение",
    "配信不能", "配信できません", "未配信", "送信できません", "エラーメール", "配送不能",
    "无法传递", "无法送达", "退信", "無法傳遞", "無法送達", "未送达", "投递失败", "未传递",
    "배달되지 않음", "배달할 수 없", "전송 실패", "발송 실패", "반송",
    "kan inte levereras", "olevererbart", "kunne ikke leveres", "kan ikke leveres", "uleverbar",
    "ei voitu toimittaa", "toimittamaton", "nedoručiteln", "nelze doručit", "teslim edilemedi",
    "iletilemedi",
)  # fmt: skip

# What the text of a report begins with where no structured part says it: qmail, Exim, Postfix, Sendmail,
# Exchange, Gmail, Domino, Yahoo, MailEnable and their kin.
UNDELIVERED_TEXTS = (
    "hi. this is the qmail-send program", "this is the qmail-send program",
    "this is the mail system at host",
    "this message was created automatically by mail delivery software",
    "a message that you sent could not be delivered", "a message that you have sent could not be delivered",
    "your message did not reach some or all of the intended recipients",
    "delivery has failed to these recipients", "delivery to the following recipient",
    "the following addresses had permanent fatal errors", "the original message was received at",
    "----- the following addresses", "sorry, we were unable to deliver your message",
    "this is an automatically generated delivery status notification", "your message wasn't delivered to",
    "your message could not be delivered", "** address not found **", "** message not delivered **",
    "** message blocked **", "** delivery incomplete **", "the following message to",
    "message delivery failed",
    "the following recipient(s) cannot be reached", "the e-mail system was unable to deliver the message",
    "i'm sorry to have to inform you that your message could not be delivered",
    "i'm afraid i wasn't able to deliver your message", "this is a permanent error",
    "we're sorry. there's a problem with the e-mail address",
    "ihre nachricht wurde nicht zugestellt", "ihre nachricht hat einige oder alle empfänger nicht erreicht",
    "fehler bei der nachrichtenzustellung an folgende empfänger",
)  # fmt: skip

# What says that it is not lost yet.
DELAYED = (
    "delayed", "still being retried", "will be retried", "will retry", "not yet been delivered",
    "has not been delivered",
    "warning message only", "do not need to resend", "do not need to send it again", "will keep trying",
    "temporary", "delivery incomplete", "could not send message for past", "verzögert", "retardé",
    "retrasad",
    "ritardat", "atrasad", "vertraagd", "opóźnion", "задерж", "遅延", "延迟", "延遲", "지연",
)  # fmt: skip
