# SPDX-License-Identifier: GPL-2.0-only
"""RDMA ops between two nodes, while nothing is wrong with the network."""

import close
import remote
import traffic

TIMEOUT = 180
HEARTBEAT_MS = 200
RATE = "8mbit"              # two seconds and more for an op's most bytes
TRIES = 3
PORT = 9100
OPS = 100


def test_smoke(rig):
    """A write, a read, and both atomics, over IPv4 and IPv6."""
    traffic.patient(rig)
    for ipv6 in (False, True):
        remote.run(rig, "helper_rdma smoke", ipv6=ipv6)


def _mode(rig, mode: str, *arguments, **options) -> str:
    """One mode, carried by RDMA, and no receiver was ever not ready."""
    traffic.patient(rig)
    before = [n.hw_counters() for n in rig.nodes]
    out = remote.run(rig, f"helper_rdma {mode}", *arguments, **options)
    for node, old in zip(rig.nodes, before):
        delta = traffic.grown(old, node.hw_counters())
        traffic.check_no_rnr(rig, node, delta)
        traffic.check_carried(rig, node, delta, 10)
    return out


def test_vectors(rig):
    """Up to 1024 local buffers at odd places."""
    _mode(rig, "vectors")
    _mode(rig, "vectors", ipv6=True)


def test_sizes(rig):
    """A byte, a mebibyte, and all that the device takes, unaligned."""
    _mode(rig, "sizes")


def test_long(rig):
    """An op that has every slot for long is no sign of a dead peer."""
    knobs = {"rds/ib/max_send_wr": 16, "xrds/ib/ack_timeout": 20,
             "xrds/heartbeat_ms": HEARTBEAT_MS}
    for node in rig.nodes:
        for name, value in knobs.items():
            node.write(f"/proc/sys/net/{name}", str(value))
    rig.a.run(f"tc qdisc add dev eth0 root netem rate {RATE} limit 9999")
    # a peer that stands still for a second looks dead; no op may look so each time
    for _ in range(TRIES):
        before = close.counters(rig.a)
        pair = remote.Pair(rig)
        done = pair.start("helper_rdma pieces").wait(remote.LIMIT, check=False)
        pair.end()
        grown = close.delta(rig.a, before)
        rig.diag(f"{grown['send_heartbeat']} heartbeats, "
                 f"{grown['ib_tx_ring_full']} times without a slot")
        if not done.code and not grown["conn_timeout"]:
            break
    rig.check(not done.code, done.out)
    rig.check(grown["ib_tx_ring_full"] > 0, "there was always a slot")
    rig.check(not grown["conn_timeout"], "the connection was given up")


def test_work_requests(rig):
    """64 KiB in single pages are one work request, and one completion. With
    DMA addresses they are up to three, as on an adapter.
    """
    traffic.patient(rig)
    most = OPS * 3 if "DMA=" in rig.a.parameters else OPS
    server = rig.b.start(f"xrds-perf -s -p {PORT} {rig.b.ip}")
    server.expect("ready")
    for mode in ("write", "read"):
        before = close.counters(rig.a)
        rig.a.run(f"xrds-perf -m {mode} -l 64K -n {OPS} -w 0 -p {PORT} "
                  f"{rig.b.ip}")
        grown = close.delta(rig.a, before)
        # those of a queue in which nothing moves come by time
        posted = grown["ib_tx_rdma"]
        signalled = grown["ib_tx_signaled"] - grown["ib_tx_flushed"]
        rig.diag(f"{mode}: {posted} work requests, {signalled} signalled")
        rig.check(OPS <= posted <= most,
                  f"{posted} work requests for {OPS} ops")
        # some of the order, of its end, and of other messages
        rig.check(signalled < OPS * 3 // 2, f"{signalled} completions")
    server.kill()
    server.wait(check=False)


def test_atomics(rig):
    """Sums and swaps there, old values here."""
    _mode(rig, "atomics")


def test_masked(rig):
    """With masks they work, or are refused where the device has none."""
    rig.diag(_mode(rig, "masked"))


def test_immediate(rig):
    """The message of an op comes after it, in order, if it is to come."""
    _mode(rig, "immediate")


def test_regions(rig):
    """Keys by option and by message, once and for good, and stale ones."""
    _mode(rig, "mapped")
    _mode(rig, "mapped", ipv6=True)
    _mode(rig, "stale")


def test_barriers(rig):
    """Blocking, armed for several nodes, in vain, and only asked."""
    second = f"10.0.0.10{rig.b.number}"
    rig.b.run(f"ip addr add {second}/24 dev eth0")
    remote.wait_bound(rig.b, second)
    other = rig.b.start(f"helper_serve_memory {second}")
    other.expect("ready")
    _mode(rig, "barriers", second, held=True)
    # unacknowledged messages are kept for long when the address goes; the end
    # of the stream is one
    rig.a.run("settled 20", timeout=60)
    other.kill()
    other.wait(check=False)
    rig.b.run("settled 20", timeout=60)
    rig.b.run(f"ip addr del {second}/24 dev eth0")
    _mode(rig, "barriers", ipv6=True, held=True)


def test_pinning(rig):
    """Memory that is unmapped, forked or left while in use, and its limit."""
    _mode(rig, "pinning", held=True)


def test_calls(rig):
    """On an RDMA device's address the calls behave as on loopback."""
    traffic.patient(rig)
    for program in ("test_region", "test_pin", "test_atomic", "test_rdma",
                    "test_rdma_refused", "test_barrier"):
        rig.a.run(f"{program} -a {rig.a.ip}", timeout=150)


test_calls.timeout = 600


def test_guesses(rig):
    """An ordinary user may try few keys in a second, over loopback at the address of a
    device.
    """
    server = rig.a.start(f"helper_serve_memory {rig.a.ip} 0")
    server.expect("ready")
    rig.a.run(f"helper_rdma guesses {rig.a.ip} {rig.a.ip}", timeout=60)
