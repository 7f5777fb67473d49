# SPDX-License-Identifier: GPL-2.0-only
"""XRDS and in-tree RDS on the same wire.

The node that dials has XRDS or in-tree RDS, and so has the node that accepts:
each pair goes through the same cases, all of which count or number messages.
COUNT in the environment is the number of messages each way. In-tree RDS is not
run on the debug kernel, which has complaints about it. It is not run on 7.2
either: when its module is unloaded after a connection, the connection manager
calls functions of the module that is gone. The node dies of that, without any
XRDS as well.
"""

import os
import re
import signal
import time

import close
import remote
import traffic

KERNELS = "6.1 6.12"
TIMEOUT = 120
COUNT = int(os.environ.get("COUNT", "200"))
ROUNDS = 12                 # of RDMA
BREAKS = 5
QUEUED = 3                  # messages for a peer that is away
PORT = 4950
RCVBUF = 65536
FREED = 500                 # messages, more than SO_SNDBUF is for
MARKS = 1200                # more than are dropped at a time
LINGER = 40                 # seconds
BUFFERS = "-b 2097152"      # in-tree RDS takes no message that is larger
XRDS, IN_TREE = "xrds_ib", "rds_rdma"
PAIRS = {
    "xrds_to_in_tree": (XRDS, IN_TREE),
    "in_tree_to_xrds": (IN_TREE, XRDS),
    "in_tree_to_in_tree": (IN_TREE, IN_TREE),
    "xrds_to_xrds": (XRDS, XRDS),
}


def _ours(node) -> bool:
    return "xrds" in node.modules()


def _stream(rig, count: int = COUNT, **options):
    for node in rig.nodes:
        node.write("/proc/sys/net/core/wmem_max", "4194304")
    traffic.acknowledge_all(rig)
    return traffic.Stream(rig, count, extra=BUFFERS, **options)


def _dial(rig, ipv6: bool = False, before=None) -> None:
    """The first node has a reason to connect, the second has none. It does so now, or
    has since these counters were read.
    """
    traffic.acknowledge_all(rig)
    here, there = ((n.ip6 if ipv6 else n.ip) for n in (rig.a, rig.b))
    before = before or [close.counters(n) if _ours(n) else {} for n in rig.nodes]
    rig.a.run(f"helper_legacy ping {here} {there} 3", timeout=50)
    for node, old, name in zip(rig.nodes, before,
                               ("conn_dial", "conn_accept")):
        if old:
            grown = close.delta(node, old)[name]
            rig.check(grown, f"{node}: {name} did not grow")


def _pair(first, second, modes, number: int, timeout: float = 60) -> None:
    """A program on either node, each in a mode of its own."""
    waiting = first.start(f"helper_legacy {modes[0]} {first.ip} {second.ip} "
                          f"{number}")
    waiting.expect("ready")
    acting = second.start(f"helper_legacy {modes[1]} {second.ip} {first.ip} "
                          f"{number}")
    waiting.wait(timeout)
    acting.wait(timeout)


# --------------------------------------------------------------------- cases


def _data(rig) -> None:
    """All sizes up to 1 MiB both ways, and the kernels answer pings."""
    _dial(rig)
    _stream(rig, seed=41).end(60)
    rig.b.run(f"helper_legacy ping {rig.b.ip} {rig.a.ip} 3", timeout=50)


def _data_ipv6(rig) -> None:
    """The same between IPv6 addresses."""
    _dial(rig, ipv6=True)
    _stream(rig, seed=42, ipv6=True).end(60)


def _patient(rig) -> None:
    """Ops succeed: in-tree RDS drops those of a connection that it gives up, which it
    does after two attempts unless it is told otherwise.
    """
    for node in rig.nodes:
        if not _ours(node):
            node.run("modprobe -r rds_rdma && "
                     "modprobe rds_rdma rds_ib_retry_count=7", timeout=60)
    traffic.patient(rig)


def _rdma(rig, mode: str) -> None:
    _patient(rig)
    _dial(rig)
    for owner, other in ((rig.a, rig.b), (rig.b, rig.a)):
        _pair(owner, other, ("owner", mode), ROUNDS)
        if _ours(owner):
            # a work item ends the keys that were used
            owner.wait_for("test $(helper_counter obj_mrs) -eq 0")


