"""Set-up of runs: adapters, schedules, budgets, background jobs and keys of agents."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from remit import threads
from remit.adapters import registry
from remit.adapters.registry import WITHOUT_MODEL
from remit.clock import from_iso
from remit.entrypoints import adapter_trial
from remit.entrypoints.cost_text import cost
from remit.entrypoints.web.pages.setup.noun import (
    MOST,
    Act,
    Given,
    Noun,
    Row,
    Tried,
    does,
    fields_of,
)
from remit.entrypoints.web.site import Page, Visit
from remit.entrypoints.web.text import common_queries, cron_words, settings_form, words
from remit.entrypoints.web.text.settings_form import Setting
from remit.errors import BadInput
from remit.model.execution.cost import in_words
from remit.services.execution import jobs
from remit.services.hiring import configuration
from remit.services.messaging import pending_items, schedules
from remit.services.organisation import agents
from remit.services.spending import budgets

_ALL = 1_000_000

# ── adapters ────────────────────────────────────────────────────────────────────────────────────


def _adapter_rows(visit: Visit) -> list[Row]:
    visit.ask(configuration.may_read, company=visit.company_id)
    return []


async def _installed(visit: Visit, _: list[Row]) -> list[Row]:
    usual = visit.site.app.gate.usable_adapter
    adapters = await threads.CHECKS.run(registry.all)
    rows = [
        Row(
            adapter.type,
            adapter.type,
            (adapter.summary,),
            _default(adapter.type) if adapter.type == usual else None,
            link=visit.link("/hire", adapter=adapter.type),
            acts=("test", "try") if "model" in adapter.Config.model_fields else ("test",),
        )
        for adapter in adapters
    ]
    return rows + [
        Row(name, name, ("plugin",), ("bad", "broken"), why, acts=())
        for name, why in sorted(registry.problems().items())
    ]


def _default(adapter: str) -> tuple[str, str]:
    """Badge of the default adapter; good if it has a model."""
    return ("idle" if adapter == WITHOUT_MODEL else "good", "default")


async def _try_adapter(visit: Visit, adapter: str, *, try_out: bool) -> Tried:
    check, tried = await adapter_trial.tried(
        visit.site.app, visit.who, visit.company_id, adapter, None, try_out=try_out
    )
    facts = [f"{name}: {value}" for name, value in check.facts.items() if value is not None]
    if tried is not None:
        return Tried(bool(tried.ok), f"{adapter}: {tried.sentence}", tried.next_step, facts)
    return Tried(check.usable, f"{adapter}: {check.sentence}", check.next_step, facts)


ADAPTERS = Noun(
    *("adapters", "Programs and models", "adapter", "plug"),
    about="Adapters that can run an agent here. A test looks for the program and its key; “Ask the "
    "model” sends one small request.",
    empty="No adapters.",
    step="They come with Remit and with plugins.",
    columns=("Program or model",),
    rows=_adapter_rows,
    complete=_installed,
    acts={
        "test": Act("Test", partial(_try_adapter, try_out=False)),
        "try": Act("Ask the model", partial(_try_adapter, try_out=True)),
    },
)


# ── schedules ───────────────────────────────────────────────────────────────────────────────────


def _schedule_rows(visit: Visit) -> list[Row]:
    rows = visit.ask(schedules.listing, company=visit.company_id, limit=MOST)
    names = common_queries.names(visit, (schedule["agent_id"] for schedule in rows))
    return [
        Row(
            schedule["id"],
            schedule["subject"] or schedule["body"][:60],
            (
                names[schedule["agent_id"]],
                _to(schedule["to"], schedule["agent_id"], names),
                cron_words.told(schedule["cron"], schedule["timezone"])
                if schedule["cron"]
                else "once",
                _moment(schedule["next_at"]),
            ),
        )
        for schedule in rows
    ]


def _to(address: str, agent: str, names: Any) -> str:
    kind, _, who = address.partition(":")
    if who == agent:
        return "itself"
    return f"{kind} {names[who]}" if who in names else address


def _moment(text: str | None) -> str:
    return "never" if text is None else words.time(text)


async def _test_schedule(visit: Visit, arguments: Given) -> Tried:
    preview = await visit.do(schedules.preview, company=visit.company_id, **arguments)
    return Tried(True, f"It would be sent next at {words.with_readable_times(preview['next_at'])}.")


async def _save_schedule(visit: Visit, arguments: Given) -> str:
    schedule = await visit.do(schedules.add, company=visit.company_id, **arguments)
    return f"It is sent next at {words.with_readable_times(schedule['next_at'])}."


SCHEDULES = Noun(
    *("schedules", "Schedules", "schedule", "calendar"),
    about="Mail that agents send at set times, to themselves or to others.",
    empty="No schedules yet.",
    step="Add one for what is due again and again: a report on Mondays, the books at the month's "
    "end.",
    columns=("Agent", "To", "When", "Next"),
    rows=_schedule_rows,
    fields=fields_of(
        schedules.add,
        needed=("agent",),
        words={
            "to": "Default: the agent itself.",
            "cron": "Minute, hour, day, month and weekday: 0 9 * * 1-5 is every weekday at 9.",
            "timezone": "Of the repetition, such as Europe/Berlin.",
            "at": "In UTC; for what is not repeated.",
        },
    ),
    save=_save_schedule,
    test=_test_schedule,
    acts={
        "cancel": Act(
            "Cancel",
            does(pending_items.cancel_schedule, "schedule", "Schedule ended."),
            "End the schedule “{}”?",
        )
    },
)


# ── budgets ─────────────────────────────────────────────────────────────────────────────────────


def _budget_rows(visit: Visit) -> list[Row]:
    rows = visit.ask(budgets.listing, company=visit.company_id, limit=_ALL)
    return [
        Row(
            budget["agent_id"],
            budget["name"],
            (
                _spent(budget),
                words.micros(budget["money"]["limit"]) or "no limit",
                words.micros(budget["money"]["reserved"] + budget["money"]["set_aside"] or None),
                words.micros(budget["money"]["left"]),
                words.count(budget["tokens"]["limit"]) or "no limit",
                words.count(budget["tokens"]["left"]),
            ),
            ("bad", "used up") if _used_up(budget) else None,
            link=f"/agents/{budget['agent_id']}",
            change=visit.link("/setup/budgets/new", agent=budget["name"]),
        )
        for budget in sorted(rows, key=_by_need)
    ]


def _spent(budget: Mapping[str, Any]) -> str:
    """Return what was spent: of a budget with the agents below, so that the row adds up; without
    a budget, by the agent alone. Its own tokens of unknown cost are named besides."""
    money, itself = budget["money"], budget["cost"]
    if money["limit"] is None:
        return cost(itself)
    of_account = money["spent"] / 1_000_000
    return in_words(of_account, itself["cost_estimated"], itself["tokens_unpriced"])


def _used_up(budget: Mapping[str, Any]) -> bool:
    return 0 in (budget["money"]["left"], budget["tokens"]["left"])


def _by_need(budget: Mapping[str, Any]) -> tuple[bool, bool, int]:
    """Sort key: used-up budgets, other budgets, then spending without a budget."""
    limited = (budget["money"]["limit"], budget["tokens"]["limit"]) != (None, None)
    return not _used_up(budget), not limited, -budget["money"]["spent"]


#: "Set aside": for budgets below this one, and for outcomes that were handed over.
_AMOUNTS = ("Spent this month", "Budget", "Set aside", "Left", "Token budget", "Tokens left")


def _budget_fields(_: Visit) -> list[Setting]:
    below = "For this agent and everybody below it without a budget of their own."
    as_is = "Empty: unchanged. Write none for no limit."
    return [
        Setting("agent", "text", True, below, "", (), "Agent", "agent"),
        Setting("dollars", "text", False, as_is, "", (), "Dollars a month"),
        Setting("tokens", "text", False, as_is, "", (), "Tokens a month"),
    ]


async def _agent(visit: Visit, name: str) -> str:
    """Resolve an agent's name in this company; another company may have the name, too."""
    rows = await visit.do(agents.listing, company=visit.company_id, limit=_ALL)
    for agent in rows:
        if name.lower() in (agent["name"].lower(), agent["id"]):
            return str(agent["id"])
    raise settings_form.wrong("agent", "is no agent of this company")


