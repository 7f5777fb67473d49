# SPDX-License-Identifier: GPL-2.0-only
"""Devices and addresses go and come back under traffic.

Sockets stay bound and messages wait; ops end at once. DEVICE_ROUNDS chooses
another number of times than that of every day.
"""

import os
import random
import re
import signal
import time

import remote
import traffic

TIMEOUT = 300
ROUNDS = int(os.environ.get("DEVICE_ROUNDS", "6"))
LIMIT = 120                 # seconds, for the end of a program
RESUME = 60                 # seconds, for traffic to flow again
NOBODY = "10.0.0.99"
PASSING = "10.0.0.77"
STAYING = "10.0.0.78"
SECOND = "10.9.0.1"         # address of another device
FRESH_MSGS = 30             # messages that prove it does
STREAM_MSGS = 8000


class Traffic:
    """Messages both ways, reads by one node, writes by the other."""

    def __init__(self, rig) -> None:
        self.rig = rig
        self.seed = 0
        self.times: list[float] = []
        self.pair = remote.Pair(rig)
        self.churn = self.pair.start("helper_rdma_device_gone churn")
        self._stream()
        self.churn.expect("flowing")
        self.stream.flowing()

    def _stream(self) -> None:
        self.seed += 1
        # another one follows where it does not suffice
        self.stream = traffic.Stream(self.rig, STREAM_MSGS, seed=self.seed,
                                     stall=100, port=5000 + 16 * self.seed)

    def resumed(self) -> None:
        """Wait until messages arrive on both sides and ops end well."""
        if not self.stream.running():
            self.stream.end(LIMIT)
            self._stream()
        begin = time.monotonic()
        now = [(node, name, remote.counter(node, name)) for node, name in
               ((self.rig.a, "recv_queued"), (self.rig.b, "recv_delivered"),
                (self.rig.a, "rdma_done"))]
        for node, name, value in now:
            remote.wait_above(node, name, value, RESUME)
        self.times.append(time.monotonic() - begin)
        for node, name, value in now:
            # a stream may be through first, and checks its messages itself
            through = "false" if name == "rdma_done" else \
                "! pidof helper_stream"
            node.wait_for(f"test $(helper_counter {name}) -gt "
                          f"{value + FRESH_MSGS} || {through}", RESUME)
        self.rig.check(not self.stream.failed(), "the stream has failed")
        self.rig.check(self.churn.code is None, "the ops have failed")

    def end(self) -> dict[str, int]:
        """All of it was right, and nothing is left."""
        self.churn.kill(signal.SIGUSR1)
        out = self.churn.wait(LIMIT).out
        words = " ".join(re.findall(r"^(?:churn|own): (.*)$", out, re.M))
        result = {key: int(value) for key, value in
                  (word.split("=") for word in words.split())}
        self.stream.end(LIMIT * 2)
        self.pair.end()
        for node in self.rig.nodes:
            for name in ("obj_mrs", "obj_rops", "obj_msgs"):
                node.wait_for(f"test $(helper_counter {name}) -eq 0", 30)
        if self.times:
            self.rig.diag(f"seconds until it flows again: "
                          f"{min(self.times):.1f} to {max(self.times):.1f}, "
                          f"mean {sum(self.times) / len(self.times):.1f}")
        self.rig.diag(f"ops: {result}; {self.seed} streams")
        return result


def _rounds(rig, rounds: int, take, give, prepare=None) -> None:
    """Take something from a node, the other, both; and give it back."""
    dice = random.Random(rounds)
    load = Traffic(rig)
    for number in range(rounds):
        nodes = (rig.nodes[:1], rig.nodes[1:], rig.nodes)[number % 3]
        for node in nodes:
            if prepare:
                prepare(node)
        for node in nodes:
            take(node)
        # now and then long enough to be missed
        time.sleep(dice.choice((0, 0, 0.3, 2)))
        for node in nodes:
            give(node)
        load.resumed()
    result = load.end()
    rig.check(result["success"] >= rounds * FRESH_MSGS, f"{result}")
    rig.check(result["remote"] > 0 or take is _del_address,
              f"no region was missed: {result}")


def _delete(node) -> None:
    node.run("rdma link delete rxe0", timeout=30)


def _add(node) -> None:
    node.run("rdma link add rxe0 type rxe netdev eth0")


