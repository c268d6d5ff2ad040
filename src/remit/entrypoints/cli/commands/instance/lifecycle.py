"""`remit up`, `serve`, `worker`, `down`, `status` and `open`: the processes of an instance."""

import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import click

from remit.entrypoints.cli import detach, first_agent, process
from remit.entrypoints.cli.client import Client
from remit.entrypoints.cli.commands.company import halt
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command, F, option, together
from remit.entrypoints.cli.session import Session, View, path
from remit.errors import Conflict, RemitError, Unavailable
from remit.settings import DEFAULT_HOST, DEFAULT_PORT, Settings

#: Grace of `down` before it kills. An instance ends by itself sooner, whatever hangs in it.
STOP_SECONDS = 9.5
#: Copy of the worker's default; importing the worker for it would be slow.
DEFAULT_SLOTS = 4
MOST_SLOTS = 1000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: Most agents or runs that `status` counts exactly.
MOST_COUNTED = 1000


#: The address where an instance listens.
place_options = together(
    option("--host TEXT", "Where to listen.", default=DEFAULT_HOST, show_default=True),
    option(
        "--port",
        "Where to listen; 0 picks a free one.",
        type=click.IntRange(0, 65535),
        default=DEFAULT_PORT,
        show_default=True,
    ),
)


def slots_option(fewest: int) -> Callable[[F], F]:
    return option(
        "--slots",
        "The most agents that run at once.",
        type=click.IntRange(fewest, MOST_SLOTS),
        default=DEFAULT_SLOTS,
        show_default=True,
    )


@click.command(cls=Command)
@place_options
@slots_option(0)
@option("--detach", "Run in the background.", field="detached")
@option("--open", "Open the web in a browser.", field="browse")
@option("--model PROVIDER/NAME", "Let this model run the root agent, such as ollama/qwen3.")
@option("--model-url URL", "The address of the model's API, if not the usual one.")
@option("--no-try", "Do not ask the model whether it answers.", field="untried")
@option("--quiet", hidden=True)
def up(
    session: Session,
    host: str,
    port: int,
    slots: int,
    detached: bool,
    browse: bool,
    model: str | None,
    model_url: str | None,
    untried: bool,
    quiet: bool,
) -> int:
    """Run the instance.

    On an empty home folder this creates a company, its first agent, and the board's token. With
    --slots 0 no agent is started.
    """
    _check_free(session.settings)
    if model_url is not None and model is None:
        raise click.UsageError("--model-url needs a --model.")
    how = Greeting(
        browse=browse,
        model=None if model is None else first_agent.model_settings(model, model_url),
        try_out=not untried,
    )
    if detached:
        pid, url = detach.start(session.settings, host, port, slots)
        welcome(session, url, pid, how)
        return 0
    return _serve(session, host, port, slots, how, quiet=quiet)


@click.command(cls=Command)
@place_options
def serve(session: Session, host: str, port: int) -> int:
    """Run the instance without a worker; `remit worker` starts agents.

    For several machines that share a PostgreSQL database. On SQLite use `remit up`.
    """
    _check_free(session.settings)
    if session.settings.database_url.startswith("sqlite:"):
        output.note("On SQLite no worker can join, so no agent is started; `remit up` has one.")
    return _serve(session, host, port, 0, Greeting())


@click.command(cls=Command)
@option("--name TEXT", "Its name in the record; the machine's name otherwise.")
@slots_option(1)
def worker(session: Session, name: str | None, slots: int) -> int:
    """Run agents for an instance that `remit serve` runs.

    It shares a PostgreSQL database and the files (REMIT_DATABASE_URL, REMIT_BLOB_URL) with
    `remit serve`. Its programs call back on this machine only.
    """
    from remit.entrypoints import work

    called = name or work.default_name()
    if not _NAME.fullmatch(called):
        raise click.BadParameter("letters, digits, . _ and -", param_hint="--name")

    def ready(url: str) -> None:
        answer = {"name": called, "slots": slots, "pid": os.getpid(), "url": url}
        sentence = f"Worker {called} starts up to {slots} agents at once (process {os.getpid()})."
        session.show(answer, lambda _: output.say(sentence))
        sys.stdout.flush()

    return work.run(session.settings, name=called, slots=slots, ready=ready)


