"""Every verb decides where it can be read: a rule about the source, whatever other tests call.

Looking something up never authorises; `ctx.require` does, in the verb. A refusal is made of a
decision, in one place.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import remit
from remit.errors import NotFound
from remit.services import lookup
from remit.services.verbs import Verb, all_verbs
from tests.company import Company

SOURCE = Path(remit.__file__).parent
SERVICES = "remit.services."

#: Verbs that everybody with a token may call, and why nothing is to be decided.
FOR_EVERYBODY = {
    "bootstrap.is_empty": "asked by the instance itself before there is anybody",
    "changes.listing": "what agents proposed to repositories, each decided about",
    "companies.listing": "the companies that the caller has a part in",
    "companies.positions": "how many events the caller's own companies have",
    "confirmations.mine": "decisions that came by mail in the calling person's own name",
    "confirmations.show": "one of these",
    "folders.of_run": "the folder of the calling run",
    "linked_accounts.mine": "the calling person's own chat accounts",
    "mcp_servers.usable": "the servers that the calling agent may use, each decided about",
    "notice_rules.news": "what awaits the calling person, and how they are told",
    "overview.offered": "the tools that the calling agent is offered; using one is decided then",
    "run_page.occasions": "what runs were started for, of each that the caller sees",
    "runaway.watched": "the calling run itself",
    "runs.workspace": "the folder of the calling run",
    "sessions.mine": "the calling person's own sessions",
    "threads.newest": "the calling person's own mail",
    "threads.own_inbox": "the calling person's own mail; that of an agent is decided about",
    "tokens.listing": "the calling person's own tokens",
    "users.me": "who the token says the caller is",
    "waiting.needs_you": "what awaits the calling person in their own companies",
}

#: Functions that several verbs come down to, and that decide about what they make.
SHARED = {
    "connections.bindings.bind": "a binding is made by a verb and by `remit apply`",
    "execution.runs.sought": "runs are listed, summed up and drawn for the same question",
    "hiring.hiring._take_on": "an agent is hired for a post or for an outcome",
    "hiring.hiring._may_hire": "the hire decides, and whether a person is asked",
    "messaging.mail.post": "who may write to whom is one question for every kind of mail",
    "rights.grants.give_to": "grants are also given with a hire and with an outcome",
    "rights.grants.weigh": "each grant of a list is decided about",
}

DECIDING = {"require", "accept", "allow_by_rule"}


@cache
def _trees(module: str) -> Mapping[int, ast.FunctionDef]:
    """The functions of a module, by their first line, which is that of a decorator if they have
    one."""
    tree = ast.parse((SOURCE.parent / Path(*module.split("."))).with_suffix(".py").read_text())
    return {
        min([one.lineno, *(decorator.lineno for decorator in one.decorator_list)]): one
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef)
    }


def _tree(function: FunctionType) -> ast.FunctionDef:
    function = inspect.unwrap(function)
    return _trees(function.__module__)[function.__code__.co_firstlineno]


def _target(call: ast.Call, function: FunctionType) -> tuple[str, object]:
    """The name that is called, and what that is in the module of the function."""
    function = inspect.unwrap(function)
    target = call.func
    if isinstance(target, ast.Attribute) and target.attr == "body":
        target = target.value  # another verb
    if isinstance(target, ast.Name):
        return target.id, function.__globals__.get(target.id)
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        owner = function.__globals__.get(target.value.id)
        return f"{target.value.id}.{target.attr}", getattr(owner, target.attr, None)
    return "", None


def _decisions(function: FunctionType, *, verb: bool = False) -> Iterator[str]:
    """What in a function ends the call of somebody who may not; as its own line says."""
    tree = _tree(function)
    # A verb and its preview hand their work to one function, without any condition.
    handed = {
        part
        for one in tree.body
        if verb and isinstance(one, ast.Assign | ast.Return)
        for part in ast.walk(one)
    }
    last = set(ast.walk(tree.body[-1]))
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name, found = _target(call, function)
        if name in {f"ctx.{one}" for one in DECIDING} | {"system_only"}:
            yield name
            continue
        if isinstance(found, Verb) and found.for_remit:
            yield name
            continue
        is_verb, found = isinstance(found, Verb), getattr(found, "body", found)
        if not isinstance(found, FunctionType) or not found.__module__.startswith(SERVICES):
            continue
        place = f"{found.__module__.removeprefix(SERVICES)}.{found.__name__}"
        says_so = found.__name__.lstrip("_").startswith(("require", "allow"))
        near = found.__module__ == function.__module__
        handed_on = call in handed and (near or call in last)
        for_remit = near and _is_for_remit(found)
        known = says_so or for_remit or is_verb or place in SHARED
        if (known or handed_on) and decides(found):
            yield place


def _is_for_remit(function: FunctionType) -> bool:
    """Whether it begins with `system_only`, as look-ups of queues do."""
    first = next(one for one in _tree(function).body if not _is_text(one))
    call = first.value if isinstance(first, ast.Expr) else None
    return isinstance(call, ast.Call) and _target(call, function)[0] == "system_only"


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


@cache
def decides(function: FunctionType) -> bool:
    return next(_decisions(function), None) is not None


def test_every_verb_decides_in_a_line_of_its_own() -> None:
    silent = {
        name
        for name, verb in all_verbs().items()
        if not verb.for_remit and next(_decisions(_body(verb), verb=True), None) is None
    }
    assert silent == FOR_EVERYBODY.keys()


def test_what_several_verbs_come_down_to_decides() -> None:
    for place in SHARED:
        module, _, name = place.rpartition(".")
        verbs = __import__(f"{SERVICES}{module}", fromlist=[name])
        assert decides(getattr(verbs, name)), place


def _body(verb: Verb[Any, Any]) -> FunctionType:
    assert isinstance(verb.body, FunctionType)
    return verb.body


def test_a_verb_without_a_decision_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from remit.services.work import outcomes

    assert list(_decisions(_body(outcomes.reopen))) == ["subjects.require_named_outcome"]
    monkeypatch.setattr(outcomes, "require_named_outcome", print)
    assert list(_decisions(_body(outcomes.reopen))) == []


def test_background_work_is_no_verb_to_anybody_else(small: Company) -> None:
    """Whatever it is given; nobody learns that there is such a verb."""
    ours = [verb for verb in all_verbs().values() if verb.for_remit]
    assert len(ours) > 60
    for verb in ours:
        given = {
            name: "x" for name, one in verb.parameters.items() if one.default is inspect._empty
        }
        for caller in (small.board, small.ceo.caller):
            with pytest.raises(NotFound, match="nothing here with that id"):
                small.call(caller, verb, **given)


def test_looking_up_does_not_authorise() -> None:
    tree = ast.parse(inspect.getsource(lookup))
    imported = {one.module for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)}
    assert not any(module and module.startswith("remit.authority") for module in imported)
    asked = {one.attr for one in ast.walk(tree) if isinstance(one, ast.Attribute)}
    assert not asked & {"decide", "held", *DECIDING}


def test_a_refusal_is_made_of_a_decision() -> None:
    """Other places catch it; the command line makes it of what an instance answered."""
    makers = set()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        if "Refused(" in text and any(
            isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Refused"
            for call in ast.walk(ast.parse(text))
        ):
            makers.add(str(path.relative_to(SOURCE)))
    assert makers == {"model/organisation/decision.py"}
