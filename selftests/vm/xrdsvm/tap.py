# SPDX-License-Identifier: GPL-2.0-only
"""Verdicts: read as TAP from programs, written as TAP for the reader."""

import fnmatch
import os
import re
import threading
from dataclasses import dataclass

from .host import TOP, note

POINT = re.compile(r"^(not )?ok\b(?: \d+)?(?: -)? ?(.*?)"
                   r"(?: # (?i:SKIP)\b ?(.*))?$")
PLAN = re.compile(r"^1\.\.(\d+)(?: # SKIP ?(.*))?$")
KSFT_SKIP = 4       # exit status by which kernel self-tests say "skipped"
SKIPS = TOP / "selftests/skips"
LONGEST_OFF = 5     # tests whose longest time without interrupts is printed


@dataclass
class Point:
    """One verdict."""
    name: str
    passed: bool
    skipped: str = ""       # the reason, if it could not be tested
    why: str = ""           # the reason of a failure, for a reader


def parse(output: str, code: int) -> list[Point]:
    """The verdicts in a program's output. No verdict is a failed one."""
    points, plans = [], []
    for line in output.splitlines():
        if found := POINT.match(line):
            bad, name, reason = found.groups()
            # a failure with a reason to skip stays a failure
            skipped = "" if bad or reason is None else reason or "skipped"
            points.append(Point(name, not bad, skipped))
        elif found := PLAN.match(line):
            plans.append(found)
        elif line.startswith("#") and points and not points[-1].passed:
            points[-1].why += line.lstrip("# ") + "\n"
    if not points and code in (0, KSFT_SKIP):
        if reason := _skipped_whole(output, plans, code):
            return [Point("", True, reason)]
    return points + _faults(points, plans, code)


def _skipped_whole(output: str, plans: list[re.Match], code: int) -> str:
    """The reason, if a program without verdicts says that it has skipped all."""
    if len(plans) == 1 and plans[0].group(1) == "0":
        return plans[0].group(2) or "skipped"
    if code == KSFT_SKIP and not plans:
        return (output.strip().splitlines() or ["skipped"])[-1]
    return ""


def _faults(points: list[Point], plans: list[re.Match],
            code: int) -> list[Point]:
    """The failure that the verdicts themselves do not show."""
    def failed(name: str, why: str) -> list[Point]:
        return [Point(name, False, why=why)]

    if code and all(p.passed for p in points):
        return failed("exit status", f"exit {code}")
    if not plans:
        return failed("verdict", "it ended without a plan")
    if len(plans) > 1:
        return failed("plan", f"{len(plans)} plans")
    planned = int(plans[0].group(1))
    if not planned or planned != len(points):
        return failed("plan", f"{planned} planned, {len(points)} run")
    return []


class Skips:
    """Which verdicts may be skipped, and for which reason: selftests/skips."""

    def __init__(self, text: str) -> None:
        lines = (line.strip() for line in text.splitlines())
        self._pairs = [tuple(line.split(" # SKIP ", 1)) for line in lines
                       if line and not line.startswith("#")]

    def allow(self, title: str, reason: str) -> bool:
        return any(fnmatch.fnmatchcase(title, names) and
                   fnmatch.fnmatchcase(reason, reasons)
                   for names, reasons in self._pairs)


class Report:
    """Numbers the verdicts, prints them and keeps the score."""

    def __init__(self) -> None:
        self._lock = threading.RLock()      # tests may run beside others
        self.passed = self.failed = self.skipped = 0
        self.failures: list[str] = []
        self.took: dict[str, float] = {}        # seconds of a whole test
        # of loops under spin locks: steps in one hold, the bound, the test
        self.holds: dict[str, tuple[int, int, str]] = {}
        # microseconds without interrupts or preemption, where, the test
        self.longest_off: list[tuple[int, str, str]] = []
        self._skips = Skips("" if os.environ.get("XRDS_EXPECT_ALL", "0")
                            not in ("", "0") else SKIPS.read_text("utf-8"))

    def add(self, name: str, point: Point, seconds: float | None = None) -> None:
        """One verdict; name is the test's, the point may have its own."""
        title = f"{name}: {point.name}" if point.name else name
        if point.skipped and not self._skips.allow(title, point.skipped):
            point = Point(point.name, False, why=f"skipped: {point.skipped}\n"
                          "selftests/skips does not allow that")
        with self._lock:
            self._count(title, point)
            number = self.passed + self.failed + self.skipped
            line = f"{'ok' if point.passed else 'not ok'} {number} - {title}"
            if point.skipped:
                line += f" # SKIP {point.skipped}"
            elif seconds is not None:
                line += f" # {seconds:.1f} s"
            self.show(line, point)

    def show(self, line: str, point: Point) -> None:
        print(line, flush=True)
        for text in filter(None, point.why.splitlines()):
            note(f"  {text}")

    def _count(self, title: str, point: Point) -> None:
        if point.skipped:
            self.skipped += 1
        elif point.passed:
            self.passed += 1
        else:
            self.failed += 1
            self.failures.append(title)

    def ran(self, title: str, seconds: float) -> None:
        """A whole test has taken so long."""
        self.took[title] = seconds

    def hold(self, name: str, steps: int, most: int, title: str) -> None:
        """A loop has made so many steps in one hold of a lock."""
        with self._lock:
            if steps > self.holds.get(name, (0, 0, ""))[0]:
                self.holds[name] = steps, most, title

    def off(self, usec: int, where: str, title: str) -> None:
        """The longest time without interrupts or preemption in a test."""
        note(f"{usec} us without interrupts or preemption: {where}")
        self.longest_off.append((usec, where, title))

    def end(self) -> int:
        """The plan, the failures once more, the last line; exit status."""
        print(f"1..{self.passed + self.failed + self.skipped}")
        for name, (steps, most, title) in self.holds.items():
            note(f"steps in one hold of a lock: {name} {steps} of {most} "
                 f"({title})")
        for usec, where, title in sorted(self.longest_off)[-LONGEST_OFF:]:
            note(f"{usec} us without interrupts or preemption: {where} "
                 f"({title})")
        for title in self.failures:
            note(f"failed: {title}")
        print(f"{self.passed} passed, {self.failed} failed, "
              f"{self.skipped} skipped", flush=True)
        return 1 if self.failed or not self.passed else 0
