# SPDX-License-Identifier: GPL-2.0-only
"""Connections end in order: idle ones, and those whose module goes.

Nothing is lost, doubled or out of order when the end of a connection crosses
new messages, and idle ones leave no memory behind.
"""

import re
import signal

import remote
import traffic

TIMEOUT = 240
PULSES = 50                 # connections that end under messages
IDLE = "/proc/sys/net/xrds/idle_ms"
CONNECTIONS = "/proc/sys/net/xrds/max_connections"
BOUND = 8
BREAK = "/sys/kernel/debug/xrds/break"
TIMEOUT_MS = "/proc/sys/net/xrds/connect_timeout_ms"
# what both say at once crosses on the wire, and nothing of one node's packets is
# lost but the device's acknowledgments
SLOW = "netem delay 4s limit 1000"
NO_ACKS = ("modprobe -a sch_prio sch_netem cls_u32; "
           "tc qdisc add dev eth0 root handle 1: prio "
           f"priomap{16 * ' 0'} && "
           f"tc qdisc add dev eth0 parent 1:1 {SLOW} && "
           "tc qdisc add dev eth0 parent 1:3 netem loss 100% && "
           "tc filter add dev eth0 parent 1: protocol ip u32 match ip dport "
           "4791 0xffff match u8 0x11 0xff at 28 flowid 1:3")
ENDS = ("conn_closed", "conn_collected", "conn_reset", "conn_timeout")
STRETCHED = "/sys/module/xrds_patient/parameters/stretched"


def counters(node) -> dict[str, int]:
    return {name: int(value) for name, value in
            (line.split() for line in
             node.run("helper_counter").out.splitlines())}


def delta(node, before: dict[str, int]) -> dict[str, int]:
    return traffic.grown(before, counters(node))


def idle(rig, milliseconds: int, nodes=None) -> None:
    for node in nodes or rig.nodes:
        node.write(IDLE, str(milliseconds))


def wait_gone(node, timeout: float = 30) -> None:
    """Until the node has no connection and no endpoint, and nobody is charged."""
    node.wait_for("[ $(helper_counter obj_conns) = 0 ] && "
                  "[ $(helper_counter used_connections) = 0 ] && "
                  "[ $(helper_counter ib_ep_created) = "
                  "$(helper_counter ib_ep_freed) ] || "
                  # a connection that was lost stays as long as its sockets
                  "{ helper_counter | grep -E '^(conn|used)_'; false; }",
                  timeout)


def patient(rig, node) -> None:
    """The node's modules and device, when they go, wait for the peer for a minute,
    and not for two seconds: a busy host may have stopped it. The test has
    xrds_patient in its MODULES.
    """
    traffic.patient(rig)
    # it ends with the modules that it was loaded for
    node.run("modprobe -r xrds_patient && modprobe xrds_patient")


def was_patient(rig, node) -> None:
    rig.check(int(node.read(STRETCHED)) > 0,
              "no wait was made long: see selftests/kmod/xrds_patient.c")


def _hold(rig):
    """Sockets that have sent to each other, and stay."""
    return [here.start(f"helper_hold_socket {here.ip} {there.ip} 1 4999")
            for here, there in ((rig.a, rig.b), (rig.b, rig.a))]


def _check_orderly(rig, node, grown: dict[str, int]) -> None:
    rig.diag(f"{node}: " + ", ".join(f"{n} {grown[n]}" for n in ENDS))
    rig.check(grown["conn_closed"] > 0, f"{node}: nothing ended in order")
    for name in ("conn_reset", "conn_timeout", "send_drop_stale_peer",
                 "send_drop_conn_dead", "recv_drop_old_seq"):
        rig.check(grown[name] == 0, f"{node}: {name} grew by {grown[name]}")


def test_idle(rig):
    """Idle connections go with their memory, also when sockets stay."""
    traffic.patient(rig)
    before = [counters(n) for n in rig.nodes]
    holders = _hold(rig)
    for holder in holders:
        holder.expect("holding 1$")
    traffic.run(rig, 500)
    idle(rig, 300)
    for node in rig.nodes:
        wait_gone(node)
    for node, old in zip(rig.nodes, before):
        _check_orderly(rig, node, delta(node, old))
    idle(rig, 0)
    traffic.run(rig, 500, seed=2, port=6000)
    for holder in holders:
        rig.check(holder.code is None, "a holder ended")


