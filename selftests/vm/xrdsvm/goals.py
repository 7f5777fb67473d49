# SPDX-License-Identifier: GPL-2.0-only
"""The output of make bench: ratios, and how far each goal is."""

from dataclasses import dataclass

from .cases import (BESIDE, BOUND, DESTS, FLOOR, IDLE, IN_TREE, MIX_LOAD, MIXED,
                    PERFTEST, RDS_TCP, SCTP, TCP, TIPC, UDP, UNIX, XRDS, human,
                    in_mix, resting)

CONNECTION_KIB, SOCKET_KIB = 40, 4


@dataclass(frozen=True)
class Memory:
    """KiB of an end of an idle connection, and of a bound socket, by stack."""
    connection: dict[str, float]
    socket: dict[str, float]

    @property
    def ours(self) -> float | None:
        """Memory of a connection beyond that of a queue pair on the floor."""
        if XRDS in self.connection and FLOOR in self.connection:
            return self.connection[XRDS] - self.connection[FLOOR]
        return None


@dataclass(frozen=True)
class Goal:
    """A ratio of two figures, and its bound."""
    case: str
    stack: str
    base: str               # the stack below the line
    bound: float
    most: bool = True       # the bound is the most, else the least
    base_case: str = ""     # the same one, if empty
    figure: str = "median"  # or packets, or a percentile as p99

    def __str__(self) -> str:
        below = self.base_case or self.case
        what = "" if self.figure == "median" else f", {self.figure}"
        if below != self.case:
            return f"{self.case}{what} / {below}"
        return f"{self.case}{what}: {self.stack} / {self.base}"

    def ratio(self, results: dict) -> float | None:
        """As measured; None if a figure is missing."""
        one = results.get(self.case, {}).get(self.stack)
        two = results.get(self.base_case or self.case, {}).get(self.base)
        if not one or not two:
            return None
        if self.figure.startswith("p") and self.figure[1:].isdigit():
            return one.part(self.figure) / two.part(self.figure)
        return getattr(one, self.figure) / getattr(two, self.figure)

    def verdict(self, ratio: float) -> str:
        """met, or how far."""
        missed = (ratio / self.bound if self.most else self.bound / ratio) - 1
        return "met" if missed <= 0 else f"missed by {missed:.1%}"


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
        found += _both(f"round trip, {size}", 1.45, 1.28)
    found.append(Goal("round trip, 64 B", XRDS, PERFTEST, 1))
    for case in ("round trip, 64 B, depth 16", "round trip, 64 B, depth 64",
                 "round trip, 64 B, depth 16, 16 sockets"):
        found += _both(case, 1)
    found += _both("one way, 64 B", 1.5)
    for case in ("16 sockets", "16 by sendmmsg"):
        found += _both(f"one way, 64 B, {case}", 0.5)
    for size, bound in (("4 KiB", 1.5), ("16 KiB", 1.2), ("64 KiB", 1.08),
                        ("1 MiB", 1.05)):
        found += _both(f"one way, {size}", bound)
        found.append(Goal(f"one way, {size}", XRDS, FLOOR, 1.02,
                          figure="packets"))
    found += _both("one way, 1 MiB, MSG_ZEROCOPY", 1.02)
    for size in ("4 KiB", "1 MiB"):
        found.append(Goal(f"register {size}, with a message", IN_TREE, XRDS,
                          1.1, False))
    for op in ("write", "read"):
        for size, bound in (("4 KiB", 1.35), ("64 KiB", 1.07)):
            found += _both(f"RDMA {op}, {size}", bound, 1.1)
    for op in ("write", "read"):
        found.append(Goal(f"RDMA {op}, 4 KiB, 16 notices", XRDS, XRDS, 1.1,
                          False, f"RDMA {op}, 4 KiB, barrier per 16"))
    for figure, bound in (("p50", 1.5), ("p99", 2.5)):
        found.append(Goal(BESIDE, XRDS, XRDS, bound, base_case=resting(64),
                          figure=figure))
    for way in ("one way", "round trip"):
        for size in ("64 B", "4 KiB", "64 KiB", "1 MiB"):
            found.append(Goal(f"loopback {way}, {size}", XRDS, UNIX, 1))
    for what in (f"{BOUND} sockets", f"{DESTS} destinations",
                 f"{IDLE} connections"):
        found.append(Goal(f"round trip, 64 B, {what}", XRDS, XRDS, 1.05,
                          base_case="round trip, 64 B"))
    return found


# -------------------------------------------------------------------- output

WIDE = 40
BELOW = {FLOOR: "floor", PERFTEST: "perft", RDS_TCP: "rdstcp", TCP: "TCP",
         UDP: "UDP", SCTP: "SCTP", TIPC: "TIPC", UNIX: "UNIX"}


