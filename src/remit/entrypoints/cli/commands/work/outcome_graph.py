"""`remit outcome graph`: the graph of a company's outcomes, as text or as a drawing."""

from collections import Counter
from pathlib import Path

import click

from remit.entrypoints.cli.client import save, with_query
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command, option
from remit.entrypoints.cli.parameters import OUTCOME
from remit.entrypoints.cli.session import Session, View
from remit.ids import short

_MOST_ROOTS = 20


@click.command(cls=Command)
@click.argument("id_", metavar="[ID]", required=False, type=OUTCOME)
@option(
    "--svg FILE", "Write a drawing.", field="file", type=click.Path(path_type=Path, dir_okay=False)
)
def graph(session: Session, id_: str | None, file: Path | None) -> None:
    """Show how outcomes relate to each other, all or those below ID; up to 2,000 of them."""
    drawing = with_query(session.under_company("outcomes", "graph.svg"), {"root": id_})
    answer = session.client.get(session.under_company("outcomes", "graph.json"), root=id_)
    if file is not None:
        response = session.client.open(drawing, {"Accept": "image/svg+xml"})
        with file.open("wb") as sink:
            save(response, sink, "drawing")
    if answer["cutOff"]:
        output.note(
            f"Only the oldest {answer['most']} are shown; name one to see what is below it."
        )
    session.show({**answer, "file": str(file) if file else None}, lambda _: _draw(answer, file))


def _draw(answer: View, file: Path | None) -> None:
    nodes = answer["nodes"]
    counts = Counter(node["status"] for node in nodes)
    words = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    summary = f"{len(nodes)} outcomes ({words or 'none'}) in {answer['company']}."
    output.say(*output.broken(output.clean(summary)))
    if file is not None:
        output.say(f"The drawing is in {file}; open it in a browser.")
        return
    parts = Counter(parent for parent, _ in answer["parts"])
    below = {child for _, child in answer["parts"]}
    roots = [node for node in nodes if node["id"] not in below]
    rows = [
        (short(node["id"]), node["status"], node["owner"], parts[node["id"]], node["title"])
        for node in roots[:_MOST_ROOTS]
    ]
    output.table(("id", "status", "owner", "parts", "title"), rows, empty="There are none.")
    output.say("--svg FILE draws them; ID shows what is below one.")
