# SPDX-License-Identifier: GPL-2.0-only
"""The cases of make bench, and the stacks of each."""

from dataclasses import dataclass, replace

FLOOR, XRDS, IN_TREE, UNIX = "floor", "XRDS", "in-tree RDS", "AF_UNIX"
RDS_TCP, TCP, UDP, SCTP, TIPC = "rds_tcp", "TCP", "UDP", "SCTP", "TIPC"
PERFTEST = "perftest"
# In the order in which they are measured and printed.
STACKS = (FLOOR, PERFTEST, XRDS, IN_TREE, RDS_TCP, TCP, UDP, SCTP, TIPC, UNIX)
PEERS = (RDS_TCP, TCP, UDP, SCTP, TIPC)

KIB, MIB = 1 << 10, 1 << 20
MOST = {UDP: 65507, TIPC: 66000}    # bytes of a message
# Never full: with both ends on one node, in-tree RDS does not notice that it is
# not any more.
ROOM = 256 * MIB
WARM_UP = 20                # messages
IDLE = 100                  # connections (bench/wire.sh has the addresses)
RIVAL_IDLE = 20             # of in-tree RDS, with 4 MiB for each end
NODES = 60                  # that are pinged in turn
PAUSE_US = 2000             # of one who is not busy
MIX = (64, 4 * KIB, 64 * KIB, MIB)  # sizes of streams, each with as much of the load
MIX_LOAD = 0.8
MIXED = (64, KIB, 16 * KIB)         # sizes of round trips meanwhile
BESIDE = "round trip, 64 B, beside 1 MiB"
BOUND = 10000               # other sockets
DESTS = 1000                # other destinations


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
    rival: bool = True      # in-tree RDS can do it
    peers: tuple[str, ...] = ()     # other stacks that run it
    idle: int = 0           # connections that are made first
    bound: int = 0          # other sockets
    nodes: int = 0          # to ping in turn; nothing else then
    rests: bool = False     # in front of all others, but not busy
    beside: int = 0         # while a stream of messages of such a size goes on
    mixed: bool = False     # while streams of all sizes of MIX go on

    def load(self) -> str:
        """Options of xrds-perf and bench-peer."""
        more = f" -P {PAUSE_US}" if self.rests else ""
        return (f"-m {self.mode} -l {self.bytes} -d {self.depth} "
                f"-S {self.sockets} -n {self.count} -w {self.warm_up}{more}")

    def perf(self) -> str:
        """Options of xrds-perf alone."""
        more = f" -i {self.bound}" if self.bound else ""
        return (f"-j {self.load()} -b {max(256 * KIB, 4 * self.bytes)} "
                f"-B {ROOM} {self.options}{more}")

    @property
    def warm_up(self) -> int:
        return min(self.count, WARM_UP // 4 if self.rests else WARM_UP)

    def at_most(self, most: int) -> "Case":
        return replace(self, bytes=min(self.bytes, most))


def human(size: int) -> str:
    for unit, factor in (("MiB", MIB), ("KiB", KIB)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"


def name_of(way: str, size: int, depth: int = 1, sockets: int = 1) -> str:
    name = f"{way}, {human(size)}"
    if depth > 1:
        name += f", depth {depth}"
    if sockets > 1:
        name += f", {sockets} sockets"
    return name


def cases(quick: bool) -> list[Case]:
    """All of them; a quick run has fewer, repeats less, and sends less."""
    few = 1 if quick else 3
    return (_round_trips(quick, few) + _streams(quick, few) + _rdma(quick, few) +
            _registrations(few) + _flat(few) + _beside(few) + _mixed(quick) +
            _loopback(quick, few))


def _peers(size: int, quick: bool) -> tuple[str, ...]:
    if quick and size not in (64, 64 * KIB):
        return ()
    fit = tuple(p for p in PEERS if size // KIB * KIB <= MOST.get(p, size) or
                size == 64 * KIB)
    return fit + ((PERFTEST,) if size == 64 else ())


def _round_trips(quick: bool, few: int) -> list[Case]:
    found = []
    for size, count in ((64, 300), (KIB, 200), (4 * KIB, 150), (16 * KIB, 80),
                        (64 * KIB, 30), (MIB, 4)):
        if not quick or size in (64, KIB, 64 * KIB):
            found.append(Case(name_of("round trip", size), "echo", size,
                              count * few, peers=_peers(size, quick)))
    for depth, sockets in ((16, 1), (64, 1), (1, 16), (16, 16), (64, 16)):
        if quick and (depth, sockets) in ((1, 16), (64, 16)):
            continue
        found.append(Case(name_of("round trip", 64, depth, sockets), "echo", 64,
                          max(512, 2 * depth * sockets) * few, depth, sockets,
                          peers=() if quick else PEERS,
                          floor="" if depth > 1 else "-"))
    for size, count in ((4 * KIB, 160), (64 * KIB, 32)):
        if not quick:
            found.append(Case(name_of("round trip", size, 16), "echo", size,
                              count * few, 16, peers=PEERS))
    return found


def _streams(quick: bool, few: int) -> list[Case]:
    found = []
    for size, count in ((64, 500), (KIB, 400), (4 * KIB, 300), (16 * KIB, 120),
                        (64 * KIB, 40), (MIB, 8)):
        if not quick or size != KIB:
            found.append(Case(name_of("one way", size), "stream", size,
                              count * few, depth=16,
                              peers=_peers(size, quick)))
    found.append(Case("one way, 1 MiB, MSG_ZEROCOPY", "stream", MIB, 8 * few,
                      options="-z", rival=False))
    found.append(Case(name_of("one way", 64, 1, 16), "stream", 64, 500 * few,
                      depth=16, sockets=16, peers=() if quick else PEERS))
    for size, count in ((64, 1024), (KIB, 512)):
        if not quick or size != KIB:
            found.append(Case(f"{name_of('one way', size)}, 16 by sendmmsg",
                              "stream", size, count * few, depth=16,
                              options="-M 16"))
    return found


def _rdma(quick: bool, few: int) -> list[Case]:
    found = []
    for mode in ("write", "read"):
        for size, count in ((4 * KIB, 200), (64 * KIB, 40)):
            found.append(Case(f"RDMA {mode}, {human(size)}", mode, size,
                              count * few, floor=f"{mode}+send"))
        # silent: the server's messages would hide what is compared
        # (in-tree RDS never says that they are complete)
        barrier = Case(f"RDMA {mode}, 4 KiB, barrier per 16", mode, 4 * KIB,
                       320 * few, depth=16, options="-q", rival=False)
        if mode == "read" and not quick:
            barrier = replace(barrier, peers=(PERFTEST,))
        found += [barrier, replace(barrier, options="-q -N", peers=(),
                                   name=f"RDMA {mode}, 4 KiB, 16 notices")]
    return found


def _registrations(few: int) -> list[Case]:
    """In-tree RDS registers memory together with a message only."""
    found = []
    for size, count in ((4 * KIB, 100), (MIB, 30)):
        alone = Case(f"register {human(size)}", "map", size, count * few,
                     floor="-", options="-g", rival=False)
        found += [alone, replace(alone, name=f"{alone.name}, with a message",
                                 options="", rival=True)]
    return found


def _flat(few: int) -> list[Case]:
    echo = Case("", "echo", 64, 200 * few, floor="-")
    way = "round trip, 64 B"
    return [
        replace(echo, name=f"{way}, {BOUND} sockets", bound=BOUND),
        replace(echo, name=f"{way}, {DESTS} destinations",
                options=f"-D {DESTS}"),
        replace(echo, name=f"{way}, {IDLE} connections", idle=IDLE,
                rival=False),
        replace(echo, name="ping, 1 node", mode="ping", bytes=0, nodes=1,
                idle=RIVAL_IDLE),
        replace(echo, name=f"ping, {NODES} nodes in turn", mode="ping", bytes=0,
                nodes=NODES),
    ]


def _beside(few: int) -> list[Case]:
    """Round trips of a program that is mostly idle, so the scheduler runs it at
    once: it waits only for the messages in front of its own. One that uses UDP
    meanwhile waits only for the processor.
    """
    rests = Case(resting(64), "echo", 64, 40 * few, floor="-", rests=True,
                 peers=(UDP,))
    return [rests, replace(rests, name=BESIDE, beside=MIB)]


def _mixed(quick: bool) -> list[Case]:
    """Percentiles of round trips while there is much else to send."""
    if quick:
        return []
    found = []
    for size in MIXED:
        case = Case(resting(size), "echo", size, 300, floor="-", rests=True)
        if size != 64:
            found.append(case)
        found.append(replace(case, name=in_mix(size), count=1000, mixed=True))
    return found


def resting(size: int) -> str:
    return f"{name_of('round trip', size)}, with rests"


def in_mix(size: int) -> str:
    return f"{name_of('round trip', size)}, in a mix"


def _loopback(quick: bool, few: int) -> list[Case]:
    found = []
    for way, mode in (("one way", "stream"), ("round trip", "echo")):
        for size, count in ((64, 1000), (KIB, 800), (4 * KIB, 600),
                            (16 * KIB, 400), (64 * KIB, 200), (MIB, 30)):
            if quick and size in (KIB, 16 * KIB):
                continue
            peers = (UNIX,) if size > MOST[UDP] + KIB else (UNIX, UDP)
            found.append(Case(f"loopback {name_of(way, size)}", mode, size,
                              count * few, loop=True, peers=peers))
    return found
