#!/usr/bin/env python3
"""chart: draw the tables of a page of figures, an SVG for each table.

    chart.py PAGE.md FOLDER          bench/chart.py bench/figures.md bench/charts

A table's first column names what is measured, the others who was measured: a row becomes a group
of bars, as long as its numbers are beside the largest of the row, with the range of the rounds as a
thin line. Columns of ratios and cells without a number are left out. A chart is named after its
heading and place under it; FOLDER holds nothing else, and charts of tables that are gone go too.
"""
import html
import re
import sys
from dataclasses import dataclass
from pathlib import Path

NUMBER = r"-?[\d,]*\.?\d+"
CELL = re.compile(rf"^({NUMBER})(?: \(({NUMBER}) to ({NUMBER})\))?$")
COLORS = ["#1f6feb", "#8250df", "#bf8700", "#1a7f37", "#cf222e", "#57606a", "#0a7ea4", "#a0522d"]
WIDTH, LEFT, BAR, GAP, TOP = 860, 300, 14, 12, 58
ROOM = 200  # right of the longest bar, for its numbers


@dataclass
class Bar:
    who: str
    middle: float
    low: float
    high: float
    label: str


def number(text: str) -> float:
    return float(text.replace(",", ""))


def bar(who: str, cell: str) -> Bar | None:
    found = CELL.match(cell)
    if not found:
        return None
    middle, low, high = (found[1], found[2] or found[1], found[3] or found[1])
    return Bar(who, number(middle), number(low), number(high), cell)


def tables(page: str):
    """Each table with numbers: its heading, its place below it, its rows of cells."""
    heading, place, rows = "", 0, []
    for line in [*page.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
            continue
        if len(rows) > 2 and len(rows[0]) > 1:
            place += 1
            yield heading, place, rows[0], rows[2:]
        rows = []
        if line.startswith("#"):
            heading, place = line.lstrip("# "), 0


def groups(head: list[str], rows: list[list[str]]):
    """A row's name and its bars, where there are any."""
    wanted = [i for i, title in enumerate(head) if i and " : " not in title]
    for row in rows:
        bars = [bar(head[i], row[i]) for i in wanted if i < len(row)]
        found = [b for b in bars if b and b.high > 0]
        if any(b.who != "wanted" for b in found):
            yield row[0], found


def text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" {more}>{html.escape(words)}</text>'


def drawn_bar(at: Bar, longest: float, y: float, color: str) -> list[str]:
    scale = (WIDTH - LEFT - ROOM) / longest
    middle = y + BAR / 2
    length = max(at.middle * scale, 1)
    parts = [f'<rect x="{LEFT}" y="{y:g}" width="{length:.1f}" height="{BAR - 3}" fill="{color}"/>']
    if at.high > at.low:
        parts.append(f'<path d="M{LEFT + at.low * scale:.1f} {middle - 1.5:g}H{LEFT + at.high * scale:.1f}" '
                     'stroke="#24292f"/>')
    end = LEFT + max(length, at.high * scale) + 6
    return [*parts, text(end, y + BAR - 4, at.label)]


def chart(title: str, head: list[str], found: list[tuple[str, list[Bar]]]) -> str:
    shown = [who for who in head if any(b.who == who for _, bars in found for b in bars)]
    color = {who: COLORS[i % len(COLORS)] for i, who in enumerate(shown)}
    parts, y = [text(12, 22, title, 'font-size="15" font-weight="bold"')], TOP
    x = 12
    for who in shown:
        parts += [f'<rect x="{x}" y="34" width="10" height="10" fill="{color[who]}"/>',
                  text(x + 14, 43, who)]
        x += 30 + 7 * len(who)
    for name, bars in found:
        longest = max(b.high for b in bars)
        parts.append(text(LEFT - 10, y + BAR - 4, name, 'text-anchor="end"'))
        for b in bars:
            parts += drawn_bar(b, longest, y, color[b.who])
            y += BAR
        y += GAP
    width = max(WIDTH, x)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" '
            f'viewBox="0 0 {width} {y}" font-family="sans-serif" font-size="11" fill="#24292f" '
            f'role="img" aria-label="{html.escape(title)}">\n'
            '<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n")


def name_of(heading: str, place: int) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-") + (f"-{place}" if place > 1 else "")


def main() -> int:
    page, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    written = set()
    for heading, place, head, rows in tables(page.read_text(encoding="utf-8")):
        found = list(groups(head, rows))
        if not found:
            continue
        names = [name for name, _ in found]
        if len(set(names)) < len(names):
            raise SystemExit(f"{page}: two rows under '{heading}' have the same name: {names}")
        path = folder / f"{name_of(heading, place)}.svg"
        path.write_text(chart(heading, head, found), encoding="utf-8")
        written.add(path)
    for old in set(folder.glob("*.svg")) - written:
        old.unlink()
    print(f"{len(written)} charts in {folder}")
    return 0 if written else 1


if __name__ == "__main__":
    sys.exit(main())
