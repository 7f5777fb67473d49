# SPDX-License-Identifier: GPL-2.0-only
"""XRDS_DEST_STATUS counts bytes under way, and tells of the last progress."""

import signal

import traffic

TIMEOUT = 120
PORT = 4150


def _progress(rig, here: str, there: str) -> None:
    sink = rig.b.start(f"helper_late_reader {there} {PORT} {4 << 20}")
    sink.expect("ready")
    sink.kill(signal.SIGUSR1)
    sink.expect("reading")
    sender = rig.a.start(f"helper_dest_status {here} {there} {PORT}")
    sender.expect("idle")
    rig.b.cut()
    sender.kill(signal.SIGUSR1)
    sender.expect("cut")
    rig.b.join()
    sender.expect("done")
    rig.diag("; ".join(sender.wait().out.splitlines()))


def test_inflight(rig):
    """In flight are bytes that the transport has; progress is acknowledgments.
    """
    traffic.patient(rig)
    _progress(rig, rig.a.ip, rig.b.ip)


def test_inflight_ipv6(rig):
    """The same over IPv6."""
    traffic.patient(rig)
    _progress(rig, rig.a.ip6, rig.b.ip6)
