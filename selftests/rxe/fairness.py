# SPDX-License-Identifier: GPL-2.0-only
"""Users share a connection equally, and so do the flows of a user.

Bytes count, and not messages.
"""

import re
import signal

import close
import remote
import traffic

TIMEOUT = 300
MEASURES = True
MEMORY = 1600               # MiB; a message of 1 MiB for each of the flows
PORT = 10000
GROUP = 2000                # ports of a group of helper_flood's
TRIPS_PORT = 4800
SECOND = ("10.0.0.91", "10.0.0.92")
MANY = 1000                 # flows of one user
PAST = 64                   # MiB
USER = 1001
OTHER = 1002
STEP = 32 << 20             # bytes that are counted at a time
# bytes that a flow has queued: a sender that has to wait for a processor must
# not be without
QUEUED = 16 << 20
STEPS = 3
TRIPS = 200
LIMIT = 120                 # seconds for them
BUSY = 300                  # and until all flows have something queued
APART = 0.05                # of the sum: one has 10 % more than the other
LEAST = 0.4
SLOWER = (("median", 2), ("p99", 4))


class Flood:
    """Groups of flows that always have something queued, and their bytes."""

    def __init__(self, rig, step: int, *groups: tuple[int, int, int, int]):
        """Each group: flows, bytes of a message, messages of a flow, user."""
        self.rig = rig
        traffic.patient(rig)
        for node in rig.nodes:
            for name in ("max_memory_kb", "max_recv_kb"):
                node.write(f"/proc/sys/net/xrds/{name}", str(1500 << 10))
            node.write("/proc/sys/net/core/wmem_max", str(32 << 20))
        numbers = " ".join(str(group[0]) for group in groups)
        self.sink = rig.b.start(f"helper_flood sink {rig.b.ip} {PORT} {step} "
                                f"{numbers}")
        self.sink.expect("ready")
        self.senders = [rig.a.start(
            f"helper_flood send {rig.a.ip} {rig.b.ip} {PORT + i * GROUP} "
            f"{nr} {size} {queued} {user}")
            for i, (nr, size, queued, user) in enumerate(groups)]
        for sender in self.senders:
            sender.expect("busy", timeout=BUSY)
        self.seen = len(self._lines())

    def _lines(self) -> list[str]:
        return re.findall(r"^bytes .*$", self.sink.out, re.MULTILINE)

    def shares(self, steps: int) -> list[float]:
        """Parts of all bytes that each group gets from now on."""
        # the line that comes next began before
        first = self.seen + 1
        remote.until(self.rig, lambda: len(self._lines()) >= first + steps,
                     "the sink has counted so much", 200)
        return self.got(first)

    def got(self, first: int) -> list[float]:
        rows = [[int(n) for n in line.split()[1:]]
                for line in self._lines()[first:]]
        sums = [sum(column) for column in zip(*rows)]
        return [one / sum(sums) for one in sums]

    def counted(self) -> int:
        """Steps that the sink has counted since the flood began."""
        return len(self._lines()) - self.seen

    def end(self) -> None:
        for proc in self.senders + [self.sink]:
            assert proc.code is None, proc.out
            proc.kill()
            proc.wait(check=False)


def _equal(rig, what: str, *groups: tuple[int, int, int, int]) -> None:
    flood = Flood(rig, STEP, *groups)
    shares = flood.shares(STEPS)
    flood.end()
    rig.diag(f"{what}: " + " ".join(f"{share:.1%}" for share in shares))
    rig.check(max(shares) - min(shares) <= APART, f"{what}: {shares}")


SIZES = ((1 << 20, 64 << 10), (1 << 20, 1 << 20), (64 << 10, 8 << 10),
         (1 << 20, 1 << 10), (16 << 10, 1 << 10))


