"""Any model, driven inside the worker by an agent library."""

import asyncio
import http.client
import importlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Final, Literal, get_args
from urllib.parse import urlsplit

from pydantic import Field

from remit.adapters.contract import Adapter, Check, Environment
from remit.adapters.guarded_http import literal
from remit.adapters.price_table import Served
from remit.adapters.running import RunContext, RunResult
from remit.adapters.settings import TIMEOUT, PricedSettings, Seconds, optional
from remit.adapters.setup import probe
from remit.adapters.setup.detect import credential
from remit.adapters.setup.lending import Lent, pick, spare_loopback
from remit.adapters.setup.probe import models_in, named
from remit.errors import Unsupported
from remit.extras import how_to_install

_LIBRARY = "pydantic-ai-slim"
Provider = Literal[
    "anthropic", "openai", "google", "groq", "mistral", "openrouter", "ollama", "compatible"
]
PROVIDERS: Final = get_args(Provider)
#: Variables with each provider's key, in the order in which providers are tried.
_VARIABLES: dict[Provider, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
}


#: Ollama's default address.
OLLAMA: Final = "http://127.0.0.1:11434/v1"
#: Short time limit, because a server on the same machine answers at once.
_SECONDS: Final = 0.5
_LARGEST: Final = 1 << 20
#: Default address of each provider; two of them without a version.
_ADDRESSES: dict[Provider, str] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "google": "https://generativelanguage.googleapis.com",
    "groq": "https://api.groq.com/openai/v1",
    "mistral": "https://api.mistral.ai/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "ollama": OLLAMA,
}
#: Variables of the worker with a provider's address, such as that of a gateway.
_ADDRESS_VARIABLES: dict[Provider, str] = {
    "anthropic": "ANTHROPIC_BASE_URL",
    "openai": "OPENAI_BASE_URL",
}
#: Default model of each provider.
_MODELS: dict[Provider, str] = {"anthropic": "claude-sonnet-4-5", "openai": "gpt-5.5"}


class LlmConfig(PricedSettings):
    provider: Provider | None = optional(
        'Who serves the model. "ollama": the one on the worker\'s machine, unless '
        'baseUrl says where. "compatible": any server that speaks the OpenAI chat API, at baseUrl. '
        "null: the first provider whose key the worker has.",
    )
    tools: Literal["few", "all"] | None = optional(
        'Which of Remit\'s tools the model is told of. "few": the ten that most work '
        'is done with, for small models. "all": every one it has a use for. null: few for a model '
        "on one's own machine or network, all otherwise.",
    )
    temperature: float | None = optional(
        "How freely the model chooses words. null: its default.", ge=0, le=2
    )
    max_tokens: int | None = optional(
        "Longest answer of one turn. null: the model's limit.", ge=1, le=1_000_000
    )
    max_turns: int = Field(
        default=50,
        ge=1,
        le=1000,
        description="A run ends after so many turns of the model, if the company's limit "
        "turnsPerRun is not lower.",
    )
    timeout_seconds: Seconds = TIMEOUT
    silence_seconds: Seconds | None = Field(
        default=1800,
        description="A run of which nothing was heard for so long is stopped: no turn of its "
        "model, no call of a tool. null: only timeoutSeconds stops it.",
    )


