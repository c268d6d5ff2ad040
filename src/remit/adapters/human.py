"""A person with an inbox."""

from pydantic import Field

from remit.adapters.contract import Adapter, Check, Environment
from remit.adapters.running import RunContext, RunResult
from remit.adapters.settings import Config
from remit.errors import Unsupported


class HumanConfig(Config):
    notify: bool = Field(
        default=True,
        description="Kept for channels that tell people: none does so yet. A person finds new mail "
        "in their inbox and among what needs them, either way.",
    )


class Human(Adapter):
    """A person sits in the agent's seat: they read its inbox, answer and complete outcomes. No
    program is started."""

    type = "human"
    takes_tokens = False
    Config = HumanConfig
    safety = ("The person acts with the agent's rights, and what they do is recorded as theirs.",)
    examples = {"A person": {}, "Without notifications": {"notify": False}}  # noqa: RUF012

    def check(
        self, config: HumanConfig | None = None, environment: Environment | None = None
    ) -> Check:
        del config, environment  # a person needs neither
        return Check(True, "It can be used as soon as a person takes the agent's seat.")

    async def run(self, context: RunContext) -> RunResult:
        raise Unsupported(
            f"A person holds the seat of {context.agent['name']}; no program is started.",
            "Give the seat to a program with `remit org`, if one is to be.",
        )
