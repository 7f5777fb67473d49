# SPDX-License-Identifier: GPL-2.0-only
"""Verdicts: read as TAP from programs, written as TAP for the reader."""

import os
import re
from dataclasses import dataclass

from .host import note

POINT = re.compile(r"^(not )?ok\b(?: \d+)?(?: -)? ?(.*?)"
                   r"(?: # (SKIP|TODO)\b ?(.*))?$", re.IGNORECASE)
PLAN = re.compile(r"^1\.\.(\d+)(?: # SKIP ?(.*))?")
KSFT_SKIP = 4       # exit status by which kernel self-tests say "skipped"


@dataclass
class Point:
    """One verdict."""
    name: str
    passed: bool
    skipped: str = ""       # the reason, if it could not be tested
    why: str = ""           # what a reader needs to see if it failed


def parse(output: str, code: int) -> list[Point]:
    """The verdicts in a program's output. No verdict is a failed one."""
    points, plan = [], None
    for line in output.splitlines():
        if found := POINT.match(line):
            bad, name, directive, reason = found.groups()
            skipped = (reason or "skipped") if directive else ""
            points.append(Point(name, not bad, skipped))
        elif found := PLAN.match(line):
            plan = int(found.group(1))
            if plan == 0:
                return [Point("", True, found.group(2) or "skipped")]
        elif line.startswith("#") and points and not points[-1].passed:
            points[-1].why += line.lstrip("# ") + "\n"
    if code == KSFT_SKIP and not points:
        return [Point("", True, output.strip().splitlines()[-1:][0]
                      if output.strip() else "skipped")]
    if code and all(p.passed for p in points):
        points.append(Point("exit status", False, why=f"exit {code}"))
    elif plan is not None and plan != len(points):
        points.append(Point("plan", False,
                            why=f"{plan} planned, {len(points)} run"))
    elif plan is None:
        points.append(Point("verdict", False, why="it ended without a plan"))
    return points


class Report:
    """Numbers the verdicts, prints them and keeps the score."""

    def __init__(self) -> None:
        self.passed = self.failed = self.skipped = 0
        self.failures: list[str] = []
        self.took: dict[str, float] = {}        # seconds of a whole test
        self._expect_all = os.environ.get("XRDS_EXPECT_ALL", "0") not in ("", "0")

    def add(self, name: str, point: Point, seconds: float | None = None) -> None:
        """One verdict; name is the test's, the point may have its own."""
        title = f"{name}: {point.name}" if point.name else name
        if point.skipped and self._expect_all:
            point = Point(point.name, False, why=f"skipped: {point.skipped}")
        self._count(title, point)
        number = self.passed + self.failed + self.skipped
        line = f"{'ok' if point.passed else 'not ok'} {number} - {title}"
        if point.skipped:
            line += f" # SKIP {point.skipped}"
        elif seconds is not None:
            line += f" # {seconds:.1f} s"
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

    def end(self) -> int:
        """The plan, the failures once more, the last line; exit status."""
        print(f"1..{self.passed + self.failed + self.skipped}")
        for title in self.failures:
            note(f"failed: {title}")
        print(f"{self.passed} passed, {self.failed} failed, "
              f"{self.skipped} skipped", flush=True)
        return 1 if self.failed or not self.passed else 0