def table(results: dict, memory: Memory) -> str:
    """A row for each case, and one for each goal."""
    parts = [_ratios(results), _counts(results), _beside(results),
             _mixed(results),
             _goals(results) + _memory(memory)]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _memory(memory: Memory) -> list[str]:
    lines = []
    for what, bound, value in (
            ("KiB of an idle connection's end, above rxe's queue pair",
             CONNECTION_KIB, memory.ours),
            ("KiB of a bound idle socket", SOCKET_KIB,
             memory.socket.get(XRDS))):
        said = f"{'':6}  not measured" if value is None else \
            f"{value:6.1f}  {'met' if value <= bound else 'too much'}"
        lines.append(f"{what:70} <={bound:<4g} {said}")
    for what, values in (("an idle connection's end, all", memory.connection),
                         ("a bound idle socket", memory.socket)):
        if values:
            lines.append(f"KiB of {what}: " + ", ".join(
                f"{stack} {value:.1f}" for stack, value in values.items()))
    return lines


def _goals(results: dict) -> list[str]:
    lines = [f"{'goal':70} {'bound':>6} {'ratio':>6}  verdict"]
    for goal in goals():
        ratio = goal.ratio(results)
        sign = "<=" if goal.most else ">="
        said = f"{'':6}  not measured" if ratio is None else \
            f"{ratio:6.2f}  {goal.verdict(ratio)}"
        lines.append(f"{str(goal):70} {sign}{goal.bound:<4g} {said}")
    return lines


def _ratios(results: dict) -> list[str]:
    """How much slower XRDS is than the layers below it, how much faster than
    its competitors.
    """
    rivals = (RDS_TCP, TCP, UDP, SCTP, TIPC)
    lines = [f"{'time per message, ratios':{WIDE}}{'XRDS /':>16}"
             f"{'in-tree':>16}" + f"{'others / XRDS':>35}{'spread':>16}",
             f"{'':{WIDE}}{'floor':>8}{'UNIX':>8}{'/floor':>8}{'/XRDS':>8}" +
             "".join(f"{BELOW[r]:>7}" for r in rivals) +
             f"{'XRDS':>8}{'most':>8}"]
    for name, row in results.items():
        ours, rival = row.get(XRDS), row.get(IN_TREE)
        spread = max(figure.spread for figure in row.values())
        lines.append(
            f"{name:{WIDE}}{_ratio(ours, row.get(FLOOR))}"
            f"{_ratio(ours, row.get(UNIX))}{_ratio(rival, row.get(FLOOR))}"
            f"{_ratio(rival, ours)}" +
            "".join(_ratio(row.get(r), ours, 7) for r in rivals) +
            (f"{ours.spread:8.1%}" if ours else f"{'-':>8}") +
            f"{spread:8.1%}")
    return lines + _perftest(results)


def _perftest(results: dict) -> list[str]:
    rows = [(name, row[PERFTEST].median / row[FLOOR].median)
            for name, row in results.items()
            if PERFTEST in row and FLOOR in row]
    return [f"{name}: perftest (user space, events) / floor {ratio:.2f}"
            for name, ratio in rows]


def _counts(results: dict) -> list[str]:
    stacks = (FLOOR, XRDS, IN_TREE)
    heads = "".join(f"{name:>7}" for name in ("floor", "XRDS", "RDS")) * 3
    lines = [f"{'counts per message':{WIDE}}{'context switches':>21}"
             f"{'softirqs':>21}{'packets':>21}", f"{'':{WIDE}}{heads}"]
    for name, row in results.items():
        lines.append(f"{name:{WIDE}}" + "".join(
            _count(row.get(stack), what)
            for what in ("switches", "softirqs", "packets")
            for stack in stacks))
    return lines


def _beside(results: dict) -> list[str]:
    """The effect of a stream on others, and their effect on it."""
    lines = []
    beside, alone = results.get(BESIDE, {}), results.get(resting(64), {})
    stream = results.get("one way, 1 MiB", {})
    for stack in (XRDS, IN_TREE, UDP):
        if stack not in beside or stack not in alone:
            continue
        other = " beside XRDS" if stack == UDP else ""
        text = f"64 B beside 1 MiB, {stack}{other}: " + ", ".join(
            f"{what} {beside[stack].part(what) / alone[stack].part(what):.2f}"
            for what in ("min", "p50", "mean", "p90", "p99", "max"))
        whose = stream.get(XRDS if stack == UDP else stack)
        if whose:
            rate = beside[stack].rate * whose.median / whose.packets
            text += f" of that without; the stream has {rate:.0%} of its rate"
        lines.append(text)
    return lines


def _mixed(results: dict) -> list[str]:
    """How much longer round trips take while streams take most of the time."""
    lines = []
    for size in MIXED:
        mixed = results.get(in_mix(size), {})
        alone = results.get(resting(size), {})
        for stack in (XRDS, IN_TREE):
            if stack not in mixed or stack not in alone:
                continue
            lines.append(
                f"{human(size)} in a mix of streams at {MIX_LOAD:.0%}, {stack}: " +
                ", ".join(f"{what} {mixed[stack].part(what) / base:.2f}"
                          for what, base in (
                              (w, alone[stack].part("p50"))
                              for w in ("p50", "p99", "p99.9"))) +
                " of the median without")
    return lines


def _ratio(one, other, width: int = 8) -> str:
    return f"{one.median / other.median:{width}.2f}" if one and other else \
        f"{'-':>{width}}"


def _count(figure, what: str) -> str:
    return f"{getattr(figure, what):7.2f}" if figure else f"{'-':>7}"