def test_device(rig):
    """A node's device, the other's, both: deleted and added, many times."""
    _rounds(rig, ROUNDS, _delete, _add)


test_device.timeout = 240 + 30 * ROUNDS


def test_driver(rig):
    """The driver is unloaded while sockets are open."""
    def unload(node):
        node.run("modprobe -r rdma_rxe", timeout=30)

    def load(node):
        node.run("modprobe rdma_rxe")
        _add(node)

    _rounds(rig, 3, unload, load)


DRIVER = "/sys/bus/virtio/drivers/virtio_net"


def _drain(rig, node) -> None:
    """The network card sends its packets, and none of soft-RoCE any more.

    When virtio_net is stopped it keeps unsent packets until the network device
    is gone; that goes when soft-RoCE is gone from it, and soft-RoCE's queue pair
    waits (50 s, then it warns) until its packets are freed. Our unbinding in the
    middle of a packet would meet this cycle of the kernel's. The card has sent
    its packets when a ping, put behind them, is answered.
    """
    other = rig.b if node is rig.a else rig.a
    node.run("modprobe -a sch_prio sch_netem cls_u32; "
             "tc qdisc add dev eth0 root handle 1: prio && "
             "tc qdisc add dev eth0 parent 1:3 netem loss 100%" +
             "".join(f" && tc filter add dev eth0 parent 1: protocol {family} "
                     f"u32 match {match} dport 4791 0xffff flowid 1:3"
                     for family, match in (("ip", "ip"), ("ipv6", "ip6"))))
    node.wait_for(f"ping -c 1 -W 2 {other.ip}")


def _unbind(node) -> None:
    node.run("basename $(readlink -f /sys/class/net/eth0/device) > eth0.device "
             f"&& cat eth0.device > {DRIVER}/unbind", timeout=30)


def _bind(node, total: int) -> None:
    """The driver of the network card again, and the network as at boot."""
    others = [n for n in range(1, total + 1) if n != node.number]
    node.run(f"cat eth0.device > {DRIVER}/bind")
    node.wait_for("ip link set eth0 mtu 9000 up")
    node.run(f"ip addr add {node.ip}/24 dev eth0 && "
             f"ip addr add {node.ip6}/64 dev eth0 nodad" +
             "".join(f" && ip neigh replace {net}{n} dev eth0 nud permanent "
                     f"lladdr 52:54:00:78:72:0{n}"
                     for n in others for net in ("10.0.0.", "fd00::")))
    _add(node)


def test_netdev(rig):
    """The network card goes, with everything that is on it."""
    total = len(rig.nodes)
    if rig.a.run("modprobe -a sch_prio sch_netem cls_u32; tc qdisc add dev "
                 "eth0 root prio && tc qdisc del dev eth0 root",
                 check=False).code:
        rig.skip("a kernel without sch_prio cannot empty the card first")
    try:
        _rounds(rig, 3, _unbind, lambda node: _bind(node, total),
                lambda node: _drain(rig, node))
    finally:
        for node in rig.nodes:
            if node.run("test -d /sys/class/net/eth0", check=False).code:
                _bind(node, total)


def _del_address(node) -> None:
    node.run(f"ip addr del {node.ip}/24 dev eth0")


def _add_address(node) -> None:
    node.run(f"ip addr add {node.ip}/24 dev eth0")


def test_address(rig):
    """The addresses go, and come back."""
    try:
        _rounds(rig, 3, _del_address, _add_address)
    finally:
        for node in rig.nodes:
            node.run(f"ip addr replace {node.ip}/24 dev eth0")


def _conns(rig, local: str) -> list[tuple[str, int]]:
    """State of node A's connections from an address, and how often they were lost."""
    return [(c["state"], c.get("lost", 0))
            for c in remote.shown(rig.a, "connections") if c["laddr"] == local]


