# SPDX-License-Identifier: GPL-2.0-only
"""A device that fails as adapters do (selftests/kmod/xrds_device.c).

Node A has it, and in some tests another one that gives its regions the same
numbers. Whatever fails, each message arrives once and in order, those of
other connections of the device are not delayed for long, and RDMA ops end with
a status, their mark behind them.

OLD_KEYS in the environment is how often a key of a dead region is used.
"""

import contextlib
import os
import re
import signal

import close
import hostile
import incast
import rdma_faults
import remote
import traffic

MODULES = ("xrds_device xrds_ib", "xrds_ib")
KERNELS = "6.1 debug"
ROUNDS = int(os.environ.get("OLD_KEYS", "3"))
TIMEOUT = 300
ORDERS = "/proc/xrds_device"
WINDOW = "/proc/sys/net/xrds/ib/recv_window"
DELAY = "/proc/sys/net/rds/reconnect_max_delay_ms"
BOUND = 30                  # seconds, for the end of anything
ANSWER = 5                  # seconds for an answer, if nobody exits
CLOSE_MS = 2500             # less than that
DRAIN_MS = 3000             # that the end of a queue pair may take
SECOND = "10.9.0.1"         # address of another device
PAGE = 4096                 # one that is drawn
FEW = 6                     # connections for each of two pairs of addresses
MANY = 12                   # addresses, each with a connection
OPS = 20                    # of each kind, as helper_rdma_faults sends
LIMIT = 60
REGION_PAGES = 4
LOOPBACK = "helper_netns_settled helper_stream -l 127.0.0.1 -c 20"
OWN = 1                     # regions of the ops beside the streams, on node A
ENDLESS_REGIONS = 100000000     # more than there is time for
UNUSED = "xrds_ib: rxe1: not used, the device lacks features"
MANY_MORE = 200             # registrations after a failure
FAILURES = 2
MANY_REGIONS = 17000        # more than are remembered


def _order(rig, *orders: str) -> None:
    for order in orders:
        rig.a.write(ORDERS, order)


def _count(rig, name: str) -> int:
    return int(rig.a.run(f"grep '^{name} ' {ORDERS}").out.split()[1])


def _renew(rig) -> None:
    """The device goes and comes back."""
    rig.a.run("rdma link delete rxe0 && rdma link add rxe0 type rxe netdev eth0",
              timeout=BOUND)


@contextlib.contextmanager
def _alone(rig):
    """All connections have ended."""
    rig.a.run("xrds-info drain")
    for node in rig.nodes:
        node.wait_for("ids=$(rdma resource show cm_id) && "
                      "! grep -Eq 'state (DIS)?CONNECT ' <<< \"$ids\"")
    yield
    rig.a.run("xrds-info undrain")


def _renew_alone(rig) -> None:
    """The same when all connections have ended. If a peer answers while the
    device goes, Linux 6.1 may crash: ib_mad then posts a buffer to a queue pair
    that it has destroyed.
    """
    with _alone(rig):
        _renew(rig)


def _connection(rig) -> dict:
    """The one between the IPv4 addresses, which is up."""
    rows: list[dict] = []

    def found() -> bool:
        rows[:] = [row for row in remote.shown(rig.a, "connections")
                   if row["faddr"] == rig.b.ip and row["state"] == "up"]
        return bool(rows)

    remote.until(rig, found, "a connection")
    return rows[0]


