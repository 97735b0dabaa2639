"""Which words do mail programs write themselves? Attributions, header labels and footers of the world.

    English German French Spanish Italian Portuguese Dutch Swedish Danish Norwegian Finnish Polish Czech
    Slovak Russian Ukrainian Turkish Greek Hungarian Romanian Hebrew Arabic Japanese Chinese Korean and a
    few more

All patterns here are searched in one line of bounded length, and none holds a repetition inside another.
"""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# The verb of "On … X wrote:", in lower case: whole words, and pieces for scripts that write without spaces.
_WROTE = _words(
    """
    wrote writes said quoting schrieb geschrieben zitat écrit escribió escrito citando scritto scrive escreveu
    schreef geschreven skrev citat kirjoitti kirjutas napisał napisała pisze napisana napsal napsala napísal
    napísala napisao napisala пишет пише написал написала писал писала написав написа yazdı yazmış şunları
    έγραψε írta scris escriure rašė rakstīja viết menulis
    """
)
_WROTE_PIECES = re.compile(
    "כתב|מאת|كتب|كتابة|نوشت|さんは書きました|書き込みました|のメール|書きました"
    "|写道|寫道|写到|작성|썼습니다|쓰셨습니다|쓴 글|เขียน|ने लिखा"
)
_WORDS = re.compile(r"[^\W\d_]+")


def says_wrote(text: str) -> bool:
    """Whether a lower-case text holds the verb of an attribution, in any of the languages."""
    if not _WROTE.isdisjoint(_WORDS.findall(text)):
        return True
    return not text.isascii() and _WROTE_PIECES.search(text) is not None


# What a line of an attribution that was wrapped begins with, in lower case.
ATTRIBUTION_START = re.compile(
    r"[\s\u200e\u200f\u202a-\u202e]*(?:-{2,}\s*)?(?:"
    r"(?:on|am|le|el|il giorno|il|em|op|den|dne|dnia|på|a|la|στις|την|at|ב-?|ב|في|بتاريخ|pe|data|dana|w dniu|"
    r"kl\.?|vào|pada|2. )\b(?=[^\n]*\d)|"
    r"(?:mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so|lun|mar|mer|jeu|ven|sam|dim|sab|dom|mié|jue|vie|"
    r"pon|wt|śr|czw|pt|sob|niedz|út|po|st|čt|pá|ne|пн|вт|ср|чт|пт|сб|вс|ma|ti|ke|to|pe|la|su|"
    r"man|tir|ons|tor|fre|lør|søn|mån|tis|lör|sön|seg|ter|qua|qui|sex|κυρ|δευ|τρί|τετ|πέμ|παρ|σάβ)"
    r"[a-zà-žа-яα-ω]*[.,]?\s+(?=[^\n]*\d)|"
    r"\d{1,4}[.年/-]|\d{1,2}\.? [a-zà-žа-яα-ω]{3,12}\.?,? \d{4}|\d{4}년)"
)

_FROM = (
    "From|Von|De|Da|Od|От|Від|Van|Från|Fra|Lähettäjä|Kimden|Gönderen|מאת|Feladó|Από|Expéditeur|Expeditor"
    "|De la"
    "|差出人|送信者|发件人|寄件者|寄件人|發件人|보낸 ?사람|보낸이|من|المرسل"
)
_DATE = (
    "Sent|Date|Message du|"
    "Gesendet am|Gesendet|Datum|Envoyé le|Envoyé|Enviado el|Enviado em|Enviada em|Enviado|Data"
    "|Fecha"
    "|Inviato il|Inviato|Wysłano|Wysłane|Data wysłania|Отправлено|Дата|Надіслано|Verzonden|Skickat|Skickades"
    "|Sendt"
    "|Dato|Lähetetty|Päivämäärä|Pvm|Odesláno|Odoslané|Dátum|Tarih|Gönderildi|Gönderilme Tarihi|נשלח|תאריך"
    "|Elküldve"
    "|Küldve|Στάλθηκε|Ημερομηνία|Trimis|送信日時|日付|日時|发送时间|发送日期|发件时间|日期|寄件日期|傳送時間"
    "|보낸 ?날짜|날짜|보낸시간|보낸일시|تاريخ الإرسال|التاريخ|تم الإرسال|أرسلت|إرسال"
)
_TO = (
    "To|An|À|A|Para|Do|Кому|Aan|Till|Til|Vastaanottaja|Komu|Kime|Alıcı|Kiime|אל|Címzett|Προς|Către"
    "|Destinataire"
    "|宛先|收件人|收件者|받는 ?사람|받는이|إلى|الى"
)
_SUBJECT = (
    "Subject|Betreff|Sujet|"
    "Thema|Objet|Asunto|Assunto|Oggetto|Temat|Тема|Onderwerp|Ämne|Emne|Aihe|Předmět|Predmet"
    "|Konu"
    "|נושא|Tárgy|Θέμα|Subiect|件名|主题|主題|主旨|标题|제목|الموضوع"
)
_CC = (
    "Cc|Copie à|Copie|Kopie|Kopia|Kopi|Kópia|Копия|Копія|DW|UDW|Bcc|Κοιν\\.?|Másolatot kap|Bilgi"
    "|抄送|副本|参考|참조|نسخة|עותק"
)
_REPLY_TO = "Reply-To|Antwort an|Importance|Attachments|Anlagen|Priority|Organization"

