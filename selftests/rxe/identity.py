# SPDX-License-Identifier: GPL-2.0-only
"""A peer is the node that it was before, or another one; no clock decides it.

FORGETS, SLEEPS, HELLOS_LOST and REBIRTHS in the environment choose other
numbers than those of every day.
"""

import os
import random
import time

import close
import ends
import remote
import traffic

FORGETS = int(os.environ.get("FORGETS", "6"))
SLEEPS = int(os.environ.get("SLEEPS", "1"))
HELLOS_LOST = int(os.environ.get("HELLOS_LOST", "10"))
REBIRTHS = int(os.environ.get("REBIRTHS", "4"))
TIMEOUT = 240 + 30 * (FORGETS + SLEEPS + HELLOS_LOST + REBIRTHS)
WAITS = True
SLEPT_SECONDS = 18
JUMP_SECONDS = 50 * 86400       # jiffies of 32 bits in milliseconds wrap
STREAMS = 3
MESSAGES = 10
OLD = 20                        # messages for the node that dies
UNHEARD = 2                     # a connection begins with as many credits
PORT = 4400
OLD_PORT = 6000
MOVING = "10.0.0.77"
BREAK = "/sys/kernel/debug/xrds/break"
MISTAKEN = ("recv_eos_lost", "send_drop_stale_peer", "wire_hello")


def _check_same(rig, before: list[dict[str, int]], names=MISTAKEN) -> None:
    """Neither node has taken the other for another one."""
    for node, old in zip(rig.nodes, before):
        grown = close.delta(node, old)
        for name in names:
            rig.check(grown[name] == 0, f"{node}: {name} grew by {grown[name]}")


def _sent(node) -> int:
    """The last number that the node gave out, on its only connection."""
    rows = remote.shown(node, "connections")
    return max((row["tx-seq"] for row in rows), default=0)


def _streams(rig) -> list:
    """One each way, which stay open; the receivers do not read."""
    procs = []
    for here, there in ((rig.a, rig.b), (rig.b, rig.a)):
        queued = remote.counter(there, "recv_queued")
        sink = there.start(f"helper_late_reader {there.ip} {PORT} {1 << 20}")
        sink.expect("ready")
        holder = here.start(f"helper_hold_socket {here.ip} {there.ip} 1 {PORT}")
        holder.expect("holding 1")
        remote.wait_above(there, "recv_queued", queued)
        procs += [sink, holder]
    return procs


def test_forgets(rig):
    """Idle connections are forgotten by one side, or both: nothing is lost,
    no stream ends, and numbers do not go back.
    """
    traffic.patient(rig)
    close.idle(rig, 0)
    streams = _streams(rig)
    before = [close.counters(node) for node in rig.nodes]
    last = [0, 0]
    for number in range(FORGETS):
        forgetful = ([rig.a], [rig.b], rig.nodes)[number % 3]
        close.idle(rig, 8, forgetful)
        close.pulse(rig, 4)
        for node in forgetful:
            close.wait_gone(node)
        close.idle(rig, 0)
        rig.a.run(f"xrds-ping -c 1 -w 60 {rig.b.ip}", timeout=70)
        sent = [_sent(node) for node in rig.nodes]
        for node, old, new in zip(rig.nodes, last, sent):
            rig.check(new > old, f"{node}: number {new} after {old}")
        last = sent
    for proc in streams:
        rig.check(proc.code is None, "a stream ended")
    _check_same(rig, before, (*MISTAKEN, "recv_drop_old_seq"))


def _one(here, there):
    """A program that has sent one message, which has come, and stays."""
    queued = remote.counter(there, "recv_queued")
    holder = here.start(f"helper_hold_socket {here.ip} {there.ip} 1 {PORT}")
    holder.expect("holding 1")
    remote.wait_above(there, "recv_queued", queued)
    return holder


