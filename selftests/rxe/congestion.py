# SPDX-License-Identifier: GPL-2.0-only
"""A receiver that does not read stops its senders, across the wire."""

import os
import signal
import time

import remote
import traffic

BREAK = "/sys/kernel/debug/xrds/break"
TIMEOUT = 120
UPDATE_BYTES = 128
OTHERS_SECONDS = 10
ANSWERS = 40
EDGE_STEPS = int(os.environ.get("EDGE_STEPS", "3000"))


def _blocked(rig, here, there, port, rcvbuf=65536, size=8192, how=""):
    sink = rig.b.start(f"helper_late_reader {there} {port} {rcvbuf}")
    sink.expect("ready")
    sender = rig.a.start(f"helper_congested {here} {there} {port} "
                         f"{size} {how}")
    sender.expect("blocked")
    return sink, sender


def _released(sink, sender):
    sink.kill(signal.SIGUSR1)
    sink.expect("reading")
    sender.expect("released")
    sender.wait()


def test_blocked(rig):
    """Refused, asleep, and released once the receiver reads."""
    traffic.patient(rig)
    _released(*_blocked(rig, rig.a.ip, rig.b.ip, 4100))


def test_blocked_ipv6(rig):
    """The same over IPv6."""
    traffic.patient(rig)
    _released(*_blocked(rig, rig.a.ip6, rig.b.ip6, 4100))


def test_tiny(rig):
    """Messages that take fifty times their payload in memory stop in time, too:
    their sender's connection does not end.
    """
    traffic.patient(rig)
    limit = "/proc/sys/net/xrds/sock_max_recv_kb"
    usual = rig.b.read(limit)
    rig.b.write(limit, "4096")
    before = remote.counter(rig.b, "recv_drop_overflow")
    pair = _blocked(rig, rig.a.ip, rig.b.ip, 4106, 200 << 10, 8)
    dropped = remote.counter(rig.b, "recv_drop_overflow") - before
    rig.check(not dropped, f"{dropped} messages were refused")
    _released(*pair)
    rig.b.write(limit, usual)


def test_unread_replies(rig):
    """A client that asks for more than it may hold, and reads none of it, loses
    replies: the connection, which others use, too, does not end.
    """
    traffic.patient(rig)
    limit = "/proc/sys/net/xrds/sock_max_recv_kb"
    usual = rig.a.read(limit)
    rig.a.write(limit, "4096")
    before = {name: remote.counter(rig.a, name)
              for name in ("recv_drop_reply", "recv_drop_overflow")}
    server = rig.b.start(f"helper_unread_replies {rig.b.ip} 4107 {ANSWERS}")
    server.expect("ready")
    client = rig.a.start(f"helper_unread_replies {rig.a.ip} 4107 {ANSWERS} "
                         f"{rig.b.ip}")
    client.expect("asked")
    server.wait()
    grown = {name: remote.counter(rig.a, name) - was
             for name, was in before.items()}
    rig.check(not grown["recv_drop_overflow"],
              f"{grown['recv_drop_overflow']} messages ended a connection")
    traffic.run(rig, 1000, seed=36)
    client.kill(signal.SIGUSR1)
    got = int(client.wait().out.rpartition("read ")[2])
    rig.check(0 < got == ANSWERS - grown["recv_drop_reply"],
              f"{got} of {ANSWERS} replies were read, {grown} dropped")
    rig.a.write(limit, usual)


def test_bystanders(rig):
    """Meanwhile others' traffic between the same nodes goes on."""
    traffic.patient(rig)
    pair = _blocked(rig, rig.a.ip, rig.b.ip, 4101)
    traffic.run(rig, 3000, seed=31)
    _released(*pair)


def test_reconnect(rig):
    """The state survives the connection: neither lost nor stuck. A sender that
    waits may try once more when the connection is lost.
    """
    traffic.patient(rig)
    sink, sender = _blocked(rig, rig.a.ip, rig.b.ip, 4102)
    ups = remote.counter(rig.a, "conn_up")
    # the next connection would bring the news again, perhaps before the try
    rig.b.cut()
    rig.a.write(BREAK, "1")
    sender.expect("released")
    sender.wait()
    rig.b.join()
    traffic.run(rig, 1000, seed=32)
    rig.check(remote.counter(rig.a, "conn_up") > ups, "nothing was lost")
    sender = rig.a.start(f"helper_congested {rig.a.ip} {rig.b.ip} 4102 8192")
    sender.expect("blocked")
    _released(sink, sender)


def test_receiver_dies(rig):
    """The news that its port is free again reaches the sender."""
    traffic.patient(rig)
    sink, sender = _blocked(rig, rig.a.ip, rig.b.ip, 4103)
    sink.kill()
    sender.expect("released")
    sender.wait()


def test_few_updates(rig):
    """One message says that a port is congested, and one that it is not."""
    traffic.patient(rig)
    before = remote.counter(rig.a, "cong_update_received")
    # messages that wait here could make it congested again
    _released(*_blocked(rig, rig.a.ip, rig.b.ip, 4104, how="slowly"))
    told = remote.counter(rig.a, "cong_update_received") - before
    rig.check(told == 2, f"{told} updates for one port")