# One line of a copied header: `**From:** X`, `| 发件人 | X |`. The group that matched names the kind.
_LEAD = r"[\s\u200e\u200f\u202a-\u202e>*_|•]*"
LABEL = re.compile(
    _LEAD + rf"(?:(?P<origin>{_FROM})|(?P<date>{_DATE})|(?P<to>{_TO})|(?P<subject>{_SUBJECT})|(?P<cc>{_CC})"
    rf"|(?P<other>{_REPLY_TO}))[*_\s\u00a0]*[:：|]",
    re.IGNORECASE,
)

BARE_LABEL = re.compile(rf"{_LEAD}(?:{_FROM}|{_DATE}|{_TO}|{_SUBJECT}|{_CC})\s*", re.IGNORECASE)

_ORIGINAL = "|".join(
    (
        "original message|original|replied message"
        "|original appointment|forwarded message|begin forwarded message|forwarded by"
        "|message forwarded",
        "ursprüngliche nachricht|originalnachricht|weitergeleitete nachricht|weitergeleiteten nachricht",
        "message d'origine|message d’origine|message original|message transféré|courriel original"
        "|message initial",
        "mensaje original|mensaje reenviado|messaggio originale|messaggio inoltrato|mensagem original",
        "mensagem encaminhada|mensagem reencaminhada|oorspronkelijk bericht|doorgestuurd bericht",
        "ursprungligt meddelande|originalmeddelande|vidarebefordrat meddelande|oprindelig meddelelse",
        "videresendt meddelelse|oprindelig besked|opprinnelig melding|opprinnelig e-post|videresendt melding",
        "alkuperäinen viesti|välitetty viesti|wiadomość oryginalna|oryginalna wiadomość|wiadomość przekazana",
        "původní zpráva|přeposlaná zpráva|původní e-mail|pôvodná správa",
        "исходное сообщение|пересылаемое сообщение|оригинальное сообщение|переадресованное сообщение",
        "оригінальне повідомлення|orijinal mesaj|özgün ileti|iletilen mesaj|asıl ileti|αρχικό μήνυμα",
        "προωθημένο μήνυμα|eredeti üzenet|továbbított üzenet|mesaj original|mesajul original",
        "הודעה מקורית|ההודעה המקורית|הודעה שהועברה|الرسالة الأصلية|رسالة معاد توجيهها|رسالة أصلية",
        "元のメッセージ|オリジナルメッセージ|転送メッセージ|転送されたメッセージ|原始邮件|原始郵件|回复的原邮件"
        "|回复的邮件",
        "原邮件|转发的邮件|转发邮件|原始訊息|轉寄的郵件|원본 메시지|원본 메일|원본메일|전달된 메시지|원문",
    )
)
ORIGINAL = re.compile(
    rf"[\s*]*[-—_=]{{2,}}[\s\u00a0>]*(?:{_ORIGINAL})[^\n]{{0,80}}[-—_=]{{2,}}[\s*:]*",
    re.IGNORECASE,
)
FORWARD_BEGINS = re.compile(
    r"\s*(?:begin forwarded message|anfang der weitergeleiteten nachricht|début du message transféré|"
    r"inicio del mensaje reenviado|inizio messaggio inoltrato|início da mensagem reencaminhada|"
    r"begin doorgestuurd bericht|начало переадресованного сообщения|początek przekazywanej wiadomości|"
    r"vidarebefordrat brev|start på videresendt besked|videresendt melding|välitetty viesti alkaa|"
    r"转发的邮件|転送されたメッセージ|전달된 메시지)\s*[:：]?\s*",
    re.IGNORECASE,
)
RULE = re.compile(r"[\s*]*(?:_{5,}|-{5,}|={5,}|\*{5,}|—{3,}|─{3,})\s*")
DASHED = re.compile(r"\s*[-—_=*]{2,}[^-\n]{2,60}[-—_=*]{2,}\s*")

