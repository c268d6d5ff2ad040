"""No regular expression of ours takes more than proportionally long, whatever it is given.

All of them are found by reading the source, and each is tried with inputs made for it: what it
can match, over and over, with something at the end that it cannot.
"""

from __future__ import annotations

import ast
import importlib
import random
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

SOURCE = Path(__file__).parent.parent / "src"
#: One that takes exponentially long shows it in the first, and must not be asked for the others.
LENGTHS = (16, 20, 24, 28, 64, 128, 512, 2_048, 8_192, 32_768)
#: For four times the input; one that is quadratic takes sixteen times as long.
MOST_GROWTH = 9.0
#: Whatever takes less for so much input does no harm, and is too quick to be compared.
HARMLESS_SECONDS = 0.02
_METHODS = frozenset({"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall"})


_ANYWHERE = _METHODS | {"finditer"}
#: From the start on, and no further if that does not fit.
_AT_THE_START = frozenset({"match", "fullmatch"})


@dataclass(frozen=True)
class Found:
    where: str
    pattern: re.Pattern[Any]
    #: The methods that it is used with.
    used: frozenset[str]


def patterns() -> list[Found]:
    """Every pattern in the source: those that modules keep, and those that are used on the spot."""
    found: dict[tuple[Any, int], Found] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if "migrations" in path.parts:
            continue
        calls = list(_calls(ast.parse(path.read_text())))
        if not calls:
            continue
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        module = importlib.import_module(name)
        used = _used(path.read_text())
        for call in calls:
            made = _made(call, module)
            known = used.get(call.lineno, frozenset()) or _ANYWHERE
            before = found.get((made.pattern, made.flags))
            if before is not None:
                known |= before.used
            found[made.pattern, made.flags] = Found(f"{name}:{call.lineno}", made, known)
    return list(found.values())


def _used(source: str) -> dict[int, frozenset[str]]:
    """By line, how the patterns that have a name are used; not those that are handed on."""
    tree = ast.parse(source)
    calls = set(_calls(tree))
    made: dict[str, int] = {}
    shared = {ast.unparse(one).partition(" ")[0].rstrip(":") for one in tree.body}
    for node in ast.walk(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and value in calls:
            made[target.id] = value.lineno
    loaded = [one for one in ast.walk(tree) if isinstance(one, ast.Name) and one.id in made]
    called = [
        (one.value.id, one.attr)
        for one in ast.walk(tree)
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name)
    ]
    found: dict[int, frozenset[str]] = {}
    for name, line in made.items():
        methods = [method for owner, method in called if owner == name]
        uses = sum(one.id == name and isinstance(one.ctx, ast.Load) for one in loaded)
        if uses == len(methods) and (name.startswith("_") or name not in shared):
            found[line] = frozenset(methods)
    return found


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            on = node.func.value
            if isinstance(on, ast.Name) and on.id == "re" and node.func.attr in _METHODS:
                yield node


def _made(call: ast.Call, module: Any) -> re.Pattern[Any]:
    """The pattern of a call, with the names that its module knows."""
    names = {**vars(module), "values": ["TOKEN", "URL"]}
    code = compile(ast.Expression(call.args[0]), "<pattern>", "eval")
    expression = eval(code, names)  # noqa: S307  our own source
    if isinstance(expression, re.Pattern):
        return expression
    flags = [ast.unparse(one) for one in [*call.args[1:], *(k.value for k in call.keywords)]]
    each = [flag for one in flags if one.startswith("re.") for flag in one.split(" | ")]
    wanted = [getattr(re, one.removeprefix("re.")) for one in each]
    return re.compile(expression, sum(wanted))


# ── inputs ──────────────────────────────────────────────────────────────────────────────────────


def attacks(pattern: re.Pattern[Any]) -> list[tuple[str, str, str]]:
    """For each part that repeats: what leads to it, itself, and what never fits behind it."""
    parts = _pumps(list(parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)))
    plain = ["a", "0", " ", "-", "/", "A", "aA0", "=", "'", '"', "\\", "{", "a-", "a.", "\n"]
    found = {(before, pumped): None for before, pumped in parts if pumped}
    found |= {("", pumped): None for pumped in plain}
    return [(before, pumped, ending) for before, pumped in found for ending in ("\x00", "!")]


def _pumps(nodes: list[Any]) -> Iterable[tuple[str, str]]:
    """Pairs of what can stand before a repetition, and what it can be made of."""
    found: list[tuple[str, str]] = []
    _walk(nodes, "", found)
    return found


