# SPDX-License-Identifier: GPL-2.0-only
"""The programs and modules that are built for some tests: those they name.

The text of a test has these names, or the text of a file that it includes, or of
a program that it runs. Nothing else is on the nodes: a name that is missed here
fails the test, it does not run an old program.
"""

import functools
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .host import TOP, make

if TYPE_CHECKING:
    from .tests import Test

PROG = TOP / "selftests/prog"
EXAMPLES = TOP / "Documentation/examples"
RXE = TOP / "selftests/rxe"
LIB = TOP / "selftests/lib"
KMOD = TOP / "selftests/kmod"
NOT_OF_C = {"xrds-info", "xrds-perf", "xrds-ping", "xrds-trace", "bench-peer",
            "bench-rds"}
SETTLED = {"helper_counter", "xrds-info"}     # run after each test
IB = "xrds_ib"
# kernel parameters beside those of a test, one set for all nodes or one each
BOOT = tuple(os.environ.get("BOOT", "").split(";"))


@dataclass(frozen=True)
class Needs:
    """Names; None stands for all of them."""
    programs: frozenset[str] | None = None
    modules: frozenset[str] | None = None       # beside xrds

    def module(self, name: str) -> bool:
        return self.modules is None or name in self.modules


def of(found: Iterable["Test"]) -> Needs:
    """The needs of these tests; all, if one is in no file."""
    found = list(found)
    files = [test.path for test in found]
    if None in files:
        return Needs()
    sources = _sources()
    modules = helpers() | {IB}
    programs = set(SETTLED)
    wanted = {name for test in found for name in " ".join(test.modules).split()}
    wanted |= modules & set(re.findall(r"\w+", " ".join(BOOT)))
    seen: set[Path] = set()
    while files:
        path = files.pop()
        if path in seen:
            continue
        seen.add(path)
        if sources.get(path.stem) == path:
            programs.add(path.stem)
        words = _words(path)
        wanted |= modules & words
        programs |= (sources.keys() | NOT_OF_C) & words
        files += [sources[name] for name in sources.keys() & words]
        files += _included(path)
    return Needs(frozenset(programs), frozenset(wanted))


def _sources() -> dict[str, Path]:
    """The file of each program that has one."""
    return {path.stem: path for place in (PROG, EXAMPLES)
            for path in place.glob("*.c")}


def helpers() -> set[str]:
    """The modules of selftests/kmod."""
    text = (KMOD / "Kbuild").read_text(encoding="utf-8")
    return set(re.search(r"^WANTED \?= (.*)$", text, re.MULTILINE)[1].split())


@functools.cache
def _words(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"[\w-]+", path.read_text(encoding="utf-8")))


def _included(path: Path) -> list[Path]:
    """Scripts that this one includes, tests of which it imports something."""
    text = path.read_text(encoding="utf-8")
    files = [LIB / name for name in re.findall(r"\blib/(\w+\.sh)\b", text)]
    if path.suffix == ".py":
        files += [RXE / f"{name}.py" for name in
                  re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)]
    return [file for file in files if file.exists()]


def build_programs(needs: Needs = Needs()) -> None:
    """The programs that run on the nodes."""
    targets = [f"build/{name}" for name in sorted(needs.programs or ())]
    make("-s", "-C", PROG, *targets)