def _rdma_write(rig) -> None:
    """RDMA writes each way, to memory whose key a message has brought."""
    _rdma(rig, "writer")


def _rdma_read(rig) -> None:
    """RDMA reads each way; a key that is for use once is void after it."""
    _rdma(rig, "reader")


def _congestion(rig) -> None:
    """A receiver that does not read stops the sender, and lets it go on."""
    _dial(rig)
    _stop_and_go(rig)


def _stop_and_go(rig) -> None:
    for sink, source in ((rig.a, rig.b), (rig.b, rig.a)):
        receiver = sink.start(f"helper_legacy sink {sink.ip} {source.ip} 100")
        receiver.expect("ready")
        sender = source.start(f"helper_legacy source {source.ip} {sink.ip} 100")
        sender.expect("congested")
        receiver.kill(signal.SIGUSR1)
        sender.expect("released")
        receiver.wait(60)
        sender.wait(60)


def _link_flap(rig) -> None:
    """Frames are lost for a while under traffic, more than once."""
    _dial(rig)
    stream = _stream(rig, traffic.ENDLESS, seed=43)
    stream.flowing()
    for node in (rig.b, rig.a):
        node.cut()
        time.sleep(1)
        node.join()
    stream.stop(90)


def _reload(rig) -> None:
    """The module of either node goes and comes, the other node remembers."""
    _dial(rig)
    for n, node in enumerate((rig.b, rig.a)):
        _stream(rig, seed=44 + n, port=5000 + 100 * n).end(60)
        module = XRDS if _ours(node) else IN_TREE
        node.run(f"unload xrds_ib xrds rds_rdma rds; modprobe {module}",
                 timeout=60)
    _stream(rig, seed=46, port=5300).end(60)


CASES = {case.__name__.strip("_"): case for case in (
    _data, _data_ipv6, _rdma_write, _rdma_read, _congestion, _link_flap,
    _reload)}


def _cell(modules, case):
    def run(rig) -> None:
        case(rig)
    run.modules = modules
    run.__doc__ = case.__doc__
    return run


for _name, _modules in PAIRS.items():
    for _what, _case in CASES.items():
        globals()[f"test_{_name}_{_what}"] = _cell(_modules, _case)


# ------------------------------------------------------- XRDS's own business


def test_silent(rig):
    """A silent op leaves no message behind, and the next message arrives."""
    _patient(rig)
    _dial(rig)
    for owner, other in ((rig.a, rig.b), (rig.b, rig.a)):
        _pair(owner, other, ("owner", "silent"), ROUNDS)


test_silent.modules = (XRDS, IN_TREE)


def test_break(rig):
    """Connections that XRDS loses under traffic: nothing is lost or doubled."""
    _dial(rig)
    stream = _stream(rig, traffic.ENDLESS, seed=47)
    stream.flowing()
    for _ in range(BREAKS):
        ups = close.counters(rig.a)["conn_up"]
        rig.a.run("echo 1 > /sys/kernel/debug/xrds/break")
        remote.wait_above(rig.a, "conn_up", ups)
    results = stream.stop(90)
    rig.check(all(int(r["rcvd"]) for r in results), f"{results}")


test_break.modules = (XRDS, IN_TREE)


def test_lost_clear(rig):
    """A port that was congested is free when the connection comes back. In-tree RDS,
    which remembers its state, is told.
    """
    sink = rig.b.start(f"helper_late_reader {rig.b.ip} {PORT} {RCVBUF}")
    sink.expect("ready")
    rig.a.start(f"helper_hold_socket {rig.a.ip} {rig.b.ip} 0 {PORT}")
    remote.wait_above(rig.a, "cong_send_blocked", 0)
    rig.b.cut()
    rig.b.write("/proc/sys/net/xrds/connect_timeout_ms", "1000")
    dials = remote.counter(rig.b, "conn_dial")
    rig.b.run(f"xrds-info reset {rig.a.ip}")
    # one attempt has failed
    remote.wait_above(rig.b, "conn_dial", dials + 1)
    sink.kill(signal.SIGUSR1)
    rig.b.wait_for("[ $(helper_counter used_recv) = 0 ]")
    taken = remote.counter(rig.b, "recv_queued")
    rig.b.join()
    # more than what it had queued before
    remote.wait_above(rig.b, "recv_queued", taken + FREED)