def _check_free(settings: Settings) -> None:
    if pid := process.holder(settings).pid:
        raise Conflict(
            f"An instance is running in {settings.home} already (process {pid}).",
            "Use it, stop it with `remit down`, or set another REMIT_HOME.",
        )


class Greeting(NamedTuple):
    """Options of the welcome, which follows once the instance answers."""

    browse: bool = False
    #: Settings that the root agent gets.
    model: View | None = None
    try_out: bool = True


def _serve(
    session: Session, host: str, port: int, slots: int, how: Greeting, *, quiet: bool = False
) -> int:
    from remit.entrypoints import serve as serving

    def ready(url: str) -> None:
        # A thread, because the greeting asks the instance that is about to serve it.
        greeting = threading.Thread(
            target=_greet, args=(session, url, how), name="welcome", daemon=True
        )
        if not quiet:
            greeting.start()

    return serving.run(
        session.settings, host=host, port=port, slots=slots, ready=ready, log_to_stderr=not quiet
    )


def _greet(session: Session, url: str, how: Greeting) -> None:
    try:
        welcome(session, url, os.getpid(), how)
        sys.stdout.flush()
    except (RemitError, OSError) as error:
        output.note(f"Remit is running at {url}, but the welcome failed: {error}")


def welcome(session: Session, url: str, pid: int, how: Greeting) -> None:
    """Print the instance's address and next steps, then the result of a request to its model."""
    token = session.settings.board_token_file.read_text().strip()
    with closing(Client(url, token)) as client:
        if how.model is not None:
            first_agent.give_model(client, how.model)
        _say_welcome(session, client, url, pid, how)


def _say_welcome(session: Session, client: Client, url: str, pid: int, how: Greeting) -> None:
    token_file = session.settings.board_token_file
    links = _links(session, client, url)
    first = first_agent.look(client)
    spending = _daily_limit(client)
    # The JSON answer is one document, so the model is tried before it is printed.
    tried = first_agent.try_out(client, first) if session.as_json and how.try_out else None
    restored = list(session.here.restored)
    answer = {
        "url": url,
        "pid": pid,
        "login_url": links[0],
        "outside": list(session.here.outside),
        "token_file": str(token_file),
        "agent": first.name,
        "can_work": first.can_work,
        "sentence": first.sentence,
        "spending": " ".join(spending) or None,
        "tried": tried,
        "restored": restored,
    }

    def draw(_: Any) -> None:
        output.say(
            f"Remit is running at {url} (process {pid}).",
            *(f"  for others:     {address}" for address in session.here.outside),
            f"  sign in, once:  {links[0]}",
            *(f"  or, from here:  {link}" for link in links[1:]),
            f"  board's token:  {token_file}",
            *restored,
            first.sentence,
            *spending,
            "Next:",
            f'  remit send {first.name} "…"{" " * max(1, 13 - len(first.name))}say what you want',
            "  remit top                  see who works on it, and why others do not",
            "  remit inbox                read what comes back",
        )

    session.show(answer, draw)
    if how.browse:
        _browse(links[-1])
    if how.try_out and not session.as_json:
        sys.stdout.flush()
        if (tried := first_agent.try_out(client, first)) is not None:
            step = [f"  next: {tried['nextStep']}"] if tried["nextStep"] else []
            output.say(f"Tried: {tried['sentence']}", *step)


def _daily_limit(client: Client) -> list[str]:
    """Return lines about what holds spending; none unless there is exactly one company."""
    companies = list(client.each(path("companies"), MOST_COUNTED))
    if len(companies) != 1 or "limits" not in companies[0]:
        return []
    spending = client.get(path("companies", companies[0]["id"], "spending"))
    return [str(sentence) for sentence in spending["promise"]]