def _walk(nodes: list[Any], before: str, found: list[tuple[str, str]]) -> str:
    """Goes through a sequence; answers a text that it can match."""
    text = before
    for op, argument in nodes:
        if op in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            low, high, inner = argument
            once = [_sample(list(inner), chance) for chance in range(3)]
            if high == codes.MAXREPEAT or high > 8:
                found.extend((text, one) for one in once)
                # From the start as well: a search begins anew at each letter.
                found.extend(("", text[-20:] + one) for one in once)
            _walk(list(inner), text, found)
            text += once[0] * max(low, 1)
        elif op is codes.BRANCH:
            for branch in argument[1]:
                _walk(list(branch), text, found)
            text += _sample(list(argument[1][0]), 0)
        elif op is codes.SUBPATTERN:
            text = _walk(list(argument[3]), text, found)
        elif op in (codes.ASSERT, codes.ASSERT_NOT):
            _walk(list(argument[1]), text, found)
        else:
            text += _sample([(op, argument)], 0)
    return text


def _sample(nodes: list[Any], chance: int) -> str:
    """A text that a sequence can match; another for another chance."""
    pick = random.Random(chance)
    text = ""
    for op, argument in nodes:
        if op is codes.LITERAL:
            text += chr(argument)
        elif op is codes.NOT_LITERAL:
            text += "b" if argument == ord("a") else "a"
        elif op is codes.ANY:
            text += "a0 "[chance]
        elif op is codes.IN:
            text += _one_of(argument, pick)
        elif op in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            text += _sample(list(argument[2]), chance) * max(argument[0], 1)
        elif op is codes.BRANCH:
            text += _sample(list(pick.choice(argument[1])), chance)
        elif op is codes.SUBPATTERN:
            text += _sample(list(argument[3]), chance)
    return text


@cache
def _letters() -> tuple[str, ...]:
    return (*map(chr, range(32, 127)), "\t", "\n", "é")


def _one_of(members: list[Any], pick: random.Random) -> str:
    """A character of a set, found by asking."""
    allowed = [letter for letter in _letters() if _in(letter, members)]
    return pick.choice(allowed) if allowed else "a"


def _in(letter: str, members: list[Any]) -> bool:
    negated, found = False, False
    for op, argument in members:
        if op is codes.NEGATE:
            negated = True
        elif op is codes.LITERAL:
            found |= letter == chr(argument)
        elif op is codes.RANGE:
            found |= argument[0] <= ord(letter) <= argument[1]
        elif op is codes.CATEGORY:
            found |= _category(letter, argument)
    return found != negated


def _category(letter: str, category: Any) -> bool:
    kinds = {
        codes.CATEGORY_DIGIT: r"\d",
        codes.CATEGORY_NOT_DIGIT: r"\D",
        codes.CATEGORY_SPACE: r"\s",
        codes.CATEGORY_NOT_SPACE: r"\S",
        codes.CATEGORY_WORD: r"\w",
        codes.CATEGORY_NOT_WORD: r"\W",
    }
    return re.match(kinds[category], letter) is not None


# ── time ────────────────────────────────────────────────────────────────────────────────────────


def seconds(pattern: re.Pattern[Any], text: Any, used: frozenset[str]) -> float:
    """What is done with it: from the start, or everywhere."""
    began = time.thread_time()
    if "fullmatch" in used:
        pattern.fullmatch(text)
    if "match" in used:
        pattern.match(text)
    if not used <= _AT_THE_START:
        for _ in pattern.finditer(text):
            pass
    return time.thread_time() - began


def slow(pattern: re.Pattern[Any], used: frozenset[str] = _ANYWHERE) -> list[str]:
    """The first input for which it takes more than proportionally long."""
    found: list[str] = []
    for before, pumped, ending in attacks(pattern):
        took, length = 0.0, 1
        for longer in LENGTHS:
            # Four times the input may take 64 times as long then, and still do no harm.
            if length >= 8_192 and took * 64 < HARMLESS_SECONDS:
                break
            text: Any = before + (pumped * longer)[:longer] + ending
            if isinstance(pattern.pattern, bytes):
                text = text.encode("latin-1", "replace")
            was, took = took, seconds(pattern, text, used)
            growth = took / max(was, 1e-6) * 4 * length / longer
            if took > HARMLESS_SECONDS and (growth > MOST_GROWTH or longer < 100):
                took = min(
                    took, seconds(pattern, text, used)
                )  # somebody else may have been in the way
                growth = took / max(was, 1e-6) * 4 * length / longer
                if took > HARMLESS_SECONDS and (growth > MOST_GROWTH or longer < 100):
                    found.append(f"{text[:60]!r}, {longer} long: {took:.3f} s, {growth:.0f} times")
                    return found
            length = longer
    return found


def test_the_timer_catches_expressions_that_are_known_to_be_slow() -> None:
    quadratic = [r"\s+$", r"thread .* not found", r"<a [^>]*>", r"[\w.]+@example"]
    worse = [r"(\w+\s?)*\d$", r"(a+)+$", r".*,.*,.*;", r"(x|x)*y", r"^(\d+)*z"]
    for one in (*quadratic, *worse):
        assert slow(re.compile(one)), one


def test_no_expression_takes_more_than_proportionally_long() -> None:
    found = patterns()
    assert len(found) >= 75
    trouble = {one.where: slow(one.pattern, one.used) for one in found}
    assert not {where: what for where, what in trouble.items() if what}
