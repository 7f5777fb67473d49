# SPDX-License-Identifier: GPL-2.0-only
"""A peer with Oracle's kernel sends heartbeats: taken, acknowledged, answered.

Node B runs the module xrds_hostile, which means no harm here. It sends one about
once a minute in reality; here each follows upon the answer to the last one, so
that BEATS of them stand for hours.
"""

import close

TIMEOUT = 120
MODULES = ("xrds_ib xrds_nomem", "xrds_hostile")
BEATS = 300
PONGS = 256                 # answers that may wait in a connection
PROC = "/proc/xrds_hostile"
NO_MEMORY = "/sys/module/xrds_nomem/parameters/every_sent"


def _order(rig, kind: str, seed: int, count: int):
    return rig.b.run(f"echo {kind} {rig.a.ip} {rig.b.ip} {seed} {count} "
                     f"> {PROC}", timeout=100, check=False)


def _done(rig) -> dict[str, int]:
    return {name: int(value) for name, value in
            (line.split() for line in rig.b.read(PROC).splitlines())}


def _wrong(grown: dict[str, int]) -> dict[str, int]:
    """What was taken for a violation"""
    return {name: value for name, value in grown.items() if value and
            (name.startswith("wire_") or name == "recv_drop_bad_checksum")}


def test_heartbeat(rig):
    """Every heartbeat is answered, on one connection, without a violation."""
    before = close.counters(rig.a)
    rig.check(_order(rig, "beat", 1, BEATS).code == 0, "the peer gave up")
    done = _done(rig)
    rig.diag(f"{done}")
    rig.check(done["beats"] == BEATS,
              f"{done['beats']} of {BEATS} were answered")
    grown = close.delta(rig.a, before)
    rig.check(grown["conn_up"] == 1, f"up {grown['conn_up']} times")
    rig.check(grown["send_pong"] == BEATS, f"sent: {grown['send_pong']}")
    rig.check(not _wrong(grown), f"taken for violations: {_wrong(grown)}")
    rig.a.wait_for("[ $(test_counter obj_msgs) = 0 ]")


def _unanswered(rig, counter: str, answers: int) -> None:
    """All heartbeats but @answers of them are counted as not answered."""
    before = close.counters(rig.a)
    old = _done(rig)["beats"]
    rig.check(_order(rig, "deaf", 1, BEATS).code == 0, "the peer gave up")
    rig.a.wait_for(f"[ $(test_counter {counter}) -ge "
                   f"{before[counter] + BEATS - answers} ]")
    grown = close.delta(rig.a, before)
    rig.check(grown[counter] == BEATS - answers,
              f"{counter} rose by {grown[counter]}")
    rig.check(grown["send_pong"] == answers, f"sent: {grown['send_pong']}")
    rig.check(_done(rig)["beats"] - old == answers, "not all have come")
    rig.check(not _wrong(grown), f"taken for violations: {_wrong(grown)}")
    rig.a.wait_for("[ $(test_counter obj_msgs) = 0 ]")


def test_unanswered(rig):
    """A heartbeat without an answer is counted, by the reason."""
    _unanswered(rig, "send_drop_pong", PONGS)
    rig.a.write(NO_MEMORY, "1")
    _unanswered(rig, "send_drop_pong_no_mem", 0)
    rig.a.write(NO_MEMORY, "0")
