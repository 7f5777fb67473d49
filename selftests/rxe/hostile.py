# SPDX-License-Identifier: GPL-2.0-only
"""A peer that breaks the rules on purpose, between two that do not.

Node B runs the module xrds_hostile (selftests/kmod) in the place of XRDS: its
packets follow from HOSTILE_SEED, and there are HOSTILE_PACKETS of them, half in
XRDS mode and half in the legacy versions. Nodes A and C are XRDS, and B is
hostile to A. Meanwhile A and C exchange messages that are all checked. A must
name each error, hang up, keep nothing of it, and go on; and as soon as B runs
XRDS it is a peer like any other.
"""

import os
import re
import types

import close
import dead_peer
import remote
import traffic
from xrdsvm.node import stopwatch

NODES = 3
MODULES = ("xrds_ib", "xrds_hostile", "xrds_ib")
SEED = int(os.environ.get("HOSTILE_SEED", "1"))
PACKETS = int(os.environ.get("HOSTILE_PACKETS", "0"))
FEW = 4000              # without HOSTILE_PACKETS, on a fast kernel
TIMEOUT = 240 + PACKETS // 20
PARTIAL = 8             # connections with messages that never end
PARTS_KB = 64 << 10     # for all of them, and beside that for each connection:
PART_KB = 2 * (128 + 256)
BUFFER_KB = 32          # that a fragment takes
WINDOW = 40             # that are under way
FLOWS = 5               # to which a node sends that acknowledges late,
EACH = 256              # so many messages
QUEUES = 10             # each has a connection that keeps it
PER_QUEUE = 40          # connections that lose a buffer
PROC = "/proc/xrds_hostile"
SYSCTL = "/proc/sys/net/xrds"


def _packets(rig) -> int:
    """How many in each test of packets"""
    return (PACKETS or int(FEW / rig.kernel.slow ** 2)) // 2


def order(rig, kind: str, count: int, *, seed=SEED, tos=0, other="",
          ipv6=False):
    """Have node B do something to node A."""
    ends = " ".join(n.ip6 if ipv6 else n.ip for n in (rig.a, rig.b))
    return rig.b.start(f"echo {kind} {ends} {seed} {count} {tos} {other} "
                       f"> {PROC}")


def _done(rig) -> dict[str, int]:
    """Counts of B's packets so far, and of errors that A must have found."""
    return {name: int(value) for name, value in
            (line.split() for line in rig.b.read(PROC).splitlines())}


def _tell(rig, what, counters: dict[str, int]) -> None:
    rig.diag(f"{what}: " + " ".join(f"{name} {value}" for name, value in
                                    counters.items() if value))


def bystanders(rig):
    """A and C, as the pair of nodes that traffic wants."""
    return types.SimpleNamespace(a=rig.a, b=rig.nodes[2], kernel=rig.kernel)


def _beside(rig, procs, seed: int = 1, ipv6: bool = False) -> None:
    """Traffic between A and C until B is through; nothing of it is lost.

    That their connection lasts is not asked for: soft-RoCE on a busy machine
    does not answer in time now and then.
    """
    limit = 120 + PACKETS // 20
    passed = stopwatch()
    pair = bystanders(rig)
    traffic.run(pair, 100, seed=seed, ipv6=ipv6)
    before = close.counters(pair.b)
    while True:
        running = any(p.code is None for p in procs)
        seed += 1
        traffic.run(pair, int(300 / rig.kernel.slow), seed=seed, ipv6=ipv6)
        if not running or passed() > limit * rig.kernel.slow:
            break
    for proc in procs:
        proc.wait(limit)
    grown = close.delta(pair.b, before)
    rig.diag(f"{pair.b}: {grown['conn_reset']} connections were reset")


def unload(node, seconds: int) -> None:
    """The module goes within this, by turns of the node."""
    out = node.run("helper_turns modprobe -r xrds_ib", timeout=100).out
    took = int(re.search(r"^took (\d+) ms", out, re.M)[1])
    assert took < 1000 * seconds * node.kernel.slow, f"it took {took} ms"


def reform(rig, ipv6: bool = False) -> None:
    """B becomes a peer like others, and nothing of the hostile one is left."""
    rig.b.run("modprobe -r xrds_hostile", timeout=60)
    rig.b.run("modprobe xrds_ib")
    traffic.run(rig, 200, seed=99, ipv6=ipv6)
    traffic.run(bystanders(rig), 200, seed=98)
    # unloading waits for all that the connection manager still has of ours
    unload(rig.a, 30)
    rig.a.run("modprobe xrds_ib")
    traffic.run(rig, 200, seed=97)
    close.idle(rig, 300)
    for node in rig.nodes:
        close.wait_gone(node, 60)
    counters = close.counters(rig.a)
    for name in ("obj_dests", "obj_msgs", "obj_mrs"):
        rig.check(not counters[name], f"{counters[name]} of {name} are left")


