# SPDX-License-Identifier: GPL-2.0-only
"""xrds-info between two nodes: its dumps, and its events."""

import json

import close
import remote
import traffic

TIMEOUT = 120
WINDOW = "/proc/sys/net/xrds/ib/recv_window"
MARK = "test: info.lost begins"
DEVICES = 30
GROUP = 7               # of their network interfaces
DOWN = ("lost", "replaced", "idle", "peer", "device", "gone", "drained")


def _info(node, what: str, name: str = "") -> list[dict]:
    return json.loads(node.run(f"xrds-info --json {what}").out)[name or what]


def _connection(node, peer) -> dict:
    found = [c for c in _info(node, "connections")
             if c["faddr"] == peer.ip and c["transport"] == "infiniband"]
    return found[0] if len(found) == 1 else {}


def _ping(rig, count: int = 3) -> None:
    rig.a.run(f"xrds-ping -c {count} -i 0.05 -w 30 {rig.b.ip}", timeout=40)


def test_connection(rig):
    """Both ends tell the same of a connection."""
    traffic.patient(rig)
    _ping(rig)
    here, there = _connection(rig.a, rig.b), _connection(rig.b, rig.a)
    rig.diag(f"{here}")
    for one in (here, there):
        rig.check(one.get("state") == "up", f"{one}")
        rig.check(one["device"] == "rxe0", f"{one}")
        rig.check(one["version"] == "4.8", f"{one}")
        rig.check(one["retries"] == 0, f"{one}")
        rig.check(one["mtu"] in (1024, 2048, 4096), f"{one}")
        rig.check(one["rx-seq"] > 0 and one["tx-seq"] > 0, f"{one}")
    rig.check(here["qpn"] == there["peer-qpn"], f"{here}\n{there}")
    rig.check(here["peer-qpn"] == there["qpn"], f"{here}\n{there}")
    rig.check(here["rtt-ns"] > 0, f"{here}")
    rig.check("dialled" in here["flags"], f"{here}")
    rig.check("dialled" not in there["flags"], f"{there}")
    # others than administrators do not see those numbers
    plain, = json.loads(rig.a.run("su nobody -s /bin/bash -c "
                                  "'xrds-info --json connections'").out
                        )["connections"]
    rig.check(plain["state"] == "up" and "qpn" not in plain and
              "peer-qpn" not in plain, f"{plain}")
    # the kernel's own list of queue pairs has this one, too
    rig.check(f"lqpn {here['qpn']} " in rig.a.run("rdma res show qp").out,
              f"{here}")


def test_leak(rig):
    """Dumps, of connections over RDMA as well, have only the fields that they
    should have.
    """
    traffic.patient(rig)
    _ping(rig)
    rig.a.run(f"test_leak -a {rig.a.ip}", timeout=100)
    rig.check(_connection(rig.a, rig.b).get("state") == "up", "nothing to dump")


def test_device(rig):
    """The device, its limits, and their use."""
    _ping(rig)
    device, = _info(rig.a, "devices")
    rig.check(device["name"] == "rxe0", f"{device}")
    rig.check(device["endpoints"] >= 1, f"{device}")
    rig.check("shared-rq" in device["flags"], f"{device}")
    rig.check(device["recv-posted"] > 0, f"{device}")
    for limit in ("max-qp", "max-qp-wr", "max-mr", "max-mr-pages"):
        rig.check(device[limit] > 0, f"{limit}: {device}")


def _dumped(rig, command) -> str:
    return str(rig.a.run(f"helper_device_dump '{command}'"))


def test_devices_going(rig):
    """A device that goes in the midst of a dump of devices marks the dump."""
    # more than the first part of an answer is room for
    rig.a.run(f"for i in $(seq {DEVICES}); do "
              f"ip link add ds$i group {GROUP} type dummy && "
              "ip link set ds$i up && "
              "rdma link add rxe$i type rxe netdev ds$i || exit 1; done",
              timeout=100)
    try:
        said = _dumped(rig, "true")
        rig.check(said == f"{DEVICES + 1} rows, whole", said)
        said = _dumped(rig, "rdma link delete rxe1")
        rig.check(said.endswith("interrupted"), said)
        said = _dumped(rig, "true")
        rig.check(said == f"{DEVICES} rows, whole", said)
    finally:
        # all at once: one after the other takes the debug kernel minutes
        rig.a.run(f"ip link delete group {GROUP}", timeout=100)
        rig.a.wait_for("[ $(ls /sys/class/infiniband | wc -l) = 1 ]")


test_devices_going.nodes = 1


def test_larger_window(rig):
    """A window that was raised: the shared queue gets more buffers, a quarter of
    the most that it may have. Eight must be missing before it posts again.
    """
    _ping(rig)
    before = rig.a.read(WINDOW).strip()
    rig.a.write(WINDOW, "200")
    rig.a.run(f"xrds-ping -c 1 -w 30 {rig.b.ip6}", timeout=40)
    rig.a.write(WINDOW, before)
    rig.a.wait_for("xrds-info -j devices | "
                   "grep -E 'recv-posted.: *(249|25[0-9]|[3-9][0-9]{2})'")


