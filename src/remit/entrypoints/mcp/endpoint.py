"""MCP over HTTP, stateless: the only place that knows the MCP SDK.

    request ─ token ─ size ─┬─ 2026 and later: the SDK's handler, as it is
                            ├─ earlier, a request: the SDK's kernel without a session around it
                            └─ earlier, anything else: the SDK's session manager

A token is checked before its body is received: here, or by the guard of the instance, which accepts
a recent check for a small body. Such a token may have ended since, so it is checked again before
the SDK's own handlers get the request, or before the answer to any other. Only a list or call that
succeeded is not: it has identified its caller in its own transaction.

A session in the SDK costs a transport, four streams and two tasks; a stateless request needs none
of them, and answers about twice as fast without. The meaning of a message stays with the SDK.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import anyio
import orjson
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.runner import modern_error_data, serve_one
from mcp.server.streamable_http import check_accept_headers
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    DEFAULT_NEGOTIATED_VERSION,
    INVALID_REQUEST,
    CallToolRequestParams,
    JSONRPCRequest,
    ListToolsResult,
    PaginatedRequestParams,
    RequestId,
)
from mcp_types import Tool as ListedTool
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from remit.entrypoints import bodies
from remit.entrypoints.http.wire.caller import bearer, token_in
from remit.entrypoints.mcp.lean import LeanCall
from remit.entrypoints.mcp.registry import Tool, check_values, schema_of, validate
from remit.entrypoints.mcp.tools import few as few_tools
from remit.entrypoints.mcp.tools.few import few, simpler
from remit.entrypoints.mcp.tools.hints import where_ids_are
from remit.errors import (
    AwaitsApproval,
    NotFound,
    NoToken,
    RemitError,
    Stopped,
    TooMany,
    Unauthenticated,
    Unavailable,
)
from remit.ids import is_run_token, random_name
from remit.model.text import closest

log = logging.getLogger(__name__)

#: Limits of one message. The SDK parses it slowly, and on the event loop; larger content is given
#: by its path in the workspace.
LARGEST_BODY: Final = 4 * 1024 * 1024
MOST_VALUES: Final = 20_000
#: Pause before one of the largest messages; in proportion before smaller ones.
PAUSE_SECONDS: Final = 0.1

#: Instructions that a program may show its model, also where it lists no tools at first.
INSTRUCTIONS: Final = (
    "Remit: the company you work in. Through these tools you read and answer mail (mail_inbox, "
    "mail_send, mail_ack, ask), see, plan, hand in, complete and delegate outcomes (outcome_list, "
    "outcome_view, outcome_create, outcome_submit, outcome_complete, delegate), keep files and "
    "your memory (kb_read, kb_create, kb_write), hire and steer reports (hire_agent, "
    "agent_control), ask for rights (capability_request) and use repositories (repo_clone). "
    "Nobody reads your final message: whoever is to know something gets mail_send."
)

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_TOKEN: Final = "remit.token"  # noqa: S105  the key in the ASGI scope, not a token
#: Key in the ASGI scope of the body's size.
_SIZE: Final = "remit.size"
#: Methods whose answer needs a transaction that identifies the caller.
_IDENTIFYING: Final = ("tools/list", "tools/call")

ToolsOf = Callable[[str], Awaitable[Sequence[Tool]]]
#: Finds a tool that is not among the fixed ones by its name, for the bearer of a token.
FindTool = Callable[[str, str], Awaitable[Tool | None]]
Authenticate = Callable[[str], Awaitable[None]]


class Watch(Protocol):
    """Watches the calls of runs, and ends those that run away."""

    async def admit(self, token: str, tool: str, arguments: Any) -> None:
        """Called before each call; raises RemitError to refuse it."""

    async def ended(self, token: str, tool: str, *, failed: bool) -> None:
        """Called after each call; raises RemitError to answer that instead."""


#: Errors that say nothing about what the agent does: it is stopped, waits, or Remit is busy.
_NOT_FAILED: Final = (AwaitsApproval, Stopped, TooMany, Unauthenticated, Unavailable)


def build_endpoint(
    *,
    tools: Mapping[str, Tool],
    listed: ToolsOf,
    authenticate: Authenticate,
    version: str,
    allowed_hosts: Sequence[str] | None = None,
    find: FindTool | None = None,
    watch: Watch | None = None,
    needs: AbstractAsyncContextManager[object] | None = None,
) -> Endpoint:
    """An endpoint for these tools, by name.

    `listed(token)` are the tools that a caller is shown. `find` resolves a tool that is not among
    `tools`; `needs` is entered while it serves. `watch` may refuse calls of runs.

    `allowed_hosts` are the names under which it may be reached besides loopback, each as
    `name:port`, `name:*` for any port, or `name` for the scheme's own port. None is for a server
    that checks Host and Origin itself.
    """
    return Endpoint(
        _server(tools, listed, find, watch, version),
        authenticate,
        _security(allowed_hosts),
        needs or nullcontext(),
    )


class Endpoint:
    """An ASGI app for `/mcp`. Serve it while `lifespan()` is entered."""

    def __init__(
        self,
        server: Server[dict[str, Any]],
        authenticate: Authenticate,
        security: TransportSecuritySettings,
        needs: AbstractAsyncContextManager[object],
    ) -> None:
        self._needs = needs
        self._server = server
        self._authenticate = authenticate
        self._settings = security
        self._security = TransportSecurityMiddleware(security)
        self._sessions: StreamableHTTPSessionManager | None = None
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        sessions = StreamableHTTPSessionManager(
            self._server,
            json_response=True,
            stateless=True,
            security_settings=self._settings,
            max_request_body_size=LARGEST_BODY,
        )
        async with self._needs, sessions.run():
            self._sessions = sessions
            try:
                yield
            finally:
                self._sessions = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["method"] != "POST":
                response: Response | None = _only_post()
            else:
                response = await self._post(scope, receive, send)
        except RemitError as error:
            response = _error_response(error)
        if response is not None:
            await response(scope, receive, send)

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        if self._sessions is None:
            raise RuntimeError("enter the endpoint's lifespan before serving it")
        request = Request(scope)
        token = _bearer(request)
        guarded = bodies.INCOMING in scope
        if not guarded:
            await self._check(token)
        try:
            body = await bodies.whole(scope, receive, LARGEST_BODY)
        except ClientDisconnect:
            return None
        if len(body) > bodies.SMALL:
            await self._take_turn(body)
        scope = {**scope, _TOKEN: token, _SIZE: len(body)}
        response = await self._answer_earlier_request(Request(scope), body)
        if response is None:
            if guarded:
                await self._check(token)
            await self._sessions.asgi_app(scope, _replay(body, receive), send)
        return response

    async def _check(self, token: str) -> None:
        with suppress(Stopped):  # a good token that is halted; each call answers that by itself
            await self._authenticate(token)

    async def _take_turn(self, body: bytes) -> None:
        """Admit large messages one by one, with a pause in proportion to their size: the SDK parses
        them on the event loop, and many at once would block all other requests."""
        async with self._turn:
            await bodies.apart(len(body), bodies.check_values, body, MOST_VALUES)
            await asyncio.sleep(PAUSE_SECONDS * len(body) / LARGEST_BODY)

    async def _answer_earlier_request(self, request: Request, body: bytes) -> Response | None:
        """Answer one request of a protocol before 2026 with JSON; None leaves it to the session."""
        version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER, DEFAULT_NEGOTIATED_VERSION)
        if version not in HANDSHAKE_PROTOCOL_VERSIONS or not check_accept_headers(request)[0]:
            return None
        refusal = await self._security.validate_request(request, is_post=True)
        if refusal is not None:
            return refusal
        try:
            message = await bodies.apart(len(body), _message, body)
            answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message.id}
            _json(answer)  # the response repeats the id, so it must be one that can be written
        except (ValidationError, ValueError, TypeError, RecursionError):
            return None
        identified = message.method in _IDENTIFYING
        try:
            answer["result"] = result = await serve_one(
                self._server,
                _Exchange(message.id, ServerMessageMetadata(request_context=request)),
                message.method,
                message.params,
                connection=Connection.from_envelope(version, None, None),
                lifespan_state={},
            )
            identified = identified and not result.get("isError")
        except Exception as error:  # the SDK logs what it does not explain to the client
            identified = False
            answer["error"] = modern_error_data(error).model_dump(mode="json", exclude_none=True)
        if not identified:
            await self._check(request.scope[_TOKEN])
        written = await bodies.apart(_weight(answer.get("result", {})), _json, answer)
        return Response(written, media_type="application/json")


@dataclass
class _Exchange:
    """Dispatcher for the SDK's kernel that sends nothing besides the one answer."""

    request_id: RequestId
    message_metadata: ServerMessageMetadata
    transport: TransportContext = field(
        default_factory=lambda: TransportContext(kind="streamable-http", can_send_request=False)
    )
    can_send_request: bool = False
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)

    async def send_raw_request(self, method: str, *_: object) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, *_: object) -> None:
        return

    async def progress(self, *_: object) -> None:
        return


