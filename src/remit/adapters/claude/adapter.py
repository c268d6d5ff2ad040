"""Claude Code, the command-line agent, as a child process."""

from typing import ClassVar, Literal

from pydantic import Field

from remit.adapters.claude import claude_cli, claude_conversation, claude_lending
from remit.adapters.claude.claude_reading import ClaudeReader
from remit.adapters.contract import Adapter, Check, Environment
from remit.adapters.price_table import Served
from remit.adapters.running import RunContext, RunResult
from remit.adapters.settings import ModelSettings, Program, RunSettings, ToolName, optional
from remit.adapters.setup import probe
from remit.adapters.setup.detect import CommandLineAgent
from remit.adapters.setup.lending import Lent

_VARIABLES = (*(cloud.flag for cloud in claude_lending.CLOUDS), *claude_lending.KEYS)
_ADDRESS = "https://api.anthropic.com"
#: Aliases of Claude Code for the newest model of a family, which its API does not accept.
_ALIASES = ("default", "sonnet", "opus", "haiku", "opusplan")
_FILES = {"CLAUDE_CONFIG_DIR": ".credentials.json", "HOME": ".claude/.credentials.json"}
_PROGRAM = CommandLineAgent(
    name="Claude Code",
    command="claude",
    variables=_VARIABLES,
    files=_FILES,
    install="Install Claude Code on every worker, or set `command`.",
    log_in="Set ANTHROPIC_API_KEY for the worker, log in with `claude`, or set secretRef.",
    oldest=claude_cli.OLDEST,
    update="claude update",
    helps=["--help"],
    options=claude_cli.OPTIONS,
)


#: Tools for work in a workspace. Claude's other tools cost thousands of tokens in each request, and
#: several of them duplicate Remit's: agents, messages, tasks, timers.
WORKING_TOOLS = ("Read", "Edit", "Write", "Bash", "Skill")


class ClaudeConfig(ModelSettings, RunSettings):
    command: Program = Field(
        default="claude", description="The program: a name on the PATH, or a path."
    )
    tools: list[ToolName] | None = Field(
        default_factory=lambda: list(WORKING_TOOLS),
        max_length=100,
        description="Which of its own tools Claude has at all; Remit's are always there. []: only "
        "Remit's. null: all of them, also those that do what Remit does: agents of its own, "
        "messages, timers.",
    )
    allowed_tools: list[ToolName] = Field(
        default_factory=list,
        max_length=100,
        description="Which of its own tools Claude uses without being asked, besides Remit's, such "
        'as "Bash(git *)". In permissionMode "dontAsk" all others are denied, because nobody is '
        "there to ask.",
    )
    disallowed_tools: list[ToolName] = Field(
        default_factory=list, max_length=100, description="Tools that Claude must not use."
    )
    permission_mode: Literal["dontAsk", "acceptEdits", "bypassPermissions"] | None = optional(
        '"dontAsk": what allowedTools does not name is denied. "acceptEdits": it also '
        'writes files in its workspace. "bypassPermissions": it uses every tool; only the sandbox '
        'holds it. null: "bypassPermissions" in the sandbox, "dontAsk" with sandbox "full".'
    )
    max_turns: int | None = optional(
        "A run ends after so many turns of the model, if the company's limit "
        "turnsPerRun is not lower. null: only that limit.",
        ge=1,
        le=1000,
    )
    max_budget_usd: float | None = optional(
        "A run ends when it has cost this much; the last turn may go beyond. null: no "
        "limit of its own.",
        gt=0,
        le=10_000,
    )


class Claude(Adapter):
    """Runs Claude Code without a terminal. It gets its instructions as a system prompt, works in
    the workspace of the run or the folder of its agent, which configures nothing (CLAUDE.md,
    .claude and .mcp.json are files like any others), and reaches Remit through the MCP server named
    remit."""

    type = "claude"
    Config = ClaudeConfig
    lends = claude_lending.EVERY_KEY
    lends_login = True
    reports_cost = True
    background = True
    safety = (
        (
            "Claude can run any command that its tools and permissionMode allow. The sandbox, not "
            "the permission mode, is what keeps it from the rest of the machine."
        ),
        'sandbox "full" gives the agent everything that the worker\'s user can do.',
        (
            "Keys belong to secretRef or to the worker's environment, not to env. Programs that "
            "Claude starts inherit its environment, and with it the key."
        ),
        (
            "Without maxTurns and maxBudgetUsd only timeoutSeconds and the company's limits "
            "and budgets end a run."
        ),
    )
    examples = {  # noqa: RUF012  # read only
        "With the provider's defaults": {},
        "A careful engineer": {
            "model": "claude-sonnet-4-5",
            "reasoningEffort": "medium",
            "permissionMode": "acceptEdits",
            "allowedTools": ["Bash(git *)", "Bash(make *)"],
            "maxTurns": 60,
            "maxBudgetUsd": 2.5,
            "timeoutSeconds": 1800,
            "sessionPolicy": {"idleTime": "2h", "maxContextTokens": 150000},
        },
    }

    reads_with = ClaudeReader
    reads_skills: ClassVar[bool] = True
    conversation = claude_conversation.CONVERSATION

    def served(self, config: ClaudeConfig) -> Served | None:
        if config.model is None:
            return None
        return Served(config.model, None if config.is_served_elsewhere else "anthropic")

    def check(
        self, config: ClaudeConfig | None = None, environment: Environment | None = None
    ) -> Check:
        settings, around = config or ClaudeConfig(), environment or {}
        lent = self.lending(settings, around)
        return _PROGRAM.check(settings, claude_lending.counted(around, lent), lent)

    def lending(self, config: ClaudeConfig, environment: Environment) -> Lent:
        return claude_lending.lending(config, environment)

    def question(
        self, config: ClaudeConfig, lent: Lent, secret: str | None
    ) -> probe.Request | probe.Tried:
        around = {**lent.beside, **lent.keys, **config.env}
        if secret is not None:
            around = {**lent.beside, **config.env, "ANTHROPIC_API_KEY": secret}
        for cloud in claude_lending.CLOUDS:
            if cloud.flag in around:
                sentence = f"{cloud.name} is not tried: only Claude can ask it."
                return probe.Tried(None, sentence, "The first run shows whether it answers.")
        name = next(
            (variable for variable in claude_lending.KEYS[:2] if around.get(variable)), None
        )
        if name is None:
            sentence = "A login is not tried: only Claude can use it."
            return probe.Tried(None, sentence, "The first run shows whether it is valid.")
        model = config.model or around.get("ANTHROPIC_MODEL")
        if model is not None and model.partition("[")[0] in _ALIASES:
            model = None
        return probe.to_anthropic(
            config.base_url or around.get(claude_lending.ADDRESS) or _ADDRESS,
            model,
            name == "ANTHROPIC_AUTH_TOKEN",
            around[name],
            key_name=config.secret_ref or name,
            beside=lent.beside,
        )

    async def run(self, context: RunContext) -> RunResult:
        own = not any(cloud.flag in context.beside for cloud in claude_lending.CLOUDS)
        kept = {".claude": self.conversation.files}
        return await _PROGRAM.run(context, claude_cli.attempt, context.session, kept, login=own)