def test_shared_device(rig):
    """A container that shares the device sees it, and not its load."""
    _ping(rig)
    one = rig.a.run("unshare -U -r -n xrds-info -j devices").out
    device, = json.loads(one)["devices"]
    rig.check(device["name"] == "rxe0" and device["max-qp"] > 0, f"{device}")
    told = [n for n in ("endpoints", "regions", "recv-posted", "recv-bytes")
            if n in device]
    rig.check(not told, f"{told}")


def test_tables(rig):
    """Tables are no wider than the terminal, and agree with JSON."""
    _ping(rig)
    for width in (60, 80, 200):
        out = rig.a.run(f"COLUMNS={width} xrds-info -a all").out
        longest = max(map(len, out.splitlines()))
        rig.check(longest <= width, f"{longest} at {width}\n{out}")
        rig.check("rxe0" in out and rig.b.ip in out, out)
    lines = rig.a.run("xrds-info --long connections").out
    rig.check(f"faddr            {rig.b.ip}" in lines, lines)
    counters = {c["name"]: c for c in _info(rig.a, "-a counters", "counters")}
    rig.check(counters["conn_up"]["value"] > 0, "conn_up")
    bare = [name for name, c in counters.items() if not c.get("help")]
    rig.check(not bare, f"without help: {bare}")
    rig.check("ib_tx_frags" in counters, "the transport's counters")
    zero = [c for c in _info(rig.a, "counters") if not c["value"]]
    rig.check(not zero, f"without --all: {zero}")
    everything = json.loads(rig.a.run("xrds-info -j all").out)
    rig.check(len(everything) == 10, f"{list(everything)}")
    out = rig.a.run("xrds-info -j status all connections conn").out
    rig.check(out.count('"connections": [') == 1 and
              len(json.loads(out)) == 10, out)


def test_watch(rig):
    """--watch shows it again, and changes of it."""
    watch = rig.a.start("xrds-info --watch=0.2 connections")
    watch.expect("none|SENT", 20)
    _ping(rig)
    watch.expect(rf"{rig.b.ip} +up", 20)


def test_events(rig):
    """A connection comes up, and goes down when its peer ends."""
    traffic.patient(rig)
    for node in rig.nodes:
        node.write(close.TIMEOUT_MS, "60000")
    events = rig.a.start("xrds-info -j ev")
    events.expect("listening", 20)
    _ping(rig)
    events.expect(r'"event": "up"[^\n]*\n', 30)
    # the peer says that it goes
    rig.b.run("xrds-info drain", timeout=70)
    events.expect(r'"event": "down"[^\n]*\n', 60)
    rig.b.run("xrds-info undrain")
    seen = [json.loads(line) for line in events.out.splitlines()
            if line.startswith("{")]
    seen = [e for e in seen if e["faddr"] == rig.b.ip]
    rig.diag(f"{seen}")
    rig.check([e["event"] for e in seen] == ["up", "down"], f"{seen}")
    rig.check(seen[0]["state"] == "up" and "reason" not in seen[0],
              f"{seen[0]}")
    rig.check(seen[1]["reason"] == "peer", f"{seen[1]}")
    # numbers that would help to forge packets are not for every listener
    rig.check(not any("qpn" in e for e in seen), f"{seen}")


def test_events_unloaded(rig):
    """A listener ends when the module is unloaded: it would be told of nothing
    any more, even when the module is loaded again.
    """
    events = rig.a.start("xrds-info events")
    events.expect("listening", 20)
    rig.a.run("modprobe -r xrds_ib xrds", timeout=60)
    done = events.wait(20, check=False)
    rig.check(done.code == 2 and "xrds-info: XRDS was unloaded" in done.out,
              f"exit {done.code}\n{done.out}")
    rig.a.run("modprobe xrds_ib")


def _logged(node, line: str, *after: str) -> None:
    """The log of this test has a line, behind others."""
    behind = "".join(f" | sed '1,/{mark}/d'" for mark in (MARK, *after))
    node.run(f"dmesg{behind} | grep -E '{line}'")


