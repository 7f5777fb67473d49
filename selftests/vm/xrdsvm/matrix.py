# SPDX-License-Identifier: GPL-2.0-only
"""make matrix: every kernel that is supported builds without a warning and
passes the tests; a table at the end says so.
"""

import os
import shutil
from dataclasses import dataclass

from . import kernels, rig, sidkernel, tests
from .host import BUILD, TOP, RigError, call, make, note
from .kernels import Kernel
from .node import stopwatch
from .tap import Point, Report
from .tests import Test

KERNELS = "6.1,6.12,7.2"
HARMLESS = "Skipping BTF generation"    # headers have no vmlinux
COLUMNS = "{:7} {:24} {:10} {:>8} {:>7} {:>7} {:>8} {:>8}"


@dataclass
class Row:
    """The results of one kernel."""
    name: str
    release: str = "-"
    compiler: str = "-"
    warnings: int | str = "-"
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    minutes: float = 0


def run(names: list[str], chosen: list[Test], report: Report,
        verbose: bool) -> None:
    """All kernels, even if one fails; the verdicts go to the report."""
    rows = []
    for name in names:
        row = Row(name)
        rows.append(row)
        before = report.passed, report.failed, report.skipped
        elapsed = stopwatch()
        try:
            _one(kernels.find(name), row, chosen, report, verbose)
        except RigError as error:
            report.add(f"kernel/{name}", Point("", False, why=str(error)))
        row.passed, row.failed, row.skipped = (
            now - then for now, then in
            zip((report.passed, report.failed, report.skipped), before))
        row.minutes = elapsed() / 60
    _table(rows)


def _one(kernel: Kernel, row: Row, chosen: list[Test], report: Report,
         verbose: bool) -> None:
    row.release = kernel.release
    row.compiler = "gcc " + _in_root(kernel, "gcc", "-dumpfullversion").strip()
    elapsed = stopwatch()
    said = "\n".join(line for line in _build(kernel).splitlines()
                     if not line.startswith(HARMLESS))
    row.warnings = said.count("warning:")
    report.add(f"build@{kernel.name}", Point("", not said, why=said), elapsed())
    rig.build_modules(kernel)   # those of all tests, and not of the chosen ones
    tests.run(kernel, chosen, report, verbose)


def _build(kernel: Kernel) -> str:
    """Compile all of it anew, with more warnings: the output of make."""
    place = BUILD / "matrix" / kernel.release
    shutil.rmtree(place, ignore_errors=True)
    command = ("-s", "-C", TOP, "modules", "W=1", f"KDIR={kernel.kdir}",
               f"KREL={kernel.release}", f"B={place}")
    try:
        if kernel.root:
            return _in_root(kernel, "make", f"-j{os.cpu_count()}", *command)
        return make(*command).strip()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _in_root(kernel: Kernel, *command) -> str:
    """Where the kernel's compiler is: here, or in a root of its own."""
    if kernel.root:
        return sidkernel.run_in(kernel.root, *command).strip()
    return call(*command)


def _table(rows: list[Row]) -> None:
    note(COLUMNS.format("kernel", "release", "compiler", "warnings", "passed",
                        "failed", "skipped", "minutes"))
    for row in rows:
        note(COLUMNS.format(row.name, row.release, row.compiler, row.warnings,
                            row.passed, row.failed, row.skipped,
                            f"{row.minutes:.1f}"))
