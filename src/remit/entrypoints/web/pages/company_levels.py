"""The permission levels of a company, and the rights that each bundles."""

from __future__ import annotations

from typing import Any, Final

from starlette.routing import Route

from remit.entrypoints.web.pages.company import entered
from remit.entrypoints.web.site import Done, Page, Site, Visit
from remit.model.organisation.grant import ACTIONS
from remit.model.organisation.permission import CAN_CREATE_AGENTS, PermissionLevel, Reach
from remit.services.organisation import permissions

#: The purpose of each level, in words.
WORDS: Final = {
    PermissionLevel.RESTRICTED: "Cannot hire, and cannot be granted what is denied here.",
    PermissionLevel.STANDARD: "The level of every new agent.",
    PermissionLevel.PRIVILEGED: "Can hire.",
    PermissionLevel.BOSS: "Can hire, and controls others as the board does.",
}
#: Labels of actions on this page.
ACTION_WORDS: Final = {
    "agent.create": "Create agents",
    "approval.decide": "Decide approvals",
    "full_access": "Full access",
    "instance.configure": "Configure Remit",
}
_CREATES: Final = {"default": None, "yes": True, "no": False}
CREATES: Final = (("default", "only the CEO"), ("yes", "yes"), ("no", "no"))
MODES: Final = (("", "as granted"), ("allow", "allowed"), ("deny", "denied"))
REACHES: Final = (
    (Reach.NOBODY.value, "nobody"),
    (Reach.BELOW.value, "everybody below it"),
    (Reach.COMPANY.value, "everybody but itself and those above it"),
)


def routes(site: Site) -> list[Route]:
    return site.form("/companies/{company_id}/levels", show, change)


def show(visit: Visit) -> Page:
    company = entered(visit)
    policy = visit.ask(permissions.show_policy, company=company)
    return visit.show(
        "company_levels.html",
        policy=policy,
        may_change=visit.decides and visit.whole,
        words=WORDS,
        actions=[(action, ACTION_WORDS.get(action, action)) for action in sorted(ACTIONS)],
        creates=CREATES,
        said={value: key for key, value in _CREATES.items()},
        modes=MODES,
        reaches=REACHES,
    )


async def change(visit: Visit) -> Done:
    company = await visit.look(entered)
    form = visit.form
    settings: dict[str, Any] | None = None
    if form.text("what") != "shipped":
        chosen = {action: form.text(action) for action in sorted(ACTIONS)}
        settings = {
            CAN_CREATE_AGENTS: _CREATES.get(form.text("creates")),
            "allow": [action for action, mode in chosen.items() if mode == "allow"],
            "deny": [action for action, mode in chosen.items() if mode == "deny"],
        }
        if form.text("governs"):
            settings["governs"] = form.text("governs")
    done = await visit.do(
        permissions.change_policy,
        company=company,
        level=form.text("level"),
        settings=settings,
        expected_version=form.number("version"),
    )
    reached = ", ".join(done["agents_changed"])
    message = f"The level {form.text('level')} is changed."
    return Done(
        f"/companies/{company}/levels", f"{message} It reached {reached}." if reached else message
    )
