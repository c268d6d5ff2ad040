"""Codex, the command-line agent, as a child process."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from remit.adapters.codex import codex_cli, codex_conversation
from remit.adapters.codex.codex_reading import CodexReader
from remit.adapters.contract import Adapter, Check, Environment
from remit.adapters.price_table import Served
from remit.adapters.running import RunContext, RunResult
from remit.adapters.settings import PricedSettings, Program, RunSettings, optional
from remit.adapters.setup import probe
from remit.adapters.setup.detect import CommandLineAgent
from remit.adapters.setup.lending import Lent, broken_file, network, pick

_VARIABLES = ("OPENAI_API_KEY", "CODEX_API_KEY")
_ADDRESS = "https://api.openai.com/v1"
_ACCOUNT = ("OPENAI_ORGANIZATION", "OPENAI_PROJECT")
_FILES = {"CODEX_HOME": "auth.json", "HOME": ".codex/auth.json"}
_PROGRAM = CommandLineAgent(
    name="Codex",
    command="codex",
    variables=_VARIABLES,
    files=_FILES,
    install="Install Codex on every worker, or set `command`.",
    log_in="Set OPENAI_API_KEY for the worker, log in with `codex login`, or set secretRef.",
    oldest=codex_cli.OLDEST,
    update="npm install --global @openai/codex",
    helps=["exec", "--help"],
    options=codex_cli.OPTIONS,
)

Feature = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]


#: Features that duplicate Remit's agents, goals and timers, or need a person at a screen.
RIVAL_FEATURES = (
    "multi_agent",
    "multi_agent_v2",
    "goals",
    "sleep_tool",
    "apps",
    "browser_use",
    "computer_use",
)


class CodexConfig(PricedSettings, RunSettings):
    command: Program = Field(
        default="codex", description="The program: a name on the PATH, or a path."
    )
    provider: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")] | None = optional(
        "Codex' name for who serves the model; with baseUrl a provider of this name is "
        "set up that speaks the Responses API. null: OpenAI."
    )
    codex_sandbox: Literal["read-only", "workspace-write", "danger-full-access"] = Field(
        default="workspace-write",
        description="Codex' own sandbox for the commands it runs, inside the sandbox of the run.",
    )
    network_access: bool = Field(
        default=False,
        description="Whether commands in a workspace-write sandbox reach the network.",
    )
    web_search: bool = Field(default=False, description="Whether Codex may search the web.")
    disabled_features: list[Feature] = Field(
        default_factory=lambda: list(RIVAL_FEATURES),
        max_length=50,
        description="Features of Codex to switch off: by default those that rival Remit's tools or "
        "need a person at the screen. Others are shell_tool, view_image, … Plugins and analytics "
        "are always off.",
    )


class Codex(Adapter):
    """Runs Codex without a terminal. It gets its instructions as developer instructions, works in
    the workspace of the run or the folder of its agent, which configures nothing (AGENTS.md, .codex
    and .agents are files like any others), and reaches Remit through the MCP server named
    remit."""

    type = "codex"
    Config = CodexConfig
    lends = _VARIABLES
    lends_login = True
    background = True
    safety = (
        (
            "Codex runs commands. codexSandbox and the sandbox of the run hold them; "
            'codexSandbox "danger-full-access" leaves only the latter.'
        ),
        'sandbox "full" gives the agent everything that the worker\'s user can do.',
        "networkAccess lets commands send what they read to anywhere.",
        "Keys belong to secretRef or to the worker's environment, not to env.",
        (
            "Codex counts tokens but knows no price. Its cost is worked out from `prices`, the "
            "company's prices or the list price of its model; without any of these it is unknown, "
            "and limits of tokens hold its runs instead of those of money."
        ),
    )
    examples = {  # noqa: RUF012  # read only
        "With the provider's defaults": {},
        "A reviewer that changes nothing": {
            "model": "gpt-5.5",
            "reasoningEffort": "high",
            "codexSandbox": "read-only",
            "disabledFeatures": ["multi_agent", "goals"],
            "timeoutSeconds": 900,
        },
    }

    reads_with = CodexReader
    reads_skills: ClassVar[bool] = True
    conversation = codex_conversation.CONVERSATION

    def served(self, config: CodexConfig) -> Served | None:
        if config.model is None:
            return None  # the default of its program, which changes
        at_list_price = not config.is_served_elsewhere and config.provider in (None, "openai")
        return Served(config.model, "openai" if at_list_price else None)

    def check(
        self, config: CodexConfig | None = None, environment: Environment | None = None
    ) -> Check:
        settings, around = config or CodexConfig(), environment or {}
        return _PROGRAM.check(settings, around, self.lending(settings, around))

    def lending(self, config: CodexConfig, environment: Environment) -> Lent:
        beside = network(environment)
        keys = {} if config.secret_ref else pick(environment, _VARIABLES)
        own = config.base_url or config.provider or set(_VARIABLES).intersection(config.env)
        if keys and not own:
            beside |= pick(environment, [codex_cli.ADDRESS, *_ACCOUNT])
        return Lent(keys, beside, *broken_file(environment))

    def question(
        self, config: CodexConfig, lent: Lent, secret: str | None
    ) -> probe.Request | probe.Tried:
        around = {**lent.beside, **lent.keys, **config.env}
        name = next((variable for variable in _VARIABLES if around.get(variable)), None)
        key = secret or (around[name] if name else None)
        if key is None:
            sentence = "A login is not tried: only Codex can use it."
            return probe.Tried(None, sentence, "The first run shows whether it is valid.")
        if config.provider and not config.base_url and config.provider != "openai":
            sentence = f"{config.provider} is not tried: only Codex knows its address."
            return probe.Tried(None, sentence, "Set baseUrl, and it is tried.")
        address = config.base_url or around.get(codex_cli.ADDRESS) or _ADDRESS
        return probe.to_openai(
            address,
            config.model,
            key,
            chat=False,
            key_name=config.secret_ref or name or "",
            beside=lent.beside,
        )

    async def run(self, context: RunContext) -> RunResult:
        session = codex_cli.Session.read(context.session)
        kept = {".codex": self.conversation.files, ".agents": ()}
        return await _PROGRAM.run(context, codex_cli.attempt, session, kept)
