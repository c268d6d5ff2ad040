"""A person with an inbox."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from remit.adapters.contract import Adapter, Check, Environment
from remit.adapters.settings import Config


class HumanConfig(Config):
    notify: bool = Field(
        default=True,
        description="Whether the person is told about new mail through the channels bound to them. "
        "false: they look into their inbox themselves.",
    )


class Human(Adapter):
    type: ClassVar[str] = "human"
    summary: ClassVar[str] = (
        "A person sits in the agent's seat: they read its inbox, answer and complete outcomes. No "
        "program is started."
    )
    Config = HumanConfig
    safety = ("The person acts with the agent's rights, and what they do is recorded as theirs.",)
    examples = {"A person": {}, "Without notifications": {"notify": False}}  # noqa: RUF012

    def check(
        self, config: HumanConfig | None = None, environment: Environment | None = None
    ) -> Check:
        del config, environment  # a person needs neither
        return Check(True, "It can be used as soon as somebody takes the seat.")
