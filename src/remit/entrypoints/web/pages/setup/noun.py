"""A kind of thing that is set up: its list, a form that can be tested before saving, and actions on
each thing. One pair of templates renders all kinds."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from remit.entrypoints.web.site import Done, Page, Routes, Site, Visit
from remit.entrypoints.web.text import common_queries, settings_form
from remit.entrypoints.web.text.settings_form import Setting
from remit.errors import NotFound
from remit.services.command import Verb

Given = dict[str, Any]
#: Most rows that are queried, and those of them that are shown at first.
MOST = 200
_DRAWN = 50


@dataclass(frozen=True)
class Row:
    id: str
    name: str
    #: The cells of the columns.
    facts: Sequence[Any]
    #: Style and label of the state; None if there is none to show.
    state: tuple[str, str] | None = None
    #: Reason for the state, or next step.
    note: str = ""
    link: str = ""
    #: Address of the form that changes it.
    change: str = ""
    acts: Sequence[str] | None = None


@dataclass(frozen=True)
class Tried:
    """Result of a test."""

    ok: bool
    sentence: str
    next_step: str = ""
    details: Sequence[str] = ()


@dataclass(frozen=True)
class Act:
    """An action on one thing. `do` returns a message, or the result of a test."""

    label: str
    do: Callable[[Visit, str], Awaitable[str | Tried]]
    #: Confirmation question; empty for actions that can be undone.
    question: str = ""


@dataclass(frozen=True)
class Noun:
    slug: str
    title: str
    #: As in "Add secret".
    one: str
    icon: str
    about: str
    empty: str
    #: Sentence below an empty list: how to add the first.
    step: str
    columns: Sequence[str]
    #: Queries the things, within the snapshot of the page.
    rows: Callable[[Visit], list[Any]]
    #: Makes rows of the queried things, with data from outside of the snapshot.
    complete: Callable[[Visit, list[Any]], Awaitable[list[Row]]] | None = None
    #: Fields of the form for a new one; None if none can be added.
    fields: Callable[[Visit], Sequence[Setting]] | None = None
    #: Saves a new one; returns a message, or a page with values that are shown once.
    save: Callable[[Visit, Given], Awaitable[str | Page]] | None = None
    test: Callable[[Visit, Given], Awaitable[Tried]] | None = None
    #: Only operators of the instance may add one.
    operators: bool = False
    acts: dict[str, Act] = field(default_factory=dict)
    #: Choices that change the form's fields: name, label.
    kinds: Callable[[Visit], Sequence[tuple[str, str]]] | None = None
    verb: str = "Add"
    #: Heading of the first column, where that is not `one`.
    heading: str = ""
    #: Columns of amounts, aligned to the right.
    amounts: Sequence[str] = ()
    #: Icon of the rows, if it is not that of the noun.
    row_icon: str = ""

    @property
    def path(self) -> str:
        return f"/setup/{self.slug}"

    def may_add(self, visit: Visit) -> bool:
        allowed = visit.me["operator"] if self.operators else True
        return self.save is not None and visit.decides and bool(allowed)

    def kind(self, visit: Visit) -> str:
        """Return the kind in the form or the address if it exists, else the first one."""
        known = [] if self.kinds is None else [name for name, _ in self.kinds(visit)]
        wanted = visit.form.text("kind") or visit.argument("kind")
        return wanted if wanted in known else (known[0] if known else "")

    def routes(self, site: Site) -> Routes:
        routes = [
            site.page(self.path, self.show),
            site.action(f"{self.path}/do", self.act, self.show),
        ]
        if self.save is not None:
            routes += site.form(f"{self.path}/new", self.form, self.make)
        return routes

    async def show(self, visit: Visit, tried: Tried | None = None) -> Page:
        def load(visit: Visit) -> Page:
            drawn = None if visit.argument("all") else _DRAWN
            rows = self.rows(visit)
            return visit.show("setup/noun.html", noun=self, rows=rows, drawn=drawn, tried=tried)

        page = await visit.look(load)
        if self.complete is not None:
            page.values["rows"] = await self.complete(visit, page.values["rows"])
        return page

    async def form(self, visit: Visit, tried: Tried | None = None) -> Page:
        def load(visit: Visit) -> Page:
            assert self.fields is not None
            fields = self.fields(visit)
            wanted = {setting.picks for setting in fields} & common_queries.KINDS.keys()
            return visit.show(
                "setup/new.html",
                noun=self,
                fields=fields,
                typed={
                    setting.name: visit.form.text(setting.name) or visit.argument(setting.key)
                    for setting in fields
                },
                wrong=settings_form.problems(visit.problem),
                picks=common_queries.picks(visit, *sorted(wanted)) if wanted else {},
                kind=self.kind(visit),
                tried=tried,
            )

        return await visit.look(load)

    async def make(self, visit: Visit) -> Done | Page:
        assert self.save is not None
        arguments = settings_form.read_call(
            await visit.look(lambda visit: list(self.fields(visit) if self.fields else ())),
            visit.form,
        )
        if visit.form.text("step") == "test" and self.test is not None:
            return await self.form(visit, await self.test(visit, arguments))
        answer = await self.save(visit, arguments)
        return answer if isinstance(answer, Page) else Done(visit.link(self.path), answer)

    async def act(self, visit: Visit) -> Done | Page:
        act = self.acts.get(visit.form.text("act"))
        if act is None:
            raise NotFound("That cannot be done here.", "Use the buttons.")
        answer = await act.do(visit, visit.form.text("id"))
        if isinstance(answer, Tried):
            return await self.show(visit, answer)
        return Done(visit.link(self.path), answer)


def rows_of(verb: Verb[..., Any], row: Callable[[Any], Row]) -> Callable[[Visit], list[Row]]:
    """Return a query for rows, from a verb that lists."""
    return lambda visit: [
        row(entry) for entry in visit.ask(verb, company=visit.company_id, limit=MOST)
    ]


def fields_of(verb: Verb[..., Any], **how: Any) -> Callable[[Visit], Sequence[Setting]]:
    """Return the fields of a form by the parameters of the verb that adds."""
    return lambda _: settings_form.of_verb(verb, **how)


def saves(verb: Verb[..., Any], message: str) -> Callable[[Visit, Given], Awaitable[str]]:
    """Return a save function that calls a verb; its message formats the verb's answer."""

    async def save(visit: Visit, arguments: Given) -> str:
        return message.format(**await visit.do(verb, company=visit.company_id, **arguments))

    return save


def does(verb: Verb[..., Any], called: str, message: str) -> Callable[[Visit, str], Awaitable[str]]:
    """Return an action that calls a verb, with the thing as the parameter `called`."""

    async def do(visit: Visit, which: str) -> str:
        here = {"company": visit.company_id} if "company" in verb.fields else {}
        await visit.do(verb, **here, **{called: which})
        return message

    return do