def test_lost(rig):
    """A connection that breaks is told of with an error."""
    # lines of earlier tests do not count
    rig.a.run(f"echo '<6>{MARK}' > /dev/kmsg")
    rig.a.run("modprobe -r xrds_ib && modprobe xrds_ib", timeout=30)
    for node in rig.nodes:
        node.write("/proc/sys/net/xrds/heartbeat_ms", "500")
        node.write("/proc/sys/net/xrds/ib/retry_count", "1")
        node.write("/proc/sys/net/xrds/ib/ack_timeout", "18")
    events = rig.a.start("xrds-info -j events")
    events.expect("listening", 20)
    _ping(rig)
    events.expect(r'"event": "up"[^\n]*\n', 30)
    # an answer whose acknowledgment was cut off would wait for good
    for node in rig.nodes:
        node.run("settled 20", timeout=60)
    rig.b.cut()
    events.expect(r'"event": "down"[^\n]*\n', 60)
    rig.b.join()
    down = json.loads(next(line for line in events.out.splitlines()
                           if '"down"' in line))
    rig.check(down["reason"] == "lost" and down["error"], f"{down}")
    # the log names the address and the error, and says when it is over
    _logged(rig.a, f"xrds: {rig.b.ip}: connection lost: -E[A-Z]+$")
    _ping(rig)
    _logged(rig.a,
            f"xrds: {rig.b.ip}: connection up again after [0-9]+ ms$",
            "connection lost")
    _logged(rig.a, "xrds_ib: rxe0: device added$")


def test_attempts(rig):
    """A connection to nobody: attempts, when the last one was, its error, and
    the message that waits.
    """
    nobody = "10.0.0.99"
    rig.a.write("/proc/sys/net/xrds/connect_timeout_ms", "200")
    before = remote.counter(rig.a, "conn_dial")
    holder = rig.a.start(f"helper_hold_socket {rig.a.ip} {nobody} 1")
    holder.expect("holding 1")
    remote.wait_above(rig.a, "conn_dial", before + 2, 90)
    one, = _info(rig.a, f"connections faddr={nobody}", "connections")
    dialled = remote.counter(rig.a, "conn_dial") - before
    rig.diag(f"{one}, {dialled} attempts")
    rig.check(3 <= one["attempts"] <= dialled, f"{one}")
    rig.check(one["attempts"] - 1 <= one["retries"] <= one["attempts"],
              f"{one}")
    rig.check(one["attempt-ms"] < 60000 * rig.kernel.slow, f"{one}")
    rig.check(one["error"] and one["lost"] == 0 and "up-ms" not in one,
              f"{one}")
    rig.check(one["queued-msgs"] == 1, f"{one}")
    rig.check("reason" not in one, f"{one}")


test_attempts.leaves = "messages"


def _messages(node, queue: str) -> list[dict]:
    return _info(node, f"messages queue={queue}", "messages")


def test_messages(rig):
    """Messages are listed in each queue: in the one of a connection that is not
    up, in flight to a node that is cut off, and unread.
    """
    # the connection is not given up before messages are seen in flight
    traffic.patient(rig)
    rig.a.start("xrds-ping -s 700 -i 0.1 10.0.0.99")
    remote.until(rig, lambda: len(_messages(rig.a, "send")) >= 3,
                 "messages wait")
    for m in _messages(rig.a, "send"):
        rig.check(m["laddr"] == rig.a.ip and m["faddr"] == "10.0.0.99" and
                  m["fport"] == 0 and m["bytes"] == 700, f"{m}")
    for family, (here, there) in (("4", (rig.a.ip, rig.b.ip)),
                                  ("6", (rig.a.ip6, rig.b.ip6))):
        rig.b.start(f"helper_late_reader {there} 4321 65536").expect("ready")
        holder = rig.a.start(f"helper_hold_socket {here} {there} 3 4321")
        holder.expect("holding 3")
        remote.until(rig, lambda: len(_messages(
            rig.b, f"receive faddr={here} lport=4321")) == 3,
            f"messages are there, IPv{family}")
    remote.until(rig, lambda: not _messages(rig.a, "in-flight"),
                 "all are acknowledged")
    _ping(rig)
    rig.b.cut()
    rig.a.start(f"xrds-ping -s 600 -i 0.1 {rig.b.ip}")
    remote.until(rig, lambda: len(_messages(
        rig.a, f"in-flight faddr={rig.b.ip} bytes=600")) >= 3,
        "messages are in flight")
    rig.b.join()


test_messages.leaves = "messages"


def test_errors(rig):
    """Mistakes are named, with exit status 2."""
    for options, words in (("nonsense", "unknown object 'nonsense'"),
                           ("events state=up", "'events' stands alone"),
                           ("--watch=x sockets", "is not a time"),
                           ("-x", "usage")):
        done = rig.a.run(f"xrds-info {options}", check=False)
        rig.check(done.code == 2, f"{options}: exit {done.code}\n{done.out}")
        rig.check(words in done.out, f"{options}: {done.out}")
    rig.check(rig.a.run("xrds-info --help").out.startswith("usage"), "help")
    rig.a.run("modprobe -r xrds_ib xrds", timeout=60)
    done = rig.a.run("xrds-info", check=False)
    rig.check(done.code == 2 and "modprobe xrds_ib" in done.out, done.out)
    rig.a.run("modprobe xrds_ib")
