# SPDX-License-Identifier: GPL-2.0-only
"""Messages of all sizes cross the wire, over IPv4 and IPv6."""

import re

import remote
import traffic

TIMEOUT = 180
FRAGMENT = 32768
HEADER = 48
MESSAGES = 60
EDGES = sorted({base + delta
                for base in (4096, FRAGMENT, 2 * FRAGMENT, 4 * FRAGMENT)
                for delta in (-HEADER - 1, -HEADER, -HEADER + 1, -1, 0, 1)} |
               {0, 1, HEADER - 1, HEADER, HEADER + 1, (1 << 20) - 1, 1 << 20})
DIGEST = re.compile(r"(\d+) bytes, digest (\w+), ")


def _sizes(rig, here, there) -> None:
    sizes = ",".join(map(str, EDGES))
    before = [n.hw_counters() for n in rig.nodes]
    receiver = rig.b.start(f"helper_messages recv --bind {there} "
                           f"--count {len(EDGES)}")
    receiver.expect("listening")
    sent = rig.a.run(f"helper_messages send --bind {here} --to {there} "
                     f"--sizes {sizes}", timeout=90)
    got = receiver.wait(timeout=60)
    sent_digests, got_digests = (DIGEST.findall(r.out) for r in (sent, got))
    rig.check(len(sent_digests) == len(EDGES), f"sent:\n{sent.out}")
    rig.check(sent_digests == got_digests, f"sent:\n{sent.out}\n"
              f"received:\n{got.out}")
    for node, old in zip(rig.nodes, before):
        traffic.check_carried(rig, node,
                              traffic.grown(old, node.hw_counters()), 100)


def test_sizes(rig):
    """At the edges of fragments and packets, 0 and 1 MiB included."""
    _sizes(rig, rig.a.ip, rig.b.ip)


def test_sizes_ipv6(rig):
    """The same over IPv6."""
    _sizes(rig, rig.a.ip6, rig.b.ip6)


def _cost(rig, size: int) -> dict[str, int]:
    """Packets, fragments and short headers of so many messages, and the end."""
    def now() -> dict[str, int]:
        counters = {name: remote.counter(rig.a, name)
                    for name in ("ib_tx_short", "ib_tx_frags")}
        return counters | {"packets": rig.a.hw_counters()["sent_pkts"]}

    receiver = rig.b.start(f"helper_messages recv --bind {rig.b.ip} "
                           f"--count {MESSAGES}")
    receiver.expect("listening")
    before = now()
    rig.a.run(f"helper_messages send --bind {rig.a.ip} --to {rig.b.ip} "
              f"--sizes {','.join(MESSAGES * [str(size)])}", timeout=60)
    receiver.wait(timeout=60)
    cost = traffic.grown(before, now())
    rig.diag(f"{MESSAGES} messages of {size} bytes: {cost}")
    return cost


def test_packets(rig):
    """A message has no more packets and fragments than its payload fills."""
    # nothing is sent twice for want of processor time
    traffic.patient(rig)
    # those of one byte go together once there is a connection
    _cost(rig, 1)
    for size, packets in ((4096, 1), (8192, 2)):
        cost = _cost(rig, size)
        # with a full header each takes another packet
        rig.check(cost["packets"] < (packets + 1) * MESSAGES, f"{cost}")
        # the first one has a full header, and so has the end of the stream
        rig.check(cost["ib_tx_short"] == MESSAGES - 1, f"{cost}")
    cost = _cost(rig, FRAGMENT)
    rig.check(cost["ib_tx_frags"] <= MESSAGES + 2, f"{cost}")


def test_flows(rig):
    """More flows than have a short header at a time."""
    traffic.run(rig, 4000, seed=26, sockets=20)


def test_stream(rig):
    """Both ways at once, all sizes mixed."""
    traffic.run(rig, 5000, seed=21)


def test_stream_ipv6(rig):
    """The same over IPv6."""
    traffic.run(rig, 5000, seed=22, ipv6=True)


def test_families_at_once(rig):
    """IPv4 and IPv6 between the same nodes do not disturb each other."""
    streams = [traffic.Stream(rig, 2000, seed=23),
               traffic.Stream(rig, 2000, seed=24, ipv6=True, port=7000)]
    for stream in streams:
        stream.end(100)


def test_small_buffers(rig):
    """Limits and congestion on the wire: nothing is lost or stuck."""
    traffic.run(rig, 2000, seed=25, extra="-b 16384 -B 16384")


def test_same_node(rig):
    """A node talks to its own address."""
    for address in (rig.a.ip, rig.a.ip6):
        rig.a.run(f"helper_stream -l {address} -c 2000", timeout=60)


def test_calls(rig):
    """The calls behave on the address of an RDMA device as on loopback."""
    for address in (rig.a.ip, rig.a.ip6):
        rig.a.run(f"test_send -a {address}", timeout=90)
        rig.a.run(f"test_socket -a {address}", timeout=90)


def _send_small(rig, count: int) -> None:
    receiver = rig.b.start(f"helper_messages recv --bind {rig.b.ip} "
                           f"--count {count}")
    receiver.expect("listening")
    rig.a.run(f"helper_messages send --bind {rig.a.ip} --to {rig.b.ip} "
              f"--sizes {','.join(['64'] * count)}", timeout=60)
    receiver.wait(timeout=60)


def test_signals(rig):
    """Small messages have no completion each, and leave all the same."""
    before = remote.counter(rig.a, "ib_tx_signaled")
    _send_small(rig, 64)
    signals = remote.counter(rig.a, "ib_tx_signaled") - before
    rig.check(signals < 32, f"{signals} signals for 64 messages")
    # a signal retires all that is before it: the next one has none, and
    # nothing else is to come behind it
    rig.a.write("/proc/sys/net/xrds/heartbeat_ms", "0")
    rig.a.wait_for("test $(helper_counter obj_msgs) -eq 0")
    before = remote.counter(rig.a, "ib_tx_flushed")
    _send_small(rig, 1)
    remote.wait_above(rig.a, "ib_tx_flushed", before)
    rig.a.wait_for("test $(helper_counter obj_msgs) -eq 0")