def test_address_leaves(rig):
    """An address leaves the node, as another node takes it over, and its connection
    ends though nothing is sent. One that comes back at once keeps its connection.
    """
    traffic.patient(rig)
    both = (PASSING, STAYING)
    for node in rig.nodes:
        node.write("/proc/sys/net/xrds/heartbeat_ms", "0")
    rig.a.run("".join(f"ip addr add {a}/24 dev eth0; " for a in both))
    try:
        for address in both:
            remote.wait_bound(rig.a, address)
            rig.b.run(f"xrds-ping -c 1 -w 30 {address}", timeout=40)
            rig.check(_conns(rig, address) == [("up", 0)], f"{address} is not up")
        # a packet meanwhile would break the queue pair on soft-RoCE
        for node in rig.nodes:
            node.wait_for("[ $(helper_counter obj_msgs) = 0 ]")
        rig.a.run(f"ip addr del {STAYING}/24 dev eth0 && "
                  f"ip addr add {STAYING}/24 dev eth0 && "
                  f"ip addr del {PASSING}/24 dev eth0")
        remote.until(rig, lambda: _conns(rig, PASSING) != [("up", 0)],
                     "the connection has ended", 20)
        there = _conns(rig, STAYING)
        rig.check(there == [("up", 0)], f"{there}")
    finally:
        rig.a.run("".join(f"ip addr del {a}/24 dev eth0; " for a in both))


def test_dials(rig):
    """A connection to a node that does not answer is being made when first its
    address goes, and then the device is removed.
    """
    made = remote.counter(rig.a, "ib_ep_created")
    rig.a.run(f"ip addr add {PASSING}/24 dev eth0")
    remote.wait_bound(rig.a, PASSING)
    holder = rig.a.start(f"helper_hold_socket {PASSING} {NOBODY} 10")
    holder.expect("state connecting")
    remote.wait_above(rig.a, "ib_ep_created", made)
    # nothing tells the connection: it waits for an answer
    rig.a.run(f"ip addr del {PASSING}/24 dev eth0")
    rig.check("state error" not in holder.out, "it is over")
    _delete(rig.a)
    _add(rig.a)
    holder.kill()
    traffic.run(rig, 200)


# those of the holder
test_dials.leaves = "messages"


def test_marks(rig):
    """The mark reaches the last identifier while the device is away."""
    for node in rig.nodes:
        pair = remote.Pair(rig)
        done = remote.counter(rig.a, "rdma_done")
        proc = pair.start("helper_rdma_faults marks", 1000000)
        remote.wait_above(rig.a, "rdma_done", done + 300)
        _delete(node)
        proc.kill(signal.SIGUSR1)
        out = proc.wait(LIMIT).out
        rig.diag(f"without {node}'s device: {out.splitlines()[-1]}")
        rig.check("dropped=0" not in out, f"no op was lost: {out}")
        _add(node)
        pair.end()


def _renewed(rig, mode: str) -> str:
    proc = rig.a.start(f"helper_rdma_device_gone {mode} {rig.a.ip} {rig.b.ip}")
    proc.expect("ready")
    _delete(rig.a)
    _add(rig.a)
    proc.kill(signal.SIGUSR1)
    return proc.wait(LIMIT).out


def test_keys(rig):
    """Keys of regions that lost their device are not given out again."""
    _renewed(rig, "keys")


def test_stale(rig):
    """The key of a freed region is good for no region of another device.

    Both devices count from the beginning, so that numbers come again.
    """
    _delete(rig.a)
    _add(rig.a)
    rig.diag(_renewed(rig, "stale").splitlines()[-1])


def _lost(rig, reason: int, lose) -> None:
    proc = rig.a.start("helper_rdma_device_gone lost "
                       f"{rig.a.ip} {rig.b.ip} {reason}")
    proc.expect("ready")
    lose(rig.a)
    proc.wait(LIMIT)


def test_lost(rig):
    """The owner of a region is told, once, that its device has gone."""
    _lost(rig, 1, _delete)
    _add(rig.a)


def test_moved(rig):
    """The same when its address moves to another device."""
    rig.a.run("ip link add dum0 type dummy && ip link set dum0 up && "
              "rdma link add rxe1 type rxe netdev dum0")

    def move(node):
        # away and back: it is the same device
        _del_address(node)
        _add_address(node)
        # both have it: nothing has moved
        node.run(f"ip addr add {node.ip}/32 dev dum0")
        _del_address(node)

    try:
        _lost(rig, 2, move)
    finally:
        rig.a.run("rdma link delete rxe1; ip link delete dum0; "
                  f"ip addr replace {rig.a.ip}/24 dev eth0")