@click.command(cls=Command)
def down(session: Session) -> None:
    """Stop the instance of this home folder."""
    settings = session.settings
    pid = process.holder(settings).pid
    if pid is None:
        if process.is_locked(settings):
            raise Unavailable(
                "An instance is just starting, or belongs to another user.",
                "Try again in a moment.",
            )
        sentence = f"No instance is running in {settings.home}."
    elif process.terminate(settings, pid) and not process.wait_until_stopped(
        settings, pid, STOP_SECONDS
    ):
        process.terminate(settings, pid, signal.SIGKILL)
        if not process.wait_until_stopped(settings, pid, 1.0):
            raise Unavailable(
                f"Process {pid} was told to stop, then killed, and is still there.",
                f"See {settings.log_folder / 'remit.log'}, and whether a disk of it hangs.",
            )
        sentence = f"Process {pid} did not stop and was killed; nothing that was done is lost."
    else:
        sentence = f"Stopped the instance (process {pid})."
    session.show({"stopped": pid is not None, "pid": pid}, lambda _: output.say(sentence))


@click.command(cls=Command)
def status(session: Session) -> None:
    """Say whether the instance runs, and what is in it."""
    try:
        health = session.anonymous.get("/health")
    except RemitError:
        if session.as_json:
            print(output.as_json({"running": False, "url": session.url}))
        raise
    here = session.here
    answer: View = {
        "running": True,
        "url": session.url,
        "outside": list(here.outside) if session.is_here else [],
        "version": health.get("version") if isinstance(health, dict) else None,
        "pid": here.pid if session.is_here else None,
        "companies": _companies(session) if session.token else [],
    }
    answer["agents"] = sum(company["agents"] for company in answer["companies"])
    answer["runs"] = sum(company["runs"] for company in answer["companies"])

    def draw(view: View) -> None:
        output.fields(
            {
                "running at": view["url"],
                "for others": ", ".join(view["outside"]),
                "version": view["version"],
                "process": view["pid"],
                "companies": ", ".join(company["name"] for company in view["companies"]),
                "agents": _counted(view["agents"]),
                "running now": _counted(view["runs"]) if view["companies"] else "",
            }
        )
        for company in view["companies"]:
            for company_halt in company["halts"]:
                output.say(f"{company['name']}: {halt.line(company_halt)}")
        if session.token is None:
            output.note("Without a token nothing more can be seen; `remit login` keeps one.")

    session.show(answer, draw)


def _companies(session: Session) -> list[View]:
    def count(company: str, what: str, **query: str) -> int:
        target = path("companies", company, what)
        return len(list(session.client.each(target, MOST_COUNTED, **query)))

    return [
        {
            "id": company["id"],
            "name": company["name"],
            "agents": count(company["id"], "agents"),
            "runs": count(company["id"], "runs", live="true"),
            "halts": halt.listed(session, company["id"]),
        }
        for company in session.client.each(path("companies"))
    ]


def _counted(number: int) -> str:
    return f"{number} or more" if number >= MOST_COUNTED else str(number)


@click.command("open", cls=Command)
@option("--browser", "Open it in a browser, too.")
def open_(session: Session, browser: bool) -> None:
    """Print a link that signs you in to the web, once.

    If the instance has an address for others, the link is printed for a browser elsewhere and for
    one on this machine.
    """
    links = _links(session, session.client, session.url)
    answer = {"url": links[0], "local_url": links[-1] if session.is_here else None}
    session.show(answer, lambda _: output.say(*links))
    if browser:
        _browse(links[-1])


def _links(session: Session, client: Client, url: str) -> list[str]:
    """Make a one-time sign-in link with the address for others, if this command asks the instance
    of this home, and with the address that it connects to."""
    query = urlsplit(client.send("POST", path("login-links"))["url"]).query
    here = session.here
    outside = here.outside[:1] if here.url == url else ()
    return [f"{address.rstrip('/')}/login?{query}" for address in (*outside, url)]


def _browse(link: str) -> None:
    import webbrowser

    if not webbrowser.open(link):
        output.note("No browser could be opened; follow the link yourself.")
