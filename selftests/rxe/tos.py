# SPDX-License-Identifier: GPL-2.0-only
"""Sockets of different types of service use different connections."""

import re

import close
import nodes
import remote
import traffic

TIMEOUT = 240
WAITS = True
TOS = 0x20
OTHER = f"-Q {TOS}"             # for xrds-ping
SINK_PORT = 4810
BYTES = 1 << 20                 # of a receive queue
SLOW_DEAD_MS = 10000
GAP_MS = 2000                   # less than a quarter of that: no probe comes in between


def test_tos(rig):
    """Two types of service: two connections, and messages over both."""
    traffic.patient(rig)
    before = [close.counters(n) for n in rig.nodes]
    server = rig.b.start(f"helper_tos_echo serve {rig.b.ip}")
    server.expect("serving")
    client = rig.a.start(f"helper_tos_echo {rig.a.ip} {rig.b.ip}")
    client.expect("talked")
    # checks that failed say so
    rig.check("#" not in client.out, client.out)
    for node, old in zip(rig.nodes, before):
        grown = close.delta(node, old)
        rig.check(grown["conn_up"] == 2, f"{node}: up {grown['conn_up']} times")
        rig.check(close.counters(node)["obj_conns"] == 2,
                  f"{node}: {close.counters(node)['obj_conns']} connections")


def _ping(node, peer, words: str = "") -> None:
    node.run(f"xrds-ping -c 1 -w 60 {words} {peer.ip}", timeout=70)


def _reload(node) -> None:
    """Another node than before, for others and for itself"""
    node.run("modprobe -r xrds_ib xrds", timeout=60)
    node.run("modprobe xrds_ib")


def _still(rig) -> None:
    """No heartbeat and no look for idle connections shows that a node is away."""
    for node in rig.nodes:
        node.write(nodes.HEARTBEAT, "0")
    close.idle(rig, 0)


def test_streams(rig):
    """A node dies, comes back and uses another type of service: the streams that it
    had end.
    """
    # a node that has forgotten a connection looks at all streams each time
    _reload(rig.a)
    _still(rig)
    sink = rig.a.start(f"helper_late_reader {rig.a.ip} {SINK_PORT} {BYTES}")
    sink.expect("ready")
    holder = rig.b.start(f"helper_hold_socket {rig.b.ip} {rig.a.ip} 1 {SINK_PORT}")
    holder.expect("holding 1")
    remote.wait_above(rig.a, "recv_queued", 0)
    rig.b.wait_for("[ $(helper_counter obj_msgs) = 0 ]")
    rig.b.cut()
    holder.kill()
    holder.wait(check=False)
    _reload(rig.b)
    rig.b.join()
    _ping(rig.b, rig.a, OTHER)
    remote.wait_above(rig.a, "recv_eos_lost", 0)


def test_kept(rig):
    """A node has gone, and another one has come, which one connection has met: a
    message that is sent to it then over the other arrives.
    """
    _still(rig)
    _ping(rig.a, rig.b)
    rig.b.cut()
    _reload(rig.b)
    rig.b.join()
    sink = rig.b.start(f"helper_late_reader {rig.b.ip} {SINK_PORT} {BYTES}")
    sink.expect("ready")
    _ping(rig.a, rig.b, OTHER)
    rig.a.start(f"helper_hold_socket {rig.a.ip} {rig.b.ip} 1 {SINK_PORT}")
    remote.wait_above(rig.b, "recv_queued", 0)


def test_down(rig):
    """A node goes whose other connection is idle: a socket that asks is told in
    time.
    """
    _still(rig)
    _ping(rig.a, rig.b, OTHER)
    watch = nodes.watching(rig)
    rig.b.cut()
    nodes.told_down(rig, watch)


def _now(node) -> float:
    """Milliseconds of the clock that events tell"""
    return float(node.read("/proc/uptime").split()[0]) * 1e3


def test_heard(rig):
    """A node goes, and the connection that has heard of it last is lost first: the
    silence begins then.
    """
    _still(rig)
    rig.a.write(nodes.DEAD, str(SLOW_DEAD_MS))
    watch = nodes.watching(rig)
    _ping(rig.a, rig.b, OTHER)
    begin = _now(rig.a)
    remote.until(rig.a, lambda: _now(rig.a) > begin + GAP_MS, "some time has passed")
    heard = _now(rig.a)
    _ping(rig.a, rig.b)
    rig.b.cut()
    rig.a.start(f"xrds-ping -c 1 -w 60 {rig.b.ip}")
    watch.expect(" down ", 60)
    told = int(re.search(r" heard at (\d+) ms", watch.out)[1])
    rig.check(told >= heard - nodes.EARLY_MS,
              f"heard at {heard} ms, not at {told} ms")
