# SPDX-License-Identifier: GPL-2.0-only
"""How many completions net.xrds.ib.max_unsignaled_wr asks for."""

import close
import traffic

TIMEOUT = 120
PINGS = 200
BREAK = "/sys/kernel/debug/xrds/break"


def _signalled(rig, most: int) -> int:
    """Completions asked for with so many sends in a row without one"""
    rig.a.write("/proc/sys/net/xrds/ib/max_unsignaled_wr", str(most))
    # it counts for connections that are made afterwards
    rig.a.write(BREAK, "1")
    rig.a.run(f"xrds-ping -c 1 -w 30 {rig.b.ip}", timeout=40)
    before = close.counters(rig.a)
    rig.a.run(f"xrds-ping -c {PINGS} -i 0.01 -w 60 {rig.b.ip}", timeout=70)
    grown = close.delta(rig.a, before)
    # those of a queue in which nothing moves come by time, not by number
    signalled = grown["ib_tx_signaled"] - grown["ib_tx_flushed"]
    rig.diag(f"max_unsignaled_wr {most}: {signalled} of {PINGS} or more")
    rig.check(grown["conn_reset"] == 0, "the connection was lost")
    return signalled


def test_signalled(rig):
    """With 1 each send is signalled, with 64 few of them are."""
    traffic.patient(rig)
    each = _signalled(rig, 1)
    rig.check(each >= PINGS, f"{each} completions for {PINGS} sends")
    few = _signalled(rig, 64)
    rig.check(few <= PINGS // 4, f"{few} completions for {PINGS} sends")