def _check_idle(rig, node) -> None:
    """The peer has ended the node's only connection, and is not down by that."""
    remote.until(node, lambda: not remote.shown(node, "nodes")[0]["up-conns"],
                 f"{node} knows that the connection has ended")
    row, = remote.shown(node, "nodes")
    rig.check((row["state"], row["reason"]) == ("idle", "peer"), f"{row}")


def test_one_side(rig):
    """Only one side collects, and the other one goes on after that."""
    traffic.patient(rig)
    idle(rig, 0)
    before = [counters(n) for n in rig.nodes]
    holders = _hold(rig)
    for holder in holders:
        holder.expect("holding 1$")
    for number, node in enumerate((rig.a, rig.b)):
        traffic.run(rig, 300, seed=number, port=6000 + 1000 * number)
        idle(rig, 200, [node])
        wait_gone(node)
        _check_idle(rig, rig.nodes[1 - number])
        idle(rig, 0, [node])
    traffic.run(rig, 300, seed=5, port=8000)
    for node, old in zip(rig.nodes, before):
        _check_orderly(rig, node, delta(node, old))


def test_unheard(rig):
    """An end that was agreed on is one, though the disconnection gets lost."""
    traffic.patient(rig)
    holders = _hold(rig)
    for holder in holders:
        holder.expect("holding 1$")
    traffic.run(rig, 300)
    before = [counters(n) for n in rig.nodes]
    rig.b.write(TIMEOUT_MS, "1000")
    rig.b.deaf()
    idle(rig, 300, [rig.a])
    wait_gone(rig.a)
    idle(rig, 300, [rig.b])
    wait_gone(rig.b)
    for node, old in zip(rig.nodes, before):
        _check_orderly(rig, node, delta(node, old))
    rig.b.deaf(False)
    idle(rig, 0)
    traffic.run(rig, 300, seed=2, port=6000)


def test_both_unacknowledged(rig):
    """Both end at once, and the first to be gone has not acknowledged the other
    one's last words: that is an end in order as well.
    """
    traffic.patient(rig)
    traffic.run(rig, 300)
    for node in rig.nodes:
        node.run("settled 20", timeout=60)
        node.write(TIMEOUT_MS, "60000")
    before = [counters(n) for n in rig.nodes]
    rig.a.run(NO_ACKS)
    rig.b.run(f"modprobe sch_netem; tc qdisc add dev eth0 root {SLOW}")
    drains = [n.start("xrds-info drain") for n in rig.nodes]
    for node in rig.nodes:
        remote.until(node, lambda n=node: [c["state"] for c in remote.shown(
            n, "connections")] == ["closing"], "it is closing")
    for drain in drains:
        drain.wait(60)
    for node, old in zip(rig.nodes, before):
        remote.wait_above(node, "conn_closed", old["conn_closed"], 60)
        _check_orderly(rig, node, delta(node, old))


test_both_unacknowledged.waits = True


def test_lost_at_bound(rig):
    """Connections to nodes that are lost give their place to new ones once they have
    been idle, though a socket may yet hear of them.
    """
    traffic.patient(rig)
    there = [f"10.0.0.{n}" for n in range(101, 101 + BOUND + 1)]
    rig.b.run("".join(f"ip addr add {a}/24 dev eth0; " for a in there))
    remote.wait_bound(rig.b, there[-1])
    bound = rig.a.read(CONNECTIONS)
    usual = rig.a.read(IDLE)
    holder = rig.a.start(f"helper_hold_socket {rig.a.ip}")
    holder.expect("holding")
    rig.a.write(CONNECTIONS, str(BOUND))
    try:
        for address in there[:-1]:
            rig.a.run(f"xrds-ping -c 1 -w 30 {address}", check=False, timeout=40)
        rig.a.write(BREAK, "1")
        remote.until(rig, lambda: {c["state"] for c in remote.shown(
            rig.a, "connections")} == {"down"}, "all are down")
        refused = remote.counter(rig.a, "limit_conns")
        ping = rig.a.run(f"xrds-ping -c 1 -w 1 {there[-1]}", check=False)
        rig.check(ping.code, "one more was made")
        rig.check(remote.counter(rig.a, "limit_conns") > refused,
                  "the bound was not reached")
        idle(rig, 1000, [rig.a])
        rig.a.wait_for(f"xrds-ping -c 1 -w 5 {there[-1]}", 60)
    finally:
        rig.a.write(CONNECTIONS, bound)
        rig.a.write(IDLE, usual)
        rig.b.run("".join(f"ip addr del {a}/24 dev eth0; " for a in there))
    holder.kill()
    holder.wait(check=False)