# ── what the server does ────────────────────────────────────────────────────────────────────────


def _server(
    tools: Mapping[str, Tool],
    listed: ToolsOf,
    find: FindTool | None,
    watch: Watch | None,
    version: str,
) -> Server[dict[str, Any]]:
    async def list_tools(
        context: ServerRequestContext[dict[str, Any], Any], _: PaginatedRequestParams
    ) -> ListToolsResult:
        try:
            offered = await listed(_token(context))
        except Stopped as error:
            raise MCPError(INVALID_REQUEST, error.as_text()) from error
        if _wants_few(context):
            return ListToolsResult(tools=[_listed(tool, simpler) for tool in few(offered)])
        # In a run the list goes into a model's context; other clients may validate with it.
        if is_run_token(_token(context)):
            return ListToolsResult(tools=[_listed(tool, simpler) for tool in offered])
        return ListToolsResult(tools=[_listed(tool, strict=True) for tool in offered])

    async def make(
        context: ServerRequestContext[dict[str, Any], Any], token: str, call: CallToolRequestParams
    ) -> dict[str, Any]:
        tool = tools.get(call.name)
        if tool is None and find is not None:
            tool = await find(token, call.name)
        if tool is None:
            raise _no_tool(call.name, tools)
        checked = await bodies.apart(_size(context), validate, tool, call.arguments or {})
        lean = LeanCall(tool, token, checked)
        answer = lean.shorten(await tool.call(lean.caller, checked))
        write = _success if tool.schema is None else _passed_on
        return await bodies.apart(_weight(answer), write, answer)

    async def call_tool(
        context: ServerRequestContext[dict[str, Any], Any], call: CallToolRequestParams
    ) -> dict[str, Any]:
        try:
            token = _token(context)
            if watch is None or not is_run_token(token):
                return await make(context, token, call)
            # Before validation: a run can repeat an invalid call as well.
            await watch.admit(token, call.name, call.arguments or {})
            try:
                answer = await make(context, token, call)
            except RemitError as error:
                if not isinstance(error, _NOT_FAILED):
                    await watch.ended(token, call.name, failed=True)
                raise
            await watch.ended(token, call.name, failed=bool(answer.get("isError")))
            return answer
        except RemitError as error:
            return _failure(error)
        except Exception:
            reference = random_name()[:8]
            log.exception("tool %r failed (reference %s)", call.name[:60], reference)
            return _failure(_internal(reference))

    # The SDK would list the tools before each call to look for headers that our schemas never have.
    server: Server[dict[str, Any]] = Server(
        "remit",
        version=version,
        instructions=INSTRUCTIONS,
        get_tool_input_schema=lambda _name: None,
    )
    server.add_request_handler("tools/list", PaginatedRequestParams, list_tools)
    server.add_request_handler("tools/call", CallToolRequestParams, call_tool)
    server.middleware[:] = [_refuse_malformed_arguments]
    return server


