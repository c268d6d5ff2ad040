"""The loop of model and tools, by pydantic-ai. Imported only by a run: it takes seconds."""

import contextlib
import json
import os
import stat
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai import exceptions as errors
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models import infer_model
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.usage import UsageLimits

from remit.adapters import faults
from remit.adapters.reading import answered
from remit.adapters.running import FEW_TOOLS, RunContext, RunResult, Usage
from remit.ids import random_name
from remit.model.execution import transcript
from remit.model.execution.transcript import Entry, EntryKind

_FOLDER = ".llm"
_LARGEST_HISTORY = 32 << 20
_LONGEST_NOTE = 20_000
_FEW = (
    "You have the tools that are listed to you and no others. Instructions above about other tools "
    "do not concern you."
)
#: Reasons by exception, subclasses before their bases.
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (errors.ModelAuthenticationError, "auth"),
    (errors.ModelQuotaExceededError, "billing"),
    (errors.ModelRateLimitError, "rate_limited"),
    (errors.ModelOverloadedError, "overloaded"),
    (errors.ModelContextWindowExceededError, "context_full"),
    (errors.ModelNotFoundError, "no_such_model"),
    (errors.UsageLimitExceeded, "max_turns"),
    (errors.AgentRunError, "api_error"),
    (errors.UserError, "settings"),
)


#: Reasons that are the agent's own fault, whatever the provider says about them.
_ITS_OWN = frozenset({"max_turns", "context_full", "no_such_model", "settings"})


async def run(
    context: RunContext,
    provider: str,
    model: str,
    key: str | None,
    *,
    base_url: str | None = None,
    few_tools: bool = False,
) -> RunResult:
    tools: list[Any] = [] if context.background else [_remit(context, few_tools)]
    config = context.config
    told = (context.instructions, _FEW if few_tools and context.instructions else "")
    settings: dict[str, Any] = {}
    if config.temperature is not None:
        settings["temperature"] = config.temperature
    if config.max_tokens is not None:
        settings["max_tokens"] = config.max_tokens
    if config.reasoning_effort is not None:
        effort = config.reasoning_effort
        settings["thinking"] = False if effort == "none" else effort
    async with AsyncExitStack() as opened:
        agent: Any = Agent(
            _model(
                config,
                provider,
                model,
                key,
                opened,
                base_url,
                _retries(context, config.max_retries),
            ),
            instructions="\n\n".join(filter(None, told)) or None,
            model_settings=settings or None,  # type: ignore[arg-type,unused-ignore]
        )
        try:
            for toolset in tools:
                await opened.enter_async_context(toolset)
        except Exception as error:
            sentence = f"The model could not be given Remit's tools ({type(error).__name__})."
            return RunResult(False, reason="no_tools", error=sentence)
        try:
            return await _talk(context, agent, tools)
        except (errors.AgentRunError, errors.UserError) as error:
            return _failed(context, error)
    raise AssertionError("the stack holds nothing back")


def _remit(context: RunContext, few: bool) -> Any:
    return MCPToolset(
        f"{context.url}/mcp{FEW_TOOLS if few else ''}",
        id="remit",
        headers={"Authorization": f"Bearer {context.token}"},
        # A refused call is a result for the model, not the end of the run.
        tool_error_behavior="failed",
    )


async def _talk(context: RunContext, agent: Any, tools: list[Any]) -> RunResult:
    limits = UsageLimits(request_limit=context.fewest_turns(context.config.max_turns))
    longest = turns = 0
    async with agent.iter(
        context.turn, message_history=_history(context), toolsets=tools, usage_limits=limits
    ) as talk:
        async for node in talk:
            _note_results(context, getattr(node, "request", None))
            answer = getattr(node, "model_response", None)
            if answer is not None:
                longest = max(longest, int(answer.usage.input_tokens or 0))
                _note(context, answer)
                calls = any(hasattr(part, "tool_name") for part in answer.parts)
                # Before its tools are called, so that a used-up budget ends the run at once.
                await context.spend(_usage(talk.usage).priced_at(context.price), last=not calls)
                turns += 1
                context.pace.turn(turns)
                for part in answer.parts:
                    if hasattr(part, "tool_name"):
                        context.pace.call(part.tool_name, _arguments(part), ours=True)
        result = talk.result
    context.spent = _usage(talk.usage).priced_at(context.price)
    session = None
    if context.config.session_policy is not None and not context.background:
        session = _keep(context, result.all_messages_json())
    return RunResult(
        True, str(result.output), "completed", None, context.spent, session, longest or None
    )


