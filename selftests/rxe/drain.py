# SPDX-License-Identifier: GPL-2.0-only
"""An administrator drains a node: connections end in order, others are refused."""

import re

import remote
import traffic
from ends import SLOW_WIRE

TIMEOUT = 180
PORT = 4700
CONNECT = "/proc/sys/net/xrds/connect_timeout_ms"
TURNS = "/proc/sys/net/xrds/max_connects_per_s"
DELAY = "/proc/sys/net/rds/reconnect_{}_delay_ms"
PING = "xrds-ping -c 1 -w"
LONG = "-n 2000 -r 100"     # twenty seconds
REFUSALS = 8
REFUSED = "connection refused: no common protocol version"


def _status(node) -> dict:
    row, = remote.shown(node, "status")
    return row


def _lines(node, text: str) -> int:
    """How many the kernel's log has"""
    return int(str(node.run(f"dmesg | grep -c '{text}' || true")))


def _wait_ended(rig, node) -> None:
    remote.until(rig, lambda: _status(node)["conns"] == 0,
                 f"{node}: connections are left")


def _client(rig, options: str):
    """Checked messages from node 1 to node 2, which are under way."""
    server = rig.b.start(f"xrds-perf -s -p {PORT} {rig.b.ip}")
    server.expect("ready", 30)
    client = rig.a.start(f"xrds-perf -v -p {PORT} {options} {rig.b.ip}")
    client.expect(r"^ *\d+ s: [1-9]", 30)
    return client


def test_drain(rig):
    """No message is lost or doubled, and the connection is back after undrain."""
    traffic.patient(rig)
    events = rig.b.start("xrds-info -j events")
    events.expect("listening", 20)
    resets = [remote.counter(n, "conn_reset") for n in rig.nodes]
    client = _client(rig, LONG)
    rig.b.run("xrds-info drain")
    events.expect(r'"event": "down"[^\n]*"reason": "drained"', 30)
    _wait_ended(rig, rig.b)
    rig.check(_status(rig.b)["drained"], "it does not say so")
    # neither side connects; the node itself is no other node
    rig.check(rig.a.run(f"{PING} 2 {rig.b.ip}", check=False).code, "answered")
    rig.check(rig.b.run(f"{PING} 2 {rig.a.ip}", check=False).code, "it dials")
    rig.b.run(f"{PING} 30 {rig.b.ip}", timeout=40)
    rig.check(remote.counter(rig.b, "ib_connect_drained") > 0, "not refused")
    rig.check(client.code is None, f"it has ended: {client.out}")
    rig.b.run("xrds-info undrain")
    rig.check("2000 in" in str(client.wait(timeout=60)), client.out)
    rig.check("drained" not in _status(rig.b), "it is still drained")
    for node, before in zip(rig.nodes, resets):
        rig.check(remote.counter(node, "conn_reset") == before,
                  f"{node}: a connection was lost")


def test_bound(rig):
    """Senders that never stop hold a drain up for connect_timeout_ms only; the
    rest of their messages stays queued.
    """
    rig.a.write(CONNECT, "1000")
    # a slow wire keeps the queue full
    rig.a.run(f"modprobe sch_netem; tc qdisc add dev eth0 root {SLOW_WIRE}")
    client = _client(rig, f"-m stream -l 64K -T 4 -w 0 -n {traffic.ENDLESS}")
    rig.a.run("xrds-info drain")
    _wait_ended(rig, rig.a)
    rig.check(client.code is None, f"it has ended: {client.out}")
    queued = remote.shown(rig.a, "sockets")
    rig.check(any(s["queued-msgs"] for s in queued), f"{queued}")
    rig.a.run("xrds-info undrain")
    seen = len(client.out)
    remote.until(rig, lambda: re.search(r" s: [1-9]", client.out[seen:]),
                 "the stream does not go on")
    rig.check(client.code is None, f"it has ended: {client.out}")
    client.kill()


def test_turns(rig):
    """The attempts of a drained node, which all fail, take no turns of others."""
    rig.a.write(TURNS, "1")
    rig.a.write(DELAY.format("min"), "1")
    rig.a.write(DELAY.format("max"), "1")
    rig.a.run("xrds-info drain")
    dials, late = (remote.counter(rig.a, name)
                   for name in ("conn_dial", "limit_dials"))
    ping = rig.a.start(f"{PING} 100 {rig.b.ip}")
    remote.wait_above(rig.a, "conn_dial", dials + 3)
    rig.check(remote.counter(rig.a, "limit_dials") == late, "some had to wait")
    rig.check(ping.code is None, "it has been answered")
    ping.kill()
    ping.wait(check=False)
    rig.a.run("xrds-info undrain")
    rig.a.run(f"{PING} 30 {rig.b.ip}", timeout=40)


def test_log(rig):
    """A node that refuses as in-tree RDS does, again and again, has one line in
    the log of the node that dials.
    """
    rig.b.run("modprobe -r xrds_ib && modprobe xrds_ib classic=1", timeout=30)
    rig.b.run("xrds-info drain")
    rig.a.write(DELAY.format("min"), "1")
    rig.a.write(DELAY.format("max"), "1")
    rejected, lines = (remote.counter(rig.a, "ib_connect_rejected"),
                       _lines(rig.a, REFUSED))
    ping = rig.a.start(f"{PING} 100 {rig.b.ip}")
    remote.wait_above(rig.a, "ib_connect_rejected", rejected + REFUSALS)
    lines = _lines(rig.a, REFUSED) - lines
    rig.check(lines == 1, f"{lines} lines")
    ping.kill()
    ping.wait(check=False)
    rig.b.run("xrds-info undrain")
    rig.a.run(f"{PING} 30 {rig.b.ip}", timeout=40)


def test_legacy(rig):
    """Node 2 has mainline's RDS: nothing is lost or doubled either."""
    traffic.patient(rig)
    client = _client(rig, LONG)
    rig.a.run("xrds-info drain")
    _wait_ended(rig, rig.a)
    rig.check(client.code is None, f"it has ended: {client.out}")
    rig.a.run("xrds-info undrain")
    rig.check("2000 in" in str(client.wait(timeout=60)), client.out)


test_legacy.modules = ("xrds_ib", "rds_rdma")
test_legacy.kernels = "6.1"


def test_unload(rig):
    """The modules of a drained node can be unloaded."""
    rig.a.run(f"{PING} 30 {rig.b.ip}", timeout=40)
    rig.a.run("xrds-info drain")
    _wait_ended(rig, rig.a)