class Streams:
    """One between the IPv4 addresses, one between the others, and RDMA ops both
    ways beside the former.
    """

    def __init__(self, rig) -> None:
        traffic.patient(rig)
        for node in rig.nodes:
            # the delay between attempts is not what is tested
            node.write(DELAY, "5")
        self.rig = rig
        self.all = [traffic.Stream(rig, traffic.ENDLESS, seed=81 + v6, sockets=2,
                                   stall=100, ipv6=v6, port=5000 + 100 * v6)
                    for v6 in (False, True)]
        for stream in self.all:
            stream.flowing()
        self.pair = remote.Pair(rig)
        self.ops = self.pair.start("helper_rdma_device_gone churn")
        self.ops.expect("flowing")

    def go_on(self) -> None:
        """Messages arrive on both nodes, of both streams, and ops end."""
        for name in ("recv_queued", "recv_delivered"):
            for node in self.rig.nodes:
                remote.wait_above(node, name, remote.counter(node, name) + 100)
        remote.wait_above(self.rig.a, "rdma_done",
                          remote.counter(self.rig.a, "rdma_done") + 10)

    def stop(self) -> None:
        """The program of the ops has looked at each status, and the mark."""
        self.ops.kill(signal.SIGUSR1)
        out = self.ops.wait(LIMIT).out
        self.rig.diag(", ".join(re.findall(r"^(?:churn|own): .*$", out, re.M)))
        self.pair.end()
        for stream in self.all:
            stream.stop(100)

    def kill(self) -> None:
        procs = [proc for stream in self.all for proc in stream.procs]
        for proc in (*procs, self.ops, self.pair.server):
            proc.kill()
            proc.wait(check=False)


@contextlib.contextmanager
def _streams(rig):
    streams = Streams(rig)
    yield streams
    streams.go_on()
    streams.stop()


@contextlib.contextmanager
def _others(rig):
    """Messages between the IPv6 addresses, over a connection that is up already."""
    traffic.patient(rig)
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=89, stall=100, ipv6=True,
                            port=5200)
    stream.flowing()
    yield
    _goes_on(rig)
    stream.stop(100)


def _latch(rig) -> None:
    """The completion queue of the IPv4 connection has stopped."""
    latched = _count(rig, "latched")
    _order(rig, f"latch {_connection(rig)['qpn']}")
    remote.until(rig, lambda: _count(rig, "latched") > latched, "latched")


def _bounded(rig, what: str, command: str) -> None:
    """In turns of the node, which others keep busy."""
    out = rig.a.run(f"helper_turns {command}", timeout=TIMEOUT).out
    took = int(re.search(r"^took (\d+) ms", out, re.MULTILINE)[1])
    rig.diag(f"{what} after {took} ms")
    rig.check(took < BOUND * 1000 * rig.kernel.slow, f"{what}: {took} ms")


def test_latched(rig):
    """The end of a connection whose completion queue has failed takes a bounded
    time, and nobody else waits for it.
    """
    with _streams(rig) as streams:
        _latch(rig)
        late = remote.counter(rig.a, "ib_ep_drain_late")
        rig.a.run(f"xrds-info reset {rig.b.ip}")
        # another namespace ends meanwhile
        _bounded(rig, "namespace", LOOPBACK)
        remote.wait_above(rig.a, "ib_ep_drain_late", late, BOUND)


def test_latched_all(rig):
    """When the completion queues of all connections of a device have failed, their
    ends lose one time-out together, though they come one after the other.
    """
    traffic.patient(rig)
    sources = [f"10.0.0.{100 + i}" for i in range(MANY)]
    try:
        for source in sources:
            rig.a.run(f"ip addr add {source}/24 dev eth0")
        pings = [rig.a.start(f"xrds-ping -q -c 1 -w 60 -I {source} {rig.b.ip}")
                 for source in sources]
        for ping in pings:
            ping.wait(70)
        before = close.counters(rig.a)
        _order(rig, "latch_all 1")
        ends = " && ".join(
            f"xrds-info reset {rig.b.ip} {source} > /dev/null && "
            "until [ $(helper_counter ib_ep_drain_late) -gt "
            f"{before['ib_ep_drain_late'] + number} ]; do sleep 0.05; done"
            for number, source in enumerate(sources))
        out = rig.a.run(f"helper_turns bash -c '{ends}'", timeout=TIMEOUT).out
        took = int(re.search(r"^took (\d+) ms", out, re.MULTILINE)[1])
        rig.diag(f"all ended after {took} ms")
        rig.check(took < 3 * DRAIN_MS * rig.kernel.slow, f"it took {took} ms")
        _order(rig, "latch_all 0")
        rig.a.run(f"xrds-ping -q -c 1 -w 60 -I {sources[0]} {rig.b.ip}",
                  timeout=70)
    finally:
        _order(rig, "latch_all 0")
        # node B would learn from no packet that its peers have gone
        with _alone(rig):
            for source in sources:
                rig.a.run(f"ip addr del {source}/24 dev eth0", check=False)