def _model(
    config: Any,
    provider: str,
    model: str,
    key: str | None,
    clients: AsyncExitStack,
    base_url: str | None = None,
    heard: Callable[[Any], Awaitable[None]] | None = None,
) -> Any:
    """Return the library's model; its HTTP clients are closed with `clients`. `heard` is called for
    every response of the server."""
    hooks = {"response": [] if heard is None else [heard]}

    def factory(name: str) -> Any:
        settings: dict[str, Any] = {"api_key": key or "none"}
        if address := base_url or config.base_url:
            settings["base_url"] = address
        if name.startswith("openai"):
            from openai import AsyncOpenAI, DefaultAsyncHttpxClient

            # A redirect would take the key and the conversation to another address.
            plain = DefaultAsyncHttpxClient(follow_redirects=False, event_hooks=hooks)
            client = AsyncOpenAI(max_retries=config.max_retries, http_client=plain, **settings)
            clients.push_async_callback(client.close)
            return infer_provider_class(name)(openai_client=client)  # type: ignore[call-arg,unused-ignore]
        if name == "anthropic":
            from anthropic import AsyncAnthropic
            from anthropic import DefaultAsyncHttpxClient as Plain

            direct = Plain(follow_redirects=False, event_hooks=hooks)
            other = AsyncAnthropic(max_retries=config.max_retries, http_client=direct, **settings)
            clients.push_async_callback(other.close)
            return infer_provider_class(name)(anthropic_client=other)  # type: ignore[call-arg,unused-ignore]
        return infer_provider_class(name)(**settings)

    as_openai = ("compatible", "openai", "ollama")
    family = "openai-chat" if provider in as_openai else provider
    return infer_model(f"{family}:{model}", factory)


def _retries(context: RunContext, most: int) -> Callable[[Any], Awaitable[None]]:
    """Return a hook that logs failed requests which the library is going to retry."""
    failures = 0

    async def heard(answer: Any) -> None:
        nonlocal failures
        status = answer.status_code
        if status < 500 and status not in (408, 409, 429):
            failures = 0
            return
        failures += 1
        if failures <= most:
            seconds = answer.headers.get("retry-after", "")
            context.tell(
                Entry(
                    EntryKind.RETRY,
                    f"the model's server answered {status}",
                    attempt=failures,
                    most=most,
                    wait_ms=1000 * int(seconds[:6]) if seconds[:6].isdecimal() else None,
                )
            )

    return heard


def _note(context: RunContext, answer: Any) -> None:
    """Log the texts and calls of the model."""
    for part in answer.parts:
        content = getattr(part, "content", None)
        if hasattr(part, "tool_name"):
            text, tool = transcript.arguments(_arguments(part)), transcript.name(part.tool_name)
            call = transcript.name(getattr(part, "tool_call_id", None))
            context.tell(Entry(EntryKind.CALL, text[:_LONGEST_NOTE], tool, call))
        elif isinstance(content, str) and content:
            kind = EntryKind.THOUGHT if part.part_kind == "thinking" else EntryKind.SAID
            context.tell(Entry(kind, content[:_LONGEST_NOTE]))


def _note_results(context: RunContext, request: Any) -> None:
    """Log the results of the model's calls."""
    for part in getattr(request, "parts", None) or ():
        if part.part_kind not in ("tool-return", "retry-prompt") or not part.tool_name:
            continue
        text = part.content if isinstance(part.content, str) else transcript.arguments(part.content)
        failed = getattr(part, "outcome", "retried") != "success"
        tool, call = transcript.name(part.tool_name), transcript.name(part.tool_call_id)
        context.tell(answered(tool, call, text[:_LONGEST_NOTE], failed=failed))


def _arguments(part: Any) -> Any:
    """Return the arguments of a call, decoded where the model wrote them as text."""
    arguments = getattr(part, "args", None)
    if isinstance(arguments, str):
        with contextlib.suppress(ValueError):
            return json.loads(arguments)
    return arguments


def _usage(taken: Any) -> Usage:
    """Convert the library's usage, without the cost by its own price list."""
    return Usage(
        tokens_in=int(taken.input_tokens or 0),
        tokens_out=int(taken.output_tokens or 0),
        tokens_cached=int(taken.cache_read_tokens or 0),
    )


def _failed(context: RunContext, error: Exception) -> RunResult:
    reason = next((word for kind, word in _REASONS if isinstance(error, kind)), "failed")
    sentence = f"The model failed ({type(error).__name__.lstrip('_')}): {error}"[:500]
    seen = None if reason in _ITS_OWN else _seen(error)
    return RunResult(
        False,
        reason=seen.reason if seen else reason,
        error=sentence,
        usage=context.spent,
        fault=seen.fault if seen else None,
        until=seen.until if seen else None,
    )


def _seen(error: Exception) -> faults.Seen | None:
    """Return the fault in the provider's answer, which the library keeps as the error's cause."""
    status = getattr(error, "status_code", None)
    answer = getattr(error.__cause__, "response", None)
    headers = dict(getattr(answer, "headers", None) or {})
    message = f"{error} {error.__cause__ or ''}"
    if isinstance(status, int):
        return faults.by_status(status, message, headers)
    return faults.in_words(message)


def _history(context: RunContext) -> Any:
    """Load the conversation so far; None begins a new one, as for a missing or damaged file."""
    if context.session is None:
        return None
    place = context.home / _FOLDER / f"{Path(context.session).name}.json"
    try:
        opened = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(opened, "rb") as file:
            status = os.fstat(opened)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_HISTORY:
                raise ValueError("not a history")
            return ModelMessagesTypeAdapter.validate_json(file.read())
    except (OSError, ValueError) as error:
        context.log(f"The conversation is gone ({type(error).__name__}); a new one is begun.")
        return None


def _keep(context: RunContext, history: bytes) -> str:
    session = context.session or random_name()
    folder = context.home / _FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    place = folder / f"{Path(session).name}.json"
    half = folder / f"{random_name()}.new"
    half.write_bytes(history)
    half.replace(place)
    return session