def _attack(rig, mode: str, procs, ipv6: bool = False) -> dict[str, int]:
    """A must find the errors of node B, each under its name.

    A finds every error that its device has taken, and no other, but those that B
    calls unsure. No connection survives an error, or ends without one. The mode
    says whether B refuses those who dial, or answers.
    """
    before, was = close.counters(rig.a), _done(rig)
    # only now: nothing that these have counted is still under way
    order(rig, mode, 1).wait(20)
    passed = stopwatch()
    _beside(rig, procs(), ipv6=ipv6)
    # an unsure error is counted by B before A can find it
    seen = close.delta(rig.a, before)
    seen["wire_csum"] = seen["recv_drop_bad_checksum"]
    done = traffic.grown(was, _done(rig))
    _tell(rig, f"sent in {passed():.1f} s", done)
    _tell(rig, "seen", seen)
    names = [name for name in done if name.startswith("wire_")]
    odd = {name: f"{seen[name]} found, {done[name]} sent" for name in names
           if seen[name] < done[name]}
    rig.check(not odd, f"{odd}")
    found, sent = (sum(c[name] for name in names) for c in (seen, done))
    rig.diag(f"{found} errors were found, {sent} sent, {done['unsure']} unsure")
    rig.check(found <= sent + done["unsure"],
              f"{found} errors were found, {sent} sent, {done['unsure']} unsure")
    if done["broken"]:
        why = (rig.b.run("dmesg | grep 'ended early' | tail").out
               + rig.a.run("dmesg | tail -n 30").out)
        rig.check(False, f"{done['broken']} connections ended before an error "
                         f"was sent\n{why}")
    rig.check(not done["survived"],
              f"{done['survived']} connections outlived a violation")
    return done


def _packets_of(rig, kind: str) -> None:
    traffic.patient(rig)
    count = _packets(rig)

    def attackers(share: int, seed: int):
        # two at a time, each with connections of its own
        return [order(rig, kind, count // share, seed=seed + 1000000 * number,
                      tos=8 * number) for number in range(2)]

    # first on connections that B dials: these errors are sure
    done = _attack(rig, "refuse", lambda: attackers(2, SEED))
    rig.check(done["wrong"] >= count, f"{done['wrong']} packets were wrong")
    sent = sum(n for name, n in done.items() if name.startswith("wire_"))
    # on a slow kernel there are few of either
    rig.check(done["unsure"] <= 4 + sent // 3,
              f"{sent} errors were sent, {done['unsure']} unsure")

    def answers():
        procs = attackers(8, SEED + 500000)
        # none, if B says just now that its ports are congested
        for number in (10, 0):
            dead_peer.kill_holder(rig, rig.b.ip, number, some=False)
        return procs

    _attack(rig, "answer", answers)
    reform(rig)


def test_native(rig):
    """Wrong packets in XRDS mode."""
    _packets_of(rig, "xrds")


def test_classic(rig):
    """Wrong packets in versions 3.1, 4.0 and 4.1."""
    _packets_of(rig, "classic")