async def _refuse_malformed_arguments(
    ctx: ServerRequestContext[dict[str, Any], Any], call_next: CallNext
) -> HandlerResult:
    """Refuse arguments that are no object, or have an invalid name, as a tool error; the agent
    cannot read a protocol error."""
    arguments = (ctx.params or {}).get("arguments", {})
    plain = isinstance(arguments, dict) and all(key.isascii() for key in arguments)
    if ctx.method == "tools/call" and not plain:
        try:
            check_values(arguments)
        except RemitError as error:
            return _failure(error)
    return await call_next(ctx)


def _token(context: ServerRequestContext[dict[str, Any], Any]) -> str:
    if context.request is None:
        raise RuntimeError("this server answers only over HTTP")
    token: str = context.request.scope[_TOKEN]
    return token


def _size(context: ServerRequestContext[dict[str, Any], Any]) -> int:
    size: int = context.request.scope[_SIZE] if context.request is not None else 0
    return size


def _no_tool(name: str, known: Iterable[str]) -> NotFound:
    likely = closest(name, known)
    return NotFound(
        f"There is no tool {name[:60]!r} for you.",
        f"Call {' or '.join(likely)}." if likely else "List the tools and choose one.",
    )


def _wants_few(context: ServerRequestContext[dict[str, Any], Any]) -> bool:
    """Return whether the address asks for the few tools of a small model."""
    return context.request is not None and (
        context.request.query_params.get(few_tools.PARAMETER) == few_tools.VALUE
    )


