# SPDX-License-Identifier: GPL-2.0-only
"""Connections are made again, quickly, and one at a time.

MEETINGS in the environment chooses another number than that of every day; 1000
is what the project wants to hold.
"""

import os
import re

import close

MEETINGS = int(os.environ.get("MEETINGS", "100"))
TIMEOUT = 300 + MEETINGS
BACKOFF_MS = 3000           # longer than any round may take


def _backoff(node, least: int, most: int) -> None:
    node.write("/proc/sys/net/rds/reconnect_max_delay_ms", str(most))
    node.write("/proc/sys/net/rds/reconnect_min_delay_ms", str(least))


def test_meet(rig):
    """Both sides dial at the same moment: one connection, and no delay."""
    for node in rig.nodes:
        _backoff(node, BACKOFF_MS, BACKOFF_MS)
    # both sockets are there before the first connection is counted
    before = [close.counters(n) for n in rig.nodes]
    close.idle(rig, 8)
    procs = [here.start(f"test_meet {here.ip} {there.ip} {MEETINGS}")
             for here, there in ((rig.a, rig.b), (rig.b, rig.a))]
    for proc in procs:
        out = proc.wait(100 + MEETINGS).out
        longest = int(re.search(r"longest_ms=(\d+)", out)[1])
        rig.diag(f"{proc.node}: {out.strip()}")
        rig.check(longest < BACKOFF_MS / 2 * rig.kernel.slow,
                  f"{proc.node}: a round took {longest} ms")
    crossed = 0
    for node, old in zip(rig.nodes, before):
        grown = close.delta(node, old)
        crossed += grown["conn_crossed"]
        rig.diag(f"{node}: " + ", ".join(f"{n} {grown[n]}" for n in (
            "conn_up", "conn_dial", "conn_accept", "conn_crossed",
            "conn_refused", "conn_timeout", "conn_reset")))
        rig.check(grown["conn_up"] == MEETINGS,
                  f"{node}: {grown['conn_up']} connections")
        for name in ("conn_timeout", "conn_reset"):
            rig.check(grown[name] == 0, f"{node}: {name} {grown[name]}")
    rig.check(crossed > 0, "nothing has crossed")
