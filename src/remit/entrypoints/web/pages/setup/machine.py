"""The instance itself, for its operators: doctor, backups, and new companies."""

from typing import Any, Final

from starlette.responses import Response

from remit.adapters import registry
from remit.entrypoints import arrival, declared_files
from remit.entrypoints.http.server import instance as over_http
from remit.entrypoints.web.site import Done, Page, Routes, Site, Visit
from remit.entrypoints.web.text import settings_form
from remit.errors import NotFound, RemitError
from remit.services.declared.templates import TEMPLATES
from remit.services.identity import Caller
from remit.services.people import companies, instance

ROOT: Final = "ceo"


def routes(site: Site) -> Routes:
    return [
        site.page("/instance", show),
        *site.answered("/instance/doctor", examine, show, "/instance"),
        site.action("/instance/backups", back_up, show),
        site.page("/instance/backups/{name}", take),
        site.action("/instance/backups/{name}/remove", remove, show),
        *site.form("/companies/new", form, create),
    ]


async def show(visit: Visit, findings: Any = None) -> Page:
    backups = visit.site.app.backups

    def load(visit: Visit) -> Page:
        visit.ask(instance.may_operate, what="backups")
        return visit.show(
            "setup/instance.html",
            findings=findings,
            problem=backups.problem,
            doubt=arrival.of(visit.request).doubt,
            folder=str(backups.folder),
        )

    page = await visit.look(load)
    page.values["backups"] = await backups.shown()
    return page


async def examine(visit: Visit) -> Page:
    return await show(visit, await over_http.examined(visit.site.app, visit.request, visit.who))


async def back_up(visit: Visit) -> Done:
    backup = await visit.site.app.backups.make(visit.caller)
    if backup["writing"]:
        return Done("/instance#backups", f"{backup['name']} is being written; look again later.")
    return Done("/instance#backups", f"{backup['name']} is written and verified.")


async def take(visit: Visit) -> Response:
    return await over_http.backup_file(
        visit.site.app, visit.request, visit.who, visit.argument("name")
    )


async def remove(visit: Visit) -> Done:
    await visit.site.app.backups.remove(visit.caller, visit.argument("name"))
    return Done("/instance#backups", "The backup is deleted.")


# ── companies ───────────────────────────────────────────────────────────────────────────────────


def form(visit: Visit) -> Page:
    fields = settings_form.of_verb(
        companies.create,
        without=("adapter_config",),
        labels={"root_name": "Root agent", "adapter_type": "Adapter"},
    )
    return visit.show(
        "setup/new_company.html",
        fields=fields,
        typed={field.name: visit.form.text(field.name) for field in fields},
        templates=TEMPLATES,
        chosen=visit.form.text("template") or TEMPLATES[0].name,
        adapters=[(adapter.type, adapter.summary) for adapter in registry.all()],
        usual=visit.site.app.gate.usable_adapter,
    )


async def create(visit: Visit) -> Done:
    """Create the company; then the agents of the template, all or none."""
    fields = settings_form.of_verb(companies.create, without=("adapter_config",))
    arguments = settings_form.read_call(fields, visit.form)
    wanted = visit.form.text("template") or TEMPLATES[0].name
    template = next((candidate for candidate in TEMPLATES if candidate.name == wanted), None)
    if template is None:
        raise NotFound("There is no such template.", "Choose one of the list.")
    company = await visit.do(companies.create, **arguments)
    where = f"/?company={company['id']}"
    if not template.agents:
        return Done(where, f"{company['name']} is there.")
    who = Caller(visit.who.token, visit.form.key and f"{visit.form.key}-team")
    root = arguments.get("root_name") or ROOT
    try:
        document = template.document(root)
        done = await declared_files.apply_template(visit.site.app, who, company["id"], document)
    except RemitError as error:
        return Done(where, f"{company['name']} is there, without its team: {error.sentence}")
    return Done(where, f"{company['name']} is there, with {done['created']} agents below {root}.")
