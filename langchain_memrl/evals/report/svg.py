"""Just enough SVG for the figures: a frame with axes, lines, bands, dots, bars and labels.

Colours are classes (`c1`, `c2` ...), so that a page decides how they look by day and by night.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 380
LINE = 14  # height of a line of text
STYLE = (
    "svg{font:12px system-ui,sans-serif;fill:currentColor}"
    ".c0{color:#767676}.c1{color:#0067b1}.c2{color:#c85a00}.c3{color:#00805e}.c4{color:#a3399b}"
    ".c5{color:#8a6100}.c6{color:#c22a4b}.c7{color:#4b6bd6}.c8{color:#5c7a00}"
    ".c9{color:#7b4b38}.c10{color:#48657a}.c11{color:#007f99}.c12{color:#7440c9}.ink{color:inherit}"
)
"""How the classes look where a figure stands alone."""


def element(name: str, *inside: str, **attributes: object) -> str:
    """One element; attribute values are escaped, `_` in names is `-`, `inside` is SVG already."""
    text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_plain(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{text}>{''.join(inside)}</{name}>" if inside else f"<{name}{text}/>"


def text(x: float, y: float, words: str, anchor: str = "start", **attributes: object) -> str:
    """A label; `y` is its middle."""
    return element(
        "text", escape(words), x=x, y=y, text_anchor=anchor, dominant_baseline="central",
        **attributes,
    )  # fmt: skip


def drawing(height: float, *inside: str, title: str) -> str:
    """A whole figure, as wide as its place; `title` is read out to who cannot see it."""
    return element(
        "svg",
        *inside,
        viewBox=f"0 0 {WIDTH} {_plain(height)}",
        role="img",
        aria_label=title,
        xmlns="http://www.w3.org/2000/svg",
    )


def titled(words: str, *inside: str, **attributes: object) -> str:
    """A group that tells `words` when pointed at."""
    return element("g", element("title", escape(words)), *inside, **attributes)


@dataclass(frozen=True, slots=True)
class Frame:
    """Where data lie in a figure.

    Attributes:
        left: Left edge of the plot.
        top: Upper edge.
        right: Right edge.
        bottom: Lower edge.
        x_low: Value at the left edge, and so on.
        x_high: Value at the right edge.
        y_low: Value at the lower edge.
        y_high: Value at the upper edge.
    """

    left: float
    top: float
    right: float
    bottom: float
    x_low: float
    x_high: float
    y_low: float = 0.0
    y_high: float = 1.0

    def x(self, value: float) -> float:
        """Where a value lies from left to right."""
        share = (value - self.x_low) / ((self.x_high - self.x_low) or 1)
        return self.left + share * (self.right - self.left)

    def y(self, value: float) -> float:
        """Where a value lies from top to bottom."""
        share = (value - self.y_low) / ((self.y_high - self.y_low) or 1)
        return self.bottom - share * (self.bottom - self.top)

    def x_axis(self, ticks: Sequence[float], label: str) -> str:
        """Ticks below the plot, with the axis' name."""
        marks = [
            text(self.x(tick), self.bottom + 11, number(tick), "middle", class_="tick")
            for tick in ticks
        ]
        middle = (self.left + self.right) / 2
        return "".join([*marks, text(middle, self.bottom + 28, label, "middle")])

    def y_axis(self, ticks: Sequence[float], label: str) -> str:
        """Lines across the plot, their values left of it and the axis' name above it."""
        marks = [
            self._rule(tick) + text(self.left - 5, self.y(tick), number(tick), "end", class_="tick")
            for tick in ticks
        ]
        return "".join([*marks, text(4, self.top - 16, label)])

    def _rule(self, value: float) -> str:
        y = self.y(value)
        return element(
            "line", x1=self.left, x2=self.right, y1=y, y2=y, stroke="currentColor", opacity=0.15
        )

    def line(self, xs: Sequence[float], ys: Sequence[float], dash: str = "") -> str:
        """Points joined by a line; NaN are left out."""
        points = self._points(xs, ys)
        dots = [element("circle", cx=x, cy=y, r=2.4, fill="currentColor") for x, y in points]
        path = " ".join(f"{_plain(x)},{_plain(y)}" for x, y in points)
        line = element(
            "polyline", points=path, fill="none", stroke="currentColor", stroke_width=2,
            stroke_dasharray=dash or None, stroke_linejoin="round",
        )  # fmt: skip
        return line + "".join(dots)

    def band(self, xs: Sequence[float], lows: Sequence[float], highs: Sequence[float]) -> str:
        """The area between two lines."""
        around = self._points(xs, lows) + self._points(xs, highs)[::-1]
        path = " ".join(f"{_plain(x)},{_plain(y)}" for x, y in around)
        return element("polygon", points=path, fill="currentColor", opacity=0.13)

    def _points(self, xs: Sequence[float], ys: Sequence[float]) -> list[tuple[float, float]]:
        return [(self.x(x), self.y(y)) for x, y in zip(xs, ys, strict=True) if not math.isnan(y)]


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round values from `low` to `high`: steps of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / most or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * 0.9999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(place * step, 10) for place in range(first, last + 1)]


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places near the wanted ones, at least `gap` apart and, if they fit, from `low` to `high`.

    What is too near moves apart around its common middle.
    """
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    groups: list[list[float]] = []  # the shifted wishes of neighbours that share a middle
    for rank, place in enumerate(order):
        group = [wanted[place] - rank * gap]
        while groups and _middle(groups[-1]) >= _middle(group):
            group = groups.pop() + group
        groups.append(group)
    shifted = [_middle(group) for group in groups for _ in group]
    placed = [0.0] * len(wanted)
    for rank, place in enumerate(order):
        left = len(order) - 1 - rank
        inside = min(max(shifted[rank], low), max(high - left * gap - rank * gap, low))
        placed[place] = inside + rank * gap
    return placed


def _middle(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def number(value: float) -> str:
    """A tick's value, as short as it can be."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}".replace("-", "\u2212")


def short(words: str, letters: int) -> str:
    """A name that fits."""
    return words if len(words) <= letters else words[: letters - 1] + "…"


def _plain(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
