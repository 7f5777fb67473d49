# SPDX-License-Identifier: GPL-2.0-only
"""make bench: XRDS, what is below it and what competes, in one boot.

One node in virtual time (qemu.VIRTUAL_TIME) with two soft-RoCE devices on a
veth pair (bench/wire.sh). Each stack is loaded in turn and runs the same cases:
plain verbs (the floor, kmod/xrds_floor.c), XRDS, in-tree RDS, and AF_UNIX for
what stays on the node. What counts are the ratios of medians.
"""

import fnmatch
import json
import os
import re
import statistics
from dataclasses import dataclass, field, replace

from . import goals, kernels, tests
from .host import BUILD, note
from .node import Failed, Node, NodeDied, stopwatch
from .rig import Rig, build_modules

A, B, LOOP = "10.7.0.1", "10.7.0.2", "127.0.0.1"
KIB, MIB = 1 << 10, 1 << 20
IDLE = 100                  # connections (bench/wire.sh has the addresses)
DIAL = f"for n in {{1..{IDLE}}}; do xrds-ping -qc1 -I {A} 10.7.1.$n; done"
# Never full: with both ends on one node, in-tree RDS does not notice that it is
# not any more.
ROOM = 256 * MIB
WARM_UP = 20                # messages
MORE = 4                    # times the messages, for a profile
MEMORY = 3072               # MiB: in-tree RDS takes 4 for an end of a connection
SECONDS = 900               # of a command, at most
PROFILE = os.environ.get("BENCH_PROFILE")     # names of cases, with wildcards
COUNTER = "/sys/class/infiniband/rx[ab]/ports/1/hw_counters/sent_pkts"


@dataclass(frozen=True)
class Case:
    """One thing that is measured, the same way in each stack."""
    name: str
    mode: str               # of xrds-perf, and of the floor
    bytes: int
    count: int
    depth: int = 1
    sockets: int = 1
    loop: bool = False      # within the node
    options: str = ""       # of xrds-perf
    floor: str = ""         # mode of the floor, if it is another; - has none
    before: str = ""        # what the node does first
    rival: bool = True      # in-tree RDS can do it

    def perf(self) -> str:
        """What xrds-perf is told."""
        buffer = max(256 * KIB, 4 * self.bytes)
        return (f"-j -m {self.mode} -l {self.bytes} -d {self.depth} "
                f"-S {self.sockets} -n {self.count} -w {min(self.count, WARM_UP)} "
                f"-b {buffer} -B {ROOM} {self.options}")


@dataclass
class Figure:
    """What repeats of one case in one stack took, in ns per message."""
    values: list[float]
    switches: float = 0     # context switches per message
    softirqs: float = 0
    packets: float = 0      # of both devices
    raw: list[dict] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def spread(self) -> float:
        """Of all values, as a part of the median."""
        return (max(self.values) - min(self.values)) / self.median


