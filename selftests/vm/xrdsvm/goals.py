# SPDX-License-Identifier: GPL-2.0-only
"""What make bench prints: ratios, and how far each goal is."""

from dataclasses import dataclass

FLOOR, XRDS, IN_TREE, UNIX = "floor", "XRDS", "in-tree RDS", "AF_UNIX"


IDLE_KIB = 80


@dataclass(frozen=True)
class Goal:
    """A ratio of two figures, and its bound."""
    case: str
    stack: str
    base: str               # the stack below the line
    bound: float
    most: bool = True       # the bound is the most, else the least
    base_case: str = ""     # the same one, if empty

    def __str__(self) -> str:
        below = self.base_case or self.case
        if below != self.case:
            return f"{self.case} / {below}"
        return f"{self.case}: {self.stack} / {self.base}"

    def ratio(self, results: dict) -> float | None:
        """As measured; None if a figure is missing."""
        one = results.get(self.case, {}).get(self.stack)
        two = results.get(self.base_case or self.case, {}).get(self.base)
        return one.median / two.median if one and two else None

    def verdict(self, ratio: float) -> str:
        """met, or how far."""
        if self.most:
            return "met" if ratio <= self.bound else \
                f"{ratio / self.bound - 1:.1%} too slow"
        return "met" if ratio >= self.bound else \
            f"{self.bound / ratio - 1:.1%} too slow"


def _both(case: str, floor: float, rival: float | None = None) -> list[Goal]:
    """At most so many times the floor, so many times faster than in-tree."""
    found = [Goal(case, XRDS, FLOOR, floor)]
    if rival:
        found.append(Goal(case, IN_TREE, XRDS, rival, False))
    return found


def goals() -> list[Goal]:
    """All of them, in the order in which they are printed."""
    found = []
    for size in ("64 B", "1 KiB"):
        found += _both(f"round trip, {size}", 1.25, 1.45)
    for case in ("one way, 64 B", "one way, 64 B, 16 sockets",
                 "round trip, 64 B, depth 16", "round trip, 64 B, depth 64",
                 "round trip, 64 B, depth 16, 16 sockets"):
        found += _both(case, 1.3, 1.5)
    found += _both("one way, 4 KiB", 1.25)
    found += _both("one way, 16 KiB", 1.2)
    for size in ("64 KiB", "1 MiB"):
        found += _both(f"one way, {size}", 1.1, 2.1)
    for op in ("write", "read"):
        for size in ("4 KiB", "64 KiB"):
            found += _both(f"RDMA {op}, {size}", 1.2)
    for op in ("write", "read"):
        found.append(Goal(f"RDMA {op}, 4 KiB, 16 notices", XRDS, XRDS, 1.3,
                          False, f"RDMA {op}, 4 KiB, barrier per 16"))
    found.append(Goal("round trip, 64 B, beside 1 MiB", XRDS, XRDS, 3,
                      base_case="round trip, 64 B"))
    for way in ("one way", "round trip"):
        for size in ("64 B", "4 KiB", "64 KiB", "1 MiB"):
            found.append(Goal(f"loopback {way}, {size}", XRDS, UNIX, 1))
    for what in ("10000 sockets", "1000 destinations", "100 connections"):
        found.append(Goal(f"round trip, 64 B, {what}", XRDS, XRDS, 1.05,
                          base_case="round trip, 64 B"))
    return found


# -------------------------------------------------------------------- output

WIDE = 40


def table(results: dict, memory: dict) -> str:
    """A row for each case, and one for each goal."""
    return "\n".join(_cases(results) + [""] + _goals(results) +
                     _memory(memory))


def _memory(memory: dict) -> list[str]:
    """In KiB for each end of an idle connection."""
    ours = memory.get(XRDS)
    said = f"{'':6}  not measured" if ours is None else \
        f"{ours:6.0f}  {'met' if ours <= IDLE_KIB else 'too much'}"
    return [f"{'KiB of an idle connection, with its queue pair of rxe':70} "
            f"<={IDLE_KIB:<4g} {said}"]


def _goals(results: dict) -> list[str]:
    lines = [f"{'goal':70} {'bound':>6} {'ratio':>6}  verdict"]
    for goal in goals():
        ratio = goal.ratio(results)
        sign = "<=" if goal.most else ">="
        said = f"{'':6}  not measured" if ratio is None else \
            f"{ratio:6.2f}  {goal.verdict(ratio)}"
        lines.append(f"{str(goal):70} {sign}{goal.bound:<4g} {said}")
    return lines


def _cases(results: dict) -> list[str]:
    stacks = (FLOOR, XRDS, IN_TREE)
    heads = "".join(f"{name:>7}" for name in ("floor", "XRDS", "RDS")) * 3
    lines = [f"{'ratios of time per message; counts':{WIDE}}"
             f"{'XRDS':>8}{'in-tree':>8}{'in-tree':>8}{'most':>8}"
             f"{'context switches':>21}{'softirqs':>21}{'packets':>21}",
             f"{'':{WIDE}}{'/base':>8}{'/base':>8}{'/XRDS':>8}{'spread':>8}"
             f"{heads}"]
    for name, row in results.items():
        base = row.get(FLOOR) or row.get(UNIX)
        ours, rival = row.get(XRDS), row.get(IN_TREE)
        spread = max(figure.spread for figure in row.values())
        text = (f"{name:{WIDE}}{_ratio(ours, base)}{_ratio(rival, base)}"
                f"{_ratio(rival, ours)}{spread:8.1%}")
        for what in ("switches", "softirqs", "packets"):
            text += "".join(_count(row.get(s), what) for s in stacks)
        lines.append(text)
    return lines


def _ratio(one, other) -> str:
    return f"{one.median / other.median:8.2f}" if one and other else f"{'-':>8}"


def _count(figure, what: str) -> str:
    return f"{getattr(figure, what):7.2f}" if figure else f"{'-':>7}"