async def _save_budget(visit: Visit, arguments: Given) -> str:
    changes: dict[str, int | None] = {}
    if "dollars" in arguments:
        cents = settings_form.number_or_none(arguments["dollars"], "dollars")
        changes["budgetMonthlyCents"] = None if cents is None else round(cents * 100)
    if "tokens" in arguments:
        tokens = settings_form.number_or_none(arguments["tokens"], "tokens")
        changes["budgetMonthlyTokens"] = None if tokens is None else int(tokens)
    if not changes:
        raise BadInput("There is nothing to save.", "Give dollars or tokens; none for no limit.")
    agent = await _agent(visit, arguments["agent"])
    done = await visit.do(configuration.change, agent=agent, changes=changes)
    saved = f"The budget of {arguments['agent']} is saved."
    return f"{saved} {done['warning']}" if done["warning"] else saved


BUDGETS = Noun(
    *("budgets", "Budgets", "budget", "money"),
    about="Monthly budgets of agents. Limits of the whole company are in its settings.",
    empty="Nobody has a budget or has spent anything this month.",
    step="A budget holds for an agent and everybody below it without a budget of their own.",
    heading="Agent",
    row_icon="agent",
    columns=_AMOUNTS,
    amounts=_AMOUNTS,
    rows=_budget_rows,
    fields=_budget_fields,
    save=_save_budget,
    verb="Set",
)


