# SPDX-License-Identifier: GPL-2.0-only
"""Packets of legacy peers: Oracle's heartbeats, and those mainline tolerates.

Node B runs the module xrds_hostile, which means no harm here. A peer with
Oracle's kernel sends a heartbeat about once a minute; here each follows upon
the answer to the last one, so that BEATS of them stand for hours.
"""

import re

import close

TIMEOUT = 120
MODULES = ("xrds_ib xrds_nomem", "xrds_hostile")
BEATS = 300
PONGS = 256                 # answers that may wait in a connection
PROC = "/proc/xrds_hostile"
NO_MEMORY = "/sys/module/xrds_nomem/parameters/every_sent"
# The packets of B (hostile_beat.c), in its order; the counter of A that rises by
# one for it; the length of the message that a socket gets to read
BORNE = (
    ("a map with a number and ports", "cong_update_received", None),
    ("a map that is too short", "recv_drop_void", None),
    ("a map with other flags, without number", "recv_drop_void", None),
    ("data with the flag of a map and another", "recv_queued", 64),
    ("a message without ports and number", "recv_drop_void", None),
    ("headers without ports, of any length", "recv_ack_required", None),
    ("a bare header with the flag of a map", None, None),
    ("bytes behind the end of a message", "recv_queued", 64),
    ("fragments with different flags", "recv_queued", 5000),
    ("a heartbeat between fragments", "recv_queued", 5000),
    ("unknown flags", "recv_queued", 64),
    ("an unknown extension", "recv_queued", 64),
    ("an extension beyond the header", "recv_queued", 64),
    ("an extension twice", "recv_queued", 64),
    ("credits, a tag, a fragment's index", "recv_queued", 64),
    ("an answer to a ping, with payload", "recv_queued", 64),
    ("no checksum", "recv_queued", 64),
)


def _order(rig, kind: str, seed: int, count: int):
    return rig.b.run(f"echo {kind} {rig.a.ip} {rig.b.ip} {seed} {count} "
                     f"> {PROC}", timeout=100, check=False)


def _done(rig) -> dict[str, int]:
    return {name: int(value) for name, value in
            (line.split() for line in rig.b.read(PROC).splitlines())}


def _wrong(grown: dict[str, int]) -> dict[str, int]:
    """Counters of violations that have risen"""
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
    rig.a.wait_for("[ $(helper_counter obj_msgs) = 0 ]")


def _unanswered(rig, counter: str, answers: int) -> None:
    """All heartbeats but @answers of them are counted as not answered."""
    before = close.counters(rig.a)
    old = _done(rig)["beats"]
    rig.check(_order(rig, "deaf", 1, BEATS).code == 0, "the peer gave up")
    rig.a.wait_for(f"[ $(helper_counter {counter}) -ge "
                   f"{before[counter] + BEATS - answers} ]")
    grown = close.delta(rig.a, before)
    rig.check(grown[counter] == BEATS - answers,
              f"{counter} rose by {grown[counter]}")
    rig.check(grown["send_pong"] == answers, f"sent: {grown['send_pong']}")
    rig.check(_done(rig)["beats"] - old == answers, "not all have come")
    rig.check(not _wrong(grown), f"taken for violations: {_wrong(grown)}")
    rig.a.wait_for("[ $(helper_counter obj_msgs) = 0 ]")


def test_unanswered(rig):
    """A heartbeat without an answer is counted, by the reason."""
    _unanswered(rig, "send_drop_pong", PONGS)
    rig.a.write(NO_MEMORY, "1")
    _unanswered(rig, "send_drop_pong_no_mem", 0)
    rig.a.write(NO_MEMORY, "0")


def _borne(rig, number: int, what: str, counter) -> None:
    before = close.counters(rig.a)
    sent = _order(rig, "borne", number, 1)
    grown = close.delta(rig.a, before)
    rig.check(not _wrong(grown), f"{what}: {_wrong(grown)}")
    # a heartbeat behind it was answered on the same connection
    rig.check(sent.code == 0, f"{what}: the connection did not outlive it")
    # the heartbeat and the message that ends the connection ask as well
    expected = 3 if counter == "recv_ack_required" else 1
    rig.check(not counter or grown[counter] == expected,
              f"{what}: {counter} rose by {grown[counter or 'conn_up']}")
    others = {"recv_queued", "recv_drop_void", "cong_update_received"}
    for name in others - {counter}:
        rig.check(not grown[name], f"{what}: {name} rose by {grown[name]}")


def test_borne(rig):
    """A packet that mainline tolerates ends no connection, and has the same
    effect as there.
    """
    lengths = [length for _, _, length in BORNE if length]
    reader = rig.a.start(f"helper_messages recv --bind {rig.a.ip} --port 3000 "
                         f"--count {len(lengths)} --timeout 100")
    reader.expect("listening")
    for number, (what, counter, _) in enumerate(BORNE):
        _borne(rig, number, what, counter)
    reader.wait(30, check=False)
    read = re.findall(r"(\d+) bytes, digest (\w+)", reader.out)
    rig.diag(f"read: {read}")
    rig.check([int(length) for length, _ in read] == lengths,
              f"the messages are {read}, not of {lengths} bytes")
    # all of one length are the same
    rig.check(len(set(read)) == len(set(lengths)), f"damaged: {read}")
