# SPDX-License-Identifier: GPL-2.0-only
"""Many connections of one node send at once: each SEND finds a buffer.

They are all on one shared receive queue. How many credits a peer may have
outstanding follows what it sends, and how many buffers are posted follows that.
"""

import close
import remote
import traffic

TIMEOUT = 240
CONNS = 30                  # for each of two pairs of addresses
EACH = 60                   # messages over each of them
SMALL_QUEUE = 80            # receive buffers: not one window for each
FIRST_CREDITS = 3
HEARTBEATS = 20
RECONNECTS = 3
FIRST_POSTED = 160          # four windows
LEAST_QUEUE = 64            # receive buffers
MOST_QUEUE = 16384          # more than the device takes


def incast(rig, conns: int, each: int, timeout: float = 150) -> None:
    """To node A, over twice so many connections, which stay."""
    each = traffic.fewer(rig, each)
    total = 2 * conns * (each + 1)
    drain = rig.a.start(f"helper_incast drain {total} {rig.a.ip} {rig.a.ip6}")
    drain.expect("draining")
    send = rig.b.start(f"helper_incast send {each} {conns} "
                       f"{rig.b.ip} {rig.a.ip} {rig.b.ip6} {rig.a.ip6}")
    drain.expect("drained", timeout)
    send.expect("sent", timeout)


def check_credits(rig, conns: int, least: int) -> None:
    """All messages are acknowledged: the peer has its credits again."""
    credits = [c["credits"] for c in remote.shown(rig.b, "connections")]
    device, = remote.shown(rig.a, "devices")
    posted = device["recv-posted"]
    told = f"{sum(credits)} credits of {len(credits)}, {posted} buffers"
    rig.diag(told)
    rig.check(len(credits) == conns and least < posted >= sum(credits), told)


def test_all_at_once(rig):
    """Sixty connections: no receiver-not-ready, more buffers than before, and
    no credit without one.
    """
    traffic.patient(rig)
    before = [n.hw_counters() for n in rig.nodes]
    incast(rig, CONNS, EACH)
    for node, old in zip(rig.nodes, before):
        delta = traffic.grown(old, node.hw_counters())
        traffic.check_no_rnr(rig, node, delta)
        traffic.check_carried(rig, node, delta,
                              traffic.fewer(rig, 2 * CONNS * EACH))
    check_credits(rig, 2 * CONNS, FIRST_POSTED)


def test_reconnects(rig):
    """A busy connection breaks: the next one has the same queue."""
    traffic.patient(rig)
    traffic.run(rig, 500)
    before = [close.counters(n) for n in rig.nodes]
    for number in range(RECONNECTS):
        rig.a.write("/sys/kernel/debug/xrds/break", "1")
        traffic.run(rig, 300, seed=2 + number)
    for node, old in zip(rig.nodes, before):
        grown = close.delta(node, old)
        rig.check(grown["conn_up"] >= RECONNECTS, f"{node}: nothing broke")
        rig.check(not grown["ib_rx_srq_replaced"],
                  f"{node}: replaced {grown['ib_rx_srq_replaced']} times")


def test_heartbeats(rig):
    """Heartbeats are no traffic: a peer that sends no more has few credits."""
    traffic.patient(rig)
    for node in rig.nodes:
        node.write("/proc/sys/net/xrds/heartbeat_ms", "100")
    close.idle(rig, 0)
    rig.a.run(f"xrds-ping -c 1 -w 30 {rig.b.ip}", timeout=40)
    for node in rig.nodes:
        remote.wait_above(node, "send_heartbeat", HEARTBEATS)
    for node in rig.nodes:
        credits = [c["credits"] for c in remote.shown(node, "connections")]
        rig.check(max(credits) <= FIRST_CREDITS, f"{node}: credits: {credits}")


def test_crowded(rig):
    """The queue is used up by busy peers: each of them has some credits, and so
    has another one when they are idle.
    """
    for node in rig.nodes:
        node.run("modprobe -r xrds_ib && modprobe xrds_ib", timeout=30)
    traffic.patient(rig)
    rig.a.write("/proc/sys/net/rds/ib/max_recv_wr", str(SMALL_QUEUE))
    incast(rig, CONNS, EACH)
    rig.check(remote.counter(rig.a, "ib_rx_srq_crowded"),
              "there were enough buffers for all")
    remote.until(rig, lambda: min(c["credits"] for c in
                                  remote.shown(rig.b, "connections")) >
                 FIRST_CREDITS, "credits for each of the connections")
    traffic.run(rig, 400, seed=91, port=5200)


def test_resized(rig):
    """A new limit of the shared queue holds for the next connection, which gets
    a queue of that size; the ones after it have the same queue.
    """
    limit = "/proc/sys/net/rds/ib/max_recv_wr"
    default = rig.a.read(limit).strip()
    traffic.patient(rig)
    rig.a.run("modprobe -r xrds_ib && modprobe xrds_ib", timeout=30)

    def connect() -> int:
        rig.a.write("/sys/kernel/debug/xrds/break", "1")
        rig.b.run(f"xrds-ping -c 1 -w 30 {rig.a.ip}", timeout=40)
        device, = remote.shown(rig.a, "devices")
        rig.diag(f"{rig.a.read(limit).strip()}: {device['recv-posted']} posted")
        return device["recv-posted"]

    for number, (value, small) in enumerate(
            ((str(LEAST_QUEUE), True), (default, False),
             (str(MOST_QUEUE), False), (str(LEAST_QUEUE), True))):
        rig.a.write(limit, value)
        for _ in range(RECONNECTS):
            rig.check((connect() <= LEAST_QUEUE) == small,
                      f"{value}: not a queue of that size")
        replaced = remote.counter(rig.a, "ib_rx_srq_replaced")
        rig.check(replaced == number, f"{value}: {replaced} queues replaced")
