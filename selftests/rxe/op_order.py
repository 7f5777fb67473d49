# SPDX-License-Identifier: GPL-2.0-only
"""The ops of a socket to a node reach the wire in the order of their
identifiers, to whatever ports of the node they go.
"""

import signal

import remote
import traffic

TIMEOUT = 120
PORT = 4350
RCVBUF = 64 << 10


def _begin(rig, mode: str):
    """A port that is not read, the one behind it, and the program under test."""
    traffic.patient(rig)
    sinks = [rig.b.start(f"helper_late_reader {rig.b.ip} {PORT + number} "
                         f"{RCVBUF}") for number in range(2)]
    for sink in sinks:
        sink.expect("ready")
    sinks[1].kill(signal.SIGUSR1)
    sinks[1].expect("reading")
    pair = remote.Pair(rig)
    return sinks[0], pair, pair.start(f"helper_op_order {mode}", PORT)


def test_backlog(rig):
    """One of two ports has a backlog, and is congested behind a part of it."""
    sink, pair, proc = _begin(rig, "backlog")
    told = remote.counter(rig.a, "cong_update_received")
    proc.expect("^hold 1$")
    rig.b.pause()
    proc.kill(signal.SIGUSR1)
    proc.expect("^go 1$")
    rig.b.resume()
    proc.kill(signal.SIGUSR1)
    remote.wait_above(rig.a, "cong_update_received", told)
    sink.kill(signal.SIGUSR1)
    proc.expect("^done$", timeout=90)
    proc.wait()
    pair.end()


def test_congested(rig):
    """Ops to one port do not wait for another one that is congested."""
    _sink, pair, proc = _begin(rig, "congested")
    proc.expect("^done$", timeout=90)
    proc.wait()
    pair.end()


def test_large(rig):
    """The messages behind the ops to one port are large: those behind others do not
    pass them.
    """
    sink, pair, proc = _begin(rig, "large")
    sink.kill(signal.SIGUSR1)
    proc.expect("^done$", timeout=90)
    proc.wait()
    pair.end()
