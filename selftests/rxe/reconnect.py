# SPDX-License-Identifier: GPL-2.0-only
"""Connections are made again, quickly, and one at a time.

RECONNECTS and MEETINGS in the environment choose other numbers than those of
every day; 1000 of each is the project's goal.
"""

import os
import signal

import close
import traffic

RECONNECTS = int(os.environ.get("RECONNECTS", "60"))
MEETINGS = int(os.environ.get("MEETINGS", "100"))
TIMEOUT = 300 + RECONNECTS + MEETINGS
BACKOFF_MS = 20000          # half of it, at least, is waited; see test_both_dial
KIB_PER_RECONNECT = 2       # growth of memory that counts as none


def _backoff(node, least: int, most: int) -> None:
    node.write("/proc/sys/net/rds/reconnect_max_delay_ms", str(most))
    node.write("/proc/sys/net/rds/reconnect_min_delay_ms", str(least))


def test_both_dial(rig):
    """Both sides dial at the same moment: one connection, and no delay. But if a
    request is lost on the way the other one is taken only after two seconds.
    No message comes twice, as helper_dial_at_once itself says.
    """
    for node in rig.nodes:
        _backoff(node, BACKOFF_MS, BACKOFF_MS)
    traffic.patient(rig)
    before = [close.counters(n) for n in rig.nodes]
    procs = [here.start(f"helper_dial_at_once {here.ip} {there.ip} {MEETINGS}")
             for here, there in ((rig.a, rig.b), (rig.b, rig.a))]
    longest = []
    for proc in procs:
        found = proc.expect(r"longest_ms=(\d+) .*", 100 + MEETINGS)
        longest.append(int(found[1]))
        rig.diag(f"{proc.node}: {proc.out.strip()}")
    crossed = 0
    for node, old in zip(rig.nodes, before):
        grown = close.delta(node, old)
        crossed += grown["conn_crossed"]
        rig.diag(f"{node}: " + ", ".join(f"{n} {grown[n]}" for n in (
            "conn_up", "conn_closed", "conn_dial", "conn_accept",
            "conn_crossed", "conn_refused", "conn_timeout", "conn_reset")))
        for name, want in (("conn_up", MEETINGS), ("conn_closed", MEETINGS),
                           ("conn_timeout", 0), ("conn_reset", 0)):
            rig.check(grown[name] == want, f"{node}: {name} {grown[name]}")
    # by turns of the nodes, which are a little longer than they count
    rig.check(max(longest) < BACKOFF_MS * 3 // 8 * rig.kernel.slow,
              f"a round took {max(longest)} ms")
    rig.check(crossed > 0, "nothing has crossed")
    for proc in procs:
        proc.kill(signal.SIGUSR1)
    for proc in procs:
        proc.wait()


test_both_dial.waits = True


def memory_kib(node) -> int:
    """Memory in use, caches aside."""
    node.run("sync; echo 3 > /proc/sys/vm/drop_caches")
    info = {line.split(":")[0]: int(line.split()[1]) for line in
            node.read("/proc/meminfo").splitlines()}
    return (info["MemTotal"] - info["MemFree"] - info["Buffers"] -
            info["Cached"] - node.at_hand())


def _break(rig, node, times: int) -> None:
    out = node.run(f"helper_break_conns {times}", timeout=100 + times).out
    rig.diag(f"{node}: microseconds: {out.strip()}")


def test_reconnect(rig):
    """Broken connections under load both ways: no harm, and no memory."""
    for node in rig.nodes:
        _backoff(node, 1, 1)
    hw = [n.hw_counters() for n in rig.nodes]
    stream = traffic.Stream(rig, traffic.ENDLESS, sockets=4, extra="-m 20000")
    stream.flowing()
    for node in rig.nodes:
        _break(rig, node, 10)
    memory = [memory_kib(n) for n in rig.nodes]
    before = [close.counters(n) for n in rig.nodes]
    for node in rig.nodes:
        _break(rig, node, RECONNECTS // 2)
    for node, old, used in zip(rig.nodes, before, memory):
        grown = close.delta(node, old)
        rig.diag(f"{node}: " + ", ".join(f"{n} {grown[n]}" for n in (
            "conn_up", "conn_dial", "conn_accept", "conn_crossed",
            "conn_reset", "conn_timeout", "send_retransmit")))
        rig.check(grown["conn_up"] >= RECONNECTS // 2 * 2,
                  f"{node}: up {grown['conn_up']} times")
        more = memory_kib(node) - used
        rig.diag(f"{node}: memory grew by {more} KiB")
        # messages under way differ by some MiB from moment to moment; and a
        # debug kernel keeps records of allocations and their callers, and some
        # freed memory; there kmemleak has the last word
        rig.check(more < (4096 + KIB_PER_RECONNECT * RECONNECTS) *
                  rig.kernel.slow, f"{node}: memory grew by {more} KiB")
    stream.stop(60)
    for node, old in zip(rig.nodes, hw):
        traffic.check_no_rnr(rig, node, traffic.grown(old,
                                                      node.hw_counters()))
