# SPDX-License-Identifier: GPL-2.0-only
"""Log lines and delays when a peer breaks the rules (see hostile)."""

import close
import hostile
import remote
from xrdsvm.node import stopwatch

MODULES = ("xrds_ib", "xrds_hostile")
TIMEOUT = 240
LEAVES = "messages"        # to the hostile node
BURST = 10                  # net.core.message_burst
LINE = "dropping the connection"
RDS = "/proc/sys/net/rds"
MIN_MS = 200
ATTEMPTS = 8


def _found(node) -> int:
    return sum(value for name, value in close.counters(node).items()
               if name.startswith("wire_") or name == "recv_drop_bad_checksum")


def _lines(node) -> int:
    return int(str(node.run(f"dmesg | grep -c '{LINE}' || true")))


def test_log(rig):
    """Its lines are few, however many violations there are."""
    cost = "/proc/sys/net/core/message_cost"
    usual = rig.a.read(cost)
    found, lines = _found(rig.a), _lines(rig.a)
    # one burst in an hour
    rig.a.write(cost, "3600")
    seed = 0
    try:
        while _found(rig.a) - found <= 2 * BURST:
            seed += 1
            hostile.order(rig, "xrds", 200, seed=seed).wait(60)
    finally:
        rig.a.write(cost, usual)
    found, lines = _found(rig.a) - found, _lines(rig.a) - lines
    rig.diag(f"{lines} lines of {found} violations")
    rig.check(lines <= BURST, f"{lines} lines of {found} violations")


def test_backoff(rig):
    """Connections that end so come back later and later, though they were up:
    as in backoff.doubles.
    """
    hostile.order(rig, "spoil", 1).wait(20)
    rig.a.write(f"{RDS}/reconnect_max_delay_ms", "60000")
    rig.a.write(f"{RDS}/reconnect_min_delay_ms", str(MIN_MS))
    found, before = _found(rig.a), close.counters(rig.a)
    passed = stopwatch()
    holder = rig.a.start(f"helper_hold_socket {rig.a.ip} {rig.b.ip} 1")
    holder.expect("holding 1")
    remote.wait_above(rig.a, "conn_dial", before["conn_dial"] + ATTEMPTS - 1, 90)
    seconds = passed()
    grown, found = close.delta(rig.a, before), _found(rig.a) - found
    dialled = grown["conn_dial"]
    rig.diag(f"{dialled} attempts, {grown['conn_up']} connections, {found} "
             f"violations in {seconds:.1f} s")
    # the last attempt may go on
    for what, count in (("connections", grown["conn_up"]),
                        ("violations", found)):
        rig.check(count >= dialled - 1,
                  f"{dialled} attempts, but only {count} {what}")
    least = 63 * MIN_MS / 2 / 1000 - 0.1
    rig.check(seconds >= least, f"{dialled} attempts in {seconds:.1f} s, "
              f"not in {least:.1f} s at least")


test_backoff.waits = True