_DEVICE = (
    r"iphon|ipad|ipod|galaxy|android|outlook|samsung|huawei|xiaomi|redmi|pixel|blackberry|windows|yahoo"
    r"|proton"
    r"|fastmail|mail\.ru|mymail|spark|gmail|thunderbird|tuta|gmx|web\.de|zoho|nokia|xperia|smartphone"
    r"|smartfon"
    r"|mobile|mobil|handy|mail app|superhuman|em client|airmail|bluemail|aqua ?mail|k-9|mailbird|kaiten|naver"
    r"|hey\b|oneplus|motorola|phone|telefon|teléfono|téléphone|telefono|яндекс|yandex|почт|手机|스마트폰|携帯"
)
_SENT = (
    r"sent|send|gesendet|geschickt|envoy[ée]e?|enviad[oa]|inviat[oa]|wysłan[oaye]|отправлено|надіслано"
    r"|verzonden|verstuurd"
    r"|skickat|skickades|sendt|lähetetty|odesláno|odoslané|gönderildi|küldve|elküldve|στάλθηκε|εστάλη|trimis"
    r"|get|holen sie|hol dir|télécharge[rz]?|obtenir|obtenez|obtener|obtén|scarica|ottieni|pobierz|загрузить"
    r"|скачать"
    r"|obter|obtenha|baixe|download|hämta|hent|skaff deg|hanki|lataa|získat|získejte|letöltés|töltse|λήψη"
    r"|κατεβάστε"
    r"|secured with|powered by|yolladı"
)
_SENT_ANYWHERE = (
    r"から送信|を入手|を取得|发自|發自|发送自|获取|獲取|取得|에서 보냄|에서 보냈|다운로드|보낸 메일|أ[ُ]?رسل"
    r"|مرسل|الحصول|احصل"
    r"|נשלח|קבל את|הורד|'?[ıiuü]?mdan gönderildi|dan gönderildi|den gönderildi|edinin|downloaden|letöltése"
)
# A whole line that a phone or an app put below what was written. Matched in lower case.
FOOTER = re.compile(
    rf"\W*(?:sent (?:from|via|with) (?:my )?[^\s?]{{1,40}}(?: [^\s?]{{1,40}}){{0,3}}"
    rf"|(?:{_SENT})\b[^?\n]{{0,70}}(?:{_DEVICE})[^?\n]{{0,60}}"
    rf"|(?:von|de|da|from|van|fra|från|z|ze|с)\s[^?\n]{{0,40}}(?:{_DEVICE})[^?\n]{{0,20}}\s"
    rf"(?:gesendet|envoyé|sent|verzonden|verstuurd|sendt|skickat|odesláno|wysłano|отправлено)\W*"
    rf"|[^?\n]{{0,50}}(?:{_DEVICE})[^?\n]{{0,50}}(?:{_SENT_ANYWHERE}|gesendet|küldve)[^?\n]{{0,30}}"
    rf"|[^?\n]{{0,50}}(?:{_SENT_ANYWHERE})[^?\n]{{0,50}}(?:{_DEVICE})[^?\n]{{0,40}}"
    rf"|virus-free\.?[^?\n]{{0,60}})"
)