def _listed(
    tool: Tool,
    adapt: Callable[[dict[str, Any]], dict[str, Any]] = lambda schema: schema,
    *,
    strict: bool = False,
) -> ListedTool:
    return ListedTool.model_validate(
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": adapt(schema_of(tool, strict=strict)),
            # Clients run tools that only read in parallel.
            "annotations": None if tool.mutates else {"readOnlyHint": True},
        }
    )


def _weight(answer: dict[str, Any]) -> int:
    """Estimate the characters of an answer, without walking through all of it."""
    parts = [part for value in answer.values() if isinstance(value, list) for part in value]
    texts = [part.get("text", "") if isinstance(part, dict) else "" for part in parts]
    length = sum(len(text) for text in (*answer.values(), *texts) if isinstance(text, str))
    return length + 256 * len(parts)


def _success(result: dict[str, Any]) -> dict[str, Any]:
    return {
        "content": [{"type": "text", "text": _json(result).decode()}],
        "structuredContent": result,
        "resultType": "complete",
    }


def _passed_on(answer: dict[str, Any]) -> dict[str, Any]:
    """Return another server's answer, reduced to the keys that every client understands."""
    known = ("content", "structuredContent", "isError")
    passed = {key: answer[key] for key in known if key in answer}
    _json(passed)
    return {"content": [], **passed, "resultType": "complete"}


def _failure(error: RemitError) -> dict[str, Any]:
    """Make a tool error. Some clients show the model its text, others its structure: both are
    complete."""
    error.step = where_ids_are(error) or error.step
    content = [{"type": "text", "text": error.as_text()}]
    facts: dict[str, Any] = {"code": error.reason, "error": error.sentence, "next_step": error.step}
    if error.details:
        details = _json(error.details)
        content.append({"type": "text", "text": details.decode()})
        facts["details"] = orjson.loads(details)
    return {
        "content": content,
        "structuredContent": facts,
        "isError": True,
        "resultType": "complete",
    }


def _internal(reference: str) -> RemitError:
    return RemitError(
        f"Something went wrong on our side (reference {reference}).",
        "Try once more; if it happens again, report the reference.",
        code="internal",
    )


def _json(value: object) -> bytes:
    """Serialise a value; a lone surrogate fails here, inside the call, and not on the wire."""
    return orjson.dumps(value)


# ── what HTTP needs ─────────────────────────────────────────────────────────────────────────────


def _security(allowed_hosts: Sequence[str] | None) -> TransportSecuritySettings:
    if allowed_hosts is None:
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    hosts = [*allowed_hosts, *_LOOPBACK, *(f"{host}:*" for host in _LOOPBACK)]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=hosts,
        allowed_origins=[f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")],
    )


def _bearer(request: Request) -> str:
    header = request.headers.get("authorization")
    if header is None:
        raise NoToken("This request carries no bearer token.")
    return bearer(token_in(header))


def _message(body: bytes) -> JSONRPCRequest:
    try:
        read = orjson.loads(body)
    except ValueError:
        read = json.loads(body)  # accepts lone surrogates, which the agent then gets an error about
    return JSONRPCRequest.model_validate(read, by_name=False)


def _replay(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay


def _only_post() -> Response:
    body = {
        "error": "This endpoint keeps no stream open.",
        "code": "method_not_allowed",
        "nextStep": "Send each message with POST.",
    }
    return JSONResponse(body, 405, {"Allow": "POST"})


def _error_response(error: RemitError) -> Response:
    body = {"error": error.sentence, "code": error.reason, "nextStep": error.step}
    headers = {}
    if isinstance(error, Unauthenticated):
        known = "" if isinstance(error, NoToken) else ' error="invalid_token"'
        headers["WWW-Authenticate"] = f"Bearer{known}"
    if error.status == Unavailable.status:
        headers["Retry-After"] = "1"
    return JSONResponse(body, error.status, headers)
