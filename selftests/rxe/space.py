# SPDX-License-Identifier: GPL-2.0-only
"""A destination that makes no progress takes nothing from another."""

import signal

NODES = 3
TIMEOUT = 240
PORT = 4200


def _measure(rig, break_it) -> None:
    """Node 1 sends to node 2 while node 3 makes no progress."""
    sinks = []
    for node in rig.nodes[1:]:
        sink = node.start(f"test_isolation sink {node.ip} {PORT}")
        sink.expect("ready")
        sinks.append(sink)
    live, victim = rig.nodes[1:]
    sender = rig.a.start(
        f"test_isolation send {rig.a.ip} {live.ip} {victim.ip} {PORT}")
    sender.expect("measured", timeout=100)
    break_it(victim, sinks[1])
    sender.kill(signal.SIGUSR1)
    rig.diag(str(sender.wait(timeout=200)).splitlines()[-1])


def test_dead(rig):
    """The cable of the other node is cut."""
    _measure(rig, lambda node, sink: node.cut())


def test_congested(rig):
    """The other receiver does not read."""
    _measure(rig, lambda node, sink: sink.kill(signal.SIGSTOP))


def test_paused(rig):
    """The other node stands still."""
    _measure(rig, lambda node, sink: node.pause())
