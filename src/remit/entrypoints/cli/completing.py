"""Completion of names and ids in a shell, from the instance that the command would ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import click
from click.shell_completion import CompletionItem

from remit.entrypoints.approval_text import asks_for
from remit.entrypoints.cli.session import Session, View
from remit.ids import short
from remit.model.text import name_key

#: Most things of a kind that are asked for.
_MOST: Final = 200


def complete(ctx: click.Context, kinds: tuple[str, ...], incomplete: str) -> list[CompletionItem]:
    """Return what could be meant; nothing if the instance cannot be asked: an error is reported
    when the command runs, not now."""
    session = ctx.find_object(Session) or Session()
    try:
        return [item for kind in kinds for item in _OFFERS[kind](session, name_key(incomplete))]
    except Exception:
        return []
    finally:
        session.close()


def _agents(session: Session, key: str) -> Iterator[CompletionItem]:
    for name in sorted(agent["name"] for agent in session.agents):
        if name_key(name).startswith(key):
            yield CompletionItem(name)


def _adapters(session: Session, key: str) -> Iterator[CompletionItem]:
    for adapter in session.client.get(session.under_company("adapters")):
        if adapter["type"].startswith(key):
            yield CompletionItem(adapter["type"], help=adapter["problem"] or adapter["summary"])


def _approvals(session: Session, key: str) -> Iterator[CompletionItem]:
    """Undecided approvals by id; what is typed may also be the beginning of the name of the agent
    that it is about, or that made it."""
    names = {agent["id"]: agent["name"] for agent in session.agents}
    target = session.under_company("approvals")
    for status in ("pending", "revision_requested"):
        for approval in session.client.each(target, _MOST, status=status):
            about = approval["payload"].get("agentId") or approval["requestedByAgentId"]
            name = str(approval["payload"].get("name") or names.get(about) or "")
            if key and name_key(name).startswith(key):
                yield CompletionItem(name, help=asks_for(approval))
            else:
                yield from _by_id(approval, key, asks_for(approval))


def _outcomes(session: Session, key: str) -> Iterator[CompletionItem]:
    """Open outcomes by id; what is typed may also be the beginning of the title."""
    target = session.under_company("outcomes")
    for outcome in session.client.each(target, _MOST, status="open"):
        if key and name_key(outcome["title"]).startswith(key):
            yield CompletionItem(short(outcome["id"]), help=outcome["title"])
        else:
            yield from _by_id(outcome, key, outcome["title"])


def _by_id(thing: View, key: str, title: str) -> Iterator[CompletionItem]:
    if short(thing["id"]).startswith(key):
        yield CompletionItem(short(thing["id"]), help=title)


_OFFERS: Final[dict[str, Callable[[Session, str], Iterator[CompletionItem]]]] = {
    "adapter": _adapters,
    "agent": _agents,
    "approval": _approvals,
    "outcome": _outcomes,
}
