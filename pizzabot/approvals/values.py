"""How do arguments become lines that a person can change in a mail, and what do lines become that came back?

    key: value     never wrapped; a string stands plain unless it could be misread, everything else as JSON

Mail programs capitalise, wrap, indent and respace what passes through them, lead links through gateways and
lose letters; white space and such damage alone are never a change. What cannot be read without guessing is an
error in words, and nothing is ever dropped or coerced.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pizzabot.approvals import damage
from pizzabot.approvals.arguments import by_argument, problems
from pizzabot.approvals.forms import Field, FieldKind, fields, fill
from pizzabot.approvals.schemas import shapes, type_of
from pizzabot.approvals.value_lines import squeezed
from pizzabot.approvals.value_lines import texts as texts_of
from pizzabot.messages import Args, Json
from pizzabot.text import visible

MISSING = "is missing"
_PLAIN_KEY = re.compile(r"[^\s\"'{\[:：*•·-][^\n\r:：\"]{0,199}")
_BULLET = re.compile(r"(?:[-*•·◦▪]|\d{1,3}[.)])\s+")
_GROUPED = re.compile(r"([+-]?[1-9][0-9]{0,2})\.([0-9]{3})")
_ODD_SPACE = re.compile(r"[\t\x0b\x0c\x1c-\x1f\x85\u1680\u2000-\u200a\u2028\u2029\u205f]|  ")
_SPACE = re.compile(r"\s")
_SMART = str.maketrans("“”„‟«»＂", '"""""""')
_SPACES = str.maketrans("\u00a0\u202f\u3000", "   ")
_BLOCK = "values"
_LONGEST_CHOICES = 100  # characters
_SCALAR = (FieldKind.INTEGER, FieldKind.NUMBER, FieldKind.BOOLEAN)


@dataclass(frozen=True, slots=True)
class Changes:
    """What came back. `args` is the full set, to be used only without `errors`.

    `errors` say by argument name what is wrong and begin with a verb; "" names the block as a whole.
    `missing` are the names that the lines left out: each of them is an error, too. `doubtful` are those whose
    change may be a program's and not a person's.
    """

    args: Mapping[str, Json]
    changed: tuple[str, ...] = ()
    errors: Mapping[str, str] | None = None
    missing: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()

    @property
    def is_cut(self) -> bool:
        """Whether lines are missing and nothing else is wrong: what a mail program does to a quote."""
        return not self.changed and set(self.errors or ()) == set(self.missing) and bool(self.missing)


def write(schema: Mapping[str, Any], args: Args) -> list[str]:
    """One line for each argument, in the order of the schema."""
    return [f"{_key(name)}: {_written(args[name])}" for name in _names(schema, args)]


def read(lines: str, schema: Mapping[str, Any], args: Args) -> Changes:
    """What the lines that `write` made of `args` say now."""
    proposed = {field.name: field for field in fields(schema, args)}
    block = lines.strip()
    if block.startswith("{"):  # no name is written so
        texts, errors = _object(block, proposed)
    else:
        texts, errors = texts_of(block, args, proposed)
    missing = () if "" in errors else tuple(name for name in args if name not in texts and name not in errors)
    values: dict[str, Json] = {}
    for name, text in texts.items():
        if name in errors:
            continue
        try:
            values[name] = _value(proposed[name], text)
        except ValueError as error:
            errors[name] = str(error)
    changes = _changes(schema, args, values, errors, missing)
    doubtful = tuple(
        name
        for name in changes.changed
        if name in texts and name in args and damage.is_doubtful(texts[name], _written(args[name]))
    )
    return replace(changes, doubtful=doubtful)


def _changes(
    schema: Mapping[str, Any], args: Args, values: Args, errors: dict[str, str], missing: tuple[str, ...]
) -> Changes:
    final = {**args, **values}
    changed = tuple(name for name in final if name not in args or not _same(final[name], args[name]))
    for name in changed:
        if name in args and not _same_type(final[name], args[name]) and not _is_typed(schema, name):
            errors.setdefault(name, f"is {_noun(final[name])} now and was {_noun(args[name])}")
    if changed and not errors:
        errors |= by_argument(problems(final, schema), changed)
    errors |= dict.fromkeys(missing, MISSING)
    return Changes(final, changed, errors, missing)


# -- writing ---------------------------------------------------------------------------------------------


def _names(schema: Mapping[str, Any], args: Args) -> list[str]:
    return [field.name for field in fields(schema, args) if field.given]


def _key(name: str) -> str:
    plain = (
        _PLAIN_KEY.fullmatch(name)
        and name == name.strip()
        and visible(name) == name
        and not _BULLET.match(name)
    )
    if plain and not _ODD_SPACE.search(name):
        return name
    # Programs change spaces; in JSON they can be written out.
    return _SPACE.sub(lambda space: f"\\u{ord(space[0]):04x}", _json(name))


def _written(value: Json) -> str:
    return value if isinstance(value, str) and _is_plain(value) else _json(value)


def _is_plain(text: str) -> bool:
    """Whether a string needs no quotes: on one line, with nothing unseen, and unlike any other value."""
    if (
        not text
        or text != text.strip()
        or text[0] in '"“„«[{'
        or visible(text) != text.translate(_SPACES)
        or _ODD_SPACE.search(text)
    ):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text.lower() not in ("nan", "infinity", "-infinity", "null", "true", "false")
    return False


def _json(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # What no person sees, or programs change, is written out, so that it comes back.
    return text if visible(text) == text.translate(_SPACES) else json.dumps(value)


# -- reading ---------------------------------------------------------------------------------------------


def _value(field: Field, text: str) -> Json:
    """The value that a text stands for.

    Raises:
        ValueError: it stands for none; the message begins with a verb.
    """
    if field.given and _is_untouched(text, _written(field.value)):
        return field.value
    if text == "null" and field.nullable:
        return None
    if text == "null" and field.reads is FieldKind.TEXT:
        raise ValueError("is null, which it must not be")
    quoted = _string(text)
    if field.kind is FieldKind.CHOICE:
        wanted = text if quoted is None else quoted
        chosen = [c for c in field.choices if _written(c.value) == text or c.value == wanted]
        text = chosen[0].text if len(chosen) == 1 else text
    elif field.reads is FieldKind.TEXT:
        text = text if quoted is None else quoted
        if quoted is None and text[:1] == '"':
            raise ValueError("begins with a quotation mark and is no JSON string")
        return text
    elif field.kind is FieldKind.JSON and isinstance(field.value, str) and _is_plain(text):
        return text
    elif field.reads is FieldKind.LIST or field.kind is FieldKind.JSON:
        field = replace(field, kind=FieldKind.JSON, reads=FieldKind.JSON)
        text = text if _is_json(text) else text.translate(_SMART)
    elif field.reads in _SCALAR:
        text = unicodedata.normalize("NFKC", text)
        if field.reads is FieldKind.NUMBER and not _is_fine(field) and (found := _GROUPED.fullmatch(text)):
            raise ValueError(_which(found[1], found[2]))
    # As if nothing were proposed: what stayed as it was is known already.
    filled = fill((replace(field, given=False, required=True, nullable=False, text=""),), {field.name: text})
    if field.name in filled.errors:
        raise ValueError(filled.errors[field.name] + _choices(field))
    return filled.args[field.name]


def _choices(field: Field) -> str:
    """The choices, where they are few: a form shows them, lines do not."""
    listed = ", ".join(_written(choice.value) for choice in field.choices)
    return f": {listed}" if 0 < len(listed) <= _LONGEST_CHOICES else ""


def _is_untouched(text: str, proposed: str) -> bool:
    """Whether a text is what was proposed, but for what programs do to it."""
    came, went = squeezed(text), squeezed(proposed)
    back = squeezed(damage.undone(text))
    return damage.plain(back) == damage.plain(went) or damage.is_lossy(came, went)


def _object(block: str, proposed: Mapping[str, Field]) -> tuple[dict[str, str], dict[str, str]]:
    """The texts of a block that is one JSON object."""
    whole = Field(_BLOCK, FieldKind.JSON, "", False, None, True, False, reads=FieldKind.JSON)
    block = block.translate(_SPACES)
    filled = fill((whole,), {_BLOCK: block})
    if filled.errors and not _is_json(block):
        again = fill((whole,), {_BLOCK: block.translate(_SMART)})
        filled = filled if again.errors else again
    if filled.errors:
        return {}, {"": filled.errors[_BLOCK]}
    found = filled.args[_BLOCK]
    if not isinstance(found, dict):
        return {}, {"": "are no JSON object"}
    unknown = {name: "is not among the values" for name in found if name not in proposed}
    known = {name: value for name, value in found.items() if name in proposed}
    unlike = {
        name: f"is {_noun(value)} now and was {_noun(proposed[name].value)}"
        for name, value in known.items()
        if proposed[name].reads is FieldKind.TEXT and type_of(value) not in ("string", "null")
    }
    return {name: _json(value) for name, value in known.items()}, unknown | unlike


def _is_fine(field: Field) -> bool:
    """Whether the proposed number has three decimals or more, so that a changed one may, too."""
    return field.given and len(str(field.value).partition(".")[2]) >= 3


def _which(whole: str, rest: str) -> str:
    """What to write for a point before three digits: half of the world separates thousands with it."""
    decimals = rest.rstrip("0")
    exact = f"{whole}.{rest}0" if len(decimals) == 3 else f"{whole}.{decimals}".rstrip(".")
    return f"can be read in two ways; write {whole}{rest} or {exact}"


def _string(text: str) -> str | None:
    """The string that a text is as JSON; curly quotation marks around it count as straight ones."""
    for form in (text, text.translate(_SMART)):
        try:
            value = json.loads(form, strict=False)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, str) else None
    return None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _same(one: Json, other: Json) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _same_type(one: Json, other: Json) -> bool:
    return one is None or other is None or type_of(one) == type_of(other)


def _is_typed(schema: Mapping[str, Any], name: str) -> bool:
    """Whether the schema itself says what an argument may be."""
    known = shapes(schema)
    shape = known.named.get(name, known.others)
    return bool(shape.types or shape.choices)


def _noun(value: Json) -> str:
    return {
        "null": "nothing",
        "string": "a text",
        "array": "a list",
        "object": "an object",
        "boolean": "true or false",
    }.get(type_of(value), "a number")
