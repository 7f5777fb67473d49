# SPDX-License-Identifier: GPL-2.0-only
"""Little of a large message is under way at a time: others pass the rest."""

import signal

import remote
import traffic

TIMEOUT = 120
PORT = 4640
PERF_PORT = 4650
FRAGMENTS = 8               # of a large message, at most
MOST = 32                   # the same with a long round trip
TRIES = 5
LATENCY = "120ms"
BREAK = "/sys/kernel/debug/xrds/break"


def _posted(rig) -> int:
    """Fragments of a large message that are posted while the peer is cut off, and a
    small message behind them.
    """
    sinks = [rig.b.start(f"helper_late_reader {rig.b.ip} {port} {4 << 20}")
             for port in (PORT, PORT + 1)]
    for sink in sinks:
        sink.expect("ready")
    sender = rig.a.start(f"helper_posted_bound {rig.a.ip} {rig.b.ip} {PORT}")
    sender.expect("connected")
    rig.b.cut()
    before = remote.counter(rig.a, "ib_tx_frags")
    sender.kill(signal.SIGCONT)
    sender.expect("large")
    posted = remote.counter(rig.a, "ib_tx_frags") - before
    sender.kill(signal.SIGCONT)
    sender.expect("passed")
    rig.b.join()
    sender.wait()
    for sink in sinks:
        sink.kill()
        sink.wait(check=False)
    rig.diag(f"{posted} fragments under way")
    return posted


def test_underway(rig):
    """Few fragments are under way where the link has no room for more."""
    traffic.patient(rig)
    # for all that is posted below
    traffic.get_credits(rig, 2 * FRAGMENTS)
    posted = _posted(rig)
    rig.check(0 < posted <= FRAGMENTS, f"{posted} fragments under way")


def test_distant(rig):
    """More of them are where the round trip is long, so that the link is busy."""
    traffic.patient(rig)
    rig.a.run(f"tc qdisc add dev eth0 root netem delay {LATENCY} limit 9999")
    # the shortest round trip of the connection is that one
    if remote.counter(rig.a, "obj_conns"):
        rig.a.write(BREAK, "1")
    server = rig.b.start(f"xrds-perf -s -p {PERF_PORT} {rig.b.ip}")
    server.expect("ready")
    # the last round trips that are measured decide, and a node may stand still
    for _ in range(TRIES):
        rig.a.run(f"xrds-perf -m stream -l 1M -d 4 -n 20 -w 0 -p {PERF_PORT} "
                  f"{rig.b.ip}", timeout=100)
        posted = _posted(rig)
        if posted > FRAGMENTS:
            break
    rig.check(FRAGMENTS < posted <= MOST, f"{posted} fragments under way")