def test_ipv6(rig):
    """Both kinds at once, and requests that are wrong, over IPv6."""
    traffic.patient(rig)
    count = max(_packets(rig) // 4, 50)
    before = close.counters(rig.a)
    for mode, kinds in (("refuse", ("xrds", "classic", "storm")),
                        ("answer", ("xrds", "classic"))):
        done = _attack(rig, mode, lambda k=kinds: [
            order(rig, kind, count, tos=8 * number, ipv6=True)
            for number, kind in enumerate(k)], ipv6=True)
        rig.check(done["wrong"] >= 2 * count, f"{done['wrong']} were wrong")
    rig.check(close.delta(rig.a, before)["ib_connect_bad_priv"],
              "no request was found wrong")
    reform(rig, ipv6=True)


def test_ends_at_once(rig):
    """Connections that end as soon as they begin leave nothing behind."""
    count = max(_packets(rig) // 20, 20)
    _beside(rig, [order(rig, "brief", count, seed=SEED + 1000000 * number,
                         tos=4 * number) for number in range(4)])
    done = _done(rig)
    _tell(rig, "sent", done)
    rig.check(2 * done["links"] >= count, f"only {done['links']} came up")
    reform(rig)


def test_storm(rig):
    """Requests that are wrong, taken back, or left half open: at most so many
    are looked at, and nothing is left of them though idle_ms is long.
    """
    count = max(_packets(rig) // 10, 100)
    rig.a.write(f"{SYSCTL}/ib/max_half_open", "2")
    before = close.counters(rig.a)
    _beside(rig, [order(rig, "storm", count)])
    seen = close.delta(rig.a, before)
    _tell(rig, "sent", _done(rig))
    _tell(rig, "seen", seen)
    for name in ("ib_connect_requests", "ib_connect_bad_priv",
                 "ib_connect_half_open_limit"):
        rig.check(seen[name], f"{name} did not grow")
    # that with C is left
    rig.a.wait_for("[ $(helper_counter obj_conns) -le 1 ]", 30)
    # none of them counts any more
    rig.nodes[2].run(f"xrds-info reset {rig.a.ip}")
    rig.nodes[2].run(f"xrds-ping -c 1 -w 60 {rig.a.ip}", timeout=70)
    reform(rig)


def test_maps(rig):
    """Congestion maps without end do not keep a connection from ending."""
    maps = order(rig, "maps", 1000000)
    rig.a.wait_for("[ $(helper_counter cong_update_received) -gt 100 ]")
    unload(rig.a, 20)
    maps.wait(60)


def test_updates(rig):
    """Congestion updates that wait take a bounded amount of memory: where all may
    have little, a peer that sends more loses its connection.
    """
    bound = f"{SYSCTL}/max_recv_kb"
    slow = "/sys/kernel/tracing/events/xrds/xrds_cong_peer/enable"
    usual = rig.a.read(bound)
    rig.a.write(bound, "0")
    # each port of an update is told to the tracer
    rig.a.write(slow, "1")
    before = close.counters(rig.a)
    order(rig, "lists", 1000).wait(60)
    seen = close.delta(rig.a, before)
    _tell(rig, "seen", seen)
    rig.a.write(slow, "0")
    rig.a.write(bound, usual)
    rig.check(seen["cong_update_limit"] > 0, "all of them could wait")
    rig.check(seen["conn_reset"] > 0, "the connection goes on")
    reform(rig)


def test_forged_sender(rig):
    """A request in the name of C does not touch the connection with C."""
    before = close.counters(rig.a)
    _beside(rig, [order(rig, "pretend", 10, other=rig.nodes[2].ip)])
    seen = close.delta(rig.a, before)
    rig.check(seen["ib_connect_bad_priv"] >= 10,
              f"{seen['ib_connect_bad_priv']} of 10 were found out")
    # that reason would have an honest sender offer an older version
    done = _done(rig)
    rig.check(done["rejected"] >= 10 and not done["no_version"],
              f"{done['no_version']} of {done['rejected']} for their version")
    # each of them would else replace it
    rig.check(seen["conn_reset"] < 5, f"{seen['conn_reset']} were heeded")
    reform(rig)


def test_invalidated(rig):
    """A key that B has A's device invalidate: the region is dead, which verbs
    cannot forbid, and B loses its connection. The region ends as others do.
    """
    server = rig.a.start(f"helper_serve_memory {rig.a.ip} 65536")
    key = int(server.expect(r"ready (\S+)").group(1), 0) & 0xffffffff
    before = close.counters(rig.a)
    _beside(rig, [order(rig, "invalidate", 1, seed=key)])
    seen, done = close.delta(rig.a, before), _done(rig)
    _tell(rig, "seen", seen)
    rig.check(done["wire_opcode"] == 1, "the device has not taken it")
    rig.check(seen["wire_opcode"] == 1, "A has not found it")
    rig.check(done["closed"] == 1, "A has not hung up")
    server.kill()
    server.wait(check=False)
    remote.until(rig, lambda: remote.counter(rig.a, "obj_mrs") == 0, "freed")
    reform(rig)


def test_max_conns(rig):
    """Peers get no more connections than there may be."""
    rig.a.write(f"{SYSCTL}/ib/max_conns", "4")
    before = close.counters(rig.a)
    _beside(rig, [order(rig, "storm", 100)])
    seen = close.delta(rig.a, before)
    rig.check(seen["ib_connect_max_conns"], "all got one")
    rig.a.write(f"{SYSCTL}/ib/max_conns", "16384")
    reform(rig)


def test_max_conns_lost(rig):
    """Connections that peers have made, and lost, do not keep others out for good:
    they count for idle_ms, though a socket may yet hear of their peers.
    """
    traffic.patient(rig)
    holder = rig.a.start(f"helper_hold_socket {rig.a.ip}")
    holder.expect("holding")
    rig.a.write(f"{SYSCTL}/ib/max_conns", "4")
    # most of them were open
    order(rig, "refuse", 1).wait(20)
    order(rig, "xrds", 300).wait(120)
    c = rig.nodes[2]
    refused = remote.counter(rig.a, "ib_connect_max_conns")
    ping = c.run(f"xrds-ping -c 1 -w 3 {rig.a.ip}", check=False)
    rig.check(ping.code, "one more was made")
    remote.wait_above(rig.a, "ib_connect_max_conns", refused)
    rig.a.write(f"{SYSCTL}/idle_ms", "1000")
    c.run(f"xrds-ping -c 1 -w 60 {rig.a.ip}", timeout=70)
    rig.a.write(f"{SYSCTL}/ib/max_conns", "16384")
    holder.kill()
    holder.wait(check=False)
    reform(rig)


def test_bounds(rig):
    """The administrator of a namespace does not set the bounds of peers' cost
    to the host; his namespace begins with the host's values.
    """
    for path in ("rds/ib/max_send_wr", "rds/ib/max_recv_wr",
                 "xrds/ib/recv_window", "xrds/ib/max_half_open",
                 "xrds/ib/max_conns"):
        knob = f"/proc/sys/net/{path}"
        was = rig.a.read(knob).strip()
        rig.a.write(knob, "100")
        inside = rig.a.run(f"unshare -Urn bash -c 'cat {knob}; "
                           f"echo 200 > {knob}; cat {knob}'").out
        rig.a.write(knob, was)
        rig.check(inside.count("Operation not permitted") == 1 and
                  inside.split().count("100") == 2, f"{path}: {inside}")
    # a value for its own traffic only is its own
    rig.a.run("unshare -Urn bash -c "
              f"'echo 5 > {SYSCTL}/ib/retry_count'")


def test_unfinished_message(rig):
    """A message that never ends takes a buffer with it, of the queue that all
    peers share: others are found for them.
    """
    before = close.counters(rig.a)
    _beside(rig, [order(rig, "torn", 200)])
    seen = close.delta(rig.a, before)
    _tell(rig, "torn", _done(rig))
    rig.check(seen["ib_rx_srq_replaced"] > 0, "no buffer was lost")
    reform(rig)


def test_partial(rig):
    """Messages of which B sends all but the end, in the smallest fragments, take a
    bounded amount of memory.
    """
    traffic.patient(rig)
    rig.a.write(f"{SYSCTL}/max_recv_kb", str(PARTS_KB))
    before = close.counters(rig.a)
    proc = order(rig, "partial", PARTIAL)
    remote.until(rig, lambda: _done(rig)["links"] == PARTIAL, "all are sent", 120)
    seen, done = close.delta(rig.a, before), _done(rig)
    _tell(rig, "seen", seen)
    _tell(rig, "sent", done)
    most = PARTS_KB + PARTIAL * (PART_KB + WINDOW * BUFFER_KB)
    rig.check(done["harmless"] * BUFFER_KB <= most,
              f"{done['harmless']} fragments are kept")
    rig.check(done["harmless"] * BUFFER_KB > PARTS_KB // 2, "few were sent")
    rig.check(seen["ib_rx_parts_limit"] > 0, "no connection was ended for that")
    traffic.run(bystanders(rig), 200)
    proc.kill()
    reform(rig)


def test_acknowledged_at_once(rig):
    """B takes messages of many streams and acknowledges none before it has all."""
    traffic.patient(rig)
    count = FLOWS * EACH
    order(rig, "refuse", 1).wait(20)
    up = remote.counter(rig.a, "conn_up")
    proc = order(rig, "withhold", count)
    remote.wait_above(rig.a, "conn_up", up)
    acked = remote.counter(rig.a, "send_acked")
    sender = rig.a.start(f"helper_flows {rig.a.ip} {rig.b.ip} 4000 {FLOWS} "
                         f"{EACH}")
    sender.expect("queued", timeout=60)
    sender.expect("delivered", timeout=60)
    sender.wait(20)
    grown = remote.counter(rig.a, "send_acked") - acked
    rig.check(grown == count, f"{grown} of {count} were acknowledged")
    proc.kill()
    reform(rig)


def test_ahead(rig):
    """B has messages that A never sent, as if A were restored from a snapshot. The
    first connection fails, and A goes on behind them. But no peer can have A use up
    its numbers.
    """
    order(rig, "refuse", 1).wait(20)
    for power, met in ((40, True), (60, False)):
        order(rig, "ahead", 1, seed=power).wait(30, check=False)
        code = order(rig, "ahead", 2, seed=power).wait(30, check=False).code
        rig.check((not code) == met, f"2^{power}: {code}")
    reform(rig)


def test_old_queues(rig):
    """Connections that keep the queues from which such buffers were taken get
    another one when those are many.
    """
    traffic.patient(rig)
    pair = bystanders(rig)
    before = close.counters(rig.a)
    for tos in range(QUEUES):
        pair.b.run(f"xrds-ping -c 1 -w 30 -Q {tos} {rig.a.ip}", timeout=40)
        order(rig, "torn", PER_QUEUE).wait(120)
    seen = close.delta(rig.a, before)
    _tell(rig, "seen", seen)
    rig.check(seen["ib_rx_srq_replaced"] >= QUEUES, "few were replaced")
    rig.check(seen["ib_rx_srq_ended"] > 0, "all were kept")
    for tos in range(QUEUES):
        pair.b.run(f"xrds-ping -c 1 -w 30 -Q {tos} {rig.a.ip}", timeout=40)
    reform(rig)


def test_unfinished_messages(rig):
    """So are those that many connections take with them at once, of the queue
    that an earlier connection goes on to use.
    """
    traffic.patient(rig)
    pair = bystanders(rig)
    traffic.run(pair, 200)
    before = [close.counters(n) for n in rig.nodes]
    # all of them wait, for a clear-to-send, until the last one is there
    rig.a.write(f"{SYSCTL}/connect_timeout_ms", "100000")
    order(rig, "gang", 200).wait(120)
    traffic.run(pair, 2000, seed=2)
    for node, old in ((rig.a, before[0]), (pair.b, before[2])):
        grown = close.delta(node, old)
        _tell(rig, node, grown)
    rig.check(not grown["conn_reset"], "C has lost the connection")
    reform(rig)


def test_endless_crossing(rig):
    """A peer that says for ever that its own request has won counts as one that
    refuses: an op toward it ends.
    """
    order(rig, "cross", 1).wait(20)
    out = rig.a.run(f"helper_rdma_faults nobody {rig.a.ip} {rig.b.ip} 10",
                    timeout=60).out
    rig.check(re.search(r"^marks: .*dropped=10\b", out, re.MULTILINE), out)
    reform(rig)


def _flooded(rig, sysctl: str, most: int) -> None:
    """Where @sysctl is 2048, @most messages of a flood are accepted."""
    nodes = (rig.a, rig.nodes[2])
    usual = [node.read(f"{SYSCTL}/{sysctl}") for node in nodes]
    for node in nodes:
        node.write(f"{SYSCTL}/{sysctl}", "2048")
    sink = rig.a.start(f"helper_late_reader {rig.a.ip} 5000 65536")
    sink.expect("ready")
    before = close.counters(rig.a)
    for number in range(3):
        order(rig, "flood", 1000, seed=SEED + number).wait(60)
    seen = close.delta(rig.a, before)
    _tell(rig, "seen", seen)
    rig.check(seen["recv_drop_refused"], "nothing was refused")
    rig.check(seen["recv_queued"] <= most,
              f"{seen['recv_queued']} messages wait, not {most} at most")
    sink.kill()
    sink.wait(check=False)
    for node in nodes:
        node.write(f"{SYSCTL}/{sysctl}", "0")
    before = close.counters(rig.a)
    stream = traffic.Stream(bystanders(rig), traffic.ENDLESS, seed=3,
                            extra="-B 8192")
    remote.wait_above(rig.a, "recv_drop_refused",
                      before["recv_drop_refused"])
    stream.stop(100)
    for node, value in zip(nodes, usual):
        node.write(f"{SYSCTL}/{sysctl}", value)
    reform(rig)


def test_flood(rig):
    """A sender to a congested socket is stopped, well before the memory is
    full; a friendly sender comes again later, and nothing is lost.
    """
    # 16 KiB each: the largest SO_RCVBUF, and the sysctl's bound
    _flooded(rig, "sock_max_recv_kb", (16 * 64 + 2048) // 16 + 1)


def test_flood_all(rig):
    """So is a sender when all sockets together have too much."""
    # twice the sysctl, a socket's own share, and units of 64 KiB
    _flooded(rig, "max_recv_kb", (2 * 2048 + 64 + 64) // 16 + 1)
