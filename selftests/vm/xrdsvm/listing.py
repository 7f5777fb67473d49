# SPDX-License-Identifier: GPL-2.0-only
"""make list: the tests, with the time that each took when it ran last."""

import difflib
import os
import shutil
import sys
from collections.abc import Iterator

from . import times
from .host import RigError
from .tests import Test

ROW = "{:<36} {:>5} {:>7}  {}"
WIDTH = 160             # characters, where the output is not a terminal
SUGGESTED = 5           # names near a wrong one


def choose(found: list[Test], pattern: str | None) -> list[Test]:
    """All tests, or those of a name, a glob, or several with commas; RigError
    for one that nothing matches.
    """
    if not pattern:
        return found
    patterns = pattern.split(",")
    for part in patterns:
        if not any(t.matches(part) for t in found):
            raise RigError(_unknown(part, found))
    return [t for t in found if any(t.matches(p) for p in patterns)]


def _unknown(pattern: str, found: list[Test]) -> str:
    names = {t.name for t in found} | {t.name.split(".")[0] for t in found}
    near = difflib.get_close_matches(pattern, sorted(names), SUGGESTED, 0.5)
    tail = [n for n in sorted(names) if pattern.strip("*?") in n][:SUGGESTED]
    names = dict.fromkeys(tail + near)
    return (f"no test is called '{pattern}'" +
            (f"; near it: {' '.join(list(names)[:SUGGESTED])}" if names else "") +
            "; make list shows all")


def show(found: list[Test], short: set[str], kernel: str) -> None:
    """One line for each; those of "make test" have a star."""
    try:
        print("\n".join(_lines(found, short, kernel)), flush=True)
    except BrokenPipeError:
        # "head" has seen enough; what is left in the buffer goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _lines(found: list[Test], short: set[str], kernel: str) -> Iterator[str]:
    known, suffix = times.known(), "" if kernel == "6.1" else f"@{kernel}"
    took = {t.name: known.get(t.name + suffix) for t in found}
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    yield ROW.format("test", "nodes", "seconds", "what it proves")
    for test in found:
        seconds = took[test.name]
        star = " *" if test.name in short else ""
        yield ROW.format(test.name + star, test.nodes,
                         "-" if seconds is None else f"{seconds:.1f}",
                         test.about)[:width].rstrip()
    yield (f"* make test runs it: {_sum(short, took)}; "
           f"all of these: {_sum(took, took)}")


def _sum(names, took: dict[str, float | None]) -> str:
    """How many tests these are, and how long they take together."""
    names = [n for n in names if n in took]
    seconds = [took[n] for n in names if took[n] is not None]
    text = f"{len(names)} tests"
    if seconds:
        text += f", {sum(seconds) / 60:.0f} min"
    if len(seconds) < len(names):
        text += f" ({len(names) - len(seconds)} have not run here yet)"
    return text
