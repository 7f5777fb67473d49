# SPDX-License-Identifier: GPL-2.0-only
"""Packets of legacy peers: Oracle's heartbeats, and those mainline tolerates.

Node B runs the module xrds_hostile, which means no harm here. A peer with
Oracle's kernel sends a heartbeat about once a minute; here each follows upon
the answer to the last one, so that BEATS of them stand for hours. An hour of those
of node A is HOUR.

A node that has something else to do is not dead. Where the heartbeats of A are
answered their period is such that the peer may stand still for more than four
seconds.
"""

import re

import close
import remote
import traffic

TIMEOUT = 120
WAITS = True
MODULES = ("xrds_ib xrds_nomem", "xrds_hostile")
BEATS = 300
HOUR = 60                   # heartbeats each way
# so slow that a node may stand still for as long as three of them take at least
SLOW_MS = 3000
HEARTBEAT = "/proc/sys/net/xrds/heartbeat_ms"
SECONDS = "/proc/sys/net/rds/conn_heartbeat_interval_secs"
SIZES = (0, 1, 4095, 4096, 4097, 8192, 8193, 16384, 40000)
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
    ("both flags of heartbeats", None, None),
    ("a payload checksum that is not in use", "recv_queued", 64),
    ("fragments of two sizes", "recv_queued", 16384),
    ("unknown flags", "recv_queued", 64),
    ("an unknown extension", "recv_queued", 64),
    ("an extension beyond the header", "recv_queued", 64),
    ("an extension twice", "recv_queued", 64),
    ("credits, a tag, a fragment's index", "recv_queued", 64),
    ("an answer to a ping, with payload", "recv_queued", 64),
    ("no checksum", "recv_queued", 64),
)


def _beat(rig, milliseconds: int) -> None:
    """Heartbeats of node A have this period. Its device gives up no peer."""
    traffic.patient(rig)
    rig.a.write(HEARTBEAT, str(milliseconds))


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
    """Every heartbeat is answered, on one connection, without a violation. A
    peer that does not say that it answers them gets none.
    """
    # the send queue has space for those of more than two seconds without
    # acknowledgments
    _beat(rig, 100)
    before = close.counters(rig.a)
    rig.check(_order(rig, "beat", 1, BEATS).code == 0, "the peer gave up")
    done = _done(rig)
    rig.diag(f"{done}")
    rig.check(done["beats"] == BEATS,
              f"{done['beats']} of {BEATS} were answered")
    grown = close.delta(rig.a, before)
    rig.check(grown["conn_up"] == 1, f"up {grown['conn_up']} times")
    rig.check(grown["send_pong"] == BEATS, f"sent: {grown['send_pong']}")
    rig.check(grown["send_heartbeat"] > 0, "no heartbeat was due")
    rig.check(not grown["send_hb_ping"],
              f"sent unasked: {grown['send_hb_ping']}")
    rig.check(not _wrong(grown), f"taken for violations: {_wrong(grown)}")
    rig.a.wait_for("[ $(helper_counter obj_msgs) = 0 ]")


def _grown_by_peer(rig, before: dict[str, int]) -> dict[str, int]:
    """Since @before, on one connection without a violation"""
    grown = close.delta(rig.a, before)
    rig.check(grown["conn_up"] == 1, f"up {grown['conn_up']} times")
    rig.check(not _wrong(grown), f"taken for violations: {_wrong(grown)}")
    return grown


def _listen(rig, count: int):
    reader = rig.a.start(f"helper_messages recv --bind {rig.a.ip} --port 3000 "
                         f"--count {count} --timeout 100")
    reader.expect("listening")
    return reader


def test_hour(rig):
    """An hour of heartbeats both ways, beside messages both ways: no connection
    ends, and nothing is lost or changed.
    """
    _beat(rig, SLOW_MS)
    before = close.counters(rig.a)
    old = _done(rig)
    reader = _listen(rig, len(SIZES))
    peer = rig.b.start(f"echo uek {rig.a.ip} {rig.b.ip} {len(SIZES)} {HOUR} "
                       f"> {PROC}")
    # its heartbeat says that it answers ours
    rig.a.wait_for("[ $(helper_counter recv_hb_pong) -gt "
                   f"{before['recv_hb_pong'] + 2} ]")
    # they come back, in fragments of the size that the peer has asked for
    rig.a.run(f"helper_messages send --bind {rig.a.ip} --to {rig.b.ip} "
              f"--port 3000 --sizes {','.join(map(str, SIZES))}")
    reader.wait(60)
    peer.wait(300)
    done = traffic.grown(old, _done(rig))
    rig.diag(f"{done}")
    grown = _grown_by_peer(rig, before)
    # the only end was that of the peer, when all was done
    for name, most in (("conn_reset", 1), ("conn_timeout", 0),
                       ("recv_drop_old_seq", 0), ("conn_dial", 0)):
        rig.check(grown[name] <= most, f"{name}: {grown[name]}")
    rig.check(done["beats"] >= HOUR, f"answered: {done['beats']}")
    rig.check(done["pings"] >= HOUR, f"heartbeats of A: {done['pings']}")
    rig.check(grown["recv_hb_pong"] >= HOUR,
              f"answers to A: {grown['recv_hb_pong']}")


