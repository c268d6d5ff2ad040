"""Activity, adapters and their documentation over HTTP."""

from typing import Annotated, Any, cast

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import StrictBool

from remit import threads
from remit.adapters import hiring_docs, registry
from remit.adapters.contract import Adapter
from remit.adapters.setup.probe import Tried
from remit.app import App
from remit.entrypoints import adapter_trial
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import Body, CompanyId, Reference, new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.entrypoints.http.wire.paging import LARGEST, Paged, View
from remit.entrypoints.mcp.tools.listing import base_size
from remit.services import shapes
from remit.services.command import Ask
from remit.services.hiring import configuration
from remit.services.identity import Caller
from remit.services.people import companies
from remit.services.record import events
from remit.services.screens import overview

AdapterType = Annotated[str, Path(alias="adapterType", min_length=1, max_length=40)]


class TestBody(Body):
    adapter_config: dict[str, Any] | None = None
    #: With the settings of this agent instead.
    agent_id: Reference | None = None
    #: Also send the model one small request.
    try_out: StrictBool = False


def router(app: App) -> APIRouter:
    routes = new_router("overview")
    in_company = "/api/companies/{companyId}"

    @routes.get(in_company + "/activity")
    async def list_activity(
        request: Request,
        company: CompanyId,
        page: Paged,
        entity_type: Annotated[Reference | None, Query(alias="entityType")] = None,
        entity_id: Annotated[Reference | None, Query(alias="entityId")] = None,
    ) -> Response:
        """Actions of everybody, newest first; with both `entityType` and `entityId`, about one
        thing."""
        range_: dict[str, Any] = {"before": page.before_number(LARGEST), "limit": page.limit}

        def look(ask: Ask) -> list[View]:
            if entity_type is not None and entity_id is not None:
                resource = f"{entity_type}:{entity_id}"
                rows = ask(overview.happened_to, company=company, resource=resource, **range_)
            else:
                rows = ask(events.listing, company=company, **range_)
            company_id = ask(companies.show, company=company)["id"]
            return [_activity(row, company_id) for row in rows]

        activity = await app.gate.together(caller(request), look)
        return page.reply(activity, lambda row: row["seq"])

    @routes.get(in_company + "/adapters")
    async def list_adapters(request: Request, company: CompanyId) -> Response:
        """Adapters that can run an agent here; also unusable plugins, with the reason."""
        await app.gate(caller(request), configuration.may_read, company=company)
        return reply(await threads.CHECKS.run(_adapters))

    @routes.get(in_company + "/adapters/{adapterType}")
    async def show_adapter(request: Request, company: CompanyId, adapter: AdapterType) -> Response:
        """One adapter with its documentation, and what all agents' tools cost in tokens."""
        await app.gate(caller(request), configuration.may_read, company=company)
        installed = await threads.CHECKS.run(registry.get, adapter)
        tools, tokens = base_size(app)
        return reply(
            {
                **_adapter(installed),
                "text": await threads.CHECKS.run(hiring_docs.adapter_text, adapter),
                "base_tools": {"count": tools, "tokens": tokens},
            }
        )

    @routes.post(in_company + "/adapters/{adapterType}/test-environment")
    async def test_adapter(
        request: Request, company: CompanyId, adapter: AdapterType, body: TestBody | None = None
    ) -> Response:
        """Look whether an adapter can work where this instance runs; with `tryOut`, one small
        request to whoever serves its model says more."""
        test = body or TestBody()
        check, tried = await adapter_trial.tried(
            app,
            caller(request),
            company,
            adapter,
            test.adapter_config,
            agent=test.agent_id,
            try_out=test.try_out,
        )
        return reply(
            {
                "adapter_type": adapter,
                "usable": check.usable,
                "sentence": check.sentence,
                "next_step": check.next_step,
                "details": dict(check.facts),
                "tried": None if tried is None else _trial(tried),
            }
        )

    # Other systems' clients look for these two below /api.
    @routes.get(f"/api{hiring_docs.INDEX}", include_in_schema=False)
    @routes.get(hiring_docs.INDEX, response_class=PlainTextResponse)
    async def show_configuration_index(
        request: Request, company: Annotated[Reference | None, Query(alias="companyId")] = None
    ) -> Response:
        """Which adapters are installed, where each is documented, and how a hire goes."""
        await _check_reader(app, caller(request), company)
        return _text(await threads.CHECKS.run(hiring_docs.index_text))

    @routes.get("/api/llms/agent-configuration/{adapterType}.txt", include_in_schema=False)
    @routes.get("/llms/agent-configuration/{adapterType}.txt", response_class=PlainTextResponse)
    async def show_adapter_documentation(
        request: Request,
        adapter: AdapterType,
        company: Annotated[Reference | None, Query(alias="companyId")] = None,
    ) -> Response:
        """The keys of `adapterConfig`, as the adapter's own model has them."""
        await _check_reader(app, caller(request), company)
        return _text(await threads.CHECKS.run(hiring_docs.adapter_text, adapter))

    return routes


def _trial(tried: Tried) -> View:
    return {
        "ok": tried.ok,
        "sentence": tried.sentence,
        "next_step": tried.next_step,
        "details": dict(tried.facts),
    }


async def _check_reader(app: App, who: Caller, company: str | None) -> None:
    """Refuse callers who may not read configurations: in the named company, or else in one of
    theirs, if possible one that they see as a whole. The texts are the same for every company."""

    def look(ask: Ask) -> None:
        best = company
        if best is None:
            views = ask(companies.listing)
            whole = [view for view in views if view.get("scope_agent_id") is None] or views
            best = whole[0]["id"] if whole else None
        ask(configuration.may_read, company=best)

    await app.gate.together(who, look)


def _text(text: str) -> Response:
    return PlainTextResponse(text, headers={"Cache-Control": "no-store"})


def _adapters() -> list[View]:
    adapters = [_adapter(adapter) for adapter in registry.all()]
    return adapters + [
        {"type": name, "summary": "", "documentation": None, "problem": problem}
        for name, problem in sorted(registry.problems().items())
    ]


def _adapter(adapter: Adapter) -> View:
    shown: shapes.AdapterShape = {
        "type": adapter.type,
        "summary": adapter.summary,
        "documentation": hiring_docs.address_of(adapter.type),
        "problem": None,
    }
    return cast(dict[str, Any], shown)


def _activity(event: View, company: str) -> View:
    """Return an event under the field names that activity has in other systems."""
    kind, _, actor = event["actor"].partition(":")
    entity_type, _, entity_id = event["resource"].partition(":")
    shown: shapes.ActivityShape = {
        "id": event["id"],
        "seq": event["seq"],
        "company_id": company,
        "actor_type": kind,
        "actor_id": actor or kind,
        "action": event["action"],
        "entity_type": entity_type,
        "entity_id": entity_id,
        "agent_id": actor if kind == "agent" else None,
        "run_id": event["run_id"],
        "allowed": event["allowed"],
        "reason": event["reason"],
        "details": event["details"],
        "created_at": event["at"],
    }
    return cast(dict[str, Any], shown)
