"""`remit up`, `serve`, `worker`, `down` and `open`: the processes of an instance."""

import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import click

from remit.entrypoints.cli import detach, first_agent, process
from remit.entrypoints.cli.client import Client
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command, F, option, together
from remit.entrypoints.cli.parameters import Whole
from remit.entrypoints.cli.session import Session, View, path
from remit.errors import Conflict, RemitError, Unavailable
from remit.settings import DEFAULT_HOST, DEFAULT_PORT, DEFAULT_SLOTS, MAX_PORT, MAX_SLOTS, Settings

#: Grace of `down` before it kills. An instance ends by itself sooner, whatever hangs in it.
STOP_SECONDS = 9.5
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: Most agents or runs that `status` counts exactly.
MOST_COUNTED = 1000


#: Where an instance listens. An option that is not given has the value of the settings.
place_options = together(
    option("--host TEXT", f"The address to listen at; {DEFAULT_HOST} otherwise."),
    option(
        "--port",
        f"The port to listen at; 0 picks a free one; {DEFAULT_PORT} otherwise.",
        type=Whole(0, MAX_PORT),
    ),
    option("--plain-http", "Listen beyond this machine without TLS and without a proxy."),
)


def slots_option(fewest: int) -> Callable[[F], F]:
    return option(
        "--slots",
        f"The most agents that run at once; {DEFAULT_SLOTS} otherwise.",
        type=Whole(fewest, MAX_SLOTS),
    )


def _with_options(settings: Settings, **options: Any) -> Settings:
    """The settings, with the options of a command in place of the same settings."""
    chosen = {
        name: value for name, value in options.items() if not (value is None or value is False)
    }
    return replace(settings, **chosen)


@click.command(
    cls=Command,
    examples=(
        "remit up --open",
        "remit up --detach --port 8080",
        "remit up --model ollama/qwen3",
    ),
)
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
    host: str | None,
    port: int | None,
    plain_http: bool,
    slots: int | None,
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
    settings = _with_options(
        session.settings, host=host, port=port, plain_http=plain_http, slots=slots
    )
    _check_free(settings)
    if model_url is not None and model is None:
        raise click.UsageError("--model-url needs a --model.")
    how = Greeting(
        browse=browse,
        model=None if model is None else first_agent.model_settings(model, model_url),
        try_out=not untried,
    )
    if detached:
        pid, url = detach.start(settings)
        welcome(session, url, pid, how)
        return 0
    return _serve(session, settings, how, quiet=quiet)


@click.command(cls=Command)
@place_options
def serve(session: Session, host: str | None, port: int | None, plain_http: bool) -> int:
    """Run the instance without a worker; `remit worker` starts agents.

    For several machines that share a PostgreSQL database. On SQLite use `remit up`.
    """
    settings = _with_options(session.settings, host=host, port=port, plain_http=plain_http)
    _check_free(settings)
    if settings.database_url.startswith("sqlite:"):
        output.note("On SQLite no worker can join, so no agent is started; `remit up` has one.")
    return _serve(session, replace(settings, slots=0), Greeting())


@click.command(cls=Command)
@option("--name TEXT", "Its name in the record; the machine's name otherwise.")
@slots_option(1)
def worker(session: Session, name: str | None, slots: int | None) -> int:
    """Run agents for an instance that `remit serve` runs.

    It shares a PostgreSQL database and the files (REMIT_DATABASE_URL, REMIT_BLOB_URL) with
    `remit serve`. Its programs call back on this machine only.
    """
    from remit.entrypoints import work

    settings = _with_options(session.settings, slots=slots)
    if not settings.slots:
        raise click.UsageError("A worker with 0 slots runs nothing; give it some with --slots.")
    called = name or work.default_name()
    if not _NAME.fullmatch(called):
        raise click.BadParameter("letters, digits, . _ and -", param_hint="--name")

    def ready(url: str) -> None:
        answer = {"name": called, "slots": settings.slots, "pid": os.getpid(), "url": url}
        agents = f"up to {settings.slots} agents at once"
        sentence = f"Worker {called} starts {agents} (process {os.getpid()})."
        session.show(answer, lambda _: output.say(sentence))
        sys.stdout.flush()

    return work.run(settings, name=called, slots=settings.slots, ready=ready)


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


def _serve(session: Session, settings: Settings, how: Greeting, *, quiet: bool = False) -> int:
    from remit.entrypoints import serve as serving

    def ready(url: str) -> None:
        # A thread, because the greeting asks the instance that is about to serve it.
        greeting = threading.Thread(
            target=_greet, args=(session, url, how), name="welcome", daemon=True
        )
        if not quiet:
            greeting.start()

    return serving.run(
        settings,
        host=settings.host,
        port=settings.port,
        slots=settings.slots,
        ready=ready,
        log_to_stderr=not quiet,
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


@click.command(cls=Command, forgiving=True)
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


@click.command(
    "open",
    cls=Command,
    examples=(
        "remit open",
        "remit open --browser",
    ),
)
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
