"""Any model, driven inside the worker by an agent library."""

from __future__ import annotations

import asyncio
import importlib
from importlib.metadata import PackageNotFoundError, version
from typing import ClassVar, Literal

from pydantic import Field

from remit.adapters.contract import Adapter, Check, Environment
from remit.adapters.looking import credential
from remit.adapters.running import RunContext, RunResult
from remit.adapters.settings import PricedSettings
from remit.errors import Unsupported

_LIBRARY = "pydantic-ai-slim"
Provider = Literal["anthropic", "openai", "google", "groq", "mistral", "openrouter", "compatible"]
#: Where each provider's key is expected, in the order in which they are tried.
_VARIABLES: dict[Provider, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
}


#: For those who name none.
_MODELS: dict[Provider, str] = {"anthropic": "claude-sonnet-4-5", "openai": "gpt-5.5"}


class LlmConfig(PricedSettings):
    provider: Provider | None = Field(
        default=None,
        description='Who serves the model. "compatible": any server that speaks the OpenAI chat '
        "API, at baseUrl. null: the first provider whose key the worker has.",
    )
    temperature: float | None = Field(
        default=None,
        ge=0,
        le=2,
        description="How freely the model chooses words. null: its default.",
    )
    max_tokens: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="Longest answer of one turn. null: the model's limit.",
    )
    max_turns: int = Field(
        default=50,
        ge=1,
        le=1000,
        description="A run ends after so many turns of the model, if the company's limit "
        "turnsPerRun is not lower.",
    )
    timeout_seconds: int = Field(
        default=3600, ge=1, le=86_400, description="A run that takes longer is stopped."
    )


class Llm(Adapter):
    type: ClassVar[str] = "llm"
    summary: ClassVar[str] = (
        "Talks to a model directly, without another program. The agent has Remit's tools and those "
        "of the MCP servers it was granted, and no shell."
    )
    Config = LlmConfig
    background = True
    lends = tuple(name for names in _VARIABLES.values() for name in names)
    safety = (
        (
            "The agent can do only what its tools do: there is no shell and no file system besides "
            "its workspace."
        ),
        "What the agent reads is sent to the provider, or to whoever answers at baseUrl.",
        "Keys belong to secretRef or to the worker's environment.",
    )
    examples = {  # noqa: RUF012  # read only
        "The first provider that has a key": {},
        "A model of one's own": {
            "provider": "compatible",
            "baseUrl": "http://127.0.0.1:11434/v1",
            "model": "qwen3-coder",
            "maxTurns": 30,
        },
    }

    def check(
        self, config: LlmConfig | None = None, environment: Environment | None = None
    ) -> Check:
        settings, around = config or LlmConfig(), environment or {}
        try:
            found = version(_LIBRARY)
        except PackageNotFoundError:
            return Check(
                False,
                "The library that drives models is not installed.",
                "Install remit[llm] on every worker.",
                {"library": None},
            )
        chosen = [settings.provider] if settings.provider else list(_VARIABLES)
        needed = [name for provider in chosen for name in _VARIABLES.get(provider, ())]
        source = settings.secret_ref or credential(around, needed, {})
        facts: dict[str, str | bool | None] = {"library": found, "credential": source}
        if settings.provider == "compatible":
            if settings.base_url is None:
                sentence = 'The provider "compatible" needs an address.'
                return Check(False, sentence, "Set baseUrl.", facts)
            return Check(True, f"{_LIBRARY} {found} can be used with the given address.", "", facts)
        if source is None:
            return Check(
                False,
                f"{_LIBRARY} {found} is there, but no key of a provider is configured.",
                f"Set one of {', '.join(needed)} for the worker, or set secretRef.",
                facts,
            )
        return Check(True, f"{_LIBRARY} {found} can be used; its key: {source}.", "", facts)

    async def run(self, context: RunContext) -> RunResult:
        try:
            # It takes seconds, in which others are not to wait.
            loop = await asyncio.to_thread(importlib.import_module, "remit.adapters.llm_loop")
        except ImportError as error:
            raise Unsupported(
                "The library that drives models is not installed.", "Install remit[llm]."
            ) from error
        config: LlmConfig = context.config
        provider = config.provider or next(
            (one for one, names in _VARIABLES.items() if set(names) & set(context.credentials)),
            None,
        )
        if provider is None:
            raise Unsupported(
                "No key of a provider is there.", "Set provider, and a key for the worker."
            )
        model = config.model or _MODELS.get(provider)
        if model is None:
            raise Unsupported(f"{provider} has no model of ours.", "Set model.")
        lent = [context.credentials.get(name) for name in _VARIABLES.get(provider, ())]
        key = context.key() or next((one for one in lent if one), None)
        result: RunResult = await loop.run(context, provider, model, key)
        return result
