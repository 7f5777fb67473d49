# SPDX-License-Identifier: GPL-2.0-only
"""Plots of the figures of make bench, over the size of messages (gnuplot)."""

import re
import shutil
from pathlib import Path

from .cases import KIB, MIB, STACKS
from .host import call, note

UNITS = {"B": 1, "KiB": KIB, "MiB": MIB}
# file, the cases, title, unit of the ordinate, value from size and figure
PLOTS = (
    ("throughput", "one way", "throughput, one way", "MB/s",
     lambda size, figure: size * 1000 / figure.median),
    ("latency", "round trip", "round trip, depth 1", "us",
     lambda size, figure: figure.median / 1000),
    ("cpu", "one way", "CPU of both ends per message, one way", "us",
     lambda size, figure: figure.busy / 1000),
    ("loopback-throughput", "loopback one way", "loopback, one way", "MB/s",
     lambda size, figure: size * 1000 / figure.median),
    ("loopback-latency", "loopback round trip", "loopback, round trip", "us",
     lambda size, figure: figure.median / 1000),
    ("loopback-cpu", "loopback one way",
     "CPU of both ends per message, loopback", "us",
     lambda size, figure: figure.busy / 1000),
)
HEAD = """set terminal svg size 800,500 dynamic noenhanced background rgb 'white'
set output '{output}'
set title '{title} (virtual time)'
set xlabel 'bytes of a message'
set ylabel '{unit}'
set logscale xy
set xtics ('64' 64, '1 Ki' 1024, '4 Ki' 4096, '16 Ki' 16384, \\
	'64 Ki' 65536, '1 Mi' 1048576)
set key outside right
set grid
"""


def draw(results: dict, where: Path) -> list[Path]:
    """SVG files in that directory."""
    if not shutil.which("gnuplot"):
        note("no gnuplot: no plots")
        return []
    where.mkdir(exist_ok=True)
    drawn = []
    for file, way, title, unit, value in PLOTS:
        curves = _curves(results, way, value)
        if any(len(points) > 1 for points in curves.values()):
            output = where / f"{file}.svg"
            _plot(where / f"{file}.gnuplot", curves,
                  HEAD.format(output=output, title=title, unit=unit))
            drawn.append(output)
    return drawn


def _curves(results: dict, way: str, value) -> dict:
    """For each stack the points: of cases that differ in the size alone."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for name, row in results.items():
        found = re.fullmatch(re.escape(way) + r", (\d+) (B|KiB|MiB)", name)
        if not found:
            continue
        size = int(found.group(1)) * UNITS[found.group(2)]
        for stack, figure in row.items():
            point = value(size, figure)
            if point > 0:
                curves.setdefault(stack, []).append((size, point))
    return {stack: sorted(curves[stack]) for stack in STACKS if stack in curves}


def _plot(script: Path, curves: dict, head: str) -> None:
    lines = [head]
    for number, points in enumerate(curves.values()):
        data = "".join(f"{size} {point:.6g}\n" for size, point in points)
        lines.append(f"$d{number} << EOD\n{data}EOD\n")
    lines.append("plot " + ", \\\n\t".join(
        f"$d{number} with linespoints title '{stack}'"
        for number, stack in enumerate(curves)) + "\n")
    script.write_text("".join(lines))
    call("gnuplot", script)