def test_latched_device(rig):
    """So does the removal of its device."""
    with _streams(rig):
        _latch(rig)
        _bounded(rig, "device removed", "rdma link delete rxe0")
        rig.a.run("rdma link add rxe0 type rxe netdev eth0")


def test_latched_unload(rig):
    """And so does unloading."""
    streams = Streams(rig)
    _latch(rig)
    streams.kill()
    rig.a.wait_for("modprobe -r xrds_ib", BOUND)
    rig.a.run("modprobe xrds_ib")


# the ends of the streams
test_latched_unload.leaves = "messages"


@contextlib.contextmanager
def _attacked(rig, number: int):
    """Four connections, that are in nobody's bad books yet, break the rules; the
    completion queue of one has stopped.
    """
    latched = _count(rig, "latched")
    attacks = [hostile.order(rig, "xrds", traffic.ENDLESS, seed=tos, tos=tos)
               for tos in range(64 * number, 64 * number + 32, 8)]

    def done() -> bool:
        # each connection is a short one
        for row in remote.shown(rig.a, "connections"):
            if row["faddr"] == rig.b.ip and "qpn" in row:
                _order(rig, f"latch {row['qpn']}")
        return _count(rig, "latched") > latched

    remote.until(rig, done, "latched")
    rig.check(all(proc.code is None for proc in attacks), "an attack has ended")
    yield
    for proc in attacks:
        proc.kill()
        proc.wait(check=False)


def _goes_on(rig) -> None:
    remote.wait_above(rig.a, "recv_queued",
                      remote.counter(rig.a, "recv_queued") + 100, BOUND)


def test_latched_attacked(rig):
    """Four connections of node B break the rules again and again, and one of them
    has a completion queue that has failed: a namespace ends in time, and so do
    the removal of the device and of the module. Node C notices nothing.
    """
    hostile.order(rig, "refuse", 1).wait(20)
    stream = traffic.Stream(hostile.bystanders(rig), traffic.ENDLESS, seed=88,
                            stall=100)
    stream.flowing()
    with _attacked(rig, 0):
        _bounded(rig, "namespace", LOOPBACK)
        _goes_on(rig)
    with _attacked(rig, 1):
        _bounded(rig, "device removed", "rdma link delete rxe0")
        rig.a.run("rdma link add rxe0 type rxe netdev eth0")
        _goes_on(rig)
    stream.stop(100)
    with _attacked(rig, 2):
        _bounded(rig, "module removed", "modprobe -r xrds_ib")
    rig.a.run("modprobe xrds_ib")
    hostile.reform(rig)


test_latched_attacked.nodes = 3
test_latched_attacked.modules = ("xrds_device xrds_ib", "xrds_hostile",
                                 "xrds_ib")


def test_moved_meanwhile(rig):
    """The address moves to another device while a region is registered: the owner
    is told.
    """
    rig.a.run("ip link add dum0 type dummy && ip link set dum0 up && "
              "rdma link add rxe1 type rxe netdev dum0")
    try:
        _order(rig, "hold_alloc 1")
        proc = rig.a.start(f"helper_rdma_device_gone moved {rig.a.ip} {rig.b.ip}")
        remote.until(rig, lambda: _count(rig, "held"), "a registration waits")
        rig.a.run(f"ip addr add {rig.a.ip}/32 dev dum0 && "
                  f"ip addr del {rig.a.ip}/24 dev eth0")
        rig.a.wait_for("grep -qs 0a00:0001 "
                       "/sys/class/infiniband/rxe1/ports/1/gids/*")
        _order(rig, "hold_alloc 0")
        proc.wait(LIMIT)
    finally:
        _order(rig, "hold_alloc 0")
        rig.a.run("rdma link delete rxe1; ip link delete dum0; "
                  f"ip addr replace {rig.a.ip}/24 dev eth0")