def test_heartbeat(rig):
    """Heartbeats keep no connection, and 0 keeps every one."""
    traffic.patient(rig)
    for node in rig.nodes:
        node.write("/proc/sys/net/xrds/heartbeat_ms", "100")
    idle(rig, 0)
    traffic.run(rig, 200)
    for node in rig.nodes:
        beats = counters(node)["send_heartbeat"]
        node.wait_for(f"[ $(helper_counter send_heartbeat) -gt {beats + 10} ]")
        rig.check(counters(node)["obj_conns"] == 1, f"{node}: collected")
    idle(rig, 500)
    for node in rig.nodes:
        wait_gone(node)


def pulse(rig, times: int) -> None:
    """Messages with pauses both ways, until so many connections have been up."""
    traffic.patient(rig)
    ups = [counters(n)["conn_up"] for n in rig.nodes]
    procs = [here.start(f"helper_pauses {here.ip} {there.ip} 40 {here.number}")
             for here, there in ((rig.a, rig.b), (rig.b, rig.a))]
    for node, up in zip(rig.nodes, ups):
        remote.wait_above(node, "conn_up", up + times, timeout=180)
    for proc in procs:
        proc.kill(signal.SIGUSR1)
    for proc in procs:
        proc.wait(60)


def test_ends_cross_messages(rig):
    """Ends cross new messages, both ways, in all ways they can."""
    before = [counters(n) for n in rig.nodes]
    idle(rig, 8)
    pulse(rig, PULSES)
    # a reset is counted when the endpoint is gone
    for node in rig.nodes:
        wait_gone(node)
    for node, old in zip(rig.nodes, before):
        _check_orderly(rig, node, delta(node, old))


def test_ends_cross_messages_one_side(rig):
    """The same when only one side ends connections."""
    idle(rig, 0)
    idle(rig, 8, [rig.a])
    before = [counters(n) for n in rig.nodes]
    pulse(rig, PULSES // 2)
    # a reset is counted when the endpoint is gone; node B keeps the connection
    wait_gone(rig.a)
    rig.b.wait_for("[ $(helper_counter ib_ep_created) = "
                   "$(helper_counter ib_ep_freed) ]")
    for node, old in zip(rig.nodes, before):
        _check_orderly(rig, node, delta(node, old))


def test_unload(rig):
    """The module goes in order: the other side loses nothing, and knows."""
    patient(rig, rig.a)
    traffic.run(rig, 300)
    before = counters(rig.b)
    rig.a.run("modprobe -r xrds_ib xrds", timeout=60)
    rig.b.wait_for(f"[ $(helper_counter conn_closed) -gt "
                   f"{before['conn_closed']} ]")
    grown = delta(rig.b, before)
    rig.check(grown["conn_reset"] == 0, f"reset {grown['conn_reset']} times")
    was_patient(rig, rig.a)
    rig.a.run("modprobe xrds_ib")
    traffic.run(rig, 300, seed=2)


test_unload.modules = "xrds_ib xrds_patient"


def test_unload_peer_silent(rig):
    """A peer that does not answer holds nothing up for long."""
    traffic.run(rig, 300)
    rig.b.cut()
    out = rig.a.run("helper_turns modprobe -r xrds_ib xrds", timeout=100).out
    rig.b.join()
    rig.diag(out.strip())
    took = int(re.search(r"^took (\d+) ms", out, re.M)[1])
    rig.check(took < 20000 * rig.kernel.slow, f"it took {took} ms")
    rig.a.run("modprobe xrds_ib")
    traffic.run(rig, 300, seed=2)