def test_first(rig):
    """A connection is lost with the first message to a node that has begun anew:
    the message comes.
    """
    close.idle(rig, 0)
    procs = [n.start(f"helper_late_reader {n.ip} {PORT} {1 << 20}")
             for n in rig.nodes]
    for proc in procs:
        proc.expect("ready")
    procs += [_one(rig.a, rig.b), _one(rig.b, rig.a)]
    rig.b.wait_for("test $(helper_counter send_acked) -gt 0")
    close.idle(rig, 100, [rig.a])
    close.wait_gone(rig.a)
    close.idle(rig, 0, [rig.a])
    procs.append(_one(rig.a, rig.b))

    queued = remote.counter(rig.a, "recv_queued")
    stale, resets = (remote.counter(rig.b, name)
                     for name in ("send_drop_stale_peer", "conn_reset"))
    rig.a.cut()
    holder = rig.b.start(f"helper_hold_socket {rig.b.ip} {rig.a.ip} 1 {PORT}")
    holder.expect("holding 1")
    remote.wait_above(rig.b, "conn_reset", resets)
    ups = remote.counter(rig.b, "conn_up")
    rig.a.join()
    remote.wait_above(rig.b, "conn_up", ups)
    rig.check(remote.counter(rig.b, "send_drop_stale_peer") == stale, "dropped")
    remote.wait_above(rig.a, "recv_queued", queued)
    for proc in (*procs, holder):
        proc.kill()
        proc.wait(check=False)


def test_slept(rig):
    """A node that slept is the same when it wakes up."""
    before = [close.counters(node) for node in rig.nodes]
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=1)
    stream.flowing()
    for number in range(SLEEPS):
        sleeper = rig.nodes[number % 2]
        other = rig.nodes[1 - number % 2]
        resets = remote.counter(other, "conn_reset")
        sleeper.pause()
        begin = time.monotonic()
        remote.wait_above(other, "conn_reset", resets)
        time.sleep(max(0.0, SLEPT_SECONDS - (time.monotonic() - begin)))
        ups = remote.counter(other, "conn_up")
        sleeper.resume()
        remote.wait_above(other, "conn_up", ups)
    stream.stop(150)
    _check_same(rig, before)


def test_hello_lost(rig):
    """Hellos are lost on their way: that is no fault of the peer."""
    before = [close.counters(node) for node in rig.nodes]
    moments = random.Random(1)
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=2)
    stream.flowing()
    interrupted = 0
    for _ in range(HELLOS_LOST):
        ups = remote.counter(rig.a, "conn_up")
        rig.a.write(BREAK, "1")
        time.sleep(moments.uniform(0, 0.05))
        rig.b.cut()
        interrupted += remote.counter(rig.a, "conn_up") == ups
        time.sleep(moments.uniform(0, 0.5))
        rig.b.join()
        remote.wait_above(rig.a, "conn_up", ups)
    stream.stop(150)
    rig.diag(f"{interrupted} of {HELLOS_LOST} attempts were interrupted")
    rig.check(interrupted > 0, "no attempt was interrupted")
    _check_same(rig, before)


def _jump(node, seconds: int) -> None:
    node.run(f"date -s @$(($(date +%s) + {seconds}))")


