"""Overview of set-up: the steps of a new instance in order, and everything that can be set up."""

import functools
from dataclasses import dataclass
from typing import Any

from remit import threads
from remit.adapters.registry import WITH_MODEL, WITHOUT_MODEL
from remit.entrypoints.web.pages.setup import connections, running
from remit.entrypoints.web.site import Page, Routes, Site, Visit
from remit.runtime.sandbox import sandbox_policy
from remit.services.execution import accounts
from remit.services.people import users
from remit.services.screens import front_page

#: Newest runs that are searched for a success.
_LATELY = 100


@dataclass(frozen=True)
class Step:
    title: str
    #: done, open or bad.
    state: str
    words: str
    label: str = ""
    address: str = ""
    #: Whether agents cannot run without it.
    needed: bool = True


def routes(site: Site) -> Routes:
    return [site.page("/setup", show)]


@functools.cache
def _sandbox() -> tuple[bool, str]:
    """Probe the sandbox, once a process: the result does not change while it runs."""
    sandbox = sandbox_policy.look()
    return sandbox.usable, sandbox.name if sandbox.usable else sandbox.reason


async def show(visit: Visit) -> Page:
    held, sandbox = await threads.CHECKS.run(_sandbox)
    kept = await visit.site.app.backups.count()

    def load(visit: Visit) -> Page:
        steps = [_program(visit), _tried(visit), _held(visit, held, sandbox), _wish(visit)]
        if visit.whole:
            steps.append(_people(visit))
        if visit.me["operator"]:
            steps.append(_backup(kept))
        return visit.show("setup/checklist.html", steps=steps, groups=_groups(visit))

    return await visit.look(load)


def _program(visit: Visit) -> Step:
    usual = visit.site.app.gate.usable_adapter
    title, where = "Program or model", visit.link("/setup/adapters")
    if usual == WITHOUT_MODEL:
        words = "None was found on this machine. Install one, or give a key for a model."
        return Step(title, "bad", words, "Test programs", where)
    return Step(title, "done", f"{usual} was found.", "Test programs", where)


def _tried(visit: Visit) -> Step:
    title, where = "Key tested", visit.link("/setup/adapters")
    closed = [
        account
        for account in visit.ask(accounts.listing, company=visit.company_id)
        if account["state"] != "open"
    ]
    if closed:
        settings = f"/companies/{visit.company_id}/settings#accounts"
        return Step(title, "bad", closed[0]["sentence"], "Open accounts", settings)
    if any(map(_used_model, _runs(visit))):
        return Step(title, "done", "A run with a model has succeeded.", "Ask the model", where)
    words = "No run with a model has succeeded lately."
    return Step(title, "open", words, "Ask the model", where)


def _runs(visit: Visit) -> list[dict[str, Any]]:
    return visit.ask(front_page.newest_runs, company=visit.company_id, limit=_LATELY)


def _used_model(run: dict[str, Any]) -> bool:
    """Return whether a run proves that a model's key works; a scripted run proves nothing."""
    modelled = run["adapter_type"] in WITH_MODEL or run["tokens_out"] > 0
    return bool(run["status"] == "completed" and modelled)


def _held(visit: Visit, held: bool, sandbox: str) -> Step:
    title = "Sandbox"
    label, where = ("Open doctor", "/instance") if visit.me["operator"] else ("", "")
    if held:
        return Step(title, "done", f"{sandbox} isolates the programs of agents.", label, where)
    words = f"None works here ({sandbox}); the programs of agents are refused. Install bubblewrap."
    return Step(title, "bad", words, label, where)


def _wish(visit: Visit) -> Step:
    worked = bool(_runs(visit))
    words = "Agents have worked." if worked else "Tell the root agent what you want."
    return Step("First wish", "done" if worked else "open", words, "Make a wish", "/#tell")


def _people(visit: Visit) -> Step:
    several = len(visit.ask(users.listing, company=visit.company_id, limit=2)) > 1
    words = "Others are in the company." if several else "Nobody else is in the company yet."
    where = f"/companies/{visit.company_id}/settings#people"
    return Step("Colleagues", "done" if several else "open", words, "Invite a person", where, False)


def _backup(kept: int) -> Step:
    words = f"{kept} on this machine." if kept else "None was made here yet."
    return Step("Backup", "done" if kept else "open", words, "Back up", "/instance#backups", False)


def _groups(visit: Visit) -> list[tuple[str, list[tuple[str, str, str, str]]]]:
    """Everything that can be set up, by subject: icon, title, address, sentence."""

    def of(nouns: Any) -> list[tuple[str, str, str, str]]:
        return [(noun.icon, noun.title, visit.link(noun.path), noun.about) for noun in nouns]

    here = f"/companies/{visit.company_id}"
    tar = "The whole company as a tar of readable text, without secrets."
    company = [
        ("settings", "Company settings", f"{here}/settings", "Name, rules, limits and accounts."),
        ("approval", "Permission levels", f"{here}/levels", "Permissions of each level."),
        ("edit", "Apply a file", visit.link("/apply"), "Change the company to match a file."),
        ("clock", "As of a time", visit.link("/as-of"), "The tree and permissions at a time."),
        ("download", "Export", f"/api{here}/export", tar),
    ]
    people = [
        ("people", "People", f"{here}/settings#people", "Invitation links, roles and tokens."),
        ("bell", "Your account", "/account", "Notices, sessions and tokens of your own."),
    ]
    instance = [
        ("tool", "Doctor and backups", "/instance", "Health of this machine."),
        ("company", "New company", "/companies/new", "Empty, from a template or a file."),
    ]
    return [
        *(("Connections", of(connections.ALL)), ("Work", of(running.ALL))),
        *(("Company", company if visit.whole else company[3:4]), ("People", people)),
        *([("Instance", instance)] if visit.me["operator"] else ()),
    ]