def test_used_meanwhile(rig):
    """An op has used a region, and the device takes its time to end it: a program
    that ends it, too, waits until no peer has the key.
    """
    with _others(rig):
        pair = remote.Pair(rig)
        proc = pair.start("echo pid $$; exec helper_rdma_device_gone used")
        pid = proc.expect(r"^pid (\d+)$")[1]
        proc.expect("ready")
        held = _count(rig, "held")
        _order(rig, "hold_dereg 1")
        try:
            proc.kill(signal.SIGUSR1)
            remote.until(rig, lambda: _count(rig, "held") > held,
                         "the end waits")
            rig.a.wait_for(f"grep -q xrds_mr_free /proc/{pid}/stack")
        finally:
            _order(rig, "hold_dereg 0")
        proc.wait(LIMIT)
        pair.end()


def test_cq_size(rig):
    """A completion queue has an entry for all that can complete there, also
    after the shared receive queue has got more buffers.
    """
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=85, stall=100)
    stream.flowing()
    rig.a.write(WINDOW, "250")
    # another connection, for which there are more of them
    traffic.run(rig, 400, seed=86, ipv6=True, port=5100)
    device, = remote.shown(rig.a, "devices")
    rig.check(device["recv-posted"] > 300, f"{device['recv-posted']} buffers")
    remote.wait_above(rig.a, "recv_delivered",
                      remote.counter(rig.a, "recv_delivered") + 100)
    stream.stop(100)
    rig.check(not _count(rig, "short_cqs"),
              f"{_count(rig, 'short_cqs')} completions in short queues")


def test_stuck(rig):
    """A queue pair that is not destroyed is, at the latest, with its device."""
    with _streams(rig) as streams:
        _order(rig, "fail destroy_qp 2")
        rig.a.run("xrds-info reset all")
        remote.until(rig, lambda: remote.counter(rig.a, "ib_ep_stuck") == 2,
                     "two of them are left")
        streams.go_on()
        _renew(rig)


def test_stuck_posted(rig):
    """One whose work requests have not completed keeps all of their memory."""
    traffic.patient(rig)
    traffic.run(rig, 200, seed=86)
    # the connection has nothing in flight that limits what is posted next
    _order(rig, "fail destroy_qp 1", f"latch {_connection(rig)['qpn']}")
    stream = traffic.Stream(rig, 1000, seed=87, stall=100, port=5100)
    remote.until(rig, lambda: _count(rig, "noted") > 20, "posted")
    rig.a.run(f"xrds-info reset {rig.b.ip}")
    remote.wait_above(rig.a, "ib_ep_stuck", 0)
    # the messages go over another one, and are no more then
    stream.end(100)
    rig.a.wait_for("test $(helper_counter obj_msgs) -eq 0")
    _renew(rig)
    rig.check(not _count(rig, "changed"),
              f"{_count(rig, 'changed')} of {_count(rig, 'noted')} pieces are "
              "somebody else's")


def test_stuck_srq(rig):
    """A shared receive queue that is not destroyed stays; its device goes."""
    with _streams(rig):
        _order(rig, "fail destroy_srq 1")
        _renew(rig)
        rig.check(remote.counter(rig.a, "ib_rx_stuck") == 1, "it is not left")


def test_stuck_region(rig):
    """The same for a region: its owner is told that the device has failed."""
    with _streams(rig):
        proc = rig.a.start("helper_rdma_device_gone lost "
                           f"{rig.a.ip} {rig.b.ip} 3")
        proc.expect("ready")
        _order(rig, "fail dereg_mr 3", "raise device")
        proc.wait(BOUND)
        remote.until(rig, lambda: remote.counter(rig.a, "ib_rdma_mr_stuck") == 3,
                     "stuck")
        _renew(rig)


def test_no_srq(rig):
    """Shared receive queues are advertised, and none can be made."""
    _order(rig, "fail create_srq 1000000")
    _renew(rig)
    with _streams(rig):
        rig.check("shared-rq" not in _connection(rig)["flags"], "it is shared")
    rig.check(remote.counter(rig.a, "ib_rx_no_srq") > 0, "none was wanted")


def test_moved_in_page(rig):
    """The memory of a region has another place in its page for the device: it is
    not offered, as the device would take other memory for it.
    """
    _order(rig, f"shift_iova {PAGE // 8}")
    done = rig.a.run(f"helper_serve_memory {rig.a.ip} {PAGE}", check=False)
    rig.check(done.code and "EOPNOTSUPP" in done.out, done.out)
    rig.check(remote.counter(rig.a, "obj_mrs") == 0, "a region is left")


