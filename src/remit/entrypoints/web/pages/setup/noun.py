"""A kind of thing that is set up: its list, a form that is tried out before it is saved, and what
can be done to each. One pair of templates draws all of them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.routing import Route

from remit.entrypoints.web.site import Done, Page, Show, Site, Visit
from remit.entrypoints.web.text import pickers, settings_form
from remit.entrypoints.web.text.settings_form import Setting
from remit.errors import NotFound
from remit.services.command import Verb

Given = dict[str, Any]
#: Rows that are looked for, and those of them that are drawn until somebody wants all.
MOST = 200
_DRAWN = 50


@dataclass(frozen=True)
class Row:
    id: str
    name: str
    #: The cells of the columns.
    facts: Sequence[Any]
    #: good, warn or bad, with its word; nothing where there is nothing to say.
    state: tuple[str, str] | None = None
    #: Why it is so, or what to do.
    note: str = ""
    link: str = ""
    #: Where a form changes it.
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
    """An action on one of them. `do` answers what was done, or the result of a test."""

    label: str
    do: Callable[[Visit, str], Awaitable[str | Tried]]
    #: The question before it is done; empty for actions that can be undone.
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
    #: The way to the first one, for who sees none.
    step: str
    columns: Sequence[str]
    #: Lists the things, within the snapshot of the page.
    rows: Callable[[Visit], list[Any]]
    #: Makes rows of that, with what else has to be looked for.
    complete: Callable[[Visit, list[Any]], Awaitable[list[Row]]] | None = None
    #: The fields of the form for a new one; None where none is made here.
    fields: Callable[[Visit], Sequence[Setting]] | None = None
    #: Makes it; answers what was said, or a page with what is shown once.
    save: Callable[[Visit, Given], Awaitable[str | Page]] | None = None
    test: Callable[[Visit, Given], Awaitable[Tried]] | None = None
    #: Only who runs the instance may.
    operators: bool = False
    acts: dict[str, Act] = field(default_factory=dict)
    #: Choices above the form that change its fields: name, label, what there is.
    kinds: Callable[[Visit], Sequence[tuple[str, str]]] | None = None
    verb: str = "Add"
    #: Heading of the first column, where that is not `one`.
    heading: str = ""
    #: Columns of amounts, which end at the right.
    amounts: Sequence[str] = ()
    #: Drawn before each row, where that is not the icon of the noun.
    row_icon: str = ""

    @property
    def path(self) -> str:
        return f"/setup/{self.slug}"

    def may_add(self, visit: Visit) -> bool:
        allowed = visit.me["operator"] if self.operators else True
        return self.save is not None and visit.decides and bool(allowed)

    def routes(self, site: Site) -> list[Route]:
        found = [
            site.page(self.path, self.shown()),
            site.action(f"{self.path}/do", self.acted, self.shown()),
        ]
        if self.save is not None:
            found += site.form(f"{self.path}/new", self.form(), self.made)
        return found

    def shown(self, tried: tuple[str, Tried] | None = None) -> Show:
        async def show(visit: Visit) -> Page:
            def load(visit: Visit) -> Page:
                drawn = None if visit.argument("all") else _DRAWN
                rows = self.rows(visit)
                return visit.show("setup/noun.html", noun=self, rows=rows, drawn=drawn, tried=tried)

            page = await visit.look(load)
            if self.complete is not None:
                page.values["rows"] = await self.complete(visit, page.values["rows"])
            return page

        return show

    def form(self, tried: Tried | None = None) -> Show:
        async def show(visit: Visit) -> Page:
            def load(visit: Visit) -> Page:
                assert self.fields is not None
                fields = self.fields(visit)
                wanted = {one.picks for one in fields if one.picks} & pickers.KINDS.keys()
                problem = visit.problem
                return visit.show(
                    "setup/new.html",
                    noun=self,
                    fields=fields,
                    typed={
                        one.name: visit.form.text(one.name) or visit.argument(one.key)
                        for one in fields
                    },
                    wrong={} if problem is None else settings_form.problems(problem.details),
                    picks=pickers.of(visit, *sorted(wanted)) if wanted else {},
                    kind=chosen_kind(visit, self),
                    tried=tried,
                )

            return await visit.look(load)

        return show

    async def made(self, visit: Visit) -> Done | Page:
        assert self.save is not None
        given = settings_form.read_call(
            await visit.look(lambda visit: list(self.fields(visit) if self.fields else ())),
            visit.form,
        )
        if visit.form.text("step") == "test" and self.test is not None:
            return await _page(self.form(await self.test(visit, given)), visit)
        answer = await self.save(visit, given)
        return answer if isinstance(answer, Page) else Done(visit.link(self.path), answer)

    async def acted(self, visit: Visit) -> Done | Page:
        act = self.acts.get(visit.form.text("act"))
        if act is None:
            raise NotFound("That cannot be done here.", "Use the buttons.")
        which = visit.form.text("id")
        answer = await act.do(visit, which)
        if isinstance(answer, Tried):
            return await _page(self.shown((which, answer)), visit)
        return Done(visit.link(self.path), answer)


def in_company(visit: Visit) -> dict[str, Any]:
    return {"company": visit.company_id}


def rows_of(verb: Verb[..., Any], row: Callable[[Any], Row]) -> Callable[[Visit], list[Row]]:
    """Rows of a list that a verb answers."""
    return lambda visit: [row(one) for one in visit.ask(verb, **in_company(visit), limit=MOST)]


def fields_of(verb: Verb[..., Any], **how: Any) -> Callable[[Visit], Sequence[Setting]]:
    """The form that describes a new one, by the parameters of the verb that makes it."""
    return lambda _: settings_form.of_verb(verb, **how)


def saves(verb: Verb[..., Any], said: str) -> Callable[[Visit, Given], Awaitable[str]]:
    """Makes a new one, and says so in words of the answer."""

    async def save(visit: Visit, given: Given) -> str:
        return said.format(**await visit.do(verb, **in_company(visit), **given))

    return save


def does(verb: Verb[..., Any], called: str, said: str) -> Callable[[Visit, str], Awaitable[str]]:
    """Does something to one, which the verb has as the parameter `called`."""

    async def do(visit: Visit, which: str) -> str:
        here = in_company(visit) if "company" in verb.fields else {}
        await visit.do(verb, **here, **{called: which})
        return said

    return do


async def _page(show: Show, visit: Visit) -> Page:
    found = show(visit)
    assert not isinstance(found, Page)
    page = await found  # type: ignore[misc]
    assert isinstance(page, Page)
    return page


def chosen_kind(visit: Visit, noun: Noun) -> str:
    """Of those that there are, the one that the form or the address names, or the first."""
    known = [] if noun.kinds is None else [name for name, _ in noun.kinds(visit)]
    asked = visit.form.text("kind") or visit.argument("kind")
    return asked if asked in known else (known[0] if known else "")