def test_promptly(rig):
    """Woken within 10 ms and the wire, and hardly a system call till then."""
    traffic.patient(rig)
    server = rig.b.start(f"helper_clear_latency serve {rig.b.ip} 4120")
    server.expect("ready")
    out = rig.a.run(f"helper_clear_latency send {rig.a.ip} {rig.b.ip} 4120").out
    rig.diag("; ".join(out.splitlines()))


test_promptly.measures = True


def test_mixed_sizes(rig):
    """A sender that wants more space than there is asks for it."""
    traffic.patient(rig)
    sink = rig.b.start(f"helper_late_reader {rig.b.ip} 4122 {1 << 20}")
    sink.expect("ready")
    sink.kill(signal.SIGUSR1)
    sink.expect("reading")
    out = rig.a.run(f"helper_clear_latency mixed {rig.a.ip} {rig.b.ip} "
                    "4122").out
    rig.diag("; ".join(out.splitlines()))


def test_edges(rig):
    """No edge of epoll is lost between two nodes in any sequence of calls."""
    for ipv6 in (False, True):
        here, there = (n.ip6 if ipv6 else n.ip for n in rig.nodes)
        pair = [rig.a.start(f"helper_edges {here} {there} {EDGE_STEPS}"),
                rig.b.start(f"helper_edges {there} {here} {EDGE_STEPS}")]
        for proc in pair:
            proc.expect("bound")
        for proc in pair:
            proc.kill(signal.SIGUSR1)
        for proc in pair:
            rig.diag("; ".join(proc.wait(100).out.splitlines()))


test_edges.timeout = 240


def _sent(node) -> tuple[int, int]:
    """Bytes that its network card has sent, once nothing moves any more, and
    how many of the packets were not the RDMA device's.
    """
    last = ""
    statistics = "/sys/class/net/eth0/statistics"
    while True:
        now = str(node.run(f"cat {statistics}/tx_bytes {statistics}/tx_packets"))
        if now == last:
            nr_bytes, packets = map(int, now.split())
            return nr_bytes, packets - node.hw_counters()["sent_pkts"]
        last = now
        time.sleep(0.5)


def _update_bytes(rig) -> int:
    """Bytes that are sent when one port becomes free; 0 if others have sent,
    too, or the sender has granted credits, which takes an acknowledgment.
    """
    sink, sender = _blocked(rig, rig.a.ip, rig.b.ip, 4105, how="slowly")
    # nothing is to be sent when it is released
    sender.kill(signal.SIGSTOP)
    before, others = _sent(rig.b)
    granted = remote.counter(rig.a, "ib_tx_credit_updates")
    told = remote.counter(rig.a, "cong_update_received")
    sink.kill(signal.SIGUSR1)
    remote.wait_above(rig.a, "cong_update_received", told)
    after, others_after = _sent(rig.b)
    alone = (others_after == others and
             granted == remote.counter(rig.a, "ib_tx_credit_updates"))
    sender.kill(signal.SIGCONT)
    sender.expect("released")
    sender.wait()
    sink.kill()
    sink.wait(check=False)
    return after - before if alone else 0


def test_update_bytes(rig):
    """The news that one port is free: all of its bytes on the wire."""
    traffic.patient(rig)
    # Neighbours and routers are asked for now and then, and a slow node may have
    # something else to send still. The news itself never has less.
    for _ in range(5):
        sent = _update_bytes(rig)
        if 0 < sent <= UPDATE_BYTES:
            break
    rig.check(0 < sent <= UPDATE_BYTES, f"{sent} bytes for one port")
    rig.diag(f"{sent} bytes, with all headers")


def test_waiters(rig):
    """Only those are woken who wait for the port that becomes free."""
    traffic.patient(rig)
    sinks = [rig.b.start(f"helper_late_reader {rig.b.ip} {port} 65536")
             for port in (4106, 4107)]
    for sink in sinks:
        sink.expect("ready")
    waiters = rig.a.start(f"helper_wake_waiters {rig.a.ip} {rig.b.ip} 4106")
    waiters.expect("waiting", timeout=90)
    begin = time.monotonic()
    while time.monotonic() - begin < OTHERS_SECONDS:
        traffic.run(rig, 1000, seed=33)
    sinks[0].kill(signal.SIGUSR1)
    waiters.wait()


test_waiters.timeout = 240


def test_lost_updates(rig):
    """The connection breaks under the news, again and again."""
    for node in rig.nodes:
        # a connection breaks nine seconds after the cut
        node.write("/proc/sys/net/xrds/ib/ack_timeout", "18")
    for number in range(4):
        pair = _blocked(rig, rig.a.ip, rig.b.ip, 4110 + number)
        lost = remote.counter(rig.b, "conn_reset")
        rig.b.cut()
        sink, sender = pair
        sink.kill(signal.SIGUSR1)
        sink.expect("reading")
        # its news is not acknowledged, so the device gives up
        remote.wait_above(rig.b, "conn_reset", lost)
        rig.b.join()
        sender.expect("released", timeout=60)
        sender.wait()


test_lost_updates.timeout = 240
test_lost_updates.waits = True