# ── jobs ────────────────────────────────────────────────────────────────────────────────────────


def _job_rows(visit: Visit) -> list[Row]:
    rows = visit.ask(jobs.listing, company=visit.company_id, limit=50)
    names = common_queries.names(visit, (job["agent_id"] for job in rows))
    return [
        Row(
            job["id"],
            names[job["agent_id"]],
            (
                job["adapter_type"],
                _moment(job["created_at"]),
                job["waits_for"] or job["error"] or "",
            ),
            (_JOB_STATES.get(job["status"], "idle"), job["status"]),
            link=f"/inbox/{job['message_id']}",
            acts=() if job["completed_at"] else ("cancel",),
        )
        for job in rows
    ]


_JOB_STATES = {"completed": "good", "failed": "bad", "running": "work", "queued": "wait"}


JOBS = Noun(
    *("jobs", "Background jobs", "agent", "clock"),
    about="Work that agents do in the background; results reach them as mail.",
    empty="No background jobs.",
    step="Agents start them by themselves, for work that takes longer than a run.",
    columns=("Adapter", "Started", "Waits for"),
    rows=_job_rows,
    acts={
        "cancel": Act(
            "Cancel", does(jobs.cancel, "job", "The job is cancelled."), "Cancel this job of {}?"
        )
    },
)


# ── keys of agents ──────────────────────────────────────────────────────────────────────────────


def _key_rows(visit: Visit) -> list[Row]:
    rows = []
    for agent in visit.ask(agents.keyed, company=visit.company_id):
        name, label = agent["id"], agent["name"]
        for key in visit.ask(agents.keys, agent=name):
            if key["revoked_at"] is None:
                facts = (key["name"], _moment(key["created_at"]), _moment(key["expires_at"]))
                rows.append(Row(f"{name}/{key['id']}", label, facts, link=f"/agents/{name}"))
    return rows


def _key_fields(_: Visit) -> list[Setting]:
    return [
        Setting("agent", "text", True, "", "", (), "Agent", "agent"),
        Setting("label", "text", False, "", "", (), "Purpose"),
        Setting("expires_at", "moment", False, "In UTC. Empty: never.", "", (), "Expires"),
    ]


async def _save_key(visit: Visit, arguments: Given) -> Page:
    until = None if "expires_at" not in arguments else from_iso(arguments["expires_at"])
    agent = await _agent(visit, arguments["agent"])
    key = await visit.do(
        agents.create_key, agent=agent, label=arguments.get("label", ""), expires_at=until
    )
    return visit.show(
        "setup/shown_once.html",
        noun=KEYS,
        said=f"A key of {arguments['agent']}",
        token=key["token"],
        about="It acts as the agent, over MCP and HTTP, until it is revoked.",
    )


async def _revoke_key(visit: Visit, which: str) -> str:
    agent, _, key = which.partition("/")
    await visit.do(agents.revoke_key, agent=agent, key=key)
    return "Key revoked."


KEYS = Noun(
    *("keys", "Agent keys", "agent key", "key"),
    about="For agents that run outside of Remit. Agents that Remit runs need none.",
    empty="No agent has a key.",
    step="Make one for an agent that runs somewhere else and reports by itself.",
    heading="Agent",
    columns=("Purpose", "Created", "Expires"),
    rows=_key_rows,
    fields=_key_fields,
    save=_save_key,
    verb="Make",
    acts={"revoke": Act("Revoke", _revoke_key, "Revoke this key of {}?")},
)

ALL: Sequence[Noun] = (ADAPTERS, SCHEDULES, BUDGETS, JOBS, KEYS)
