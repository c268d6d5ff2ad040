"""The session of a command: its options, the connection to their instance, and what is looked up
there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from remit import settings as settings_module
from remit.entrypoints.cli import process
from remit.entrypoints.cli.drawing import cells, output
from remit.errors import BadInput, NotFound, RemitError, Unauthenticated
from remit.ids import is_id, is_part_of, looks_like_id, normalise, several
from remit.model.text import name_key
from remit.settings import DEFAULT_HOST, DEFAULT_PORT, Settings

if TYPE_CHECKING:
    from remit.entrypoints.cli.client import Client

#: An answer of the instance, or an entry of one.
View = dict[str, Any]
#: A key of the answer; or a title, a colon and a template with keys in braces, which may be
#: missing; or a title and a function that returns the text. A key may have a format of
#: `drawing.cells`, as in `since: {createdAt:when}`.
Cell = str | tuple[str, Callable[["Session", View], object]]


class Declined(RemitError):
    """A person was asked to confirm a change, and did not."""

    code = "declined"


class Session:
    """The options in force, and the connection to their instance, opened when needed."""

    def __init__(self) -> None:
        self.as_json = False
        self.verbose = False
        self.company_option: str | None = None
        self.url_option: str | None = None
        self.token_option: str | None = None
        #: Whether the command works with wrong settings, too: with the defaults in their place.
        self.is_forgiving = False
        self.wrong_settings: list[BadInput] = []
        self._open = ExitStack()

    def close(self) -> None:
        self._open.close()

    def connect(self, token: str | None) -> Client:
        """A connection that ends with the command."""
        # Imported here because it is a fifth of what `--help` would take.
        from remit.entrypoints.cli.client import Client

        return self._open.enter_context(closing(Client(self.url, token)))

    @cached_property
    def settings(self) -> Settings:
        return settings_module.load(problems=self.wrong_settings if self.is_forgiving else None)

    def forgive(self) -> None:
        """Go on with the defaults in place of wrong settings, and say which are wrong."""
        self.is_forgiving = True
        _ = self.settings  # finds what is wrong
        for wrong in self.wrong_settings:
            output.note(f"warning: {wrong.sentence} {wrong.step} It is ignored now.")

    @cached_property
    def here(self) -> process.Holder:
        """The instance that runs in this home, if there is one."""
        return process.holder(self.settings)

    @cached_property
    def url(self) -> str:
        """The address to connect to; on this machine itself, if the settings name the instance that
        runs in this home by an address for others."""
        address = self.url_option or self.settings.url
        if address is None or (not self.url_option and self._is_ours(address)):
            address = self.here.url or address
        port = self.settings.port or DEFAULT_PORT
        return (address or f"http://{DEFAULT_HOST}:{port}").rstrip("/")

    @property
    def url_for_others(self) -> str:
        """The address by which others reach the instance, for links and webhooks."""
        outside = self.here.outside if self.is_here else ()
        return outside[0] if outside else self.url

    def _is_ours(self, address: str) -> bool:
        return address.rstrip("/") in self.here.outside

    @cached_property
    def token(self) -> str | None:
        return self.token_option or os.environ.get("REMIT_TOKEN") or self._kept_token()

    def _kept_token(self) -> str | None:
        """Return the token stored for this address; it is never sent to another address."""
        home = str(self.settings.home)  # wrong settings were refused here, or are told already
        stored = settings_module.load({"REMIT_HOME": home}, problems=[])
        address = (stored.url or "").rstrip("/")
        belongs = address == self.url or (self.is_here and self._is_ours(address))
        belongs = belongs if address else self.is_local
        if stored.token and belongs:
            return stored.token
        if self.is_local:
            with suppress(OSError, UnicodeDecodeError):
                return self.settings.board_token_file.read_text().strip() or None
        return None

    @property
    def is_here(self) -> bool:
        """Whether the instance is the one that runs in this home."""
        return self.here.url is not None and self.here.url.rstrip("/") == self.url

    @cached_property
    def is_local(self) -> bool:
        from remit.entrypoints.cli.client import is_loopback

        return is_loopback(self.url)

    @cached_property
    def client(self) -> Client:
        """Authenticated connection; refused if there is no token."""
        if self.token is None:
            self.anonymous.get("/health")  # if no instance answers, that error comes first
            raise Unauthenticated(
                f"There is no token for {self.url}.",
                "Run `remit login --url URL`, or set REMIT_TOKEN.",
            )
        return self.connect(self.token)

    @cached_property
    def anonymous(self) -> Client:
        return self.connect(None)

    @cached_property
    def company(self) -> View:
        """The company that was named, or the only one there is."""
        named = self.company_option or self.settings.company
        companies = list(self.client.each(path("companies")))
        if named is None and len(companies) == 1:
            return dict(companies[0])
        names = ", ".join(company["name"] for company in companies) or "none"
        if named is None:
            if not companies:
                raise NotFound("You have no part in a company.", "Ask its board to add you.")
            raise BadInput(f"You have several companies: {names}.", "Say which with --company.")
        return pick(companies, named, "company", f"You have: {names}.")

    @property
    def is_company_named(self) -> bool:
        return bool(self.company_option or self.settings.company)

    def under_company(self, *segments: str) -> str:
        return path("companies", self.company["id"], *segments)

    def agent_id(self, text: str) -> str:
        """An agent by name, id or beginning of one, in the company in force."""
        name = text.removeprefix("agent:")
        if is_id(name) or not self.is_company_named:
            return name  # the instance looks it up in the only company of the caller
        return str(pick(self.agents, name, "agent", "See `remit agent list`.")["id"])

    def agent_id_ever(self, text: str) -> str:
        """Like `agent_id`, terminated agents included."""
        name = text.removeprefix("agent:")
        if is_id(name) or not self.is_company_named:
            return name
        step = "See `remit agent list --all`."
        agent = self.agent_named(name) or pick(self.agents_ever, name, "agent", step)
        return str(agent["id"])

    def agent_named(self, name: str) -> View | None:
        """Agent with this name, or the last one that had it: names of terminated agents may be
        reused."""
        key = name_key(name.removeprefix("agent:"))
        named = [agent for agent in self.agents_ever if name_key(agent["name"]) == key]
        return max(
            named, key=lambda agent: (agent["status"] != "terminated", agent["id"]), default=None
        )

    @cached_property
    def agents_ever(self) -> list[View]:
        """The agents of the company, terminated ones included."""
        return list(self.client.each(self.under_company("agents"), terminated="true"))

    @cached_property
    def agent_name(self) -> Callable[[str], str]:
        """Function that returns the name of any agent, or its id; each name is fetched once."""

        @cache
        def name(id_: str) -> str:
            try:
                return str(self.client.get(path("agents", id_))["name"])
            except RemitError:
                return id_

        return name

    @cached_property
    def agents(self) -> list[View]:
        return list(self.client.each(self.under_company("agents")))

    @cached_property
    def names(self) -> dict[str, str]:
        """Agents and users by id, as far as the caller may know them."""
        known: dict[str, str] = {}
        with suppress(RemitError):
            known |= {agent["id"]: agent["name"] for agent in self.agents}
        return known | {user["id"]: user["name"] for user in self.visible("users")}

    def known(self, id_: str) -> str:
        """Name of a user, or of an agent, also a terminated one; the id if neither is known."""
        if id_ not in self.names:
            with suppress(RemitError):
                self.names.update({agent["id"]: agent["name"] for agent in self.agents_ever})
        return self.names.setdefault(id_, id_)

    def visible(self, *segments: str, most: int | None = None) -> list[View]:
        """Return things of the company; none if the caller may not see them, or if the instance
        cannot be asked."""
        try:
            return list(self.client.each(self.under_company(*segments), most))
        except RemitError:
            return []

    def forget(self) -> None:
        """Drop the cached agents and names."""
        for known in ("agents", "agents_ever", "agent_name", "names"):
            self.__dict__.pop(known, None)

    def listed(self, target: str, limit: int, **query: object) -> list[View]:
        """Fetch a list up to the limit, 0 for all; note it if there is more."""
        entries = list(self.client.each(target, limit + 1 if limit else None, **query))
        if limit and len(entries) > limit:
            output.note(f"Only the first {limit} are shown; --limit 0 shows all.")
        return entries[:limit] if limit else entries

    def done(self, answer: Any, sentences: Iterable[str], draw: Callable[[Any], None]) -> None:
        """Print the result of a change: its sentences or, with --json or --verbose, the whole
        answer."""
        if self.as_json or self.verbose:
            self.show(answer, draw)
        else:
            output.say(*sentences)

    def change(
        self, method: str, target: str, body: Mapping[str, Any] | None = None, *, tells: str
    ) -> None:
        """Send a change and print a sentence with values of the answer; or JSON, if asked."""
        answer = self.client.send(method, target, body)
        self.show(answer, lambda view: output.say(cells.filled(self, view, tells)))

    def confirm(self, command: str, ask: Callable[[], str], nothing: str) -> None:
        """Ask before an irreversible change; raise unless the answer is yes. --json cannot ask."""
        if self.as_json:
            raise click.UsageError(f"{command} with --json needs --yes.")
        if not click.confirm(ask(), err=True):
            raise Declined(nothing, "Repeat it with --yes if you are sure.")

    def show(self, answer: Any, draw: Callable[[Any], None]) -> None:
        """Print an answer: as JSON if asked, otherwise drawn for a person."""
        if self.as_json:
            print(output.as_json(answer))
        else:
            draw(answer)

    def show_table(self, answer: Sequence[View], *row: Cell, empty: str) -> None:
        """Print a list: as JSON if asked, otherwise a row for each entry."""
        self.show(answer, lambda rows: cells.table(self, rows, *row, empty=empty))


def pick(candidates: Iterable[View], text: str, what: str, step: str, called: str = "name") -> View:
    """Return the one entry with this name, or else the one whose id or short id begins with the
    text."""
    entries = list(candidates)
    key = name_key(text)
    named = [
        entry
        for entry in entries
        if key in (entry["id"], name_key(entry.get(called) or "")) and key
    ]
    if not named and looks_like_id(text):
        named = [entry for entry in entries if is_part_of(entry["id"], text)]
    if not named:
        raise NotFound(f"There is no {what} {text[:100]!r} here.", step)
    if len(named) > 1:
        ids = [f"{entry['id']} ({output.clean(entry.get(called) or '')[:60]})" for entry in named]
        raise several(f"Several match {text[:100]!r}", ids)
    return named[0]


def bare_id(_: Session, text: str) -> str:
    """Return an id or a part of one without its kind, such as `schedule:`."""
    return normalise(text.rpartition(":")[2])


def picked(session: Session, text: str, noun: str, step: str) -> str:
    """Resolve an id or a part of one in the company in force."""
    name = text.removeprefix(f"{noun}:")
    if is_id(name) or not session.is_company_named:
        return normalise(name)  # the instance looks it up in the companies of the caller
    known = session.client.each(session.under_company(f"{noun}s"))
    return str(pick(known, name, noun, step)["id"])


def path(*segments: str) -> str:
    """Return a path under /api, with each segment percent-encoded."""
    return "/api/" + "/".join(quote(segment, safe="") for segment in segments)
