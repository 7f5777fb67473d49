# SPDX-License-Identifier: GPL-2.0-only
"""Attempts to reach a peer that is not there become rarer."""

import remote
from xrdsvm.node import stopwatch

TIMEOUT = 120
WAITS = True
RDS = "/proc/sys/net/rds"
MIN_MS = 200
ATTEMPTS = 8
MAX_MS = 400
RESTS = 20


def test_doubles(rig):
    """The delay doubles: none, then 1, 2, 4, ... 32 times the least; at least
    half of each is waited.
    """
    rig.b.run("modprobe -r xrds_ib xrds")
    rig.a.write("/proc/sys/net/xrds/connect_timeout_ms", "200")
    rig.a.write(f"{RDS}/reconnect_max_delay_ms", "60000")
    rig.a.write(f"{RDS}/reconnect_min_delay_ms", str(MIN_MS))
    before = remote.counter(rig.a, "conn_dial")
    passed = stopwatch()
    holder = rig.a.start(f"helper_hold_socket {rig.a.ip} {rig.b.ip} 1")
    holder.expect("holding 1")
    remote.wait_above(rig.a, "conn_dial", before + ATTEMPTS - 1, 90)
    seconds = passed()
    dialled = remote.counter(rig.a, "conn_dial") - before
    rig.diag(f"{dialled} attempts in {seconds:.1f} s")
    # timers may fire a jiffy early, once in each delay
    least = 63 * MIN_MS / 2 / 1000 - 0.1
    rig.check(seconds >= least, f"{dialled} attempts in {seconds:.1f} s, "
              f"not in {least:.1f} s at least")


test_doubles.leaves = "messages"


def test_rests(rig):
    """The delay grows to the largest that is allowed, and not beyond."""
    rig.b.run("modprobe -r xrds_ib xrds")
    rig.a.write("/proc/sys/net/xrds/connect_timeout_ms", "200")
    rig.a.write(f"{RDS}/reconnect_max_delay_ms", str(MAX_MS))
    rig.a.write(f"{RDS}/reconnect_min_delay_ms", str(MAX_MS // 4))
    before = remote.counter(rig.a, "conn_dial")
    holder = rig.a.start(f"helper_hold_socket {rig.a.ip} {rig.b.ip} 1")
    holder.expect("holding 1")
    remote.wait_above(rig.a, "conn_dial", before + 4)
    begin = remote.counter(rig.a, "conn_dial")
    passed = stopwatch()
    # with delays that go on to double these attempts would take a day
    remote.wait_above(rig.a, "conn_dial", begin + RESTS, 90)
    seconds = passed()
    dialled = remote.counter(rig.a, "conn_dial") - begin
    rig.diag(f"{dialled} attempts in {seconds:.1f} s")
    least = RESTS * (MAX_MS / 2 - 10) / 1000
    rig.check(seconds >= least, f"{dialled} attempts in {seconds:.1f} s, "
              f"not in {least:.1f} s at least")


test_rests.leaves = "messages"
