"""What tool arguments have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Arguments(BaseModel):
    """Nothing is guessed: unknown names and other types are errors that the agent can read."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Repeatable(Arguments):
    """Arguments of a tool that changes something."""

    idempotency_key: Annotated[str | None, Field(max_length=255)] = None


FileRef = Annotated[str, Field(description="File id", max_length=64)]
