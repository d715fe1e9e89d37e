"""Draws how stale each rule is: how long its sources wait beyond their due moments."""

from __future__ import annotations

import math
import statistics
from html import escape
from pathlib import Path

from .judge import Wait

LEVELS = " ▁▂▃▄▅▆▇█"


class Lateness:
    """The median and the worst wait of each rule, for each second of the run."""

    def __init__(self, waits: list[Wait], rules: list[str], first: float, last: float):
        self.rules, self.first = rules, int(first)
        self.seconds = max(1, int(last) - self.first)
        by = {rule: [[0.0] for _ in range(self.seconds)] for rule in rules}
        for wait in waits:
            since, until = int(wait.due) - self.first, int(wait.begun) - self.first
            # A visit counts in each second in which it waits, by how long it has waited by then.
            for second in range(max(0, since), min(self.seconds - 1, until) + 1):
                so_far = min(wait.begun, self.first + second + 1) - wait.due
                by[wait.rule][second].append(max(0.0, so_far))
        self.median = {rule: [statistics.median(each) for each in by[rule]] for rule in rules}
        self.worst = {rule: [max(each) for each in by[rule]] for rule in rules}
        self.most = max(1.0, *(max(each) for each in self.worst.values()))


def text(lateness: Lateness, waits: list[Wait]) -> list[str]:
    """The picture for the terminal: a row for each rule, a column for each second."""

    def row(values: list[float]) -> str:
        return "".join(LEVELS[math.ceil(each / lateness.most * 8)] for each in values)

    lines = [
        f"waits beyond the due moment; a column is a second, a full block {lateness.most:.1f} s"
    ]
    for rule in lateness.rules:
        late = sorted(wait.late for wait in waits if wait.rule == rule) or [0.0]
        p50, p99 = (late[int(share * (len(late) - 1))] for share in (0.5, 0.99))
        figures = f"p50 {p50:5.2f} s   p99 {p99:5.2f} s   worst {late[-1]:5.2f} s"
        lines.append(f"  {rule:<6} median |{row(lateness.median[rule])}|  {figures}")
        lines.append(f"  {'':<6} worst  |{row(lateness.worst[rule])}|")
    return lines


WIDTH, HEIGHT, LEFT, TOP, GAP = 640, 90, 70, 48, 22
LEGEND = "seconds beyond the due moment: the worst wait (area) and the median (line); red: a kill"


def svg(lateness: Lateness, kills: list[float], title: str, path: Path) -> None:
    """The same as an SVG file, with a panel for each rule."""
    across = WIDTH / lateness.seconds
    height = TOP + len(lateness.rules) * (HEIGHT + GAP) + 16
    grey = 'fill="#666"'
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{height}"',
        '     font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{LEFT}" y="18" font-size="14">{escape(title)}</text>',
        f'<text x="{LEFT}" y="36" {grey}>{LEGEND}</text>',
    ]
    for number, rule in enumerate(lateness.rules):
        top = TOP + number * (HEIGHT + GAP)
        out += [
            f'<rect x="{LEFT}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="#f6f6f6"/>',
            f'<g text-anchor="end"><text x="{LEFT - 8}" y="{top + 50}">{escape(rule)}</text>',
            f'<text x="{LEFT - 8}" y="{top + 10}" {grey}>{lateness.most:.0f} s</text>',
            f'<text x="{LEFT - 8}" y="{top + HEIGHT}" {grey}>0 s</text></g>',
        ]

        def points(values: list[float], bottom: int = top + HEIGHT) -> list[str]:
            scale = HEIGHT / lateness.most
            # Each second is a step: what is flat is one value and not a trend between two.
            return [
                f"{LEFT + x * across:.1f},{bottom - value * scale:.1f}"
                for at, value in enumerate(values)
                for x in (at, at + 1)
            ]

        ends = f"{LEFT},{top + HEIGHT}", f"{LEFT + WIDTH},{top + HEIGHT}"
        area = " ".join([ends[0], *points(lateness.worst[rule]), ends[1]])
        line = " ".join(points(lateness.median[rule]))
        out.append(f'<polygon points="{area}" fill="#9ecae1"/>')
        out.append(f'<polyline points="{line}" fill="none" stroke="#08519c" stroke-width="2"/>')
        for kill in kills:
            x = LEFT + (kill - lateness.first) * across
            y = f'y1="{top + HEIGHT}" y2="{top + HEIGHT + 6}"'
            out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" {y} stroke="#d62728"/>')
    for second in range(0, lateness.seconds + 1, 5):
        x = LEFT + second * across
        out.append(
            f'<text x="{x:.1f}" y="{height - 6}" text-anchor="middle" {grey}>{second} s</text>'
        )
    path.write_text("\n".join([*out, "</svg>\n"]))
