"""Charts as SVG from the server: without scripts or styles, with labels for screen readers."""

from collections.abc import Callable, Sequence
from typing import Final

from markupsafe import Markup

_WIDTH, _HEIGHT, _LEFT, _FOOT, _TOP = 560, 140, 44, 18, 8
_MOST_NAMES: Final = 7
#: Steps of the scale; even, so that half of one is a round number, too.
_STEPS: Final = (1, 2, 4, 6, 8, 10)


def bars(
    names: Sequence[str],
    first: Sequence[float],
    second: Sequence[float] = (),
    *,
    label: str,
    shown: Callable[[float], str] = lambda value: f"{value:,.0f}",
    tooltips: Sequence[str] = (),
    limit: float | None = None,
) -> Markup:
    """Draw a bar for each span of time; `second` is a part of `first`, drawn at its foot.

    `tooltips` are those of the bars, `limit` is a line across if it is near, and `label` is a
    sentence that summarises the chart.
    """
    highest = max([*first, 0])
    if limit and highest < limit / 5:
        limit = None  # a distant line would flatten the bars
    top = _ceiling(max(highest, limit or 0))
    high = _HEIGHT - _FOOT - _TOP
    step = (_WIDTH - _LEFT) / max(1, len(names))

    def at(value: float) -> float:
        return _TOP + high * (1 - value / top)

    out = [
        Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
            _WIDTH, _HEIGHT, label
        )
    ]
    said_before = ""
    for share in (0, 0.5, 1):
        y, text = at(top * share), shown(top * share)
        said_before, text = text, "" if text == said_before else text
        out.append(
            Markup(
                '<path class="grid" d="M{} {:.1f}H{}"/><text x="{}" y="{:.1f}" text-anchor="end">'
                "{}</text>"
            ).format(_LEFT, y, _WIDTH, _LEFT - 6, y + 4, text)
        )
    every = -(-len(names) // _MOST_NAMES)
    width = max(1.0, step - max(1.0, step * 0.25))
    for index, name in enumerate(names):
        x = _LEFT + index * step + (step - width) / 2
        parts = [_bar(x, width, at(first[index]), at(0), "bar-1")] if first[index] else []
        if second and second[index]:
            parts.append(_bar(x, width, at(second[index]), at(0), "bar-2"))
        tooltip = tooltips[index] if tooltips else f"{name}: {shown(first[index])}"
        if parts:
            out.append(Markup("<g><title>{}</title>{}</g>").format(tooltip, Markup("").join(parts)))
        if index % every == 0:
            # The first name begins at its bar, away from the number beside the grid.
            place, anchor = (x + width / 2, "middle") if index else (x, "start")
            out.append(
                Markup('<text x="{:.1f}" y="{}" text-anchor="{}">{}</text>').format(
                    place, _HEIGHT - 4, anchor, name
                )
            )
    if limit:
        out.append(
            Markup('<path class="limit" d="M{} {:.1f}H{}"/>').format(_LEFT, at(limit), _WIDTH)
        )
    return Markup("").join([*out, Markup("</svg>")])


def spark(values: Sequence[float], label: str) -> Markup:
    """Draw a trend as small as a word, without numbers."""
    top = max([*values, 0]) or 1
    step = 64 / max(1, len(values))
    drawn = Markup("").join(
        Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(
            index * step, 16 - 16 * value / top, max(1.0, step - 1), 16 * value / top
        )
        for index, value in enumerate(values)
        if value
    )
    return Markup(
        '<svg class="spark" viewBox="0 0 64 16" role="img" aria-label="{}">{}</svg>'
    ).format(label, drawn)


def _bar(x: float, width: float, top: float, foot: float, kind: str) -> Markup:
    return Markup('<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(
        kind, x, min(top, foot - 1), width, max(1.0, foot - top)
    )


def _ceiling(value: float) -> float:
    """Return the next round number."""
    if value <= 0:
        return 1
    scale = 1.0
    while scale * 10 <= value:
        scale *= 10
    while scale > value:
        scale /= 10
    return next(step * scale for step in _STEPS if step * scale >= value)
