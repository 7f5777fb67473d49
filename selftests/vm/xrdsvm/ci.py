# SPDX-License-Identifier: GPL-2.0-only
"""make ci: all checks, all tests on 6.1, and as much of the debug tier and of
the mistakes made on purpose as its time allows.

It has seventy-five minutes, on any machine. So the debug tier takes the rest of
its share, and on a slow machine a few minutes in any case: the cheapest tests
first, by the time they took on 6.1 a moment ago and by how much slower the debug
kernel turns out to be. Then come tests on 6.1 that repeat something for long
("late"), and then mistakes are planted, as long as there is time. On a machine
that is slower still the last of the other tests on 6.1 are left out. Tests that
are left out are named by a skipped verdict. Nothing is left out of "make
test-full" and "make test-all".
"""

import dataclasses
import os
import time
from concurrent.futures import ThreadPoolExecutor

from . import debugkernel, faults, host, kernels, tests
from .host import RigError, make, note
from .kernels import Kernel
from .node import stopwatch
from .tap import Point, Report
from .tests import Test

STATIC_CHECKS = ("sparse", "style", "doc")      # sparse builds with W=1
BEGAN = float(os.environ.get("XRDS_CI_BEGAN") or time.time())
TIER_SECONDS = 66 * 60      # no test on 6.1 begins later,
LATE_SECONDS = 68 * 60      # nor one of the late ones
DEBUG_SECONDS = 62 * 60     # from then on: no debug test begins later,
DEBUG_LEAST = 5 * 60        # but if the others have taken nearly all of it
FAULT_SECONDS = 68 * 60     # no mistake is planted later
SLOWER = 3.0            # the debug kernel, until this run knows better
EXTRA = 3               # seconds a test takes more: modules come and go
PREPARE = 150           # seconds: build the modules, boot, look for leaks
LONGEST = 120           # times 4: a test that hangs must not take all of it


def run() -> int:
    """One score for all of it."""
    report = Report()
    # most of them use one processor
    with ThreadPoolExecutor() as pool:
        checks = [pool.submit(_static, check) for check in STATIC_CHECKS]
        tests.unit(report)
        for check, done in zip(STATIC_CHECKS, checks):
            report.add(f"check/{check}", *done.result())
    kernel = kernels.find("6.1")
    found = [t for t in tests.find() if t.runs_on(kernel)]
    try:
        _tier(report, kernel, [t for t in found if not t.late], TIER_SECONDS)
    except RigError as error:
        report.add("kernel/6.1", Point("", False, why=str(error)))
    try:
        _debug_tier(report)
    except RigError as error:
        report.add("kernel/debug", Point("", False, why=str(error)))
    try:
        _tier(report, kernel, [t for t in found if t.late], LATE_SECONDS)
    except RigError as error:
        report.add("kernel/6.1, late", Point("", False, why=str(error)))
    if debugkernel.available():
        faults.run(report, long=False,
                   left=lambda: BEGAN + FAULT_SECONDS - time.time())
    return report.end()


def _tier(report: Report, kernel: Kernel, found: list[Test],
          seconds: float) -> None:
    """As many of these tests as begin before so many seconds are over."""
    def wanted(_test: Test) -> bool:
        return time.time() < BEGAN + seconds

    if found and wanted(found[0]):
        tests.run(kernel, found, report, wanted=wanted, beside=True)
    if rest := [t for t in found if t.name not in report.took]:
        _leave_out(report, "6.1 tier", f"no time for {len(rest)} of {len(found)} "
                                   f"tests: " + " ".join(t.name for t in rest))


def _static(check: str) -> tuple[Point, float]:
    """Its verdict, and the seconds that it took."""
    elapsed = stopwatch()
    try:
        make("-s", "-C", host.TOP, check)
        point = Point("", True)
    except RigError as error:
        point = Point("", False, why=str(error))
    return point, elapsed()


class _Budget:
    """Whether a test on the debug kernel fits into what is left."""

    def __init__(self, report: Report) -> None:
        self._end = max(BEGAN + DEBUG_SECONDS, time.time() + DEBUG_LEAST)
        self._took = report.took

    def left(self) -> float:
        return self._end - time.time()

    def estimate(self, test: Test) -> float:
        """Seconds; its limit, if it does not run on 6.1."""
        before = self._took.get(test.name)
        if before is None:
            return test.timeout
        return before * self._slower() + EXTRA

    def _slower(self) -> float:
        """Of those that have run on both; the first ones are few."""
        both = [(seconds, self._took[f"{name}@debug"])
                for name, seconds in self._took.items()
                if f"{name}@debug" in self._took]
        if len(both) < 3:
            return SLOWER
        return sum(d for _, d in both) / sum(s for s, _ in both)

    def choose(self, found: list[Test]) -> list[Test]:
        """The cheapest ones, as many as may fit."""
        chosen, left = [], self.left()
        for test in sorted(found, key=self.estimate):
            if all(t.nodes != test.nodes for t in chosen):
                left -= PREPARE
            left -= self.estimate(test)
            if left < 0:
                break
            chosen.append(test)
        return chosen


def _debug_tier(report: Report) -> None:
    if not debugkernel.available():
        _leave_out(report, "debug tier",
                   "there is no debug kernel here, see make debug-kernel")
        return
    kernel = kernels.find("debug")
    budget = _Budget(report)
    found = [dataclasses.replace(t, timeout=min(t.timeout, LONGEST))
             for t in tests.find() if t.runs_on(kernel)]
    rest = found
    # tests left out at first may fit once the speed of others is known
    while chosen := budget.choose(rest):
        note(f"debug tier: {budget.left() / 60:.0f} minutes are left, enough "
             f"for {len(chosen)} of {len(rest)} tests")
        tests.run(kernel, chosen, report,
                  wanted=lambda t: budget.estimate(t) < budget.left())
        before = rest
        rest = [t for t in rest if f"{t.name}@debug" not in report.took]
        if len(rest) == len(before):
            break
    if len(rest) == len(found):
        raise RigError("no time for a single test on the debug kernel")
    if rest:
        _leave_out(report, "debug tier", f"no time for {len(rest)} of "
                   f"{len(found)} tests: " + " ".join(t.name for t in rest))
    note(f"debug tier: {len(found) - len(rest)} of {len(found)} tests, "
         f"{budget.left() / 60:.0f} minutes to spare")


def _leave_out(report: Report, tier: str, why: str) -> None:
    report.add(tier, Point("", True,
                           skipped=f"{why}; make test-all runs all of it"))
