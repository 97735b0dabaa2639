"""What does a plain English sentence say: which words, which parts, which numbers and days?

Pure functions for the offline demo model. They know some English and nothing about models or tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_STOP = _set(
    "a an the this that these those my our your his her its their it i me we you he she they them to of for "
    "from in on at by with into about and or but if so as is are was were be been am do does did done have "
    "has had can could would should will shall may might must please kindly want need like just also then "
    "there here when what which who how where why not no yes one two use used using tool given over all any "
    "some such example instance words word person people ask asks asking say says "
    "eur euro euros usd dollar dollars gbp pound pounds jpy yen"
)
_IRREGULAR = {
    "spent": "spend", "paid": "pay", "bought": "buy", "sent": "send", "wrote": "write", "written": "write",
    "met": "meet", "made": "make", "found": "find", "sums": "sum",
}  # fmt: skip
_SUFFIXES = (("ies", "y"), ("ments", ""), ("ment", ""), ("ings", ""), ("ing", ""), ("ed", ""), ("s", ""))
_SAME = {
    "add": "file record log enter save submit create put insert register",
    "list": "show see view display enumerate",
    "total": "sum much many altogether",
    "remove": "delete drop erase undo cancel",
    "find": "search look fetch get lookup",
    "send": "mail email post",
    "draft": "write compose",
    "summary": "summarise summarize recap digest",
}
_READ = _set(
    "show list see view display tell what which how find search look get fetch total sum count check read"
)
_WRITE = _set(
    "add file record log enter save submit create put insert register remove delete drop cancel undo send "
    "mail email post draft write book pay schedule update change set note prepare make"
)
_LEAD_IN = re.compile(
    r"^\W*(?:(?:please|kindly|hi|hello|hey|also|then|and|now|can you|could you|would you|i want to|"
    r"i would like to|i'd like to)\b[\s,]*)+",
    re.IGNORECASE,
)
_BREAK = re.compile(r"(?<=[.!?;])\s+|\s*\n+\s*|,?\s+(?:and(?:\s+then|\s+also)?|then)\s+", re.IGNORECASE)
_ISO_DAY = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_NAME = f"({'|'.join(_MONTHS)})"
_DAY_OF_MONTH = re.compile(
    rf"\b(?:(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_NAME}|{_NAME}\s+(\d{{1,2}})(?:st|nd|rd|th)?)\b(?:,?\s+(\d{{4}})\b)?",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?<![\w.,:-])[€$¥£]?\s?(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?)(?![\d:-])(?:[€¥£$])?"
)
_CURRENCIES = {
    "EUR": ("€", "eur", "euro", "euros"),
    "USD": ("$", "usd", "dollar", "dollars"),
    "JPY": ("¥", "jpy", "yen"),
    "GBP": ("£", "gbp", "pound", "pounds"),
}


def stem(word: str) -> str:
    """`word` without its ending, and one word for those that mean the same command."""
    word = word.lower()
    word = _IRREGULAR.get(word, word)
    return _COMMON.get(_bare(word), _bare(word))


def _bare(word: str) -> str:
    for suffix, instead in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3 and not word.endswith("ss"):
            word = word[: -len(suffix)] + instead
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word.rstrip("e") if len(word) > 3 else word


_COMMON = {_bare(other): _bare(word) for word, others in _SAME.items() for other in others.split()}
GENERIC = frozenset(
    _bare(word) for word in [*_SAME, "make", "give", "tell", "check", "help", "prepare", "read"]
)


def telling(text: str) -> list[str]:
    """The words of `text` that carry meaning, each once."""
    found = re.findall(r"[^\W\d_]+", re.sub(r"['’]s\b", "", text.lower()))
    return list(dict.fromkeys(word for word in found if len(word) > 1 and word not in _STOP))


def stems(text: str) -> frozenset[str]:
    """The stems of the words that carry meaning."""
    return frozenset(stem(word) for word in telling(text))


@dataclass(frozen=True)
class Described:
    """Something that can be chosen by its name and its description: a worker or a tool."""

    name: str
    description: str

    @property
    def name_stems(self) -> frozenset[str]:
        return stems(re.sub(r"[_\W]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.name)))

    @property
    def all_stems(self) -> frozenset[str]:
        return self.name_stems | stems(self.description)


def scores(text: str, choices: Iterable[Described], *, command_weight: float) -> Mapping[str, float]:
    """How well `text` fits each choice, by name. A word that many choices share says little.

    Commands such as "add" and "show" tell tools apart (`command_weight` 1) and hardly workers.
    """
    known = list(choices)
    vocabulary = [(choice.name, choice.name_stems, choice.all_stems) for choice in known]
    said = stems(text)
    result = dict.fromkeys((choice.name for choice in known), 0.0)
    for word in said:
        sharing = sum(word in every for _, _, every in vocabulary)
        for name, in_name, every in vocabulary:
            if word in every:
                weight = (2.0 if word in in_name else 1.0) / sharing
                result[name] += weight * (command_weight if word in GENERIC else 1)
    return result


def without_lead_in(text: str) -> str:
    """`text` without "please", "can you" and the like in front."""
    return _LEAD_IN.sub("", text).strip()


def _first_word(text: str) -> str:
    found = re.match(r"[^\W\d_]+", without_lead_in(text))
    return found.group().lower() if found else ""


def starts_with_command(text: str) -> bool:
    """Does the sentence begin a request of its own?"""
    return _first_word(text) in _READ | _WRITE


def wants_to_read(text: str) -> bool:
    """Does the sentence ask to see something?"""
    return _first_word(text) in _READ


def wants_to_write(text: str) -> bool:
    """Does the sentence ask to change something, or state an amount of money?"""
    if wants_to_read(text):
        return False
    return _first_word(text) in _WRITE or (bool(numbers(text)) and currency(text) is not None)


def parts(text: str) -> list[str]:
    """`text` cut into sentences, and at an "and" behind which something new begins."""
    found: list[str] = []
    start = 0
    for gap in _BREAK.finditer(text):
        rest = text[gap.end() :]
        begins_anew = _first_word(rest) in _READ | _WRITE | {"i"} or re.match(r"[€$¥£]?\d", rest)
        if gap.group().strip(" ,").lower() and not begins_anew:
            continue
        found.append(text[start : gap.end()])
        start = gap.end()
    return [part for part in [*found, text[start:]] if part.strip()]


def tidy(part: str) -> str:
    """A part without the "and" that led to the next one."""
    return re.sub(r"[\s,]*(?:\b(?:and|then|also)\b[\s,]*)*$", "", part, flags=re.IGNORECASE).strip()


def numbers(text: str) -> list[tuple[str, float]]:
    """The numbers in `text`, as written and as value; not those of dates and times."""
    covered = _DAY_OF_MONTH.sub(_blank, _ISO_DAY.sub(_blank, re.sub(r"\b\d{4}-\d{2}\b", _blank, text)))
    return [(found.group(1), _value(found.group(1))) for found in _NUMBER.finditer(covered)]


def _blank(found: re.Match[str]) -> str:
    return "~" * len(found.group())


def _value(written: str) -> float:
    if re.fullmatch(r"\d+,\d{1,2}", written):
        return float(written.replace(",", "."))
    return float(written.replace(",", ""))


def currency(text: str) -> str | None:
    """The ISO code of the first currency that is named by code, word or sign."""
    low = text.lower()
    places = {
        code: min((place for name in names if (place := _place(name, low)) >= 0), default=-1)
        for code, names in _CURRENCIES.items()
    }
    named = [(place, code) for code, place in places.items() if place >= 0]
    return min(named)[1] if named else None


def _place(name: str, text: str) -> int:
    pattern = re.escape(name) if not name.isalpha() else rf"(?<![a-z]){name}(?![a-z])"
    found = re.search(pattern, text)
    return found.start() if found else -1


def day(text: str, today: date) -> str | None:
    """The day that `text` names, in ISO form; without a year it is the latest such day."""
    if iso := _ISO_DAY.search(text):
        return iso.group()
    for word, distance in (("yesterday", -1), ("today", 0), ("tomorrow", 1)):
        if re.search(rf"\b{word}\b", text, re.IGNORECASE):
            return (today + timedelta(days=distance)).isoformat()
    return _day_of_month(text, today)


def _day_of_month(text: str, today: date) -> str | None:
    found = _DAY_OF_MONTH.search(text)
    if not found:
        return None
    before, name, other_name, after, year = found.groups()
    number = _MONTHS.index((name or other_name).lower()) + 1
    try:
        named = date(int(year or today.year), number, int(before or after))
        return (named if year or named <= today else named.replace(year=named.year - 1)).isoformat()
    except ValueError:
        return None


def month(text: str, today: date) -> str | None:
    """The month that `text` names, as YYYY-MM; a bare name is the latest such month."""
    if iso := re.search(r"\b\d{4}-(?:0[1-9]|1[0-2])\b", text):
        return iso.group()
    if re.search(r"\bthis month\b", text, re.IGNORECASE):
        return f"{today:%Y-%m}"
    if re.search(r"\blast month\b", text, re.IGNORECASE):
        return f"{today.replace(day=1) - timedelta(days=1):%Y-%m}"
    named = re.search(rf"\b(?:in|of|for|during|since)\s+{_NAME}\b(?:\s+(\d{{4}}))?", text, re.IGNORECASE)
    if not named:
        return None
    number = _MONTHS.index(named.group(1).lower()) + 1
    year = int(named.group(2)) if named.group(2) else today.year - (number > today.month)
    return f"{year}-{number:02}"
