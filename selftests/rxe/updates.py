# SPDX-License-Identifier: GPL-2.0-only
"""Congestion updates go to the nodes that have senders at the port."""

import signal

import close
import remote
import traffic

NODES = 3
TIMEOUT = 240
PORT = 4600
MAX_SOURCES = "/proc/sys/net/xrds/max_sources_kb"
SOURCE, LINK = 256, 128     # bytes that they are charged with
BREAK = "/sys/kernel/debug/xrds/break"
UPDATES = "cong_update_received"
QUEUED = "cong_update_queued"
CONNECTIONS = 40            # more than are told at once


def _blocked(rig, node, port: int):
    # none of its messages may wait: they would congest the port again
    sender = node.start(f"helper_congested {node.ip} {rig.b.ip} {port} "
                        "8192 slowly")
    sender.expect("blocked")
    return sender


class _Receiver:
    """A port of node B that node A, and others, congest and node B clears."""

    def __init__(self, rig, port: int, others=()) -> None:
        self.sink = rig.b.start(f"helper_late_reader {rig.b.ip} {port} 65536")
        self.sink.expect("ready")
        self.senders = [_blocked(rig, node, port) for node in (rig.a, *others)]

    def clear(self) -> None:
        self.sink.kill(signal.SIGUSR1)
        for sender in self.senders:
            sender.expect("released")
            sender.wait()
        self.sink.kill()
        self.sink.wait(check=False)


def _answered(node, to: str) -> None:
    """An update that node B has for this connection is before its answer."""
    node.run(f"xrds-ping -c 1 -w 30 {to}", timeout=40)


def _updates(rig, before: list[int]) -> list[int]:
    return [remote.counter(node, UPDATES) - old
            for node, old in zip(rig.nodes, before)]


def test_senders(rig):
    """To no node that has only a connection, and to all that have sent to the
    port, also to one that sends its first message when it is congested.
    """
    traffic.patient(rig)
    other = rig.nodes[2]
    _answered(other, rig.b.ip)
    before = [remote.counter(node, UPDATES) for node in rig.nodes]
    queued = remote.counter(rig.b, QUEUED)
    _Receiver(rig, PORT).clear()
    _answered(other, rig.b.ip)
    got = _updates(rig, before)
    rig.check(got == [2, 0, 0], f"updates at the nodes: {got}")
    grown = remote.counter(rig.b, QUEUED) - queued
    rig.check(grown == 2, f"{grown} updates were queued for one sender")
    _Receiver(rig, PORT + 1, [other]).clear()
    _answered(other, rig.b.ip)
    got = _updates(rig, before)
    rig.check(got == [4, 0, 2], f"updates at the nodes: {got}")
    grown = remote.counter(rig.b, QUEUED) - queued
    rig.check(grown == 6, f"{grown} updates were queued")
    for node in rig.nodes:
        node.run("settled 20", timeout=60)


def test_charged(rig):
    """The owner of a port is charged for each node that has sent to it."""
    traffic.patient(rig)
    other = rig.nodes[2]
    receiver = _Receiver(rig, PORT, [other])
    used = remote.counter(rig.b, "used_sources")
    rig.check(used == 2 * (SOURCE + LINK), f"{used} bytes for two senders")
    receiver.clear()
    rig.b.wait_for("[ $(helper_counter used_sources) = 0 ]")


def test_no_room(rig):
    """A node that may not remember who has sent to a port tells all nodes that have
    a connection, and the senders are woken all the same.
    """
    traffic.patient(rig)
    other = rig.nodes[2]
    _answered(other, rig.b.ip)
    rig.b.write(MAX_SOURCES, "0")
    before = [remote.counter(node, UPDATES) for node in rig.nodes]
    refused = remote.counter(rig.b, "limit_sources")
    receiver = _Receiver(rig, PORT)
    used = remote.counter(rig.b, "used_sources")
    rig.check(used == SOURCE, f"{used} bytes for a sender")
    rig.check(remote.counter(rig.b, "limit_sources") > refused, "not counted")
    receiver.clear()
    # of each change, sooner or later
    for node, old in ((rig.a, before[0]), (other, before[2])):
        remote.wait_above(node, UPDATES, old + 1)


def test_many(rig):
    """Of many connections each is told, and again when the socket is closed."""
    traffic.patient(rig)
    for close_it in (False, True):
        sink = rig.b.start(f"helper_late_reader {rig.b.ip} {PORT} 65536")
        sink.expect("ready")
        senders = rig.a.start(f"helper_many_blocked {rig.a.ip} {rig.b.ip} {PORT} "
                              f"{CONNECTIONS}")
        senders.expect("blocked", timeout=60)
        sink.kill(signal.SIGKILL if close_it else signal.SIGUSR1)
        senders.expect("released")
        senders.wait()
        if not close_it:
            sink.kill()
        sink.wait(check=False)


def test_told_in_full(rig):
    """A node that was told of a port in the full list of a new connection hears
    when it is clear, although it has not sent there.
    """
    traffic.patient(rig)
    other = rig.nodes[2]
    receiver = _Receiver(rig, PORT)
    _answered(other, rig.b.ip)
    other.write(BREAK, "1")
    # the first one may pass the list
    for _ in range(2):
        _answered(other, rig.b.ip)
    sender = other.start(f"helper_congested {other.ip} {rig.b.ip} {PORT}")
    sender.expect("refused after 0 bytes")
    sender.expect("blocked")
    receiver.senders.append(sender)
    receiver.clear()


def test_idle(rig):
    """A socket that is never read keeps the connections of its senders from
    being collected, and no others.
    """
    traffic.patient(rig)
    other = rig.nodes[2]
    receiver = _Receiver(rig, PORT)
    _answered(other, rig.b.ip)
    close.idle(rig, 500)
    try:
        close.wait_gone(other)
        rig.b.wait_for("[ $(helper_counter obj_conns) = 1 ]")
        left = [c["faddr"] for c in remote.shown(rig.b, "connections")]
        rig.check(left == [rig.a.ip], f"node B has connections to {left}")
        receiver.clear()
        close.wait_gone(rig.b)
    finally:
        close.idle(rig, 0)


def test_down(rig):
    """No node is dialled to be told."""
    traffic.patient(rig)
    other = rig.nodes[2]
    # the connection ends in order, and stays known to node B
    holder = rig.b.start(f"helper_hold_socket {rig.b.ip} {other.ip} 1")
    holder.expect("state up")
    receiver = _Receiver(rig, PORT)
    sender = other.start(f"helper_hold_socket {other.ip} {rig.b.ip} 1 {PORT}")
    sender.expect("state up")
    _answered(other, rig.b.ip)
    sender.kill()
    sender.wait(check=False)
    other.run("modprobe -r xrds_ib xrds", timeout=30)
    remote.wait_lost(rig.b, other)
    before = close.counters(rig.b)
    receiver.clear()
    grown = close.delta(rig.b, before)
    known = [c for c in remote.shown(rig.b, "connections")
             if c["faddr"] == other.ip]
    rig.check(len(known) == 1, f"node B knows of {len(known)} connections")
    rig.check(not grown["conn_dial"],
              f"node B has dialled {grown['conn_dial']} times")
    rig.check(grown[QUEUED] == 2, f"{grown[QUEUED]} updates were queued")
    holder.kill()
    other.run("modprobe xrds_ib")
