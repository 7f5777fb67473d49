# SPDX-License-Identifier: GPL-2.0-only
"""Small messages pass large ones, and nothing else about them changes.

That every stream keeps its order, with losses meanwhile, is tested where
streams of all sizes go between many sockets: data, reconnect, soak. Here they
are so many that something is always in mid-way.
"""

import signal

import close
import traffic

TIMEOUT = 200
PORT = 4300
BREAKS = 20                 # of each node
FLOODS = 1
ACK_TIMEOUT = 12            # 17 ms
BURSTS = "netem slot 10ms 60ms limit 10000"


def _pass(rig, here: str, there: str) -> None:
    """The other node stands still until all is queued, however long that takes."""
    traffic.patient(rig)
    before = close.counters(rig.a)
    receiver = rig.b.start(f"helper_small_passes recv {there} {PORT}")
    receiver.expect("ready")
    sender = rig.a.start(f"helper_small_passes send {here} {there} {PORT}")
    sender.expect("connected")
    rig.b.pause()
    sender.kill(signal.SIGCONT)
    sender.expect("queued")
    rig.b.resume()
    sender.wait(timeout=100)
    grown = close.delta(rig.a, before)
    rig.diag(f"up {grown['conn_up']} times, "
             f"{grown['ib_tx_passing']} messages passed others")
    rig.diag(receiver.wait(timeout=100).out.splitlines()[-1])
    rig.check(grown["ib_tx_passing"] > 0, "nothing has passed")


def test_passing(rig):
    """One that is queued last arrives before the last large one."""
    _pass(rig, rig.a.ip, rig.b.ip)


def test_passing_ipv6(rig):
    """The same over IPv6."""
    _pass(rig, rig.a.ip6, rig.b.ip6)


def test_stream(rig):
    """Both ways, small and large mixed, each stream in its order."""
    before = [close.counters(n) for n in rig.nodes]
    traffic.run(rig, 3000, timeout=150, seed=71, sockets=6)
    for node, old in zip(rig.nodes, before):
        grown = close.delta(node, old)["ib_tx_passing"]
        rig.diag(f"{node}: {grown} messages passed others")
        rig.check(grown > 0, f"{node}: nothing has passed")


def test_cut(rig):
    """The connection breaks again and again, with messages in mid-way."""
    # soft-RoCE of 6.1 delivers twice what it sends again too early
    traffic.patient(rig)
    for node in rig.nodes:
        node.write("/proc/sys/net/rds/reconnect_max_delay_ms", "1")
        node.write("/proc/sys/net/rds/reconnect_min_delay_ms", "1")
    before = [close.counters(n) for n in rig.nodes]
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=72, sockets=6)
    stream.flowing()
    for node in rig.nodes:
        node.run(f"helper_break_conns {BREAKS}", timeout=100 + BREAKS)
    stream.stop(60)
    for node, old in zip(rig.nodes, before):
        grown = close.delta(node, old)
        rig.diag(f"{node}: up {grown['conn_up']} times, "
                 f"{grown['ib_tx_passing']} messages passed others")
        rig.check(grown["conn_up"] >= 2 * BREAKS, f"{node}: too few")
        rig.check(grown["ib_tx_passing"] > 0, f"{node}: nothing has passed")
        wrong = {name: count for name, count in grown.items()
                 if name.startswith("wire_") and count}
        rig.check(not wrong, f"{node}: what its peer has sent was wrong: {wrong}")


def test_flood(rig):
    """Small messages without end leave something for the large ones."""
    before = close.counters(rig.a)
    servers, floods = [], []
    for number in range(FLOODS + 1):
        servers.append(rig.b.start(f"xrds-perf -s -p {PORT + 100 * number} "
                                   f"{rig.b.ip}"))
        servers[-1].expect("ready", 20)
    for number in range(FLOODS):
        floods.append(rig.a.start(
            f"xrds-perf -m stream -l 64 -b 16K -n {traffic.ENDLESS} "
            f"-p {PORT + 100 * number} {rig.b.ip}"))
    while close.delta(rig.a, before)["send_queued"] < 5000:
        rig.check(all(flood.code is None for flood in floods), "no flood")
    large = traffic.fewer(rig, 100)
    rig.a.run(f"xrds-perf -m stream -l 256K -b 512K -w 2 -n {large} "
              f"-p {PORT + 100 * FLOODS} {rig.b.ip}", timeout=100)
    rig.check(all(flood.code is None for flood in floods), "a flood has ended")
    for proc in floods + servers:
        proc.kill()
        proc.wait(20, check=False)
    grown = close.delta(rig.a, before)
    rig.diag(f"{grown['ib_tx_passing']} of {grown['send_queued']} passed "
             f"{large} large ones")
    rig.check(grown["ib_tx_passing"] > 0, "nothing has passed")


def test_late_acks(rig):
    """Acknowledgments come later than soft-RoCE waits for them: it sends again,
    and makes mistakes at that on Linux 6.1.
    """
    before = [close.counters(n) | n.hw_counters() for n in rig.nodes]
    for node in rig.nodes:
        node.write("/proc/sys/net/xrds/ib/ack_timeout", str(ACK_TIMEOUT))
        node.run(f"modprobe sch_netem; tc qdisc add dev eth0 root {BURSTS}")
    traffic.run(rig, 2000, timeout=150, seed=73, sockets=6)
    for node, old in zip(rig.nodes, before):
        grown = traffic.grown(old, close.counters(node) | node.hw_counters())
        retries = grown["completer_retry_err"]
        rig.diag(f"{node}: {retries} retries, {grown['conn_reset']} resets, "
                 f"{grown.get('wire_order')} SENDs out of order")
        rig.check(retries > 0, f"{node}: nothing was sent again")
