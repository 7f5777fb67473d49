# SPDX-License-Identifier: GPL-2.0-only
"""A peer with Oracle's kernel sends heartbeats: taken, acknowledged, answered.

Node B runs the module xrds_hostile, which means no harm here. It sends one about
once a minute in reality; here each follows upon the answer to the last one, so
that BEATS of them stand for hours.
"""

import close

TIMEOUT = 120
MODULES = ("xrds_ib", "xrds_hostile")
BEATS = 300
PROC = "/proc/xrds_hostile"


def test_heartbeat(rig):
    """Every heartbeat is answered, on one connection, without a violation."""
    before = close.counters(rig.a)
    rig.b.run(f"echo beat {rig.a.ip} {rig.b.ip} 1 {BEATS} > {PROC}",
              timeout=100)
    done = dict(line.split() for line in rig.b.read(PROC).splitlines())
    rig.diag(f"{done}")
    rig.check(int(done["beats"]) == BEATS,
              f"{done['beats']} of {BEATS} were answered")
    grown = close.delta(rig.a, before)
    rig.check(grown["conn_up"] == 1, f"up {grown['conn_up']} times")
    wrong = {name: value for name, value in grown.items()
             if name.startswith("wire_") and value}
    rig.check(not wrong, f"taken for violations: {wrong}")
    rig.a.wait_for("[ $(helper_counter obj_msgs) = 0 ]")
