# SPDX-License-Identifier: GPL-2.0-only
"""make bench: XRDS, the layers below it and its competitors, in one boot.

One node in virtual time (qemu.VIRTUAL_TIME) with two soft-RoCE devices on a
veth pair (bench/wire.sh). Each stack is loaded in turn and runs the same cases:
plain verbs (the floor, kmod/xrds_floor.c), XRDS, in-tree RDS, other sockets
(bench/peer.c), and AF_UNIX for messages that stay on the node. The results are
ratios of medians.
"""

import fnmatch
import json
import os
import re
import statistics
from dataclasses import dataclass, field, replace

from . import cases, goals, kernels, needs, perftest, plots
from .cases import FLOOR, IN_TREE, KIB, RDS_TCP, UNIX, XRDS, Case
from .host import BUILD, note
from .image import Extras
from .node import Failed, Node, NodeDied, stopwatch
from .rig import Rig, build_modules

A, B, LOOP = "10.7.0.1", "10.7.0.2", "127.0.0.1"
FAR_A, FAR_B = "10.8.0.1", "10.8.0.2"   # the latter in the namespace far
URGENT_PORT = 18801
UNDER_WAY = 1000            # packets of a stream
MORE = 4                    # times the messages, for a profile
MEMORY = 3072               # MiB: in-tree RDS takes 4 for an end of a connection
SECONDS = 900               # of a command, at most
FIRST = 10                  # connections, before memory is counted
NS_PER_SECOND = 1_000_000_000
QUEUE_WRS, QUEUE_SGES = 62, 6       # an endpoint's send queue: net/xrds/ib/ib.h
PROFILE = os.environ.get("BENCH_PROFILE")     # names of cases, with wildcards
COUNTER = "/sys/class/infiniband/rx[ab]/ports/1/hw_counters/sent_pkts"
EXTRAS = Extras(("sctp", "tipc"), ("tipc", *perftest.PROGRAMS), perftest.FILES)
# once each end of it has a neighbour in TIPC, sockets can be connected
BEARERS = ("tipc bearer enable media eth device vc && "
           "ip netns exec far tipc bearer enable media eth device vd")


