# SPDX-License-Identifier: GPL-2.0-only
"""Mistakes made on purpose: selftests/faults/NAME.fault, read and planted.

A mistake names the function that it is in, and the lines of it that it changes.
So it survives when a function moves, or when the lines around those change.
When the lines themselves have changed it does not apply any more.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from .host import RigError

PLACE = "net/xrds"
KEYS = ("Tests", "Run", "Kernel", "Caught", "Long", "In")
HEAD = re.compile(rf"({'|'.join(KEYS)}): *(.+)")
ANYWHERE = "*"      # text outside of functions


@dataclass
class Hunk:
    """Lines of a function that become others; each begins with its sign."""
    function: str
    lines: list[str] = field(default_factory=list)

    def old(self) -> list[str]:
        return [line[1:].strip() for line in self.lines if line[0] != "+"]

    def new(self, found: list[str]) -> list[str]:
        """The lines that replace those found."""
        lines, rest = [], iter(found)
        for line in self.lines:
            if line[0] == "+":
                lines.append(line[1:])
            elif line[0] == "-":
                next(rest)
            else:
                lines.append(next(rest))
        return lines


@dataclass
class Fault:
    """One mistake, and the tests that should notice it."""
    name: str
    tests: list[str] = field(default_factory=list)
    command: str = ""       # on node 1
    kernel: str = "6.1"
    caught: str = ""        # regular expression: the complaint that it deserves
    long: bool = False
    hunks: list[Hunk] = field(default_factory=list)


def read(path: Path) -> Fault:
    """A fault; RigError if the file is not well formed."""
    fault = Fault(path.stem)
    for line in path.read_text(encoding="utf-8").splitlines():
        if found := HEAD.fullmatch(line):
            _say(fault, *found.groups())
        elif fault.hunks and line.strip():
            if line[0] not in " -+":
                raise RigError(f"{path}: no sign in front of: {line}")
            fault.hunks[-1].lines.append(line)
    if not (fault.tests or fault.command):
        raise RigError(f"{path}: it needs Tests: or Run:")
    if not fault.caught:
        raise RigError(f"{path}: it needs Caught:, or any failure would do")
    if not fault.hunks or not all(h.old() for h in fault.hunks):
        raise RigError(f"{path}: it needs In:, and lines that it changes")
    return fault


def _say(fault: Fault, key: str, value: str) -> None:
    if key == "Tests":
        fault.tests += value.split()
    elif key == "Run":
        fault.command = value
    elif key == "In":
        fault.hunks.append(Hunk(value))
    elif key == "Long":
        fault.long = value == "yes"
    else:
        setattr(fault, key.lower(), value)


def changes(fault: Fault, top: Path) -> dict[Path, tuple[str, str]]:
    """The files of a tree that the mistake changes, before and after."""
    before = {path: path.read_text(encoding="utf-8")
              for path in sorted((top / PLACE).rglob("*.[ch]"))}
    now = dict(before)
    for hunk in fault.hunks:
        path, text = _apply(hunk, now)
        now[path] = text
    return {path: (before[path], now[path]) for path in now
            if now[path] != before[path]}


def plant(fault: Fault, top: Path) -> dict[Path, str]:
    """Make the mistake in a tree, or in none of its files.

    Returns what the changed files were before.
    """
    changed = changes(fault, top)
    for path, (_, after) in changed.items():
        path.write_text(after, encoding="utf-8")
    return {path: before for path, (before, _) in changed.items()}


def _apply(hunk: Hunk, files: dict[Path, str]) -> tuple[Path, str]:
    places = []
    for path, text in files.items():
        lines = text.splitlines()
        for first, end in _ranges(hunk.function, lines):
            places += [(path, lines, at)
                       for at in _matches(hunk.old(), lines, first, end)]
    if len(places) != 1:
        raise RigError(f"it does not apply any more: these lines of "
                       f"{hunk.function} were found {len(places)} times:\n"
                       + "\n".join(hunk.old()))
    path, lines, at = places[0]
    end = at + len(hunk.old())
    lines[at:end] = hunk.new(lines[at:end])
    return path, "\n".join(lines) + "\n"


def _ranges(function: str, lines: list[str]):
    """Where a function is defined: its head and its body."""
    if function == ANYWHERE:
        yield 0, len(lines)
        return
    head = re.compile(rf"(\w.*\W)?{re.escape(function)}\(.*[^;]")
    for first, line in enumerate(lines):
        if head.fullmatch(line):
            rest = (at for at in range(first, len(lines))
                    if lines[at].endswith(";") or lines[at] == "{")
            body = next(rest, None)
            if body is not None and lines[body] == "{":
                yield first, lines.index("}", body) + 1


def _matches(wanted: list[str], lines: list[str], first: int, end: int):
    for at in range(first, end - len(wanted) + 1):
        if all(lines[at + n].strip() == text for n, text in enumerate(wanted)):
            yield at