test_hour.timeout = 420


def test_mute(rig):
    """A peer that stops answering is found, though its device is there."""
    _beat(rig, SLOW_MS)
    before = close.counters(rig.a)
    peer = _order(rig, "mute", 0, 3)
    rig.check(peer.code == 0, "the connection did not end")
    # counted when the endpoint is gone
    remote.wait_above(rig.a, "conn_reset", before["conn_reset"])
    grown = _grown_by_peer(rig, before)
    rig.check(grown["conn_timeout"] == 1,
              f"conn_timeout: {grown['conn_timeout']}")
    rig.check(grown["conn_reset"] == 1, f"conn_reset: {grown['conn_reset']}")
    # nothing is left that would be worth another attempt
    rig.check(not grown["conn_dial"], f"conn_dial: {grown['conn_dial']}")
    rig.a.wait_for("[ $(helper_counter obj_msgs) = 0 ]")


def test_period(rig):
    """A new period holds for a connection that is up, from none and from long."""
    traffic.patient(rig)
    rig.a.write("/proc/sys/net/xrds/idle_ms", "0")
    knobs = ((HEARTBEAT, "0", "200"), (SECONDS, "3600", "1"))
    ping = f"xrds-ping -q -c 1 -w 60 -I {rig.a.ip} {rig.b.ip}"
    for knob, before, after in knobs:
        rig.a.write(knob, before)
        # the next connection has that period
        rig.a.run(f"{ping} && xrds-info reset {rig.b.ip}", 70)
        rig.a.run(ping, 70)
        sent = remote.counter(rig.a, "send_heartbeat")
        rig.a.write(knob, after)
        remote.wait_above(rig.a, "send_heartbeat", sent + 1, 30)


test_period.modules = "xrds_ib"


def test_shortest(rig):
    """Heartbeats every millisecond are no more than one every fifty, and the
    connection does its other work.
    """
    rig.a.run(f"xrds-ping -q -c 1 -w 60 -I {rig.a.ip} {rig.b.ip}", 70)
    before = close.counters(rig.a)
    rig.a.write(HEARTBEAT, "1")
    began = rig.a.run("date +%s%N").out
    remote.wait_above(rig.a, "send_heartbeat", before["send_heartbeat"] + 39, 60)
    grown = close.delta(rig.a, before)
    took = (int(rig.a.run("date +%s%N").out) - int(began)) / 1e6
    rig.diag(f"{grown['send_heartbeat']} heartbeats in {took:.0f} ms")
    rig.check(grown["send_heartbeat"] <= took / 50,
              f"{grown['send_heartbeat']} heartbeats in {took:.0f} ms")
    for name in ("conn_reset", "conn_timeout"):
        rig.check(not grown[name], f"{name}: {grown[name]}")


test_shortest.modules = "xrds_ib"


def test_payload(rig):
    """A payload checksum that is right does no harm; a wrong one ends the
    connection, and nobody gets the message.
    """
    traffic.patient(rig)
    before = close.counters(rig.a)
    reader = _listen(rig, 9)
    rig.check(_order(rig, "sums", 0, 1).code == 0, "right ones were refused")
    rig.check(_grown_by_peer(rig, before)["recv_queued"] == 4, "not all came")
    rig.check(_order(rig, "sums", 777, 1).code == 0, "a wrong one was taken")
    grown = close.delta(rig.a, before)
    rig.check(_wrong(grown) == {"wire_payload": 1}, f"{_wrong(grown)}")
    rig.check(grown["recv_queued"] == 8, f"queued: {grown['recv_queued']}")
    reader.kill()


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
    traffic.patient(rig)
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
    # only the heartbeat behind it has an answer
    rig.check(grown["send_pong"] == 1, f"{what}: {grown['send_pong']} answers")
    others = {"recv_queued", "recv_drop_void", "cong_update_received"}
    for name in others - {counter}:
        rig.check(not grown[name], f"{what}: {name} rose by {grown[name]}")


def test_borne(rig):
    """A packet that mainline tolerates ends no connection, and has the same
    effect as there.
    """
    traffic.patient(rig)
    lengths = [length for _, _, length in BORNE if length]
    reader = _listen(rig, len(lengths))
    for number, (what, counter, _) in enumerate(BORNE):
        _borne(rig, number, what, counter)
    reader.wait(30, check=False)
    read = re.findall(r"(\d+) bytes, digest (\w+)", reader.out)
    rig.diag(f"read: {read}")
    rig.check([int(length) for length, _ in read] == lengths,
              f"the messages are {read}, not of {lengths} bytes")
    # all of one length are the same
    rig.check(len(set(read)) == len(set(lengths)), f"damaged: {read}")
