# SPDX-License-Identifier: GPL-2.0-only
"""Do the tests see a mistake? Each file in selftests/faults makes one.

It is planted in a copy of the tree (plant.py), and the tests that it names run
on nodes with the modules of that copy, judged as ever. One of them must fail, and
with the complaint that belongs to the mistake, which the file names. Before that
all of them pass with the copy as it is, or the rest would prove nothing.
"""

import dataclasses
import filecmp
import fnmatch
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from . import kernels, plant, tap, tests
from .host import BUILD, TOP, RigError, note
from .kernels import Kernel
from .node import stopwatch
from .plant import Fault
from .rig import Rig
from .tap import Point, Report
from .tests import Test

FAULTS = TOP / "selftests/faults"
COPY = BUILD / "faults"
BUILT_FROM = ("Kbuild", "Makefile", "include", "net", "tools")
SECONDS = 150       # that one mistake may take, where time is short
RUN_SECONDS = 60


class _Heard(Report):
    """Keeps the complaints of a test; for the reader they are comments."""

    def __init__(self) -> None:
        super().__init__()
        self.complaints = ""

    def add(self, name: str, point: Point,
            seconds: float | None = None) -> None:
        title = f"{name}: {point.name}" if point.name else name
        self._count(title, point)
        if not point.passed:
            self.complaints += f"{title}\n{point.why}\n"

    def clean(self) -> bool:
        return self.passed > 0 and not self.failed


def find(pattern: str = "*", long: bool = True) -> list[Fault]:
    """The mistakes of a name, a glob, or several with commas."""
    found = [plant.read(path) for path in sorted(FAULTS.glob("*.fault"))
             if any(fnmatch.fnmatch(path.stem, p) for p in pattern.split(","))]
    if not found:
        raise RigError(f"no '{pattern}.fault' in {FAULTS}")
    return [f for f in found if long or not f.long]


def run(report: Report, verbose: bool = False, pattern: str = "*",
        long: bool = True, left: Callable[[], float] | None = None) -> None:
    """Every mistake, and before that the tree without any.

    Those that take long are left out unless asked for, and so are those for
    which no time is left: that is said. Where time is short the tests of a
    mistake must have run before: without it they pass.
    """
    chosen = find(pattern, long)
    rest = list(chosen)
    if left:
        chosen = [f for f in chosen if _has_run(f, report)]
    _copy_tree()
    for name in sorted({f.kernel for f in chosen}):
        if left and left() < SECONDS:
            break
        kernel = kernels.find(name)
        found = [f for f in chosen if f.kernel == name]
        elapsed = stopwatch()
        report.add(f"faults/none@{name}",
                   _guard(lambda: _without(kernel, found, report, verbose)),
                   elapsed())
        for fault in found:
            if left and left() < SECONDS:
                break
            elapsed = stopwatch()
            report.add(f"faults/{fault.name}",
                       _guard(lambda: _with(kernel, fault, verbose)), elapsed())
            rest.remove(fault)
    if rest:
        report.add("faults", Point("", True, skipped="no time for "
                                   + " ".join(f.name for f in rest)))


def _suffix(kernel: str) -> str:
    return "" if kernel == "6.1" else f"@{kernel}"


def _has_run(fault: Fault, report: Report) -> bool:
    return not fault.command and all(
        name.partition(":")[0] + _suffix(fault.kernel) in report.took
        for name in fault.tests)


def _copy_tree() -> None:
    """Bring the copy up to date; equal files stay, so make builds less."""
    COPY.mkdir(parents=True, exist_ok=True)
    wanted = {path.relative_to(TOP) for name in BUILT_FROM
              for path in (TOP / name, *(TOP / name).rglob("*"))
              if path.is_file()}
    for path in wanted:
        copy = COPY / path
        if not copy.exists() or not filecmp.cmp(TOP / path, copy, False):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TOP / path, copy)
    for name in BUILT_FROM:
        for copy in (COPY / name).rglob("*"):
            if copy.is_file() and copy.relative_to(COPY) not in wanted:
                copy.unlink()


def _guard(judge) -> Point:
    """A verdict in any case; a mistake that cannot be planted is a failure."""
    try:
        return judge()
    except RigError as error:
        return Point("", False, why=str(error))


# -------------------------------------------------------------------- tests


def _tests(fault: Fault) -> list[Test]:
    """Tests that should notice it, in the order of its file, all on one rig."""
    known = {t.name: t for t in tests.find()}
    found = [named(fault, name, known) for name in fault.tests]
    if fault.command:
        found.append(_command(fault))
    count = max(t.nodes for t in found)
    return [dataclasses.replace(t, nodes=count) for t in found]


def named(fault: Fault, name: str, known: dict[str, Test]) -> Test:
    """A test by its name, or with :CASE,CASE only some cases of its program."""
    whole, _, cases = name.partition(":")
    test = known.get(whole)
    if not test:
        raise RigError(f"{fault.name}: no test is called {whole}")
    if not cases:
        return test
    if not test.program:
        raise RigError(f"{fault.name}: {whole} has no cases")

    def body(rig: Rig) -> list[Point]:
        done = rig.a.run(f"cd /tmp && {test.program} -t {cases}",
                         test.timeout, check=False)
        return tap.parse(done.out, done.code)

    return dataclasses.replace(test, name=name, run=body)


def _command(fault: Fault) -> Test:
    def body(rig: Rig) -> list[Point]:
        rig.a.run(fault.command, timeout=RUN_SECONDS)
        return [Point("", True)]

    return Test(f"faults/{fault.name}", body, modules=("xrds",))


# ----------------------------------------------------------------- verdicts


def _without(kernel: Kernel, faults: list[Fault], report: Report,
             verbose: bool) -> Point:
    """All tests that they name pass; one that ran just now has its verdict."""
    wanted = {t.name: t for f in faults for t in _tests(f)}
    rest = [t for t in wanted.values()
            if t.name.partition(":")[0] + _suffix(kernel.name)
            not in report.took]
    if not rest:
        return Point("", True)
    heard = _Heard()
    tests.run(kernel, rest, heard, verbose, top=COPY)
    return Point("", heard.clean(), why=heard.complaints)


def _with(kernel: Kernel, fault: Fault, verbose: bool) -> Point:
    heard = _Heard()
    before = plant.plant(fault, COPY)
    try:
        tests.run(kernel, _tests(fault), heard, verbose, top=COPY,
                  wanted=lambda _test: not heard.failed)
    finally:
        for path, text in before.items():
            path.write_text(text, encoding="utf-8")
    return _judge(fault, heard)


def _judge(fault: Fault, heard: _Heard) -> Point:
    if not heard.failed:
        return Point("", False, why="no test noticed")
    for line in heard.complaints.splitlines():
        if re.search(fault.caught, line):
            note(f"{fault.name}: {line.strip()}")
            return Point("", True)
    return Point("", False, why=f"it failed, but not with: {fault.caught}\n"
                 + heard.complaints)