@dataclass
class Figure:
    """Times of the repeats of one case in one stack, in ns per message."""
    values: list[float]
    switches: float = 0     # context switches per message
    softirqs: float = 0
    packets: float = 0      # of both devices
    busy: float = 0         # ns of CPU per message
    rate: float = 0         # packets per ns, of all meanwhile
    raw: list[dict] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def spread(self) -> float:
        """Of all values, as a part of the median."""
        return (max(self.values) - min(self.values)) / self.median

    def part(self, what: str) -> float:
        """The median of a value of latency_ns, as p99."""
        parts = sorted(raw["latency_ns"][what] for raw in self.raw)
        return parts[len(parts) // 2]


def _figure(case: Case, raw: list[dict]) -> Figure:
    """From the output of xrds-perf and of the others like it."""
    number = sum(r["messages"] for r in raw)
    values = [r["latency_ns"]["mean"] if case.rests else r["ns_per_message"]
              for r in raw]
    return Figure(values, sum(r["context_switches"] for r in raw) / number,
                  sum(r["softirqs"] for r in raw) / number,
                  busy=sum(r["busy_ns"] for r in raw) / number, raw=raw)


class Bench:
    """A run: the node, the stack that is loaded, the results."""

    def __init__(self, rig: Rig, chosen: list[Case], repeats: int) -> None:
        self.node: Node = rig.a
        self.chosen = chosen
        self.repeats = repeats
        self.results: dict[str, dict[str, Figure]] = {}
        self.failed = 0
        # KiB of an end of a connection, and of a socket, in each stack
        self.connection: dict[str, float] = {}
        self.socket: dict[str, float] = {}
        self._elapsed = stopwatch()
        self._done = 0
        self._total = sum(self._has(stack, case) for stack in cases.STACKS
                          for case in chosen)

    @staticmethod
    def _has(stack: str, case: Case) -> bool:
        """Whether the case is measured in that stack."""
        if stack == FLOOR:
            return not case.loop and case.floor != "-"
        if stack == IN_TREE:
            return case.rival
        return stack == XRDS or stack in case.peers

    def run(self) -> None:
        self.node.run("/xrds/selftests/bench/wire.sh", SECONDS)
        if any(case.idle for case in self.chosen):
            self._idle_memory()
        self._floor(self._of(FLOOR))
        perftest.run(self, self._of(cases.PERFTEST))
        self._rds(XRDS, "xrds_ib", self._of(XRDS))
        self._rds_tcp(self._of(RDS_TCP))
        for stack in (cases.TCP, cases.UDP, cases.SCTP, cases.TIPC):
            self._sockets(stack, self._of(stack))
        self._unix(self._of(UNIX))
        # it stays: on 6.12 nodes have died of unloading it
        self._rds(IN_TREE, "rds_rdma", self._of(IN_TREE))

    def _of(self, stack: str) -> list[Case]:
        return [case for case in self.chosen if self._has(stack, case)]

    def keep(self, stack: str, case: Case, figure: Figure) -> None:
        """A result, and a line that says so."""
        self.results.setdefault(case.name, {})[stack] = figure
        self._done += 1
        note(f"{self._elapsed():4.0f} s  {self._done:3}/{self._total}  "
             f"{stack:12} {case.name:38} +-{figure.spread / 2:.1%}")

    def leave_out(self, stack: str, case: Case, why: str) -> None:
        """Without a result, and that is no mistake."""
        self._done += 1
        note(f"{stack}, {case.name}: left out: {why}")

    def attempt(self, stack: str, case: Case, what, *args) -> None:
        """The other cases go on if one does not work."""
        try:
            what(stack, case, *args)
        except NodeDied:
            raise
        except Failed as error:
            self.failed += 1
            self._done += 1
            note(f"{stack}, {case.name}: {error}")

    def times(self, case: Case) -> int:
        """Repeats. The rarest of a thousand are in one long one."""
        return 1 if case.mixed else self.repeats

    def repeat(self, command: str, case: Case, before: str = ":") -> list[str]:
        """Lines that it prints in all repeats."""
        out = self.node.run(f"{before}; for i in {{1..{self.times(case)}}}; do "
                            f"{command} || exit; done", SECONDS).out
        return out.splitlines()

    # -------------------------------------------------------------- stacks

    def _floor(self, chosen: list[Case]) -> None:
        if not chosen:
            return
        self.node.run("modprobe xrds_floor", SECONDS)
        for case in chosen:
            self.attempt(FLOOR, case, self._verbs)
        self.node.run("modprobe -r xrds_floor")

    def _verbs(self, stack: str, case: Case) -> None:
        once = f"{case.floor or case.mode} {case.bytes} {min(case.depth, 64)} "
        before = self._counts()
        lines = self.repeat(
            f"echo {once}{case.count} > /proc/xrds_floor && "
            "cat /proc/xrds_floor", case, f"echo {once}20 > /proc/xrds_floor")
        number = case.count * self.times(case) + 20
        figure = Figure([int(line) / case.count for line in lines],
                        *[(new - old) / number
                          for new, old in zip(self._counts(), before)])
        figure.busy = figure.median     # it has nothing to wait for
        self.keep(stack, case, figure)

    def _rds(self, stack: str, module: str, chosen: list[Case]) -> None:
        if not chosen:
            return
        self.node.run(f"modprobe {module}", SECONDS)
        for address, source, loop in ((B, A, False), (LOOP, LOOP, True)):
            mine = [case for case in chosen if case.loop == loop]
            if mine:
                self._serve(stack, mine, f"-I {source} {address}",
                            f"xrds-perf -s {address}")
        if stack == XRDS:
            self.node.run(f"unload {module} xrds", SECONDS)

    def _rds_tcp(self, chosen: list[Case]) -> None:
        if not chosen:
            return
        self.node.run("modprobe rds_tcp", SECONDS)
        # it may lose what is sent while it connects
        self.node.run(f"for i in {{1..5}}; do timeout 10 bench-rds turn {FAR_A} "
                      f"1 {FAR_B} && exit; done", SECONDS, check=False)
        self._serve(RDS_TCP, chosen, f"-I {FAR_A} {FAR_B}",
                    f"ip netns exec far xrds-perf -s {FAR_B}")
        self.node.run("unload rds_tcp rds", SECONDS)

    def _unix(self, chosen: list[Case]) -> None:
        if chosen:
            self._serve(UNIX, chosen, "-u", "xrds-perf -s -u")

    def _serve(self, stack: str, chosen: list[Case], ends: str,
               command: str) -> None:
        """The cases, beside a server for all of them."""
        servers = [self._start(command)]
        if any(case.rests for case in chosen):
            servers.append(self._start(
                f"bench-rds urgent {command} -p {URGENT_PORT}"))
        for case in chosen:
            what = (self._beside if case.beside else
                    self._mixed if case.mixed else self._perf)
            self.attempt(stack, case, what, ends)
            if case.rests and stack == XRDS and cases.UDP in case.peers:
                # over UDP, beside a stream over XRDS
                self.attempt(cases.UDP, case, what, ends)
        for server in servers:
            server.kill()
            server.wait(check=False)

    def _start(self, command: str):
        server = self.node.start(command)
        server.expect("ready", SECONDS)
        return server

    def _sockets(self, stack: str, chosen: list[Case]) -> None:
        if not chosen:
            return
        name = stack.lower()
        if stack in (cases.SCTP, cases.TIPC):
            self.node.run(f"modprobe {name}", check=False)
        if stack == cases.TIPC:
            self.node.run(BEARERS, check=False)
        for case in [c for c in chosen if not c.rests]:
            near, far = (LOOP, LOOP) if case.loop else (A, B)
            ends = "-N /run/netns/far tipc" if stack == cases.TIPC else \
                f"{name} {near} {far}"
            load = case.at_most(cases.MOST.get(stack, case.bytes)).load()
            self.attempt(stack, case, self._measure,
                         f"bench-peer {load} {ends}")

    # --------------------------------------------------------------- cases

    def _perf(self, stack: str, case: Case, ends: str) -> None:
        if case.idle and stack == IN_TREE:
            if stack not in self.connection:
                self._memory(stack, _pings, cases.RIVAL_IDLE)
        elif case.idle:
            self.node.run(f"{_pings(1, case.idle)} > /dev/null", SECONDS)
        if case.bound:
            self._sockets_memory(stack)
        self._measure(stack, case, self._command(stack, case, ends))

    @staticmethod
    def _command(stack: str, case: Case, ends: str) -> str:
        if stack == cases.UDP:
            return f"bench-rds urgent bench-peer {case.load()} udp {A} {B}"
        if case.nodes:
            return (f"bench-rds turn {A} {case.count} " +
                    (B if case.nodes == 1 else
                     f"10.7.1.{{1..{case.nodes}}}"))
        if case.rests:
            return (f"bench-rds urgent xrds-perf {case.perf()} "
                    f"-p {URGENT_PORT} {ends}")
        return f"xrds-perf {case.perf()} {ends}"

    def _measure(self, stack: str, case: Case, command: str) -> None:
        before, begin = self._packets(), self._clock()
        lines = self.repeat(command, case)
        packets, end = self._packets() - before, self._clock()
        figure = _figure(case, [json.loads(line) for line in lines])
        # the warm-up, the order and the end of each run
        number = sum(r["messages"] for r in figure.raw)
        figure.packets = packets / (number +
                                    (case.warm_up + 3) * self.times(case))
        figure.rate = packets / (end - begin)
        self.keep(stack, case, figure)
        if PROFILE and fnmatch.fnmatch(case.name, PROFILE):
            self._profile(f"{stack}, {case.name}", command, case.count)

    def _beside(self, stack: str, case: Case, ends: str) -> None:
        """While a stream goes on, between the same nodes: another program's."""
        self._with_streams(stack, case, ends, [self._stream(case.beside)])

    def _mixed(self, stack: str, case: Case, ends: str) -> None:
        """While streams of other programs take a part of what the stack can do,
        by the rates that it has had with one stream alone.
        """
        streams = []
        for size in cases.MIX:
            alone = self.results.get(cases.name_of("one way", size), {})
            if stack not in alone:
                self.leave_out(stack, case, f"no rate of a stream of {size} B")
                return
            rate = (cases.MIX_LOAD / len(cases.MIX) * NS_PER_SECOND /
                    alone[stack].median)
            streams.append(f"{self._stream(size)} -r {max(round(rate), 1)}")
        self._with_streams(stack, case, ends, streams)

    @staticmethod
    def _stream(size: int) -> str:
        """The command, without its ends."""
        return (f"xrds-perf -m stream -l {size} -b {4 * max(size, 64 * KIB)} "
                f"-B {cases.ROOM} -n 1000000000")

    def _with_streams(self, stack: str, case: Case, ends: str,
                      commands: list[str]) -> None:
        # else what is due for the one waits for the programs of the others
        self.node.run("bench-rds promote $(pidof ksoftirqd/0)")
        streams = [self.node.start(f"{command} {ends}") for command in commands]
        try:
            before = self._packets()
            while self._packets() - before < UNDER_WAY:
                for stream in streams:
                    if stream.code is not None:
                        raise Failed(f"the stream ended: {stream.out}")
            self._measure(stack, case, self._command(stack, case, ends))
        finally:
            for stream in streams:
                stream.kill()
            for stream in streams:
                stream.wait(check=False)
            self.node.run("bench-rds demote $(pidof ksoftirqd/0)")

    def _profile(self, title: str, command: str, count: int) -> None:
        """Which functions the whole node was in meanwhile, by samples."""
        command = command.replace(f"-n {count} ", f"-n {MORE * count} ")
        out = self.node.run(
            f"cd /tmp; perf record -qao samples -e cpu-clock -c 10000 "
            f"{command} > /dev/null; perf report -i samples --stdio -q "
            "--sort symbol --percent-limit 0.1 2> /dev/null", SECONDS).out
        place = BUILD / "profiles"
        place.mkdir(exist_ok=True)
        path = place / re.sub(r"\W+", "-", title)
        path.write_text(out)
        note(f"profile: {path}")

    # -------------------------------------------------------------- memory

    def _idle_memory(self) -> None:
        """In front of all cases, so that it does not matter which these are.

        In-tree RDS stays loaded: its turn comes with its cases. It takes a
        hundred times as much.
        """
        self.node.run("modprobe xrds_floor", SECONDS)
        self._memory(FLOOR, _queue_pairs, cases.IDLE)
        self.node.run("modprobe -r xrds_floor; modprobe xrds_ib", SECONDS)
        self._memory(XRDS, _pings, cases.IDLE)
        self.node.run("unload xrds_ib xrds", SECONDS)

    def _memory(self, stack: str, command, number: int) -> None:
        """The node's memory in connections, both ends of each."""
        # the first ones bring objects that exist once, as receive buffers
        self.node.run(f"({command(1, FIRST)}) > /dev/null", SECONDS)
        before = self._free()
        self.node.run(f"({command(FIRST + 1, number)}) > /dev/null", SECONDS)
        used = (before - self._free()) / (number - FIRST) / 2
        note(f"{stack}: {used:.1f} KiB for an end of an idle connection")
        self.connection[stack] = used

    def _sockets_memory(self, stack: str) -> None:
        before = self._free()
        holder = self.node.start(f"bench-rds hold {A} {cases.BOUND}")
        holder.expect("holding", SECONDS)
        used = (before - self._free()) / cases.BOUND
        holder.kill()
        holder.wait(check=False)
        note(f"{stack}: {used:.2f} KiB for a bound idle socket")
        self.socket[stack] = used

    def _free(self) -> int:
        """KiB; memory that will be given back soon counts as free."""
        out = self.node.run("sync; echo 3 > /proc/sys/vm/drop_caches; sleep 1; "
                            "grep -w MemFree /proc/meminfo").out
        return int(out.split()[1]) + self.node.at_hand()

    # -------------------------------------------------------------- counts

    def _counts(self) -> list[int]:
        """Context switches, softirqs, packets."""
        words = "grep -E '^(ctxt|softirq)' /proc/stat | cut -d ' ' -f 2"
        return [int(n) for n in self.node.run(words).out.split()] + \
            [self._packets()]

    def _clock(self) -> int:
        """Nanoseconds of the node's time."""
        return int(self.node.run("date +%s%N").out)

    def _packets(self) -> int:
        return sum(map(int, self.node.run(f"cat {COUNTER}").out.split()))


def _pings(first: int, last: int) -> str:
    """The command that makes these connections of RDS."""
    return f"bench-rds turn {A} 1 10.7.1.{{{first}..{last}}}"


def _queue_pairs(first: int, last: int) -> str:
    """The same of the floor: so many more."""
    return (f"echo idle {QUEUE_WRS} {QUEUE_SGES} {last - first + 1} > "
            "/proc/xrds_floor")


def run(kernel: kernels.Kernel, only: str = "*") -> int:
    """The cases of these names; 0 unless something did not work."""
    quick = os.environ.get("BENCH") == "quick"
    repeats = 3 if quick else 5
    needs.build_programs()
    modules = build_modules(kernel)
    note(f"booting one node in virtual time, kernel {kernel.release}")
    kernel = replace(kernel, memory=MEMORY)
    with Rig(kernel, 1, modules, True, EXTRAS) as rig:
        note(f"up in {rig.boot_seconds:.0f} s")
        chosen = [case for case in cases.cases(quick)
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
    memory = goals.Memory(bench.connection, bench.socket)
    text = goals.table(bench.results, memory)
    print(f"\n{text}", flush=True)
    (BUILD / f"bench-{kernel.name}.txt").write_text(f"{text}\n")
    place = BUILD / f"bench-{kernel.name}.json"
    place.write_text(json.dumps(
        {"kernel": kernel.release, "connection_kib": bench.connection,
         "socket_kib": bench.socket,
         "results": {name: {stack: vars(f) | {"median": f.median,
                                              "spread": f.spread}
                            for stack, f in row.items()}
                     for name, row in bench.results.items()}}, indent=1))
    note(f"all figures: {place}")
    for path in plots.draw(bench.results, BUILD / f"bench-{kernel.name}"):
        note(f"plot: {path}")
