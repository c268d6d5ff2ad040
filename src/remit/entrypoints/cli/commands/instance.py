"""`remit up`, `down`, `status` and `open`: the instance's process and its address."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import click

from remit.entrypoints.cli import detach, output, process
from remit.entrypoints.cli.address import path
from remit.entrypoints.cli.client import Client
from remit.entrypoints.cli.options import Command, Session, pass_session
from remit.errors import Conflict, RemitError, Unavailable
from remit.settings import DEFAULT_HOST, DEFAULT_PORT

STOP_SECONDS = 30.0
#: Counting agents ends here; whoever has more knows.
MOST_COUNTED = 1000


@click.command(cls=Command)
@click.option("--host", default=DEFAULT_HOST, show_default=True, help="Where to listen.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Where to listen; 0 picks a free one.",
)
@click.option("--detach", "detached", is_flag=True, help="Go on in the background.")
@click.option("--open", "browse", is_flag=True, help="Open the web in a browser.")
@click.option("--quiet", is_flag=True, hidden=True)
@pass_session
def up(session: Session, host: str, port: int, detached: bool, browse: bool, quiet: bool) -> int:
    """Run the instance.

    On an empty home folder this creates a company, its first agent, and the board's token.
    """
    settings = session.settings
    if found := process.holder(settings).pid:
        raise Conflict(
            f"An instance is running in {settings.home} already (process {found}).",
            "Use it, stop it with `remit down`, or set another REMIT_HOME.",
        )
    if detached:
        running = detach.start(settings, host, port)
        welcome(session, running.url, running.pid, browse)
        return 0
    from remit.entrypoints import serve

    def ready(url: str) -> None:
        # A thread, because the greeting asks the instance that is about to serve it.
        greeting = threading.Thread(
            target=_greet, args=(session, url, browse), name="welcome", daemon=True
        )
        if not quiet:
            greeting.start()

    return serve.run(settings, host=host, port=port, ready=ready, log_to_stderr=not quiet)


def _greet(session: Session, url: str, browse: bool) -> None:
    try:
        welcome(session, url, os.getpid(), browse)
        sys.stdout.flush()
    except (RemitError, OSError) as error:
        output.note(f"Remit is running at {url}, but the welcome failed: {error}")


def welcome(session: Session, url: str, pid: int, browse: bool) -> None:
    """Say where the instance is and what to do next."""
    token_file = session.settings.board_token_file
    with closing(Client(url, token_file.read_text().strip())) as client:
        link = _link(client, url)
    answer = {"url": url, "pid": pid, "login_url": link, "token_file": str(token_file)}

    def draw(_: Any) -> None:
        output.say(
            f"Remit is running at {url} (process {pid}).",
            f"  sign in, once:  {link}",
            f"  board's token:  {token_file}",
            "Next:",
            "  remit agent tree                         who is there",
            '  remit kb create "Our goals" goals.md     give them something to read',
            "  remit event tail                         watch what happens",
        )

    session.show(answer, draw)
    if browse:
        _browse(link)


@click.command(cls=Command)
@pass_session
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
        answer: dict[str, Any] = {"stopped": False, "pid": None}
        sentence = f"No instance is running in {settings.home}."
    elif process.terminate(settings, pid) and not process.wait_until_stopped(
        settings, pid, STOP_SECONDS
    ):
        raise Unavailable(
            f"Process {pid} was asked to stop and is still there after {STOP_SECONDS:.0f} seconds.",
            f"See {settings.log_folder / 'remit.log'}; `kill -9 {pid}` ends it, and loses nothing.",
        )
    else:
        answer = {"stopped": True, "pid": pid}
        sentence = f"Stopped the instance (process {pid})."
    session.show(answer, lambda _: output.say(sentence))


@click.command(cls=Command)
@pass_session
def status(session: Session) -> None:
    """Say whether the instance runs, and what is in it."""
    try:
        health = session.anonymous.get("/health")
    except RemitError:
        if session.as_json:
            print(output.as_json({"running": False, "url": session.url}))
        raise
    here = process.holder(session.settings)
    answer: dict[str, Any] = {
        "running": True,
        "url": session.url,
        "version": health.get("version") if isinstance(health, dict) else None,
        "pid": here.pid if here.url and here.url.rstrip("/") == session.url else None,
        "companies": _companies(session) if session.token else [],
    }
    answer["agents"] = sum(company["agents"] for company in answer["companies"])

    def draw(found: dict[str, Any]) -> None:
        output.fields(
            {
                "running at": found["url"],
                "version": found["version"],
                "process": found["pid"],
                "companies": ", ".join(company["name"] for company in found["companies"]),
                "agents": _counted(found["agents"]),
            }
        )
        if session.token is None:
            output.note("Without a token nothing more can be seen; `remit login` keeps one.")

    session.show(answer, draw)


def _companies(session: Session) -> list[dict[str, Any]]:
    found = []
    for company in session.client.each(path("companies")):
        agents = session.client.each(path("companies", company["id"], "agents"), MOST_COUNTED)
        found.append({"id": company["id"], "name": company["name"], "agents": len(list(agents))})
    return found


def _counted(agents: int) -> str:
    return f"{agents} or more" if agents >= MOST_COUNTED else str(agents)


@click.command("open", cls=Command)
@click.option("--browser", is_flag=True, help="Open it in a browser, too.")
@pass_session
def open_(session: Session, browser: bool) -> None:
    """Print a link that signs you in to the web, once."""
    link = _link(session.client, session.url)
    session.show({"url": link}, lambda answer: output.say(answer["url"]))
    if browser:
        _browse(link)


def _link(client: Client, url: str) -> str:
    """A one-time link, under the address by which we reach the instance."""
    made = client.send("POST", path("login-links"))
    return f"{url.rstrip('/')}/login?{urlsplit(made['url']).query}"


def _browse(link: str) -> None:
    import webbrowser

    if not webbrowser.open(link):
        output.note("No browser could be opened; follow the link yourself.")