def human(size: int) -> str:
    for unit, factor in (("MiB", MIB), ("KiB", KIB)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"


def cases(quick: bool) -> list[Case]:
    """What is measured; a quick run repeats less, and sends less."""
    few = 1 if quick else 3
    found = _messages(few) + _rdma(few)
    for what, option in (("10000 sockets", "-i 10000"),
                         ("1000 destinations", "-D 1000")):
        found.append(Case(f"round trip, 64 B, {what}", "echo", 64, 200 * few,
                          options=option, floor="-"))
    found.append(Case(f"round trip, 64 B, {IDLE} connections", "echo", 64,
                      200 * few, before=DIAL, floor="-", rival=False))
    for way, mode in (("one way", "stream"), ("round trip", "echo")):
        for size, count in ((64, 1000), (4 * KIB, 600), (64 * KIB, 200),
                            (MIB, 30)):
            found.append(Case(f"loopback {way}, {human(size)}", mode, size,
                              count * few, loop=True))
    return found


def _messages(few: int) -> list[Case]:
    found = []
    for size, count in ((64, 300), (KIB, 200)):
        found.append(Case(f"round trip, {human(size)}", "echo", size,
                          count * few))
    for depth, sockets in ((16, 1), (64, 1), (16, 16)):
        name = f"round trip, 64 B, depth {depth}"
        if sockets > 1:
            name += f", {sockets} sockets"
        found.append(Case(name, "echo", 64, 512 * few, depth, sockets))
    for size, count in ((64, 500), (4 * KIB, 300), (16 * KIB, 120),
                        (64 * KIB, 40), (MIB, 8)):
        found.append(Case(f"one way, {human(size)}", "stream", size,
                          count * few, depth=16))
    found.append(Case("one way, 64 B, 16 sockets", "stream", 64, 500 * few,
                      depth=16, sockets=16))
    for size, count in ((64, 1024), (KIB, 512)):
        found.append(Case(f"one way, {human(size)}, 16 by sendmmsg", "stream",
                          size, count * few, depth=16, options="-M 16"))
    return found


def _rdma(few: int) -> list[Case]:
    found = []
    for mode in ("write", "read"):
        for size, count in ((4 * KIB, 200), (64 * KIB, 40)):
            found.append(Case(f"RDMA {mode}, {human(size)}", mode, size,
                              count * few, floor=f"{mode}+send"))
        for what, option in (("barrier per 16", ""), ("16 notices", "-N")):
            found.append(Case(f"RDMA {mode}, 4 KiB, {what}", mode, 4 * KIB,
                              160 * few, depth=16, options=option,
                              floor=f"{mode}+send"))
    return found


class Bench:
    """A run: the node, the stack that is loaded, the results."""

    def __init__(self, rig: Rig, chosen: list[Case], repeats: int) -> None:
        self.node: Node = rig.a
        self.chosen = chosen
        self.repeats = repeats
        self.results: dict[str, dict[str, Figure]] = {}
        self.failed = 0
        self.memory: dict[str, float] = {}
        self._elapsed = stopwatch()

    def run(self) -> None:
        self.node.run("/xrds/selftests/bench/wire.sh")
        wire = [c for c in self.chosen if not c.loop]
        loop = [c for c in self.chosen if c.loop]
        self._floor(wire)
        self._rds("XRDS", "xrds_ib", wire, loop)
        self._rds("in-tree RDS", "rds_rdma", [c for c in wire if c.rival],
                  [c for c in loop if c.rival])
        self._unix(loop)

    def _say(self, stack: str, case: Case, figure: Figure) -> None:
        note(f"{self._elapsed():4.0f} s  {stack:12} {case.name:34} "
             f"+-{figure.spread / 2:.1%}")

    def _keep(self, stack: str, case: Case, figure: Figure) -> None:
        self.results.setdefault(case.name, {})[stack] = figure
        self._say(stack, case, figure)

    def _floor(self, chosen: list[Case]) -> None:
        if not chosen:
            return
        self.node.run("modprobe xrds_floor", SECONDS)
        for case in chosen:
            mode = case.floor or case.mode
            if mode == "-":
                continue
            once = f"{mode} {case.bytes} {case.depth} "
            before = self._counts()
            lines = self._repeat(
                f"echo {once}{case.count} > /proc/xrds_floor && "
                "cat /proc/xrds_floor", f"echo {once}20 > /proc/xrds_floor")
            number = case.count * self.repeats + 20
            self._keep("floor", case, Figure(
                [int(line) / case.count for line in lines],
                *[(new - old) / number
                  for new, old in zip(self._counts(), before)]))
        self.node.run("modprobe -r xrds_floor")

    def _repeat(self, command: str, before: str = ":") -> list[str]:
        out = self.node.run(f"{before}; for i in {{1..{self.repeats}}}; do "
                            f"{command} || exit; done", SECONDS).out
        return out.splitlines()

    def _rds(self, stack: str, module: str, wire: list[Case],
             loop: list[Case]) -> None:
        self.node.run(f"modprobe {module}", SECONDS)
        for address, source, chosen in ((B, A, wire), (LOOP, LOOP, loop)):
            if chosen:
                server = self.node.start(f"xrds-perf -s {address}")
                server.expect("ready", SECONDS)
                for case in chosen:
                    self._try(stack, case, f"-I {source}", address)
                server.kill()
                server.wait(check=False)
        self.node.run(f"unload {module} xrds rds_tcp rds", SECONDS)

    def _unix(self, chosen: list[Case]) -> None:
        if not chosen:
            return
        server = self.node.start("xrds-perf -s -u")
        server.expect("ready", SECONDS)
        for case in chosen:
            self._try("AF_UNIX", case, "-u", "")
        server.kill()
        server.wait(check=False)

    def _try(self, stack: str, case: Case, extra: str, host: str) -> None:
        """The other cases go on if one does not work."""
        try:
            self._perf(stack, case, extra, host)
        except NodeDied:
            raise
        except Failed as error:
            self.failed += 1
            note(f"{stack}, {case.name}: {error}")

    def _perf(self, stack: str, case: Case, extra: str, host: str) -> None:
        if case.before:
            self._memory(stack, case.before)
        before = self._packets()
        command = f"xrds-perf {case.perf()} {extra} {host}"
        lines = self._repeat(command)
        packets = self._packets() - before
        raw = [json.loads(line) for line in lines]
        number = sum(r["messages"] for r in raw)
        figure = Figure([r["ns_per_message"] for r in raw], raw=raw)
        figure.switches = sum(r["context_switches"] for r in raw) / number
        figure.softirqs = sum(r["softirqs"] for r in raw) / number
        # the warm-up, the order and the end of each run
        extra_messages = (min(case.count, WARM_UP) + 3) * self.repeats
        figure.packets = packets / (number + extra_messages)
        self._keep(stack, case, figure)
        if PROFILE and fnmatch.fnmatch(case.name, PROFILE):
            self._profile(f"{stack}, {case.name}", f"xrds-perf {case.perf()} "
                          f"-n {MORE * case.count} {extra} {host}")

    def _profile(self, title: str, command: str) -> None:
        """Which functions the whole node was in meanwhile, by samples."""
        out = self.node.run(
            f"cd /tmp; perf record -qao samples -e cpu-clock -c 10000 "
            f"{command} > /dev/null; perf report -i samples --stdio -q "
            "--sort symbol --percent-limit 0.1 2> /dev/null", SECONDS).out
        place = BUILD / "profiles"
        place.mkdir(exist_ok=True)
        path = place / re.sub(r"\W+", "-", title)
        path.write_text(out)
        note(f"profile: {path}")

    def _memory(self, stack: str, dial: str) -> None:
        """What connections take of the node's memory, both ends of each."""
        free = "grep -w MemFree /proc/meminfo"
        words = self.node.run(f"{free}; ({dial}) > /dev/null 2>&1; {free}",
                              SECONDS).out.split()
        used = (int(words[1]) - int(words[4])) / IDLE / 2
        note(f"{stack}: {used:.0f} KiB for an end of an idle connection, "
             "rxe's queue pair included")
        self.memory[stack] = used

    def _counts(self) -> list[int]:
        """Context switches, softirqs, packets."""
        words = "grep -E '^(ctxt|softirq)' /proc/stat | cut -d ' ' -f 2"
        return [int(n) for n in self.node.run(words).out.split()] + \
            [self._packets()]

    def _packets(self) -> int:
        return sum(map(int, self.node.run(f"cat {COUNTER}").out.split()))


def run(kernel: kernels.Kernel, only: str = "*") -> int:
    """The cases of these names; 0 unless something did not work."""
    quick = os.environ.get("BENCH") == "quick"
    repeats = 3 if quick else 5
    tests.build_programs()
    modules = build_modules(kernel)
    note(f"booting one node in virtual time, kernel {kernel.release}")
    kernel = replace(kernel, memory=MEMORY)
    with Rig(kernel, 1, modules, virtual_time=True) as rig:
        note(f"up in {rig.boot_seconds:.0f} s")
        chosen = [case for case in cases(quick)
                  if fnmatch.fnmatch(case.name, only)]
        bench = Bench(rig, chosen, repeats)
        try:
            bench.run()
        except Failed as error:
            print(f"FAILED: {error}")
            return 1
        finally:
            if bench.results:
                _report(kernel, bench)
        bad = rig.a.complaints()
        for line in bad:
            print(line)
        return 1 if bad or bench.failed else 0


def _report(kernel: kernels.Kernel, bench: Bench) -> None:
    print("\n" + goals.table(bench.results, bench.memory), flush=True)
    place = BUILD / f"bench-{kernel.name}.json"
    place.write_text(json.dumps(
        {"kernel": kernel.release, "idle_connection_kib": bench.memory,
         "results": {name: {stack: vars(f) | {"median": f.median,
                                              "spread": f.spread}
                            for stack, f in row.items()}
                     for name, row in bench.results.items()}}, indent=1))
    note(f"all figures: {place}")
