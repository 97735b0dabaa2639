"""Which words decide, which are mere courtesy, and which take a decision back?

English is built in; `verdicts.Words` adds the words of other languages. Phrases and patterns stand in lower
case, for text of bounded length.
"""

from __future__ import annotations

import re


def _phrases(text: str) -> tuple[str, ...]:
    """The phrases of a text that separates them by bars and line breaks."""
    return tuple(part for line in text.strip().splitlines() for part in map(str.strip, line.split("|")))


APPROVE = _phrases(
    "approve | approved | i approve | it is approved | this is approved | it's approved | go ahead"
)
APPROVE_ALONE = _phrases("yes | 👍 | ✅")  # decide only without another word beside them
REJECT = _phrases(
    """
    reject | rejected | i reject | it is rejected | this is rejected | decline | declined | i decline
    deny | denied | i deny | do not approve | don't approve | dont approve | not approved | i do not approve
    i don't approve | i dont approve | it is not approved | this is not approved | 👎 | ❌
    """
)
RETRY = _phrases("retry | retry it | try again | try it again")
DONE = _phrases("done | it was done | it is done | it's done | it happened | it has happened")
FAILED = _phrases(
    "failed | it failed | it has failed | it was not done | it did not happen | it didn't happen | not done"
)
RESPOND = re.compile(r"(?:respond|response|answer|reply)\s*:", re.IGNORECASE)

# Before the numbers of a list.
APPROVE_NUMBERS = _phrases("approve | approved | i approve | go ahead with")
REJECT_NUMBERS = _phrases(
    """
    reject | rejected | i reject | decline | declined | i decline | deny | denied
    do not approve | don't approve | dont approve | i do not approve | i don't approve
    """
)
SNOOZE = _phrases("snooze | postpone")

OBJECTS = _phrases("it | this | that | this one | the request | this request")
BEFORE_APPROVAL = _phrases(
    """
    please | yes | ok | okay | sure | great | perfect | good | fine | no problem | no objection
    no objections | all good | looks good | lgtm | thanks | thank you
    """
)
BEFORE_REJECTION = _phrases("please | wait | stop | hold on | no | sorry | i'm sorry | hmm | oh | actually")
COURTESY = _phrases(
    """
    please | thanks | thank you | thx | many thanks | thanks a lot | thanks so much | thank you very much
    thank you so much | much appreciated | cheers | great | perfect | best | regards | have a nice day
    have a good day | 🙏 | 🙂 | 😊 | danke | vielen dank | merci | merci beaucoup | gracias | muchas gracias
    grazie | grazie mille | obrigado | obrigada | dziękuję | dzięki | спасибо | bedankt | dank je | dank u
    tack | tak | takk | kiitos | děkuji | díky | teşekkürler | teşekkür ederim | ευχαριστώ | köszönöm | תודה
    شكرا | شكراً | ありがとうございます | ありがとう | 谢谢 | 謝謝 | 감사합니다
    """
)

