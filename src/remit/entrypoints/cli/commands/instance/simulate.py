"""`remit demo` and `remit simulate`: a company at work, scenarios, and random companies."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

import click

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command, option
from remit.entrypoints.cli.session import Session
from remit.errors import Conflict

#: Lines of the story that are printed when a scenario fails.
LAST_LINES = 40


@click.command(cls=Command)
@option("--serve", "Leave the demonstrated company running.")
@option("--speed normal|fast", "The speed of the demonstration.", default="normal")
def demo(session: Session, serve: bool, speed: str) -> int:
    """Show a company at work, without a model or a key."""
    from remit.entrypoints.cli.demo import run

    return run(serve=serve, speed=speed, as_json=session.as_json)


@click.command("simulate", cls=Command)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@option("--adapter ADAPTER", "Play it with real agents of this kind, such as claude.")
@option("--config JSON|@FILE", "Settings of that adapter.")
@option(
    "--patience INTEGER", "Seconds until real agents must be done.", default=600, show_default=True
)
@option("--seed INTEGER", "Seed of all random choices.", default=0, show_default=True)
@option("--seeds FIRST-LAST", "Seeds of random companies, instead of FILE.")
@option("--steps INTEGER", "Operations in each random company.", default=400, show_default=True)
def simulate(
    session: Session,
    file: Path | None,
    adapter: str | None,
    config: dict[str, Any] | None,
    patience: int,
    seed: int,
    seeds: str | None,
    steps: int,
) -> None:
    """Run a scenario, or test random companies with crashes.

    FILE names the agents, what people do and the expected results. Your instance is not touched;
    with --adapter, the model is paid for.

    Without --adapter the agents follow the scripts in the file, in a simulated company. With
    --seeds, random operations, crashes and clock jumps are run on random companies instead, which
    are checked after every step.
    """
    if (file is None) == (seeds is None):
        raise click.UsageError("Give a scenario file, or --seeds.")
    if seeds is not None:
        _campaign(seeds, steps, session.as_json)
        return
    assert file is not None
    from remit.testing import scenario

    parsed_scenario = scenario.read(file)
    if adapter is None:
        from remit.testing.simulation import Simulation

        with Simulation(seed) as sim:
            try:
                expected = _play(parsed_scenario, scenario.Simulated(sim))
            except Conflict:
                output.note("The story:")
                for line in sim.story[-LAST_LINES:]:
                    output.note(f"  {line}")
                raise
    else:
        from remit.testing.real import real_stage

        with real_stage(adapter, config or {}, patience=patience) as stage:
            expected = _play(parsed_scenario, stage)
    if session.as_json:
        output.say(output.as_json({"name": parsed_scenario.name, "expected": expected}))
    else:
        output.say(f"{parsed_scenario.name}: all as expected.", *(f"  {line}" for line in expected))


def _play(parsed_scenario: object, stage: object) -> list[str]:
    from remit.testing import scenario

    assert isinstance(parsed_scenario, scenario.Scenario)
    try:
        return scenario.play(parsed_scenario, stage)  # type: ignore[arg-type]  # both stages are stages
    except scenario.Failed as failed:
        raise Conflict(
            f"{parsed_scenario.name}: {failed}.", "Look at the scenario, or at what the agents did."
        ) from None


def _campaign(seeds: str, steps: int, as_json: bool) -> None:
    from remit.testing.campaign import campaign

    first, _, last = seeds.partition("-")
    if not first.isdecimal() or not (last or first).isdecimal():
        raise click.BadParameter("write it like 1-20", param_hint="--seeds")
    broken, played, began = 0, 0, time.monotonic()
    happened = Counter(steps=0, runs=0, deliveries=0, crashes=0)
    for out in campaign(range(int(first), int(last or first) + 1), steps):
        broken += out.broken is not None
        played += 1
        happened.update(
            steps=out.steps, runs=out.turns, deliveries=out.deliveries, crashes=out.crashes
        )
        output.say(output.as_json(out.summary(), one_line=True) if as_json else out)
    if not as_json:
        told = ", ".join(f"{count:,} {what}" for what, count in happened.items())
        output.say(f"{played} companies in {time.monotonic() - began:.0f} s: {told}")
    if broken:
        raise Conflict(f"{broken} of the companies broke.", "Report the seed and the story above.")