def test_flows(rig):
    """Two flows of a user get equal bytes, with messages of any size."""
    for one, other in SIZES:
        _equal(rig, f"{one >> 10} and {other >> 10} KiB",
               (1, one, QUEUED // one, USER),
               (1, other, QUEUED // other, USER))


test_flows.late = True


def test_past(rig):
    """A socket has sent much over a connection that was collected. On the next one it
    does not wait until the flows of its user have sent as much.
    """
    traffic.patient(rig)
    server = rig.b.start(f"helper_round_trips serve {rig.b.ip} {TRIPS_PORT}")
    server.expect("ready")
    proc = rig.a.start(f"helper_round_trips again {rig.a.ip} {rig.b.ip} "
                       f"{TRIPS_PORT} {USER} {PAST}")
    proc.expect("sent", timeout=LIMIT)
    close.idle(rig, 100)
    remote.until(rig, lambda: not remote.counter(rig.a, "obj_conns"),
                 "the connection is gone")
    close.idle(rig, 300_000)
    flood = Flood(rig, STEP // 8, (2, 1 << 16, QUEUED >> 16, USER))
    flood.shares(1)
    before = flood.counted()
    proc.kill(signal.SIGUSR1)
    proc.expect("answered", timeout=LIMIT)
    steps = flood.counted() - before
    rig.diag(f"the flood has sent {steps * STEP >> 23} MiB meanwhile")
    rig.check(steps * STEP >> 23 < PAST, "it has waited for the flood")
    proc.wait()
    flood.end()
    server.kill()
    server.wait(check=False)


test_past.late = True


class Trips:
    """Round trips of 64 bytes of the other user, over a connection of their own
    or over the one that the flood has.
    """

    def __init__(self, rig, port: int, here: str, there: str) -> None:
        self.rig = rig
        self.ends = f"{here} {there} {port}"
        self.server = rig.b.start(f"helper_round_trips serve {there} {port}")
        self.server.expect("ready")

    def begin(self):
        return self.rig.a.start(f"helper_round_trips ask {self.ends} {OTHER} "
                                f"{TRIPS} {LIMIT}")

    def times(self, proc, what: str) -> dict[str, int]:
        out = proc.wait(2 * LIMIT).out.strip()
        self.rig.diag(f"{what}: {out}")
        self.rig.check(out.startswith(f"{TRIPS} of {TRIPS} "), f"{what}: {out}")
        return {name: int(us)
                for name, us in re.findall(r"(\w+)_us=(\d+)", out)}

    def alone(self, what: str) -> dict[str, int]:
        return self.times(self.begin(), what)


def _users(rig, size: int) -> None:
    """A node's processor is busy with the flood, so round trips beside it, over
    another connection, are what those over the same one are compared with.
    """
    same = Trips(rig, TRIPS_PORT, rig.a.ip, rig.b.ip)
    apart = Trips(rig, TRIPS_PORT, *SECOND)
    same.alone("undisturbed")
    flood = Flood(rig, STEP // 4, (MANY, 1 << 20, 1, USER),
                  (1, size, QUEUED // size, OTHER))
    first = flood.seen + 1
    procs = same.begin(), apart.begin()
    times = [trips.times(proc, what) for trips, proc, what in
             zip((same, apart), procs, ("same", "another connection"))]
    flood.shares(STEPS)
    share = flood.got(first)[1]
    flood.end()
    for trips in (same, apart):
        trips.server.kill()
        trips.server.wait(check=False)
    rig.diag(f"a stream of {size >> 10} KiB has {share:.1%}")
    for name, slower in SLOWER:
        rig.check(times[0][name] <= slower * times[1][name],
                  f"{name}: {times[0]} over the same connection, {times[1]} "
                  "over another")
    rig.check(share >= LEAST, f"the stream has {share:.1%}")


def test_users(rig):
    """Beside 1,000 flows of another user a stream has half of the connection, and
    round trips hardly wait.
    """
    for node, address in zip(rig.nodes, SECOND):
        node.run(f"ip addr add {address}/24 dev eth0")
        remote.wait_bound(node, address)
    try:
        for size in (1 << 20, 64 << 10, 8 << 10):
            _users(rig, size)
        # the device cannot send what waits there from an address that has gone
        for node in rig.nodes:
            node.run("settled 20", timeout=60)
    finally:
        for node, address in zip(rig.nodes, SECOND):
            node.run(f"ip addr del {address}/24 dev eth0")


# a whole gibibyte is sent three times, and no verdict is about that time
test_users.timeout = 900
