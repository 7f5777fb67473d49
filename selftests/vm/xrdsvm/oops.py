# SPDX-License-Identifier: GPL-2.0-only
"""A kernel's complaint on a node's console, made readable.

The whole report is kept, with its call trace. Each function+offset of a module
of ours gets its file and line, and the last line of a test program that named
its case stands in front.
"""

import functools
import re
from pathlib import Path

from .host import RigError, call, find_program

LINES = 70              # of a report, at most
END = re.compile(r"---\[ end (trace|Kernel panic)")
CASE = re.compile(r"test case: .*")
PLACE = re.compile(r"(?P<name>[\w.]+)\+0x(?P<offset>[0-9a-f]+)/0x[0-9a-f]+ "
                   r"\[(?P<module>\w+)[^\]]*\]")


def report(lines: list[str], first: int, modules: dict[str, Path]) -> str:
    """The report that begins in the first of the lines that complain."""
    end = next((n for n in range(first, len(lines)) if END.search(lines[n])),
               len(lines))
    shown = lines[max(0, first - 3):min(end + 1, first + LINES)]
    case = [found[0] for line in lines[:first]
            if (found := CASE.search(line))][-1:]
    return "\n".join(case + [_placed(line, modules) for line in shown])


def _placed(line: str, modules: dict[str, Path]) -> str:
    """The line, with the file and line of the function it names."""
    found = PLACE.search(line)
    if not found or found["module"] not in modules:
        return line
    place = _place(modules[found["module"]], found["name"],
                   int(found["offset"], 16))
    return f"{line}  {place}" if place else line


@functools.cache
def _symbols(module: Path) -> dict[str, tuple[str, int]]:
    """Section and offset of each function of a module."""
    try:
        table = call(find_program("objdump"), "-t", module)
    except RigError:
        return {}
    found = re.findall(r"^([0-9a-f]+) .{6}F (\S+)\s+[0-9a-f]+ (\S+)$", table,
                       re.MULTILINE)
    return {name: (section, int(value, 16)) for value, section, name in found}


def _place(module: Path, name: str, offset: int) -> str:
    if name not in _symbols(module):
        return ""
    section, value = _symbols(module)[name]
    try:
        place = call(find_program("addr2line"), "-e", module, "-j", section,
                     hex(value + offset)).strip()
    except RigError:
        return ""
    return "" if place.startswith("?") else re.sub(r"^.*/(?=net/|selftests/)",
                                                   "", place)
