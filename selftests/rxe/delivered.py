# SPDX-License-Identifier: GPL-2.0-only
"""XRDS_DELIVERED_EVENT between two nodes: all is acknowledged, or given up."""

import signal

import remote

TIMEOUT = 240
PORT = 4590
COUNT = 5


def _sender(rig, here: str, there: str):
    """A sender that has met the receiver's node, which reads nothing."""
    sink = rig.b.start(f"helper_late_reader {there} {PORT} {1 << 20}")
    sink.expect("ready")
    sender = rig.a.start(f"helper_delivered {here} {there} {PORT} {COUNT}")
    sender.expect("sent")
    return sender


def _acked(rig, here: str, there: str) -> None:
    sender = _sender(rig, here, there)
    rig.b.cut()
    sender.kill(signal.SIGUSR1)
    sender.expect("^ended")
    rig.b.join()
    sender.expect("^delivered", timeout=60)
    # the first message as well, and the mark
    queued = remote.counter(rig.b, "recv_queued")
    rig.check(queued == COUNT + 1, f"{queued} messages have arrived")
    rig.check(remote.counter(rig.b, "recv_eos") == 1, "the stream has ended")
    sender.wait()


def test_delivered(rig):
    """The event waits for the peer, which has all messages and the end then."""
    _acked(rig, rig.a.ip, rig.b.ip)


def test_ipv6(rig):
    """The same over IPv6."""
    _acked(rig, rig.a.ip6, rig.b.ip6)


def test_peer_killed(rig):
    """What a dead node has not got is given up when it comes back."""
    sender = _sender(rig, rig.a.ip, rig.b.ip)
    rig.b.cut()
    sender.kill(signal.SIGUSR1)
    sender.expect("^ended")
    rig.b.reboot()
    rig.b.run("modprobe xrds_ib")
    sender.expect("^undelivered", timeout=90)
    sender.wait()


test_peer_killed.reboots = True