def test_moved_connections(rig):
    """Connections of an address that moves to another device end at once."""
    traffic.patient(rig)
    for address in (rig.a.ip, rig.a.ip6):
        rig.b.run(f"xrds-ping -c 1 -w 30 {address}", timeout=40)
    lost = remote.counter(rig.a, "conn_reset")
    rig.a.run("ip link add dum0 type dummy && ip link set dum0 up && "
              "rdma link add rxe1 type rxe netdev dum0")
    try:
        for there, here, nodad in ((f"{rig.a.ip}/32", f"{rig.a.ip}/24", ""),
                                   (f"{rig.a.ip6}/128", f"{rig.a.ip6}/64",
                                    "nodad")):
            rig.a.run(f"ip addr add {there} dev dum0 {nodad} && "
                      f"ip addr del {here} dev eth0")
            remote.wait_above(rig.a, "conn_reset", lost, 30)
            lost += 1
    finally:
        rig.a.run("rdma link delete rxe1; ip link delete dum0; "
                  f"ip addr replace {rig.a.ip}/24 dev eth0; "
                  f"ip addr replace {rig.a.ip6}/64 dev eth0 nodad")
    # the old device has them again, and its port works
    for address in (rig.a.ip, rig.a.ip6):
        remote.wait_bound(rig.a, address)
    for ipv6 in (False, True):
        traffic.run(rig, 200, seed=1 + ipv6, ipv6=ipv6, port=5000 + 100 * ipv6)


def test_default_address(rig):
    """Registering memory does not keep a device from its next default address, which
    it has when the hardware address of its interface changes.
    """
    rig.a.run("ip link add dum0 type dummy && ip link set dum0 up && "
              f"ip addr add {SECOND}/32 dev dum0 && "
              "rdma link add rxe1 type rxe netdev dum0")
    try:
        proc = rig.a.start(f"helper_serve_memory {SECOND} 4096")
        proc.expect("ready")
        rig.a.run("ip link set dum0 address 02:00:00:00:12:34")
        rig.a.wait_for("grep -qs fe80:.*:1234 "
                       "/sys/class/infiniband/rxe1/ports/1/gids/0")
        proc.kill()
        proc.wait(check=False)
    finally:
        rig.a.run("rdma link delete rxe1; ip link delete dum0")


def test_bind(rig):
    """A socket cannot be bound to an address without its device."""
    holder = rig.a.start(f"helper_hold_socket {rig.a.ip}")
    holder.expect("holding")
    _delete(rig.a)
    done = rig.a.run(f"helper_hold_socket {rig.a.ip}", check=False)
    rig.check(done.code and "EADDRNOTAVAIL" in done.out,
              f"bound: exit {done.code}: {done.out}")
    _add(rig.a)
    rig.check(holder.code is None, "the socket bound before has ended")
    holder = rig.a.start(f"helper_hold_socket {rig.a.ip}")
    holder.expect("holding")


def test_binding(rig):
    """Sockets are bound while the device goes and comes: they are, or not."""
    procs = [rig.a.start(f"helper_rdma_device_gone binds {rig.a.ip} {rig.b.ip}")
             for _ in range(4)]
    for proc in procs:
        proc.expect("binding")
    for _ in range(ROUNDS * 2):
        _delete(rig.a)
        _add(rig.a)
    for proc in procs:
        proc.kill(signal.SIGUSR1)
    for proc in procs:
        line = proc.wait(LIMIT).out.splitlines()[-1]
        rig.diag(line)
        rig.check("=0" not in line, "always the same")
    rig.a.wait_for("test $(helper_counter obj_socks) -eq 1")
    traffic.run(rig, 200)


def test_namespace(rig):
    """Another namespace has loopback, and nothing of the first one's device."""
    def inside(command: str):
        return rig.a.run("unshare -n bash -c 'ip link set lo up && "
                         f"ip addr add {rig.a.ip}/32 dev lo && {command}'",
                         check=False)

    stream = traffic.Stream(rig, STREAM_MSGS, seed=1)
    stream.flowing()
    done = inside(f"exec timeout 10 helper_hold_socket {rig.a.ip}")
    rig.check(done.code and "EADDRNOTAVAIL" in done.out,
              f"bound: exit {done.code}: {done.out}")
    done = inside("exec helper_stream -l 127.0.0.1 -c 200")
    rig.check(not done.code, f"loopback: exit {done.code}: {done.out}")
    stream.end(LIMIT * 2)
