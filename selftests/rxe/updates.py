# SPDX-License-Identifier: GPL-2.0-only
"""Congestion updates go to the nodes that have a connection to the address."""

import signal

import close
import remote
import traffic

NODES = 3
TIMEOUT = 240
PORT = 4600
SECOND = "10.0.0.23"
UPDATES = "cong_update_received"


class _Receiver:
    """A port of node B that node A congests and node B clears."""

    def __init__(self, rig, port: int) -> None:
        self.sink = rig.b.start(f"helper_late_reader {rig.b.ip} {port} 65536")
        self.sink.expect("ready")
        self.sender = rig.a.start(f"helper_congested {rig.a.ip} {rig.b.ip} {port}")
        self.sender.expect("blocked")

    def clear(self) -> None:
        self.sink.kill(signal.SIGUSR1)
        self.sender.expect("released")
        self.sender.wait()
        self.sink.kill()
        self.sink.wait(check=False)


def _answered(node, to: str) -> None:
    """An update that node B has for this connection is before its answer."""
    node.run(f"xrds-ping -c 1 -w 30 {to}", timeout=40)


def _updates(rig, before: list[int]) -> list[int]:
    return [remote.counter(node, UPDATES) - old
            for node, old in zip(rig.nodes, before)]


def test_connected(rig):
    """To no node that is connected to another address, and to all that are to
    this one, also to one that comes later.
    """
    traffic.patient(rig)
    rig.b.run(f"ip addr add {SECOND}/24 dev eth0")
    try:
        other = rig.nodes[2]
        _answered(other, SECOND)
        before = [remote.counter(node, UPDATES) for node in rig.nodes]
        receiver = _Receiver(rig, PORT)
        receiver.clear()
        _answered(other, SECOND)
        got = _updates(rig, before)
        rig.check(got == [2, 0, 0], f"updates at the nodes: {got}")
        receiver = _Receiver(rig, PORT + 1)
        _answered(other, rig.b.ip)
        receiver.clear()
        _answered(other, rig.b.ip)
        _answered(other, SECOND)
        got = _updates(rig, before)
        rig.check(got == [4, 0, 2], f"updates at the nodes: {got}")
        for node in rig.nodes:
            node.run("settled 20", timeout=60)
    finally:
        rig.b.run(f"ip addr del {SECOND}/24 dev eth0")


def test_down(rig):
    """No node is dialled to be told."""
    traffic.patient(rig)
    other = rig.nodes[2]
    # the connection ends in order, and stays known to node B
    holder = rig.b.start(f"helper_hold_socket {rig.b.ip} {other.ip} 1")
    holder.expect("state up")
    other.run("modprobe -r xrds_ib xrds", timeout=30)
    remote.wait_lost(rig.b, other)
    before = close.counters(rig.b)
    _Receiver(rig, PORT).clear()
    grown = close.delta(rig.b, before)
    known = [c for c in remote.shown(rig.b, "connections")
             if c["faddr"] == other.ip]
    rig.check(len(known) == 1, f"node B knows of {len(known)} connections")
    rig.check(not grown["conn_dial"],
              f"node B has dialled {grown['conn_dial']} times")
    rig.check(grown["cong_update_queued"] > 0, "there was no update")
    holder.kill()
    other.run("modprobe xrds_ib")
