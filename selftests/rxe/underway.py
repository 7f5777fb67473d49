# SPDX-License-Identifier: GPL-2.0-only
"""Little of a large message is under way at a time: others pass the rest."""

import signal

import remote
import traffic

TIMEOUT = 120
PORT = 4640
FRAGMENTS = 8               # of a large message, at most


def test_underway(rig):
    """While the peer is cut off few fragments are posted, and a small message
    behind them.
    """
    traffic.patient(rig)
    # a peer that is busy has the credits for all that is posted below
    traffic.run(rig, 400, seed=51)
    remote.until(rig, lambda: remote.shown(rig.a, "connections")[0]["credits"] >
                 2 * FRAGMENTS, "credits for a large message and others")
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
    rig.diag(f"{posted} fragments under way")
    rig.check(0 < posted <= FRAGMENTS, f"{posted} fragments under way")