BANNER_START = re.compile(
    r"\W*(?:external|extern|externe|externo|esterno|caution|warning|attention|achtung|warnung|hinweis"
    r"|atención"
    r"|precaución|attenzione|cuidado|atenção|uwaga|внимание|varning|advarsel|varoitus|upozornění|dikkat"
    r"|προσοχή"
    r"|let op|注意|警告|外部|외부|تنبيه|تحذير|זהירות|figyelem|vigyázat|you don.t often get"
    r"|you don.t usually get"
    r"|sie erhalten nicht"
    r"|vous n.obtenez pas souvent|vous ne recevez pas|no suele recibir|non si ricevono spesso"
    r"|some people who received"
    r"|this (?:e-?mail|message|sender)|diese (?:e-?mail|nachricht)|ce (?:mail|message|courriel)"
    r"|cet? (?:e-?mail))",
    re.IGNORECASE,
)
BANNER_TAG = re.compile(r"\W*(?:external|extern|externe|ext)\b", re.IGNORECASE)
BANNER_BODY = re.compile(
    r"\[(?:external|extern|externe|ext)[^\]]{0,20}\]|external (?:sender|e-?mail|message|source)"
    r"|externe[rn]? (?:absender|e-?mail|nachricht)"
    r"|originated|outside (?:of )?(?:the|your|our)|recogni[sz]e|know the (?:sender|content)|is safe"
    r"|click(?:ing)? (?:on )?(?:any )?links"
    r"|open(?:ing)? (?:any )?attachments|learn why|often get e-?mail|unbekannt|außerhalb|ausserhalb|absender"
    r"|anhänge|anlagen"
    r"|expéditeur|pièces? jointes?|en dehors|extérieur|remitente|fuera de|adjuntos|mittente|esterno|allegati"
    r"|remetente|fora da|anexos|nadawc|załącznik|spoza|отправител|вложени|afzender|bijlagen|buiten|avsändar"
    r"|bilagor|utanför"
    r"|afsender|avsender|vedlegg|vedhæft|lähettäj|liitte|odesílatel|přílo|gönderen|αποστολέα|發件人|发件人"
    r"|寄件者|附件"
    r"|差出人"
    r"|添付|外部|발신자|외부|첨부|المرسل|المرفقات|שולח|feladó|mellékl",
    re.IGNORECASE,
)

DISCLAIMER = re.compile(
    r"confidential|intended recipient|intended only|intended solely|privileged|unauthori[sz]ed|in error"
    r"|legally binding"
    r"|disclaimer|delete (?:this|it|the)|copying|distribution|print(?:ing)? this|environment before|virus"
    r"|scanned|malware"
    r"|registered (?:office|in)|company (?:number|no)|vertraulich|empfänger|adressat|irrtümlich|geschützt"
    r"|unbefugt"
    r"|handelsregister|amtsgericht|geschäftsführer|sitz der gesellschaft|ust-?id|umwelt|ausdruck"
    r"|confidentiel|destinataire|par erreur|non autorisée|imprimer|confidencial|destinatari|por error"
    r"|por engano|no autorizad"
    r"|riservat|per errore|autorizzat|stampare|poufn|adresat|omyłk|конфиденциальн|получател|ошибк"
    r"|предназначен"
    r"|vertrouwelijk|geadresseerde|abusievelijk|konfidentiell|mottagare|fortrolig|modtager|mottaker"
    r"|luottamuksell|vastaanottaj"
    r"|důvěrn|příjemc|omylem|gizli|alıcı|yetkisiz|εμπιστευτικ|παραλήπτ|bizalmas|címzett|機密|秘密|受信者"
    r"|宛先|誤って"
    r"|保密|机密|收件人|기밀|수신자|수신인|سري|المرسل إليه|חסוי|נמען|www\.avast|unsubscribe",
    re.IGNORECASE,
)