def _rebirth(rig, number: int) -> None:
    """Node A dies without a word and comes back, as one clock jumps.

    It is connected, and messages for it are queued; or the connection was idle
    and forgotten by both before.
    """
    forgotten = number % 2
    clock = rig.nodes[number // 2 % 2]
    queued, lost, stale = (remote.counter(rig.b, name) for name in
                           ("recv_queued", "recv_eos_lost",
                            "send_drop_stale_peer"))
    receiver = ends.Receiver(rig, PORT + number % 100, STREAMS, MESSAGES,
                             ends.LOST)
    sender = rig.a.start(receiver.send("hold"))
    sender.expect("sent")
    remote.wait_above(rig.b, "recv_queued", queued + STREAMS * MESSAGES - 1)
    if forgotten:
        close.idle(rig, 200)
        for node in rig.nodes:
            close.wait_gone(node)
        close.idle(rig, 0)
    rig.a.cut()
    old = 0 if forgotten else OLD
    if old:
        holder = rig.b.start(f"helper_hold_socket {rig.b.ip} {rig.a.ip} {old} "
                             f"{OLD_PORT}")
        holder.expect(f"holding {old}")
    sender.kill()
    sender.wait(check=False)
    rig.a.run("modprobe -r xrds_ib xrds", timeout=30)
    _jump(clock, JUMP_SECONDS)
    rig.a.run("modprobe xrds_ib")
    sink = rig.a.start(f"helper_late_reader {rig.a.ip} {OLD_PORT} 1000000")
    sink.expect("ready")
    rig.a.join()
    rig.b.run(f"xrds-ping -c 1 -w 60 {rig.a.ip}", timeout=70)
    receiver.ended()
    _jump(clock, -JUMP_SECONDS)
    for name, grown, due in (
            ("recv_eos_lost", remote.counter(rig.b, "recv_eos_lost") - lost,
             STREAMS),
            ("send_drop_stale_peer",
             remote.counter(rig.b, "send_drop_stale_peer") - stale, old)):
        rig.check(grown == due, f"{name} grew by {grown}, not by {due}")
    for name in ("recv_queued", "recv_drop_no_sock"):
        rig.check(remote.counter(rig.a, name) == 0, f"{name} is not 0")
    for proc in (sink, holder) if old else (sink,):
        proc.kill()
        proc.wait(check=False)


def test_clock(rig):
    """A node that died is another one, whatever the clocks show: each stream
    from it is lost, and nothing that was for it is delivered.
    """
    close.idle(rig, 0)
    for number in range(REBIRTHS):
        _rebirth(rig, number)


def _gets(node, address: str) -> None:
    node.run(f"ip addr add {address}/24 dev eth0")
    remote.wait_bound(node, address)


def _leads(rig, address: str, node) -> None:
    """Node A finds an address at another node."""
    rig.a.run(f"ip neigh replace {address} dev eth0 nud permanent "
              f"lladdr {rig.switch.port(node.number)[1]}")


def test_failover(rig):
    """An address goes to another node and comes back: messages that have arrived,
    and were not acknowledged, do not arrive again.
    """
    other = rig.nodes[2]
    for node in rig.nodes:
        for name in ("min", "max"):
            node.write(f"/proc/sys/net/rds/reconnect_{name}_delay_ms", "60000")
    queued, stale = remote.counter(rig.a, "recv_queued"), "send_drop_stale_peer"
    sink = rig.a.start(f"helper_late_reader {rig.a.ip} {PORT} {1 << 20}")
    sink.expect("ready")
    _leads(rig, MOVING, rig.b)
    _gets(rig.b, MOVING)
    holders = [rig.b.start(f"helper_hold_socket {MOVING} {rig.a.ip} 1 {PORT}")]
    holders[0].expect("holding 1")
    rig.b.wait_for("test $(helper_counter send_acked) -gt 0")
    # arrives there, and nothing comes back
    rig.b.loss(100)
    holders.append(rig.b.start(f"helper_hold_socket {MOVING} {rig.a.ip} {UNHEARD} "
                               f"{PORT}"))
    holders[1].expect(f"holding {UNHEARD}")
    remote.wait_above(rig.a, "recv_queued", queued + UNHEARD)
    remote.wait_above(rig.b, "conn_reset", 0)
    rig.b.cut()
    rig.b.loss(0)

    _leads(rig, MOVING, other)
    _gets(other, MOVING)
    other.run(f"xrds-ping -c 1 -w 60 -I {MOVING} {rig.a.ip}", timeout=70)
    other.run(f"ip addr del {MOVING}/24 dev eth0")
    remote.until(rig, lambda: not any(
        row["faddr"] == MOVING and row["state"] == "up"
        for row in remote.shown(rig.a, "connections")), "it is lost")
    rig.check(remote.counter(rig.b, stale) == 0, "too early")
    _leads(rig, MOVING, rig.b)
    rig.b.join()
    rig.a.run(f"xrds-ping -c 1 -w 90 {MOVING}", timeout=100)
    remote.wait_above(rig.b, stale, UNHEARD - 1)
    # the ping's answer is one
    came = remote.counter(rig.a, "recv_queued") - queued - 1
    rig.check(came == UNHEARD + 1,
              f"{came} messages have come, {UNHEARD + 1} were sent")
    for proc in (*holders, sink):
        proc.kill()
        proc.wait(check=False)
    # ends of streams that wait there for an acknowledgment stay when it goes
    rig.b.run("settled 20", timeout=60)
    rig.b.run(f"ip addr del {MOVING}/24 dev eth0")
    rig.a.run(f"ip neigh del {MOVING} dev eth0")


test_failover.nodes = 3