class Llm(Adapter):
    """Talks to a model directly, without another program. The agent has Remit's tools and those of
    the MCP servers it was granted, and no shell."""

    type = "llm"
    Config = LlmConfig
    background = True
    lends = tuple(name for names in _VARIABLES.values() for name in names)
    safety = (
        (
            "The agent can do only what its tools do: there is no shell and no file system besides "
            "its workspace."
        ),
        "Everything the agent reads is sent to the provider, or to the server at baseUrl.",
        "Keys belong to secretRef or to the worker's environment.",
    )
    examples = {  # noqa: RUF012  # read only
        "The first provider that has a key": {},
        "A model of one's own": {
            "provider": "compatible",
            "baseUrl": "http://127.0.0.1:8000/v1",
            "model": "qwen3-coder",
            "maxTurns": 30,
        },
        "Ollama on the same machine": {"provider": "ollama", "model": "qwen3"},
    }

    def served(self, config: LlmConfig) -> Served | None:
        provider = config.provider
        model = config.model or (_MODELS.get(provider) if provider else None)
        if model is None:
            return None
        # Without a provider, it is the first one whose key the worker has.
        at_list_price = provider in _VARIABLES and not config.is_served_elsewhere
        return Served(model, provider if at_list_price else None)

    def check(
        self, config: LlmConfig | None = None, environment: Environment | None = None
    ) -> Check:
        settings, around = config or LlmConfig(), environment or {}
        try:
            release = version(_LIBRARY)
        except PackageNotFoundError:
            return Check(
                False,
                "The library that drives models is not installed.",
                how_to_install("llm"),
                {"library": None, "local": self._local(settings)},
            )
        if settings.provider == "ollama":
            facts: dict[str, str | bool | None] = {"library": release, "credential": None}
            if settings.model is None:
                return Check(False, "Ollama has no default model.", _name_one(), facts)
            return Check(True, f"{_LIBRARY} {release} can be used with Ollama.", "", facts)
        chosen = [settings.provider] if settings.provider else list(_VARIABLES)
        needed = [name for provider in chosen for name in _VARIABLES.get(provider, ())]
        source = settings.secret_ref or credential(around, needed, {})
        facts = {"library": release, "credential": source}
        if settings.provider == "compatible":
            if settings.base_url is None:
                sentence = 'The provider "compatible" needs an address.'
                return Check(False, sentence, "Set baseUrl.", facts)
            return Check(
                True, f"{_LIBRARY} {release} can be used with the given address.", "", facts
            )
        if source is None:
            local = self._local(settings)
            return Check(
                False,
                f"{_LIBRARY} {release} is there, but no key of a provider is configured.",
                f"Set one of {', '.join(needed)} for the worker, or set secretRef."
                + (f" Ollama is here, too: {offer(local)}." if local else ""),
                {**facts, "local": local},
            )
        return Check(True, f"{_LIBRARY} {release} can be used; its key: {source}.", "", facts)

    def lending(self, config: LlmConfig, environment: Environment) -> Lent:
        keys = {} if config.secret_ref else pick(environment, self.lends)
        own = config.base_url or config.secret_ref
        return Lent(keys, {} if own else pick(environment, list(_ADDRESS_VARIABLES.values())))

    @staticmethod
    def _local(settings: LlmConfig) -> str | None:
        """Return the models of a local server on its usual port, if no provider was chosen."""
        return local_models() if settings.provider is None else None

    def question(
        self, config: LlmConfig, lent: Lent, secret: str | None
    ) -> probe.Request | probe.Tried:
        provider = _chosen(config, lent.keys)
        model = config.model or (_MODELS.get(provider) if provider else None)
        if provider is None or model is None:
            return probe.Tried(None, "It is not tried without a model.", "Set provider and model.")
        names = _VARIABLES.get(provider, ())
        name = next((variable for variable in names if variable in lent.keys), "")
        key = secret or lent.keys.get(name) or ""
        more = {"key_name": config.secret_ref or name}
        base = _address(config, provider, lent.beside) or _ADDRESSES[provider]
        if provider == "anthropic":
            return probe.to_anthropic(base, model, False, key, **more)
        if provider == "google":
            return probe.to_google(base, model, key, **more)
        if key:
            return probe.to_openai(base, model, key, chat=True, **more)
        # Lists the models instead: for an answer, the server might have to load gigabytes first.
        pull = f"Get it with `ollama pull {model}`, or set another model."
        get = pull if provider == "ollama" else ""
        listed = probe.to_openai(base, None, key, chat=True, get_model=get, **more)
        return replace(listed, model=model)

    async def run(self, context: RunContext) -> RunResult:
        try:
            # In a thread, because the import takes seconds.
            loop = await asyncio.to_thread(importlib.import_module, "remit.adapters.llm.llm_loop")
        except ImportError as error:
            raise Unsupported(
                "The library that drives models is not installed.", how_to_install("llm")
            ) from error
        spare_loopback(os.environ)
        config: LlmConfig = context.config
        provider = _chosen(config, context.credentials)
        if provider is None:
            raise Unsupported(
                "No key of a provider is there.", "Set provider, and a key for the worker."
            )
        model = config.model or _MODELS.get(provider)
        if model is None:
            raise Unsupported(f"{provider} has no model of ours.", "Set model.")
        lent = [context.credentials.get(name) for name in _VARIABLES.get(provider, ())]
        key = context.key() or next((lent_key for lent_key in lent if lent_key), None)
        result: RunResult = await loop.run(
            context,
            provider,
            model,
            key,
            base_url=_address(config, provider, context.beside),
            few_tools=has_few_tools(config),
        )
        return result


def _name_one() -> str:
    models = local_models()
    return f"Set model; it has {models}." if models else "Set model, such as qwen3."


def _chosen(config: LlmConfig, keys: Mapping[str, str]) -> Provider | None:
    if config.provider is not None:
        return config.provider
    return next(
        (provider for provider, names in _VARIABLES.items() if set(names) & set(keys)), None
    )


def _address(config: LlmConfig, provider: Provider, beside: Mapping[str, str]) -> str | None:
    """Return the address of the model's server; None for the library's default."""
    if config.base_url:
        return config.base_url
    if address := beside.get(_ADDRESS_VARIABLES.get(provider, "")):
        return address
    # Explicit, because the library would take the worker's address, which belongs to its key alone.
    explicit = provider == "ollama" or (config.secret_ref and provider in _ADDRESS_VARIABLES)
    return _ADDRESSES[provider] if explicit else None


def has_few_tools(config: LlmConfig) -> bool:
    """Return whether its model gets only a few tools; by default a local one, often small."""
    if config.tools is not None:
        return config.tools == "few"
    if config.provider == "ollama":
        return True
    if config.provider != "compatible" or config.base_url is None:
        return False
    host = urlsplit(config.base_url).hostname or ""
    address = literal(host)
    return host == "localhost" or (address is not None and not address.is_global)


def local_models() -> str | None:
    """Return the names of the server's models, for a sentence; None without a server."""
    place = urlsplit(OLLAMA)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_SECONDS)
    try:
        connection.request("GET", f"{place.path}/models")
        answer = connection.getresponse()
        document = json.loads(answer.read(_LARGEST)) if answer.status == 200 else None
    except (OSError, ValueError, http.client.HTTPException, RecursionError):
        return None
    finally:
        connection.close()
    names = models_in(document)
    return named([name.removesuffix(":latest") for name in names]) if names else None


def first_model(local: str) -> str:
    """Return the first of the names from `local_models`."""
    return local.partition(",")[0].partition(" and ")[0]


def offer(local: str) -> str:
    """Return the settings for the first of the models, for a sentence."""
    model = first_model(local)
    return f'provider "ollama", model "{model}" (of {local})'