def test_events(rig):
    """The device reports that a shared receive queue has failed, or a queue
    pair.
    """
    with _streams(rig) as streams:
        _order(rig, "raise srq")
        remote.wait_above(rig.a, "ib_rx_srq_broken", 0)
        streams.go_on()
        _order(rig, f"raise qp {_connection(rig)['qpn']}")
        remote.wait_above(rig.a, "ib_ep_qp_event", 0)


def test_no_objects(rig):
    """No completion queue for a connection, no object for a region."""
    with _others(rig):
        _order(rig, "fail create_cq 2")
        traffic.run(rig, 200, seed=86)
        rig.check(_count(rig, "failed") == 2, "not asked for")
        for number, verb in enumerate(("alloc_mr", "map_mr_sg", "create_cq")):
            _order(rig, f"fail {verb} 1")
            done = rig.a.run(f"helper_serve_memory {rig.a.ip} 4096",
                             check=False)
            rig.check(done.code != 0, f"{verb}: it was registered")
            rig.check(_count(rig, "failed") == 3 + number,
                      f"{verb} was not called")
            rig.check(remote.counter(rig.a, "obj_mrs") == 0, "a region is left")


def test_registration_fails(rig):
    """Many programs register memory, and one registration fails: only that one
    does, though they share a queue.
    """
    procs = [rig.a.start(f"helper_rdma_device_gone spend {rig.a.ip} {rig.b.ip} "
                         f"{ENDLESS_REGIONS}") for _ in range(FEW)]
    for number in range(FAILURES):
        remote.until(rig, lambda: remote.counter(rig.a, "obj_mrs") > 1,
                     "several at a time")
        _order(rig, "fail post_reg 1")
        remote.until(rig, lambda n=number: _count(rig, "failed") > n, "failed")
        remote.until(rig, lambda n=number: sum(p.code is not None
                                               for p in procs) > n,
                     "its program has ended")
    registered = remote.counter(rig.a, "ib_rdma_mr_registered")
    remote.wait_above(rig.a, "ib_rdma_mr_registered", registered + MANY_MORE)
    ended = [proc for proc in procs if proc.code is not None]
    rig.check(len(ended) == FAILURES, f"{len(ended)} have failed")
    for proc in procs:
        proc.kill()
        proc.wait(LIMIT, check=False)


def test_atomics(rig):
    """Atomics are advertised, and refused when the kernel posts one: that is
    tried once, and no program's op is accepted.
    """
    _order(rig, "no_atomics 1")
    _renew(rig)
    device, = remote.shown(rig.a, "devices")
    rig.check("atomics" not in device["flags"], f"{device}")
    with _others(rig):
        pair = remote.Pair(rig)
        done = pair.start("helper_rdma smoke").wait(check=False)
        pair.end()
    rig.check(done.code and "EOPNOTSUPP" in done.out, done.out)
    rig.check(_count(rig, "atomics") == 1, "more than one was posted")


def test_rejected(rig):
    """Its own device takes none of an op: the status says that nothing has left
    the node, which is so, and its connection goes on.
    """
    with _others(rig):
        rig.a.run(f"xrds-ping -c 1 -w 30 {rig.b.ip}", timeout=40)
        before = close.counters(rig.a)
        for kind in ("write", "read", "atomic"):
            pair = remote.Pair(rig)
            proc = pair.start("helper_rdma_faults one_way", kind)
            proc.expect("ready")
            _order(rig, f"fail post_op {OPS}")
            proc.kill(signal.SIGUSR1)
            result = rdma_faults.outcome(proc.wait(LIMIT).out, "one_way")
            rig.check(result["rejected"] == OPS and not result["done"] and
                      not result["heard"], f"{kind}: {result}")
            pair.end()
        remote.run(rig, "helper_rdma smoke")
    grown = close.delta(rig.a, before)
    rig.check(grown["ib_rdma_refused"] == 3 * OPS, str(grown))
    rig.check(not grown["conn_reset"], "the connection was lost")


