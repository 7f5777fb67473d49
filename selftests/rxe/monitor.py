# SPDX-License-Identifier: GPL-2.0-only
"""RDS_CONG_MONITOR between two nodes."""

import signal

import traffic

TIMEOUT = 120
PORT = 4580


def _cleared(rig, here: str, there: str) -> None:
    traffic.patient(rig)
    sink = rig.b.start(f"helper_late_reader {there} {PORT} 65536")
    sink.expect("ready")
    sender = rig.a.start(f"helper_cong_notice {here} {there} {PORT}")
    sender.expect("blocked")
    sink.kill(signal.SIGUSR1)
    sender.expect("cleared")
    sender.wait()


def test_monitor(rig):
    """The end of congestion is told once, by mask and by address."""
    _cleared(rig, rig.a.ip, rig.b.ip)


def test_ipv6(rig):
    """The same over IPv6."""
    _cleared(rig, rig.a.ip6, rig.b.ip6)