test_lost_clear.modules = (IN_TREE, XRDS)


def test_last(rig):
    """The last message is acknowledged, although ends of streams, of which in-tree
    RDS knows nothing, are behind it.
    """
    # only a message that asks is acknowledged
    rig.a.write("/proc/sys/net/xrds/heartbeat_ms", "0")
    lingerer = rig.a.start(f"helper_linger {rig.a.ip} {rig.b.ip} 3000 {LINGER} "
                           f"{MARKS}")
    lingerer.expect("connected")
    rig.b.cut()
    rig.a.run(f"xrds-info reset {rig.b.ip}")
    remote.wait_lost(rig.a, rig.b)
    dials = remote.counter(rig.a, "conn_dial")
    lingerer.kill(signal.SIGCONT)
    # all of it is queued
    remote.wait_above(rig.a, "conn_dial", dials + 1)
    rig.b.join()
    out = lingerer.wait(2 * LINGER).out
    took = int(re.search(r"closed after (\d+) ms", out)[1])
    rig.diag(f"closed after {took} ms")
    rig.check(took < LINGER * 1000, "it was not acknowledged")


test_last.modules = (XRDS, IN_TREE)


def test_zerocopy(rig):
    """MSG_ZEROCOPY toward in-tree RDS, which has fragments of 4 KiB."""
    _dial(rig)
    _stream(rig, seed=49, first="--zerocopy").end(60)
    rig.check(remote.counter(rig.a, "send_zcopy"), "all payload was copied")


test_zerocopy.modules = (XRDS, IN_TREE)


def test_tos(rig):
    """A second type of service has a connection of its own, either way."""
    for client, server in ((rig.a, rig.b), (rig.b, rig.a)):
        for node, module in zip(rig.nodes, (XRDS, IN_TREE)):
            node.run(f"unload xrds_ib xrds rds_rdma rds; modprobe {module}",
                     timeout=60)
        traffic.acknowledge_all(rig)
        answering = server.start(f"helper_tos_echo serve {server.ip}")
        answering.expect("serving")
        asking = client.start(f"helper_tos_echo {client.ip} {server.ip}")
        asking.expect("talked")
        rig.check("#" not in asking.out, asking.out)
        now = close.counters(rig.a)["obj_conns"]
        rig.check(now == 2, f"{now} connections")
        for proc in (asking, answering):
            proc.kill()
            proc.wait(check=False)


test_tos.modules = (XRDS, IN_TREE)


def test_own_queues(rig):
    """The same without a shared receive queue, dialled from either side."""
    _dial(rig)
    _stream(rig, seed=48).end(60)
    rig.a.run("modprobe -r xrds_ib && modprobe xrds_ib srq=0", timeout=30)
    _stream(rig, seed=49, port=5100).end(60)
    # in-tree RDS was told of congestion: XRDS may connect again for that
    before = [close.counters(rig.a), {}]
    rig.b.run("modprobe -r rds_rdma && modprobe rds_rdma", timeout=30)
    _dial(rig, before=before)
    _stream(rig, seed=50, port=5200).end(60)


test_own_queues.modules = (XRDS, IN_TREE)


class _Two:
    """Two nodes of a larger rig."""

    def __init__(self, rig, first, second) -> None:
        self.kernel = rig.kernel
        self.nodes = (first, second)
        self.a, self.b = self.nodes


def test_cluster(rig):
    """Two nodes of XRDS and one of in-tree RDS, each with each at once."""
    a, b, c = rig.nodes
    streams = [_stream(_Two(rig, *pair), seed=51 + n, port=5000 + 100 * n)
               for n, pair in enumerate(((a, b), (a, c), (b, c)))]
    for stream in streams:
        stream.end(90)


test_cluster.nodes = 3
test_cluster.modules = (XRDS, XRDS, IN_TREE)