def test_no_empty_writes(rig):
    """The peer's device refuses writes without payload: that ends one connection,
    and the next one posts none.
    """
    traffic.patient(rig)
    _order(rig, "nak_empty 1")
    before = close.counters(rig.a)
    ping = f"xrds-ping -c 1 -w 30 {rig.b.ip}"
    rig.a.run(ping, timeout=40)
    remote.wait_above(rig.a, "ib_tx_flush_refused", 0)
    for _ in range(3):
        rig.a.run(ping, timeout=40)
        remote.until(rig, lambda: not any(
            row.get("send-used") for row in remote.shown(rig.a, "connections")
            if row["state"] == "up"), "all has completed")
    grown = close.delta(rig.a, before)
    for name in ("conn_reset", "ib_tx_flushed", "ib_tx_flush_refused"):
        rig.check(grown[name] == 1, f"{name} {grown[name]}")


def test_fixed_places(rig):
    """No completion queue is enlarged: there are credits for the buffers for which
    these have places, when many peers send at once.
    """
    traffic.patient(rig)
    _order(rig, "fail resize_cq 1000000")
    before = rig.a.hw_counters()
    incast.incast(rig, FEW, incast.EACH)
    traffic.check_no_rnr(rig, rig.a,
                         traffic.grown(before, rig.a.hw_counters()))
    failed = remote.counter(rig.a, "ib_rx_srq_no_cq")
    rig.check(failed == 1, f"{failed} attempts to enlarge one")
    incast.check_credits(rig, 2 * FEW, 0)


def test_limits(rig):
    """As small as those of any adapter that XRDS supports."""
    _order(rig, "limit max_send_sge 3", "limit max_sge_rd 1",
           "limit max_fast_reg_page_list_len 128", "limit max_qp_wr 32",
           "limit max_srq 0")
    _renew(rig)
    with _streams(rig):
        rig.check("shared-rq" not in _connection(rig)["flags"], "it is shared")
        # two pieces of payload in a SEND
        traffic.run(rig, 1000, seed=86, port=5300, extra="--zerocopy")
    remote.run(rig, "helper_rdma smoke")
    remote.run(rig, "helper_rdma pieces")


def _unused(rig) -> int:
    return int(str(rig.a.run(f"dmesg | grep -c '{UNUSED}' || true")))


def test_too_small(rig):
    """A device with a smaller limit than those is not used, and the log says so."""
    said = _unused(rig)
    # of devices that come from now on
    _order(rig, "limit max_send_sge 2")
    rig.a.run("ip link add dum0 type dummy && ip link set dum0 up && "
              f"ip addr add {SECOND}/32 dev dum0 && "
              "rdma link add rxe1 type rxe netdev dum0")
    try:
        rig.check(_unused(rig) == said + 1, "the log does not say it once")
        names = [row["name"] for row in remote.shown(rig.a, "devices")]
        rig.check(names == ["rxe0"], f"devices {names}")
        done = rig.a.run(f"helper_hold_socket {SECOND}", check=False)
        rig.check(done.code and "EADDRNOTAVAIL" in done.out,
                  f"bound: exit {done.code}: {done.out}")
    finally:
        _order(rig, "limit max_send_sge 32")
        rig.a.run("rdma link delete rxe1; ip link delete dum0")
    traffic.run(rig, 200, seed=87)


def test_no_answer(rig):
    """A device does not make keys invalid, nor says so: programs end at once,
    and their regions in time. The device can be removed.
    """
    with _streams(rig):
        proc = rig.a.start("echo pid $$; exec helper_rdma_device_gone lost "
                           f"{rig.a.ip} {rig.b.ip} 3")
        proc.expect("ready")
        _order(rig, "lose_inv 1")
        seconds = remote.killed(rig.a, proc.expect(r"^pid (\d+)$")[1], BOUND,
                                obj_mrs=OWN)
        proc.wait(BOUND, check=False)
        rig.diag(f"ended after {seconds:.1f} s")
        rig.check(_count(rig, "lost_invs") == 1, "more than one was tried")
        # turns are a little longer than they count
        rig.check(seconds < ANSWER / 2, f"it took {seconds:.1f} s")
        _order(rig, "lose_inv 0")
        _renew(rig)
    remote.run(rig, "helper_rdma smoke")


