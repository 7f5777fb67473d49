# SPDX-License-Identifier: GPL-2.0-only
"""A destination that makes no progress takes nothing from another.

The nodes share the processors of a host that has other things to do, and would
be the bottleneck: then the rate says more about those than about XRDS. So the
wire has a latency, and that bounds the rate.
"""

import signal

NODES = 3
TIMEOUT = 700
PORT = 4200
LATENCY = "60ms"


def _measure(rig, break_it, heal_it, then="lost") -> None:
    """Node 1 sends to node 2, with and without trouble at node 3."""
    rig.a.run(f"tc qdisc add dev eth0 root netem delay {LATENCY} limit 9999")
    sinks = []
    for node in rig.nodes[1:]:
        sink = node.start(f"helper_isolation sink {node.ip} {PORT}")
        sink.expect("ready")
        sinks.append(sink)
    live, victim = rig.nodes[1:]
    sender = rig.a.start(f"helper_isolation send {rig.a.ip} {live.ip} "
                         f"{victim.ip} {PORT} {then}")
    number = 1
    while sender.expect(rf"^(break {number}|done)$")[1] != "done":
        break_it(victim, sinks[1])
        sender.kill(signal.SIGUSR1)
        sender.expect(f"^heal {number}$", timeout=100)
        heal_it(victim, sinks[1])
        sender.kill(signal.SIGUSR1)
        number += 1
    rig.diag(str(sender.wait()).splitlines()[-2])


def test_dead(rig):
    """The cable of the other node is cut."""
    _measure(rig, lambda node, sink: node.cut(),
             lambda node, sink: node.join())


def test_congested(rig):
    """The other receiver does not read."""
    _measure(rig, lambda node, sink: sink.kill(signal.SIGSTOP),
             lambda node, sink: sink.kill(signal.SIGCONT), "kept")


def test_paused(rig):
    """The other node stands still."""
    _measure(rig, lambda node, sink: node.pause(),
             lambda node, sink: node.resume())