GREETING = re.compile(
    r"(?:hi|hello|hey|dear|good (?:morning|afternoon|evening|day)|hallo|guten (?:tag|morgen)|liebe[rs]?"
    r"|bonjour|salut|hola"
    r"|buen(?:os)? d[ií]as?|ciao|buongiorno|salve|olá|oi|bom dia|dzień dobry|cześć|привет|здравствуйте"
    r"|добрый день"
    r"|beste|hej|hei|moi|dobrý den|ahoj|merhaba|selam|γεια(?: σας)?|szia|שלום|היי|مرحبا|السلام عليكم"
    r"|こんにちは"
    r"|お世話になっております|你好|您好|안녕하세요)(?!['’\w])"
)
# Whom a greeting may name in small letters; names have a capital.
ADDRESSED = _phrases(
    """
    there | all | team | everyone | everybody | folks | guys | both | again | bot | pizza | alle | zusammen
    tous | toutes | todos | todas | tutti | tutte | allemaal | alla | wszystkim | všem
    """
)
CLOSING = re.compile(
    r"(?:(?:with )?(?:kind|best|warm|warmest|many)(?:est)? (?:regards|wishes)|regards|best|all the best"
    r"|cheers|sincerely"
    r"|yours (?:sincerely|faithfully|truly)|thanks(?: and (?:kind |best )?regards)?|thank you|many thanks"
    r"|thx|br|kr|rgds"
    r"|(?:mit )?(?:freundlichen?|besten?|herzlichen?|vielen?|lieben?|schönen?|liebe|viele) gr(?:ü(?:ß|ss)"
    r"|uess)(?:e|en)?"
    r"(?: aus [a-zäöüß-]{2,30})?|gru(?:ß|ss)|grüße|mfg|lg|vg|danke|vielen dank|cordialement"
    r"|bien cordialement|cdlt|bien à vous"
    r"|salutations|sincères salutations|meilleures salutations|merci|saludos|un saludo|saludos cordiales"
    r"|atentamente|gracias"
    r"|cordiali saluti|distinti saluti|saluti|grazie|atenciosamente|cumprimentos|melhores cumprimentos"
    r"|com os melhores cumprimentos"
    r"|obrigad[oa]|pozdrawiam|z poważaniem|z pozdrowieniami|dziękuję|с уважением|всего доброго|спасибо"
    r"|(?:met )?vriendelijke groet(?:en)?|groet(?:en|jes)?|mvg|bedankt|(?:med )?vänliga? hälsning(?:ar)?"
    r"|hälsningar|mvh|tack"
    r"|(?:med )?venlig(?:e)? hilsen(?:er)?|(?:med )?vennlig hilsen|hilsen|takk|ystävällisin terveisin"
    r"|terveisin|terv\.?|kiitos"
    r"|s pozdravem|s přátelským pozdravem|hezký den|děkuji|saygılarımla|saygılar|iyi çalışmalar|teşekkürler"
    r"|με εκτίμηση"
    r"|φιλικά|ευχαριστώ|üdvözlettel|tisztelettel|üdv|köszönöm|בברכה|תודה|مع التحية|مع أطيب التحيات|تحياتي"
    r"|شكرا"
    r"|よろしくお願いします|よろしくお願いいたします|敬具|此致|祝好|谢谢|顺祝商祺|감사합니다"
    r"|드림)[ ,.!，。！]*"
)

