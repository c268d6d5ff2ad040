"""Questions and schedules over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from remit.app import App
from remit.entrypoints.http import described
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import Body, CompanyId, Id, Reference, new_router
from remit.entrypoints.http.paging import Paged, by_id
from remit.model.question import MOST_OPTIONS
from remit.services import questions, schedules, waiting

Ended = Annotated[bool, Query(alias="all", description="Also those that have ended.")]


class QuestionBody(Body):
    question: described.Asked
    options: Annotated[list[str], Field(max_length=MOST_OPTIONS)] = []  # noqa: RUF012  pydantic copies it
    #: `boss` unless told otherwise, or `board`.
    to: Annotated[str, described.words("boss", "board")] | None = None


class AnswerBody(Body):
    answer: described.Asked


class ScheduleBody(Body):
    #: Whose it is; the calling agent's own unless told otherwise.
    agent: Reference | None = None
    #: Who gets it; the same agent unless told otherwise.
    to: Reference | None = None
    body: described.ScheduledLetter
    subject: described.Subject = ""
    cron: Annotated[str | None, Field(description="Five fields, or else:", max_length=200)] = None
    timezone: Annotated[str, Field(max_length=100)] = "UTC"
    at: Annotated[described.Moment | None, Field(description="ISO 8601, for once.")] = None


def router(app: App) -> APIRouter:
    routes = new_router("questions", "/api")
    in_company = "/companies/{companyId}/questions"
    schedules_of = "/companies/{companyId}/schedules"

    @routes.get(in_company)
    async def list_questions(
        request: Request,
        company: CompanyId,
        page: Paged,
        agent: Annotated[Reference | None, Query()] = None,
        ended: Ended = False,
    ) -> Response:
        """What agents asked and nobody answered yet; an agent sees its own."""
        rows = await app.gate(
            caller(request),
            questions.listing,
            company=company,
            agent=agent,
            ended_too=ended,
            after=page.after_id(),
            limit=page.limit,
        )
        return page.reply(rows, by_id)

    @routes.post(in_company, status_code=201)
    async def ask_question(request: Request, company: CompanyId, body: QuestionBody) -> Response:
        """The answer comes to the asking agent as mail."""
        view = await app.gate(
            caller(request),
            questions.ask,
            company=company,
            question=body.question,
            options=body.options,
            to=body.to,
        )
        return reply(view, 201)

    @routes.post(in_company + "/{id}/answer")
    async def answer_question_in_company(
        request: Request, company: CompanyId, question: Id, body: AnswerBody
    ) -> Response:
        view = await app.gate(
            caller(request),
            questions.answer,
            company=company,
            question=question,
            answer=body.answer,
        )
        return reply(view)

    @routes.post("/questions/{id}/answer")
    async def answer_question(request: Request, question: Id, body: AnswerBody) -> Response:
        view = await app.gate(
            caller(request), questions.answer, question=question, answer=body.answer
        )
        return reply(view)

    @routes.delete(in_company + "/{id}")
    async def cancel_question_in_company(
        request: Request, company: CompanyId, question: Id
    ) -> Response:
        view = await app.gate(
            caller(request), waiting.cancel_question, question=question, company=company
        )
        return reply(view)

    @routes.delete("/questions/{id}")
    async def cancel_question(request: Request, question: Id) -> Response:
        return reply(await app.gate(caller(request), waiting.cancel_question, question=question))

    @routes.get(schedules_of)
    async def list_schedules(
        request: Request,
        company: CompanyId,
        page: Paged,
        agent: Annotated[Reference | None, Query()] = None,
        ended: Ended = False,
    ) -> Response:
        """What will be sent at set times; an agent sees its own."""
        rows = await app.gate(
            caller(request),
            schedules.listing,
            company=company,
            agent=agent,
            ended_too=ended,
            after=page.after_id(),
            limit=page.limit,
        )
        return page.reply(rows, by_id)

    @routes.post(schedules_of, status_code=201)
    async def add_schedule(request: Request, company: CompanyId, body: ScheduleBody) -> Response:
        """Mail again and again, or once at a time."""
        view = await app.gate(caller(request), schedules.add, company=company, **body.model_dump())
        return reply(view, 201)

    @routes.delete(schedules_of + "/{id}")
    async def cancel_schedule_in_company(
        request: Request, company: CompanyId, schedule: Id
    ) -> Response:
        view = await app.gate(
            caller(request), waiting.cancel_schedule, schedule=schedule, company=company
        )
        return reply(view)

    @routes.delete("/schedules/{id}")
    async def cancel_schedule(request: Request, schedule: Id) -> Response:
        return reply(await app.gate(caller(request), waiting.cancel_schedule, schedule=schedule))

    return routes
