# SPDX-License-Identifier: GPL-2.0-only
"""The bounds in KiB bound the memory of a node, measured there; and fragmented
memory is enough.

A debug kernel takes more for its own purposes.
"""

import contextlib
import re
import time

import close
import remote
import traffic

TIMEOUT = 1200
KERNELS = "6.1 6.12 7.2"
PORT = 4600
NO_MEMORY = "/sys/module/xrds_nomem/parameters"
BOUND = 16 << 10            # KiB
UNREAD = 40 << 10           # KiB; all of it has to travel
MIXED = 10 << 10            # KiB; and much beside it, which takes long
SIZES = ((1, 0), (64, 0), (1024, 0), (4096, 0), (65536, 0), (1 << 20, 0))
# one message stays of those that were sent together
ALONE = ((64, 4096), (1024, 2048))
TURNS = 6                   # with small pages alone, and as many without
TURN = 10                   # seconds
MTU = "ip link set eth0 mtu"


def _available(node) -> int:
    """KiB"""
    available = node.run("grep MemAvailable: /proc/meminfo").out
    return int(available.split()[1]) + node.at_hand()


def _check(rig, what: str, taken: int, most: int, counted: int,
           least: int) -> None:
    """No more memory is taken than the bound allows, and by the counter of the
    module the bound was reached.
    """
    rig.diag(f"{what}: {taken} KiB of {most} KiB, {counted} KiB are counted")
    rig.check(taken <= most * 13 // 10, f"{what}: {taken} KiB are taken")
    rig.check(counted >= least, f"{what}: only {counted} KiB were there")


def test_queued(rig):
    """Messages to a node that is away take as much as max_memory_kb."""
    rig.b.cut()
    rig.a.write("/proc/sys/net/xrds/max_memory_kb", str(BOUND))
    for kept, passing in SIZES + ALONE + ((1, 65536),):
        out = rig.a.run(f"helper_memory queue {rig.a.ip} {rig.b.ip} {PORT} "
                        f"{kept} {passing}", timeout=400).out
        taken, counted = map(int, re.search(
            r"^taken (-?\d+) of \d+, counted (\d+)$", out, re.M).groups())
        # the message that was refused did not fit
        least = BOUND - (kept >> 10) - 8
        _check(rig, f"{kept} B, {passing} B cancelled", taken, BOUND, counted,
               least)


test_queued.late = True


def test_unread(rig):
    """Messages that nobody reads take as much as max_recv_kb."""
    # a connection and its receive buffers take some MiB of their own
    rig.a.run(f"xrds-ping -c 1 -w 60 {rig.b.ip}", timeout=70)
    # behind large messages less is taken than is counted
    for kept, passing in sorted(SIZES + ALONE + ((1024, 8192),)):
        bound = MIXED if passing else UNREAD
        rig.b.write("/proc/sys/net/xrds/max_recv_kb", str(bound))
        sink = rig.b.start(f"helper_memory sink {rig.b.ip} {PORT}")
        sink.expect("ready")
        before = _available(rig.b)
        full = remote.counter(rig.b, "limit_recv")
        rig.a.run(f"helper_memory fill {rig.a.ip} {rig.b.ip} {PORT} "
                  f"{kept} {passing}", timeout=400)
        taken = before - _available(rig.b)
        counted = remote.counter(rig.b, "used_recv") >> 10
        _check(rig, f"{kept} B, {passing} B read", taken, bound, counted,
               bound * 3 // 4)
        rig.check(remote.counter(rig.b, "limit_recv") > full,
                  f"{kept} B, {passing} B read: it was not the bound")
        sink.kill()
        sink.wait(check=False)
        remote.until(rig.b, lambda: remote.counter(rig.b, "used_recv") == 0,
                     "nothing waits to be read")


test_unread.late = True


def _struck(node) -> int:
    return int(node.read(f"{NO_MEMORY}/struck"))


@contextlib.contextmanager
def _small_pages_only(rig):
    with contextlib.ExitStack() as stack:
        for node in rig.nodes:
            stack.callback(node.write, f"{NO_MEMORY}/min_order", "0")
            node.write(f"{NO_MEMORY}/min_order", "1")
        yield


def test_fragmented(rig):
    """No pages but small ones: connections are made, and messages of all sizes
    come over new connections, and over one whose buffers were large. Packets
    are small, as soft-RoCE has its own in one piece.
    """
    traffic.patient(rig)
    before = [close.counters(n) for n in rig.nodes]
    for node in rig.nodes:
        node.run(f"{MTU} 1500")
    with _small_pages_only(rig):
        traffic.run(rig, 600, timeout=150, seed=71, extra="-m 200000")
        for node in rig.nodes:
            node.run("xrds-info reset all")
        traffic.run(rig, 600, timeout=150, seed=72, extra="-m 200000")
    for node, old in zip(rig.nodes, before):
        counts = close.delta(node, old)
        rig.diag(f"{node}: {counts['ib_rx_small_pages']} buffers of small pages, "
                 f"{_struck(node)} allocations failed")
        # those that a new queue posts, and those that replaced them
        rig.check(counts["ib_rx_small_pages"] > 80,
                  f"{node}: buffers have large pages")
        rig.check(not counts["ib_rx_refill_no_mem"],
                  f"{node}: a refill found no memory")
    traffic.run(rig, 600, timeout=150, seed=73, extra="-m 200000")
    with _small_pages_only(rig):
        traffic.run(rig, 600, timeout=150, seed=74, extra="-m 200000")
    for node in rig.nodes:
        node.run(f"{MTU} 9000")


test_fragmented.modules = "xrds_ib xrds_nomem"


def _delivered(rig) -> int:
    """Messages within a turn, over connections with new buffers."""
    def so_far() -> int:
        return sum(remote.counter(n, "recv_delivered") for n in rig.nodes)

    for node in rig.nodes:
        node.run("xrds-info reset all")
    before = so_far()
    time.sleep(TURN)
    return so_far() - before


def test_fragmented_rate(rig):
    """In a minute without pages but small ones, at least half as many messages
    are delivered as in a minute with all.
    """
    traffic.patient(rig)
    for node in rig.nodes:
        node.run(f"{MTU} 1500")
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=75, stall=100,
                            extra="-m 200000")
    stream.flowing()
    usual = small = 0
    for _ in range(TURNS):
        usual += _delivered(rig)
        with _small_pages_only(rig):
            small += _delivered(rig)
    rig.diag(f"{small} messages with small pages, {usual} with all; " + ", ".join(
        f"{node}: {_struck(node)} allocations failed" for node in rig.nodes))
    rig.check(all(_struck(node) for node in rig.nodes), "none has failed")
    rig.check(2 * small >= usual, f"{small} messages with small pages, {usual}")
    stream.stop(100)
    for node in rig.nodes:
        node.run(f"{MTU} 9000")


test_fragmented_rate.modules = "xrds_ib xrds_nomem"
test_fragmented_rate.measures = True
test_fragmented_rate.late = True
