# SPDX-License-Identifier: GPL-2.0-only
"""Does the debug tier see a mistake? Each patch in selftests/faults makes one.

A patch is applied to a copy of the tree, and the command that it names runs
on a node with the debug kernel and the modules of that copy, judged like any
test. It must fail, and with the complaint that belongs to the mistake. Before
that all commands pass with the copy as it is, or the rest would prove nothing.
"""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from . import kernels, tests
from .host import BUILD, TOP, VM, RigError, call, note
from .kernels import Kernel
from .node import stopwatch
from .rig import Rig
from .tap import Point, Report
from .tests import Test

FAULTS = TOP / "selftests/faults"
COPY = BUILD / "faults"
BUILT_FROM = ("Kbuild", "Makefile", "include", "net", "tools")


@dataclass(frozen=True)
class Fault:
    """One patch, and what its head says."""
    patch: Path
    command: str
    caught: str         # regular expression: the complaint that it deserves

    @property
    def name(self) -> str:
        return self.patch.stem


class _Heard(Report):
    """Keeps what a test had to say; for the reader it is a comment."""

    def __init__(self) -> None:
        super().__init__()
        self.complaints = ""

    def add(self, name: str, point: Point, seconds: float | None = None) -> None:
        title = f"{name}: {point.name}" if point.name else name
        self._count(title, point)
        if not point.passed:
            self.complaints += f"{title}\n{point.why}\n"

    def clean(self) -> bool:
        return self.passed > 0 and not self.failed and not self.skipped


def find(pattern: str) -> list[Fault]:
    """The patches; RigError if there is none, or one with a bad head."""
    found = [_read(path) for path in sorted(FAULTS.glob(f"{pattern}.patch"))]
    if not found:
        raise RigError(f"no '{pattern}.patch' in {FAULTS}")
    return found


def _read(path: Path) -> Fault:
    head = path.read_text(encoding="utf-8").partition("\n--- ")[0]
    says = dict(re.findall(r"^(Run|Caught): *(.+)$", head, re.MULTILINE))
    if len(says) != 2:
        raise RigError(f"{path}: its head needs Run: and Caught:")
    return Fault(path, says["Run"], says["Caught"])


def run(report: Report, verbose: bool = False, pattern: str = "*") -> None:
    """Every patch, and the tree without any."""
    kernel = kernels.find("debug")
    faults = find(pattern)
    call(VM / "deps.sh", "patch")
    _copy_tree()
    elapsed = stopwatch()
    point = _guard(lambda: _without(kernel, faults, verbose))
    report.add("faults/none", point, elapsed())
    for fault in faults:
        elapsed = stopwatch()
        point = _guard(lambda: _with(kernel, fault, verbose))
        report.add(f"faults/{fault.name}", point, elapsed())
    shutil.rmtree(COPY)


def _copy_tree() -> None:
    shutil.rmtree(COPY, ignore_errors=True)
    COPY.mkdir(parents=True)
    for name in BUILT_FROM:
        if (TOP / name).is_dir():
            shutil.copytree(TOP / name, COPY / name)
        else:
            shutil.copy(TOP / name, COPY / name)


def _guard(judge) -> Point:
    """A verdict, whatever goes wrong; a patch that fails to apply included."""
    try:
        return judge()
    except RigError as error:
        return Point("", False, why=str(error))


def _test(fault: Fault, name: str) -> Test:
    """Its command as a test."""
    def body(rig: Rig) -> list[Point]:
        rig.a.run(fault.command, timeout=60)
        return [Point("", True)]

    return Test(f"faults/{name}", body, modules=("xrds",))


def _without(kernel: Kernel, faults: list[Fault], verbose: bool) -> Point:
    heard = _Heard()
    tests.run(kernel, [_test(f, f"none.{f.name}") for f in faults], heard,
              verbose, top=COPY)
    return Point("", heard.clean(), why=heard.complaints)


def _with(kernel: Kernel, fault: Fault, verbose: bool) -> Point:
    heard = _Heard()
    _patch(fault)
    try:
        tests.run(kernel, [_test(fault, fault.name)], heard, verbose, top=COPY)
    finally:
        _patch(fault, "-R")
    if not heard.failed:
        return Point("", False, why="nobody noticed")
    for line in heard.complaints.splitlines():
        if re.search(fault.caught, line):
            note(f"{fault.name}: {line.strip()}")
            return Point("", True)
    return Point("", False, why=f"it failed, but not with: {fault.caught}\n"
                 + heard.complaints)


def _patch(fault: Fault, *options: str) -> None:
    """Apply it as it is, or not at all: a patch out of date is a failure."""
    command = ("patch", "-d", COPY, "-p1", "-F0", "-f", *options, "-i",
               fault.patch)
    try:
        call(*command, "--dry-run")
        call(*command)
    except RigError as error:
        raise RigError("it does not apply any more\n" + str(error)) from error
