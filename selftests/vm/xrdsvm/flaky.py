# SPDX-License-Identifier: GPL-2.0-only
"""make flaky: the same tests again and again, to find those that fail by chance.

Each test runs so many times in a row on nodes that stay up, unless it asks for
fresh ones. Processes on the host may take the processor's time meanwhile. The
logs of failed runs are kept, run by run.
"""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import host, tests
from .host import note
from .kernels import Kernel
from .node import stopwatch
from .rig import Rig
from .tap import Point, Report
from .tests import LOGS, Test, Trial

ROW = "{:<36} {:>5} {:>9} {:>10} {:>10}"


@dataclass
class Row:
    """The results of one test."""
    name: str
    seconds: list[float] = field(default_factory=list)
    failed: int = 0

    def __str__(self) -> str:
        return ROW.format(self.name, len(self.seconds), self.failed,
                          f"{min(self.seconds):.1f} s",
                          f"{max(self.seconds):.1f} s")


class _OneRun(Report):
    """The verdicts of one run; only failures are shown."""

    def __init__(self, run: str) -> None:
        super().__init__()
        self._run = run

    def show(self, line: str, point: Point) -> None:
        if not point.passed:
            note(f"{self._run}: {line}")
            for text in filter(None, point.why.splitlines()):
                note(f"  {text}")


@contextlib.contextmanager
def _load(processes: int) -> Iterator[None]:
    """Processes that are always busy, beside the nodes."""
    busy = [host.spawn(["sh", "-c", "while :; do :; done"])
            for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            host.reap(process)


def run(kernel: Kernel, chosen: list[Test], times: int, load: int,
        report: Report) -> None:
    """Every test so many times; its verdict is whether none of them failed."""
    chosen = [t for t in chosen if t.runs_on(kernel)]
    modules, extras = tests.prepare(kernel, chosen, report)
    shutil.rmtree(LOGS / "flaky", ignore_errors=True)
    rows: list[Row] = []
    for count in sorted({t.nodes for t in chosen}):
        with Rig(kernel, count, modules, extras=extras) as rig, _load(load):
            for test in (t for t in chosen if t.nodes == count):
                rows.append(_repeat(test, rig, times, report))
                note(str(rows[-1]))
            tests.leaks(rig.nodes, report)
    note("")
    note(f"kernel {kernel.release}, {times} runs, {load} busy processes beside:")
    note(ROW.format("test", "runs", "failures", "shortest", "longest"))
    for row in rows:
        note(str(row))
    for row in rows:
        report.add(row.name, Point("", not row.failed,
                                   why=f"{row.failed} of {times} failed"
                                   if row.failed else ""))


def _repeat(test: Test, rig: Rig, times: int, report: Report) -> Row:
    row = Row("")
    for number in range(1, times + 1):
        one = _OneRun(f"run {number} of {times}")
        logs = LOGS / "flaky" / f"{test.name.replace('/', '-')}.{number}"
        trial = Trial(test, rig, one, logs=logs)
        tests.leaks_before(test, rig, report)
        elapsed = stopwatch()
        trial.run()
        row.name = trial.title
        row.seconds.append(elapsed())
        row.failed += bool(one.failed)
    return row
