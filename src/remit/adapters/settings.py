"""Settings that several adapters share; the descriptions of fields are documentation for agents."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

#: Longest value; a whole configuration has a limit of its own.
LONGEST_VALUE = 8192
#: Prefix of variables that only Remit sets.
RESERVED = "REMIT_"


def _usable(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not contain a null character")
    return text


def _one_line(text: str) -> str:
    if any(letter in text for letter in "\0\r\n"):
        raise ValueError("must be one line")
    return text


Text = Annotated[str, Field(max_length=LONGEST_VALUE), AfterValidator(_usable)]
Line = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_one_line)]
Program = Annotated[str, Field(min_length=1, max_length=1024), AfterValidator(_one_line)]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
SecretName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
Duration = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,4}[smhd]$")]
ToolName = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_one_line)]
#: How long a run may take, at most a day.
Seconds = Annotated[int, Field(ge=1, le=86_400)]
#: The setting of a run's time limit, with its default.
TIMEOUT: Any = Field(default=3600, description="A run that takes longer is stopped.")
Effort = Literal["none", "low", "medium", "high", "xhigh"]


class Config(BaseModel):
    """Base of our configurations: camelCase keys, exact types, nothing unknown."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        strict=True,
        frozen=True,
        hide_input_in_errors=True,
    )


def optional(description: str, **limits: Any) -> Any:
    """A setting whose default is null; its description explains null."""
    return Field(default=None, description=description, **limits)


class SessionPolicy(Config):
    """When a conversation with the model is carried on, and when a new one begins."""

    max_age: Duration | None = optional(
        "Begin anew when the session is older than this, such as 12h or 7d (s, m, h or "
        "d). null: however old."
    )
    idle_time: Duration | None = optional(
        "Begin anew when nothing was said for this long, such as 2h. null: however long."
    )
    max_context_tokens: int | None = optional(
        "Begin anew when the conversation has grown beyond this many tokens. null: "
        "never for its size.",
        ge=1_000,
        le=10_000_000,
    )
    daily_reset_at: Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")] | None = (
        optional(
            "Begin anew with the first run after this time of day, HH:MM in UTC. "
            "null: never for the time."
        )
    )


class ModelSettings(Config):
    """For adapters that talk to a model."""

    model: Line | None = optional(
        "The model, as its provider spells it. null: the provider's default."
    )
    reasoning_effort: Effort | None = optional(
        "How much the model thinks before it answers. null: its default."
    )
    session_policy: SessionPolicy | None = optional(
        "When a conversation is carried on and when a new one begins. null: every run "
        "begins a new one."
    )
    secret_ref: SecretName | None = optional(
        "Name of a secret of the company, which its board registers with `remit secret "
        "set`. It is used as the key for the model. null: what the worker's own environment has."
    )
    base_url: Annotated[str, Field(max_length=2000, pattern=r"^https?://[^\s@]+$")] | None = (
        optional("Address of the model's API, without credentials. null: the provider's own.")
    )
    max_retries: int = Field(
        default=2, ge=0, le=10, description="How often a failed call to the model is tried again."
    )

    @property
    def is_served_elsewhere(self) -> bool:
        """Whether the model has an address of its own, so that no provider's list price applies."""
        variables = getattr(self, "env", {})
        return bool(self.base_url) or any(name.endswith("BASE_URL") for name in variables)


Dollars = Annotated[float, Field(ge=0, le=10_000)]


class Prices(Config):
    """Prices of a model's provider for a million tokens, in dollars."""

    input: Dollars = Field(description="Price of input tokens.")
    output: Dollars = Field(description="Price of output tokens.")
    cached: Dollars | None = optional(
        "Price of input tokens from the provider's cache. null: the same as input."
    )


class PricedSettings(ModelSettings):
    """For adapters that count tokens but do not always know what they cost."""

    prices: Prices | None = optional(
        "Price of a million tokens, in dollars. null: the company's price for the "
        "model, or else its provider's list price; where there is none, only limits and budgets of "
        "tokens hold its runs."
    )


class RunSettings(Config):
    """For adapters that start a program on the worker."""

    env: dict[VariableName, Text] = Field(
        default_factory=dict,
        max_length=100,
        description="Variables for the program, besides the few it gets from Remit; nothing is "
        "inherited from the worker. Readers of the configuration see harmless ones such as LANG "
        "and not the others. Names that begin with REMIT_ are refused.",
    )
    cwd: Annotated[Program, Field(max_length=1024)] | None = optional(
        "Folder in which the program starts, relative to the workspace of the run. An "
        'absolute path needs sandbox "full". null: the workspace.'
    )
    timeout_seconds: Seconds = TIMEOUT
    silence_seconds: Seconds | None = Field(
        default=1800,
        description="A run of which nothing was heard for so long is stopped: no output of its "
        "program, no turn of its model, no call of a tool of Remit. null: only timeoutSeconds "
        "stops it.",
    )
    memory_mb: int | None = optional(
        "How many MiB of memory all processes of a run may take together; one that "
        "wants more is ended. Needs a worker with cgroups; a run is refused where that is not "
        "so. null: what the machine has.",
        ge=32,
        le=1 << 20,
    )
    sandbox: Literal["workspace", "full"] = Field(
        default="workspace",
        description='"workspace": the program sees its own workspace and little else. "full": it '
        "can do on the worker what the worker's user can; needs the capability full_access, which "
        "the board approves.",
    )

    @model_validator(mode="after")
    def _keeps_inside(self) -> RunSettings:
        if any(name.upper().startswith(RESERVED) for name in self.env):
            raise ValueError("env: names that begin with REMIT_ are set by Remit")
        if self.cwd is not None and self.sandbox != "full":
            folder = self.cwd.replace("\\", "/")
            if folder.startswith(("/", "~")) or ".." in folder.split("/"):
                raise ValueError('cwd: leaves the workspace, which needs sandbox "full"')
        return self