def test_no_answer_close(rig):
    """Nor does close() wait for such a device: a work does."""
    with _streams(rig):
        proc = rig.a.start(f"helper_rdma_device_gone closes {rig.a.ip} "
                           f"{rig.b.ip}")
        proc.expect("ready")
        _order(rig, "lose_inv 1")
        proc.kill(signal.SIGUSR1)
        took = int(proc.expect(r"closed after (\d+) ms", BOUND).group(1))
        rig.diag(f"closed after {took} ms")
        rig.check(took < CLOSE_MS * rig.kernel.slow, f"it took {took} ms")
        proc.wait()
        rig.a.wait_for(f"test $(helper_counter obj_mrs) -eq {OWN}", BOUND)
        rig.check(_count(rig, "lost_invs") == 1, "more than one was tried")
        _order(rig, "lose_inv 0")
        _renew(rig)
    remote.run(rig, "helper_rdma smoke")


@contextlib.contextmanager
def _region(rig, address: str, page: int = PAGE):
    """A region of a node's address; its cookie. The page is drawn first."""
    drawn, regions = _count(rig, "drawn"), remote.counter(rig.a, "obj_mrs")
    _order(rig, f"draw {page} 1")
    proc = rig.a.start(f"helper_serve_memory {address} {REGION_PAGES << 12}")
    cookie = int(proc.expect(r"ready (\S+)").group(1), 0)
    rig.check(_count(rig, "drawn") == drawn + 1, "another page was not drawn")
    yield cookie
    proc.kill()
    proc.wait(BOUND, check=False)
    remote.until(rig, lambda: remote.counter(rig.a, "obj_mrs") == regions,
                 "freed")


def _same_number(rig, one: int, other: int) -> None:
    numbers = [cookie & 0xffffffff for cookie in (one, other)]
    rig.check(numbers[0] == numbers[1], f"the number is not the same: {numbers}")


def _apart(rig, one: int, other: int) -> None:
    """Regions with the same number that have no page in common."""
    _same_number(rig, one, other)
    pages = [cookie >> 44 for cookie in (one, other)]
    rig.check(abs(pages[0] - pages[1]) >= REGION_PAGES,
              f"and a page is as well: {pages}")


def test_same_number(rig):
    """Two devices give regions the same number, and both draw the same page: an
    address that moves takes the key of one to the device of the other.
    """
    _renew(rig)
    rig.a.run("ip link add dum0 type dummy && ip link set dum0 up && "
              f"ip addr add {SECOND}/32 dev dum0 && "
              "rdma link add rxe1 type rxe netdev dum0")
    try:
        with _region(rig, rig.a.ip) as one:
            with _region(rig, SECOND) as other:
                _apart(rig, one, other)
    finally:
        rig.a.run("rdma link delete rxe1; ip link delete dum0")


def test_number_again(rig):
    """A new device gives the number of a dead region out again, after another
    user has registered and freed more regions than are remembered.
    """
    _renew(rig)
    with _region(rig, rig.a.ip) as one:
        pass
    rig.a.run("exec su nobody -s /bin/bash -c 'helper_rdma_device_gone spend "
              f"{rig.a.ip} {rig.b.ip} {MANY_REGIONS}'")
    _renew(rig)
    with _region(rig, rig.a.ip) as other:
        _apart(rig, one, other)


# so many registrations take a slow kernel minutes
test_number_again.kernels = "6.1"


def test_old_key(rig):
    """A new device gives another program's region the number of a dead one. A peer
    still has the key of that, and writes with it.
    """
    traffic.patient(rig)
    for number in range(ROUNDS):
        _renew_alone(rig)
        # a page that was used is remembered, and another one is given
        with _region(rig, rig.a.ip, PAGE + number * REGION_PAGES) as old:
            pass
        _renew_alone(rig)
        with _region(rig, rig.a.ip, old >> 44) as new:
            _same_number(rig, old, new)
            rig.b.run(f"helper_rdma_faults old_key {rig.b.ip} {rig.a.ip} "
                      f"{old} {new}", timeout=LIMIT)


test_old_key.timeout = TIMEOUT + 20 * ROUNDS