# What makes more of an approval than an approval, wherever it stands.
TURNS = re.compile(
    r"\b(?:not|no|never|none|nothing|cannot|\w{1,10}n['’]t|dont|but|if|unless|until|till|only|wait|stop|hold"
    r"|cancel|undo"
    r"|reject\w*|declin\w*|den(?:y|ied)|refus\w*|approv\w*|yes|before|after|first|chang\w*|instead|except"
    r"|however|actually"
    r"|kidding|joke|later|soon|today|tomorrow|tonight|week|month|\w{2,6}day|maybe|perhaps|possibly|probably"
    r"|when|once"
    r"|pending|subject|condition\w*|provided|provisional\w*|part|partly|partial\w*|half|max\w*|though"
    r"|although|although"
    r"|otherwise|anyway|nope|nah|scratch|forget|ignore|rather|unsure|doubt\w*)\b"
)
# The same in other languages: what denies, restricts, postpones, or makes a condition.
TURNS_ELSEWHERE = re.compile(
    r"\b(?:nichts?|kein\w*|nie|niemals|nein|nee|aber|jedoch|nur|erst|wenn|falls|sofern|außer|ohne|statt\w*"
    r"|sondern|später|morgen|heute|höchstens|hälfte|halb\w*|warte\w*|stopp|vielleicht|oder"
    r"|ne|pas|jamais|rien|non|mais|seulement|uniquement|sauf|sans|quand|après|avant|demain|aujourd|plutôt"
    r"|moitié|attend\w*|peut-être"
    r"|nunca|nada|pero|sino|s[oó]lo|solamente|únicamente|excepto|sin|cuando|después|antes|mañana|hoy|espera"
    r"|mitad|quizás?"
    r"|mai|niente|però|soltanto|tranne|senza|quando|dopo|prima|domani|oggi|aspetta|metà|forse"
    r"|não|porém|só|somente|apenas|exceto|sem|depois|amanhã|hoje|espere|metade|talvez"
    r"|niets?|nooit|geen|maar|alleen|als|tenzij|zonder|vandaag|wacht|helft|misschien"
    r"|inte|ej|aldrig|ikke|aldri|men|bara|bare|kun|endast|hvis|utan|uten|uden|imorgon|vänta|vent|nej|nei"
    r"|hälften|halvdelen|ei|älä|mutta|vain|jos|vasta|huomenna|odota|puolet"
    r"|nigdy|ale|lecz|tylko|jeśli|jeżeli|bez|dopiero|jutro|dziś|dzisiaj|czekaj|połow\w*"
    r"|nikdy|jen|jenom|pouze|pokud|jestli|zítra|dnes|čekej|počkej|polovinu"
    r"|не|нет|ні|никогда|но|але|только|лишь|тільки|лише|если|якщо|кроме|без|завтра|сегодня|позже|потом"
    r"|подожди\w*|стоп|половин\w*"
    r"|değil|hayır|ama|fakat|sadece|yalnız\w*|eğer|yarın|bugün|sonra|bekle\w*|yarısı"
    r"|όχι|μην?|δεν|αλλά|μόνο|αν|εκτός|χωρίς|αύριο|σήμερα|μετά|περίμενε"
    r"|nem|soha|csak|kivéve|nélkül|holnap|várj|nu|niciodată|dar|doar|numai|dacă|fără|mâine|așteaptă"
    r"|ו?(?:לא|אין|רק|אם|אבל|מחר)|و?(?:لا|ليس|لكن|فقط|إذا|اذا|غدا|بدون|لم|لن))\b"
    r"|^(?:si|se|ma|mas|om|ha|de)\b"
    r"|[不没沒别別勿但只仅僅若停]|如果|除非|ない|ません|だめ|ダメ|駄目|ただし|だけ|のみ|もし|않|아니|못|지만|말고|잠깐"
    r"|ไม่|แต่|ถ้า|नहीं|लेकिन|अगर"
)
# What makes a sentence of a line that could pass for a name, a title or an address.
STATEMENT = re.compile(
    r"\b(?:i|we|you|he|she|they|me|is|are|was|were|this|that|these|those|please|pay|amount|make|use|reduce"
    r"|lower|raise|increase|decrease|set|send|wrong|disagree\w*|mistake|error|sorry|p\.? ?s|without|than|more"
    r"|less|must|should|need|want|too|also|ich|wir|bitte|je|nous|vous)\b"
    r"|\d ?(?:[€$£¥]|(?:eur|usd|gbp|chf|euros?|dollars?)\b)|[€$£¥] ?\d|^\W*\d{1,4}\W*$"
)
# Beside an approval, only a question about something else: "Also, what time is it?".
ASIDE = re.compile(
    r"(?:also|by the way|btw|another question|one more thing|separately|unrelated)[ ,:–—-]+"
    r"(?:what|who|whose|when|where|which|how)\b(?! (?:about|if)\b)[^.!?。！？\n\d]{1,200}[?？]"
)
ASSENT = re.compile(
    r"\b(?:approv\w*|yes|yep|yeah|go ahead|accept\w*|agree\w*|ok|okay|fine|sure|proceed)\b|👍|✅"
)
RETRACTS = re.compile(
    r"\b(?:kidding|joke|joking|never ?mind|wait|hold on|scratch|ignore|forget|instead|undo)\b"
)
CONDITION = re.compile(
    r"(?:if|unless|when|until|till|once|only|except|or|maybe|perhaps|probably|possibly|but|and|nothing|not"
    r"|neither|later"
    r"|tomorrow|for now|in case)\b"
)
NO_BUT_YES = re.compile(
    r"\b(?:problem\w*|worr\w*|issue\w*|objection\w*|need|rush|hurry|idea|doubt|changes?|comments?|questions?"
    r"|good|right|great"
    r"|just|do it|please do|matter|longer|one)\b"
)
# What sounds like a decision and is none, at the beginning of a text: hedges, small talk, other languages.
SOUNDS = re.compile(
    r"(?:ok\w*|okay|sure|fine|yes|yep|yeah|yup|no|nope|nah|not|never|good|great|perfect|agree\w*|accept\w*"
    r"|confirm\w*|lgtm"
    r"|looks? good|sounds? good|do it|proceed|go|please|i|i['’]?[md]|i['’]ll|we|we['’]?ll|let['’]?s|maybe"
    r"|perhaps|probably|don['’]?t|do not"
    r"|cannot|can['’]?t|stop|cancel|wait|hold|never ?mind|abort|decline\w*|den(?:y|ied)|refuse\w*|approv\w*"
    r"|reject\w*|retry|failed|done|it was done)\b"
)
VERDICTS = re.compile(
    r"\b(?:approv\w*|reject\w*|declin\w*|den(?:y|ied)|go ahead|retry|yes|agree\w*|accept\w*|proceed"
    r"|refus\w*)\b|👍|👎|✅|❌"
)
FOREIGN_FIRST = re.compile(
    r"(?:ja|nein|oui|non|sí|si|sì|sim|não|tak|nie|да|нет|nee|nej|nei|kyllä|ei|ano|ne|evet|hayır|ναι|όχι|igen"
    r"|nem|nu|áno)\b"
    r"|כן|לא|نعم|لا|はい|いいえ|是|不|好|네|예|아니"
)
FOREIGN = re.compile(
    r"\b(?:genehmig\w*|freigegeben|freigabe|freigeben|zugestimmt|zustimm\w*|einverstanden|abgelehnt"
    r"|ablehn\w*|lehne|stimme zu"
    r"|approuv\w*|d['’]accord|accepté\w*|valid[ée]\w*|refus\w*|rejet\w*|aprob\w*|apruebo|rechaz\w*"
    r"|de acuerdo|acepto|aceptad\w*"
    r"|deneg\w*|approv(?:o|ato|ata|iamo|are)|d['’]accordo|rifiut\w*|respin\w*|accett\w*|aprov\w*|rejeit\w*"
    r"|recus\w*|concordo"
    r"|zatwierdz\w*|akceptuj\w*|zgoda|zgadzam|odrzuc\w*|odmaw\w*|одобр\w*|утвержд\w*|соглас\w*|отклон\w*"
    r"|отказ\w*|возража\w*"
    r"|goedgekeurd|keur|akkoord|afgekeurd|afgewezen|godkän\w*|godkend\w*|godkjen\w*|avslå\w*|avslag\w*"
    r"|avvis\w*|afvis\w*"
    r"|neschval\w*|nesouhlas\w*|afslå\w*|hyväksy\w*|hylkää\w*|hylätty|schval\w*|souhlas\w*|zamít\w*|odmít\w*|onay\w*|kabul|redde\w*"
    r"|reddi\w*"
    r"|εγκρίν\w*|εγκρ\w*|απορρίπ\w*|απόρρι\w*|jóváhagy\w*|elfogad\w*|elutasít\w*|rendben)\b"
    r"|מאשר|מאושר|אישור|דוחה|נדחה|מסכים|מסכימה|موافق|أوافق|اوافق|معتمد|مرفوض|أرفض|ارفض"
    r"|承認|却下|同意|許可|差し戻し|批准|通过|通過|拒绝|拒絕|驳回|승인|거절|거부|반려|동의"
)
# What may follow a rejection at once, without a colon, as its reason.
REASON = re.compile(r"(?:because|since|as|due to|too|it|it['’]s|that['’]s|this is|wrong|we|i)\b")
SIGNED = re.compile(
    r"(?:thanks|thank you|thx|cheers|regards|best|many thanks|danke|merci|gracias|grazie)[ ,.!]+$"
)