def test_self(rig):
    """XRDS as it talks to in-tree RDS, on both nodes, on every kernel."""
    for node in rig.nodes:
        node.run("modprobe -r xrds_ib && modprobe xrds_ib classic=1",
                 timeout=30)
    traffic.patient(rig)
    _data(rig)
    _stop_and_go(rig)
    for mode in ("reader", "writer", "silent"):
        _pair(rig.a, rig.b, ("owner", mode), ROUNDS)


test_self.modules = XRDS
test_self.kernels = ""


def test_upgrade(rig):
    """A peer that used a legacy version comes back with the native one: a node
    that remembers it, because a socket is there, can dial it all the same.
    """
    def load(options: str) -> None:
        rig.b.run(f"modprobe -r xrds_ib && modprobe xrds_ib {options}",
                  timeout=30)

    rig.a.start(f"helper_hold_socket {rig.a.ip}").expect("holding")
    load("classic=1")
    _stream(rig, seed=53).end(60)
    load("")
    rig.a.run(f"xrds-ping -c 3 -i 0.2 -w 40 {rig.b.ip}", timeout=50)
    for node in rig.nodes:
        wrong = close.counters(node)["wire_hello"]
        rig.check(not wrong, f"{node}: {wrong} clear-to-sends were refused")


test_upgrade.modules = XRDS
test_upgrade.kernels = ""


def test_upgrade_idle(rig):
    """When the legacy peer goes nothing waits: later messages are for the native
    one that has come since.
    """
    rig.a.start(f"helper_hold_socket {rig.a.ip}").expect("holding")
    rig.b.run("modprobe -r xrds_ib && modprobe xrds_ib classic=1", timeout=30)
    _stream(rig, seed=54).end(60)
    rig.a.wait_for("[ $(helper_counter obj_msgs) = 0 ]")
    rig.b.run("modprobe -r xrds_ib", timeout=30)
    remote.wait_lost(rig.a, rig.b)
    rig.b.run("modprobe xrds_ib", timeout=30)
    reader = rig.b.start(f"helper_messages recv --bind {rig.b.ip} --port {PORT} "
                         "--count 1 --timeout 60")
    reader.expect("listening")
    rig.a.run(f"helper_messages send --bind {rig.a.ip} --to {rig.b.ip} "
              f"--port {PORT} --sizes 100", timeout=60)
    reader.wait(70)


test_upgrade_idle.modules = XRDS
test_upgrade_idle.kernels = ""


def test_upgrade_queued(rig):
    """Messages that waited for the legacy peer are not for the native one, nor are
    those behind them.
    """
    def load(options: str) -> None:
        rig.b.run(f"modprobe xrds_ib {options}", timeout=30)

    rig.b.run("modprobe -r xrds_ib", timeout=30)
    load("classic=1")
    reader = rig.b.start(f"helper_late_reader {rig.b.ip} {PORT} {1 << 20}")
    reader.expect("ready")
    sender = rig.a.start(f"helper_delivered {rig.a.ip} {rig.b.ip} {PORT} "
                         f"{QUEUED}")
    sender.expect("sent", timeout=60)
    reader.kill()
    reader.wait(check=False)
    rig.b.cut()
    rig.a.start(f"helper_hold_socket {rig.a.ip} {rig.b.ip} 1 {PORT}").expect(
        "holding 1")
    rig.a.run(f"xrds-info reset {rig.b.ip}")
    remote.wait_lost(rig.a, rig.b)
    dropped = remote.counter(rig.a, "send_drop_stale_peer")
    sender.kill(signal.SIGUSR1)
    sender.expect("ended", timeout=60)
    rig.b.run("modprobe -r xrds_ib", timeout=60)
    load("")
    rig.b.join()
    sender.expect("undelivered", timeout=60)
    # they are counted a moment after the program is told
    remote.wait_above(rig.a, "send_drop_stale_peer", dropped + QUEUED)
    dropped = remote.counter(rig.a, "send_drop_stale_peer") - dropped
    rig.check(dropped == QUEUED + 1, f"{dropped} messages were dropped")


test_upgrade_queued.modules = XRDS
test_upgrade_queued.kernels = ""