# What such a text speaks of, and a person hardly ever: the mail itself, or how a company is registered.
OF_THE_MAIL = re.compile(
    r"\b(?:this|the|any|these) (?:[a-z]{2,12} )?(?:e-?mail|message|communication|transmission|correspondence)"
    r"|intended (?:recipient|only|solely)|registered (?:office|in)|company (?:number|no)|environment before"
    r"|disclaimer|legally binding|virus-free|www\.avast|unsubscribe|scanned (?:for|by)"
    r"|diese[rsmn]?,? (?:[a-zäöüß]{2,12} )?(?:e-?mail|mail|nachricht)|handelsregister|amtsgericht"
    r"|sitz der gesellschaft|geschäftsführer|ust-?id|ausdruck|umwelt"
    r"|\bcet? (?:message|mail|e-?mail|courriel)|le présent (?:message|courriel)"
    r"|\best[ea] (?:mensaje|correo|e-?mail|mensagem|comunica)|\bquest[oa] (?:messaggio|e-?mail|mail|comunic)"
    r"|il presente messaggio|a presente mensagem|\b(?:dit|deze) (?:bericht|e-?mail)"
    r"|(?:ta|niniejsz[ay]|treść tej) wiadomoś|ten e-?mail"
    r"|(?:данно|настояще|эт)[а-я]{1,4} (?:электронн[а-я]{1,4} )?(?:сообщени|письм)"
    r"|\b(?:detta|denne|dette) (?:e-?mail|e-?post|mejl|meddelande|meddelelse|melding|besked)"
    r"|\btämä (?:viesti|sähköposti)|\b(?:tato|tento) (?:zpráv|e-?mail)|\bbu (?:e-?posta|mesaj|ileti)"
    r"|(?:αυτό|παρόν) (?:το )?(?:μήνυμα|e-?mail)|\bez (?:az )?(?:e-?mail|üzenet|levél)"
    r"|(?:本|この|当)(?:メール|邮件|郵件|电子邮件|電子郵件)|(?:이|본) ?(?:메일|메시지|이메일)"
    r"|(?:הודעה|דוא.?ל) ז[וה]|هذ[اه] (?:الرسالة|البريد|الإيميل)|هذه الرسالة",
    re.IGNORECASE,
)
# How a person goes on who has not finished.
GOES_ON = re.compile(
    r"\W*(?:but|only|and|or|also|except|unless|until|if|when|once|after|before|as soon as|wait|hold|stop"
    r"|not|no|never|don['’]?t|do not|however|instead|rather|please|subject to|provided|first"
    r"|aber|nur|und|oder|außer|wenn|falls|sobald|bis|erst|nicht|kein|bitte|jedoch|sofern"
    r"|mais|seulement|uniquement|sauf|si|quand|pas|ne|pero|s[oó]lo|solamente|excepto|cuando|ma|soltanto|solo"
    r"|se|non|mas|apenas|somente|não|maar|alleen|als|tenzij|niet|ale|tylko|jeśli|chyba|nie|но|только|если|не"
    r"|кроме)\b",
    re.IGNORECASE,
)
# What no program writes around a mail: words on what is asked for.
MATTER = re.compile(
    r"\b(?:approv\w*|reject\w*|pay\w*|amounts?|vendors?|suppliers?|invoices?|money|transfer\w*|new|wrong|second"
    r"|genehmig\w*|ablehn\w*|zahl\w*|bezahl\w*|betrag|rechnung\w*|überweis\w*|konto|payer|payez|pagar\w*|montant"
    r"|importe|importo|bedrag|betal\w*|kwot\w*|сумм\w*|плат\w*|i|we|ich|wir)\b",
    re.IGNORECASE,
)
# How a sentence begins that takes something back; the law begins with itself, or with "If you are not".
TURNS_FIRST = re.compile(
    r"\W*(?!(?:if|wenn|falls|sofern|si|se) (?:you|sie|vous|usted|ud|lei|você|u)\b)"
    r"(?:but|and|or|only|not|no|never|wait|hold|first|after|before|unless|until|once|then|however|except|though"
    r"|although|if|when|aber|und|oder|nur|nicht|kein\w*|erst|wenn|falls|sofern|bevor|nachdem|mais|et|ou|pas"
    r"|seulement|sauf|si|quand|après|avant|pero|y|o|no|s[oó]lo|cuando|después|antes|ma|e|non|solo|se|quando"
    r"|dopo|prima|mas|não|só|depois|maar|en|niet|alleen|als|nadat|voordat|men|och|og|inte|ikke|bara|bare|kun"
    r"|när|når|hvis|mutta|ja|ei|vain|jos|kun|ale|i|nie|tylko|jeśli|gdy|po|przed|a|jen|pokud|až|но|и|не|только"
    r"|если|когда|после|ama|ve|sadece|eğer|αλλά|και|δεν|μόνο|αν|de|és|nem|csak|dar|și|nu|doar|dacă)\b",
    re.IGNORECASE,
)
