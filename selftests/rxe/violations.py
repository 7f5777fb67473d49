# SPDX-License-Identifier: GPL-2.0-only
"""What the log says of a peer that breaks the rules (see hostile)."""

import close
import hostile

MODULES = ("xrds_ib", "xrds_hostile")
TIMEOUT = 240
LEAVES = "messages"        # to the hostile node
BURST = 10                  # net.core.message_burst
LINE = "dropping the connection"


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
    while _found(rig.a) - found <= 2 * BURST:
        seed += 1
        hostile.order(rig, "xrds", 200, seed=seed).wait(60)
    rig.a.write(cost, usual)
    found, lines = _found(rig.a) - found, _lines(rig.a) - lines
    rig.diag(f"{lines} lines of {found} violations")
    rig.check(lines <= BURST, f"{lines} lines of {found} violations")
