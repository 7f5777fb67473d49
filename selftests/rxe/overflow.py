# SPDX-License-Identifier: GPL-2.0-only
"""A receiver that is full costs its own senders time, and nobody else anything.

More is queued to one socket, before its node can say that it is congested, than
the node may hold for it. Meanwhile another user exchanges checked messages and
round trips between the same two nodes. OVERFLOW_BREAKS in the environment is
the number of times that the connection breaks meanwhile.
"""

import os
import re
import signal

import close
import remote
import traffic

TIMEOUT = 240
MEASURES = True
BREAKS = int(os.environ.get("OVERFLOW_BREAKS", "5"))
MEMORY = 1024               # MiB; more than a socket may hold at the most
PORT = 4700
TRIPS_PORT = 4800
STREAM_PORT = 5100
USER = 65534                # of the messages that nobody reads
OTHER = 1002
ROUND_TRIPS = 50
TRIPS = 20
FILL = 8                    # messages, more than a socket may hold
STREAM = 4000               # messages each way
LIMIT = 20                  # seconds without progress of bystanders
BYTES = 4097                # more than a page
SMALL_KB = 256              # of sock_max_recv_kb: less than is under way
LEAST_KB = 4                # what is under way exceeds that,
LEAST_RCVBUF = 4608         # and much of this
LEGACY_COUNT = 50           # messages, more than that
LARGE = 128 << 10           # bytes of a message that is long on its way
LARGE_KB = 128              # of sock_max_recv_kb, and SO_RCVBUF:
LARGE_RCVBUF = 8192         # one fills it, and another one is on its way
LARGE_SENDERS = 8           # some of them have one refused
LARGE_COUNT = 3
LARGE_ALL = LARGE_SENDERS * LARGE_COUNT
LARGE_BREAKS = 3
OPS_BREAKS = 5
TURNS = 6                   # at most, of others
# a large message is longer on its way than it takes to refuse one, and that
# longer than the peer's hello in front of it
SLOW_WIRES = ("4mbit", "32kbit")
SLACK = 1 << 20
REFUSED = ("recv_drop_refused", "recv_drop_overflow")
BREAK = "echo 1 > /sys/kernel/debug/xrds/break"
RCVBUF = "/proc/sys/net/core/rmem_default"
SOCK_MAX = "/proc/sys/net/xrds/sock_max_recv_kb"


class Bystanders:
    """Round trips and a stream of another user, between the same nodes."""

    def __init__(self, rig) -> None:
        self.rig = rig
        self.turns = 0
        self.server = rig.b.start(f"helper_round_trips serve {rig.b.ip} "
                                  f"{TRIPS_PORT}")
        self.server.expect("ready")

    def turn(self, what: str) -> tuple[float, float]:
        """Seconds of the round trips, by their median, and of the stream."""
        rig = self.rig
        out = rig.a.run(f"helper_round_trips ask {rig.a.ip} {rig.b.ip} "
                        f"{TRIPS_PORT} {OTHER} {ROUND_TRIPS} {LIMIT}",
                        timeout=3 * LIMIT).out
        rig.diag(f"{what}: {out.strip()}")
        rig.check(out.startswith(f"{ROUND_TRIPS} of {ROUND_TRIPS} "),
                  f"{what}: {out.strip()}")
        self.turns += 1
        ends = traffic.run(rig, STREAM, seed=self.turns, stall=LIMIT,
                           port=STREAM_PORT, extra=f"-u {OTHER} -m 20000")
        seconds = max(float(end["secs"]) for end in ends)
        rig.diag(f"{what}: {STREAM} messages each way in {seconds} s")
        return int(re.search(r"median_us=(\d+)", out)[1]) / 1e6, seconds


def _refused(node) -> int:
    """Messages that found no room; nobody drops more than that."""
    counters = close.counters(node)
    return sum(counters.get(name, 0) for name in REFUSED)


class Full:
    """A socket on node B for which much more is queued than it may hold."""

    def __init__(self, rig, senders: int, count: int, steps: int = 1,
                 refuses: bool = True, size: int = BYTES,
                 rcvbuf: int | None = None) -> None:
        self.rig = rig
        self.refuses = refuses
        self.all = senders * count
        self.sink = rig.b.start(
            f"helper_refused sink {rig.b.ip} {PORT} {size} {senders} "
            f"{count} {-(-self.all // steps)} {rcvbuf or ''}")
        self.sink.expect("ready")
        # nothing of it is under way before all of it is queued
        self.stop()
        self.sender = rig.a.start(f"helper_refused send {rig.a.ip} {rig.b.ip} "
                                  f"{PORT} {size} {USER} {senders} {count}")
        self.sender.expect("queued")
        self.before = [close.counters(n) for n in rig.nodes]
        refused = _refused(rig.b)
        rig.b.join()
        # with much room the sender hears in time that the port is congested
        if refuses:
            remote.until(rig, lambda: _refused(rig.b) > refused,
                         "a message is refused")
        else:
            remote.wait_above(rig.b, "cong_update_queued",
                              self.before[1]["cong_update_queued"])

    def stop(self) -> None:
        """The connection breaks, and does not come up before node B joins."""
        self.rig.b.cut()
        for node in self.rig.nodes:
            node.run(BREAK)
            remote.until(node, lambda n=node: not any(
                c["state"] == "up" for c in remote.shown(n, "connections")),
                "its connection breaks")

    def grown(self) -> list[dict[str, int]]:
        return [close.delta(node, before)
                for node, before in zip(self.rig.nodes, self.before)]

    def check_bounded(self) -> None:
        """The memory of node B for its sockets, one of which has too much."""
        bound = int(self.rig.b.read(SOCK_MAX)) * 1024
        rcvbuf = int(self.rig.b.read(RCVBUF))
        used = remote.counter(self.rig.b, "used_recv")
        self.rig.diag(f"{used >> 10} KiB wait to be read, "
                      f"the bound is {bound >> 10} KiB")
        self.rig.check(used <= bound + 8 * rcvbuf + SLACK,
                       f"{used >> 10} KiB wait, the bound is {bound >> 10} KiB")

    def check_resets(self, most: int = 0) -> None:
        for node, grown in zip(self.rig.nodes, self.grown()):
            self.rig.diag(f"{node}: {grown['conn_reset']} resets")
            self.rig.check(grown["conn_reset"] <= most,
                           f"{node}: {grown['conn_reset']} resets, not {most}")

    def read_step(self) -> None:
        """Let the receiver begin with its next step."""
        self.sink.kill(signal.SIGUSR1)

    def read(self, start: int, end: int) -> int:
        """It reads these, in steps of one."""
        for number in range(start, end):
            self.read_step()
            self.sink.expect(f"^read {number + 1}$")
        return end

    def end(self, resets: int = 0) -> None:
        """All of it has come, once and in order, and the connection was reset no
        more often than on purpose.
        """
        self.sink.wait(120)
        self.sender.expect("delivered", timeout=60)
        self.sender.wait()
        self.check_resets(resets)
        here, there = self.grown()
        for name in ("send_refused", "send_retransmit"):
            self.rig.diag(f"{name}: {here.get(name, 'no such counter')}")
        if not self.refuses:
            return
        self.rig.check(there.get("recv_drop_refused", 0) > 0,
                       "nothing was refused by recv_drop_refused")
        self.rig.check(here.get("send_refused", 0) > 0,
                       "nothing was put back by send_refused")


def _undisturbed(rig, senders: int, count: int, refuses: bool = True) -> None:
    """Others notice nothing of so many messages that cannot be taken."""
    traffic.patient(rig)
    others = Bystanders(rig)
    before = others.turn("before")
    full = Full(rig, senders, count, refuses=refuses)
    # what is judged lasts: a full socket takes it from them in every turn
    during = others.turn("meanwhile")
    for _ in range(TURNS - 1):
        if all(now <= 2 * was for now, was in zip(during, before)):
            break
        during = [min(of) for of in zip(during, others.turn("meanwhile"))]
    full.check_resets()
    full.check_bounded()
    full.read_step()
    full.end()
    after = others.turn("after")
    for what, times in (("round trips", (before[0], during[0], after[0])),
                        ("the stream", (before[1], during[1], after[1]))):
        rig.check(times[1] <= 2 * max(times[0], times[2]),
                  f"{what}: {times[1]} s, undisturbed {times[0]} and "
                  f"{times[2]} s")


def test_sink(rig):
    """One sender, and a socket that may hold little."""
    rig.b.write(SOCK_MAX, str(SMALL_KB))
    _undisturbed(rig, 1, 2000)


test_sink.late = True


def test_legacy(rig):
    """A legacy peer cannot be told what to send again: its connection is reset, and
    all arrives, once and in order.
    """
    rig.a.run("modprobe -r xrds_ib && modprobe xrds_ib classic=1", timeout=30)
    rig.b.write(SOCK_MAX, str(LEAST_KB))
    full = Full(rig, 1, LEGACY_COUNT, rcvbuf=LEAST_RCVBUF)
    remote.wait_above(rig.b, "recv_drop_overflow", 0)
    full.read_step()
    full.sink.wait(120)
    full.sender.expect("delivered", timeout=60)
    full.sender.wait()


def test_default(rig):
    """One sender of far more than SO_RCVBUF at default bounds: it hears in time."""
    _undisturbed(rig, 1, 8700, refuses=False)


def test_senders(rig):
    """Many senders, none of which has sent much."""
    rig.b.write(SOCK_MAX, str(SMALL_KB))
    _undisturbed(rig, 310, 8)


def test_broken(rig):
    """The connection breaks again and again while messages are refused, and
    while those that were refused come again.
    """
    traffic.patient(rig)
    rig.b.write(SOCK_MAX, str(SMALL_KB))
    full = Full(rig, 1, 2000, steps=BREAKS + 1)
    for number in range(BREAKS):
        node = rig.nodes[number % 2]
        ups = [remote.counter(n, "conn_up") for n in rig.nodes]
        node.run(BREAK)
        for other, up in zip(rig.nodes, ups):
            remote.wait_above(other, "conn_up", up)
        # half of the breaks come before it has read all of the last step
        full.read_step()
        if number % 2:
            full.sink.expect(f"read {(number + 1) * -(-2000 // (BREAKS + 1))}")
        full.check_bounded()
    full.read_step()
    full.end(BREAKS)
    # memory for refusals and for senders is given back
    rig.b.wait_for("[ $(helper_counter used_sources) = 0 ]")
    traffic.run(rig, 500, seed=BREAKS)


test_broken.timeout = 240 + 5 * BREAKS


def test_broken_large(rig):
    """Large messages were refused and the connection has broken: the first one
    comes again while the receiver repeats that it has refused it.
    """
    traffic.patient(rig)
    rig.b.write(SOCK_MAX, str(LARGE_KB))
    for node, rate in zip(rig.nodes, SLOW_WIRES):
        node.run("modprobe sch_netem; "
                 f"tc qdisc add dev eth0 root netem rate {rate} limit 10000")
    full = Full(rig, LARGE_SENDERS, LARGE_COUNT, steps=LARGE_ALL, size=LARGE,
                rcvbuf=LARGE_RCVBUF)
    before = full.before[1]["recv_queued"]
    read = 0
    for _ in range(LARGE_BREAKS):
        full.stop()
        came = remote.counter(rig.b, "recv_queued") - before
        read = full.read(read, came)
        rig.b.join()
        # the first is complete before the sender hears of a refusal
        remote.wait_above(rig.b, "recv_queued", before + came)
    full.read(read, LARGE_ALL)
    full.end(LARGE_BREAKS)
    refusals = full.grown()[1]["send_refusal"]
    refused = full.grown()[0]["send_refused"]
    rig.check(refusals > refused, f"of {refused} refused messages the sender "
              f"has heard {refusals} times: nothing was repeated")


def test_ops(rig):
    """The message behind an op is refused, while the device has but a part of the
    op, and the connection breaks: the op ends, and the message does not come
    unless the op was done.
    """
    traffic.patient(rig)
    rig.b.write(SOCK_MAX, str(LEAST_KB))
    was = rig.b.read(RCVBUF).strip()
    rig.b.write(RCVBUF, str(LEAST_RCVBUF))
    pair = remote.Pair(rig)
    rig.b.write(RCVBUF, was)
    before = close.counters(rig.a)
    proc = pair.start("helper_rdma_faults unread", OPS_BREAKS)
    for number in range(1, OPS_BREAKS + 1):
        proc.expect(f"^stop {number}$", 3 * LIMIT)
        pair.server.kill(signal.SIGSTOP)
        rig.b.pause()
        proc.kill(signal.SIGUSR1)
        proc.expect(f"^sent {number}$", LIMIT)
        rig.b.resume()
        proc.kill(signal.SIGUSR1)
        proc.expect(f"^go {number}$", 3 * LIMIT)
        pair.server.kill(signal.SIGCONT)
        proc.kill(signal.SIGUSR1)
    out = proc.wait(6 * LIMIT).out
    rig.diag(out)
    rig.check("dropped=0" not in out, "all ops were done")
    resets = close.delta(rig.a, before)["conn_reset"]
    rig.check(resets >= OPS_BREAKS, f"{resets} resets")
    pair.end()


def _holds(rig, count: int):
    """A socket on node A that has sent so many messages."""
    holder = rig.a.start(f"helper_hold_socket {rig.a.ip} {rig.b.ip} {count} {PORT}")
    holder.expect("^holding")
    return holder


def test_mark(rig):
    """The end of a stream is refused, once: it does not come again before the
    receiver reads.
    """
    traffic.patient(rig)
    rig.b.write(SOCK_MAX, str(LEAST_KB))
    sink = rig.b.start(f"helper_late_reader {rig.b.ip} {PORT} {LEAST_RCVBUF}")
    sink.expect("ready")
    ping = f"xrds-ping -c {TRIPS} -i 0.01 {rig.b.ip}"
    rig.a.run(ping, timeout=100)
    # so that they hear late that the port is congested; the first one has room
    rig.b.pause()
    ends, _ = (_holds(rig, count) for count in (1, FILL))
    rig.b.resume()
    remote.wait_above(rig.a, "send_refused", 0)
    rig.a.run(ping, timeout=100)
    before = remote.counter(rig.a, "send_refused")
    ends.kill()
    remote.wait_above(rig.a, "send_refused", before)
    rig.a.run(ping, timeout=100)
    times = remote.counter(rig.a, "send_refused") - before
    rig.check(times == 1, f"the end was refused {times} times")
    sink.kill(signal.SIGUSR1)
    rig.a.wait_for("[ $(helper_counter obj_msgs) = 0 ]")


def refused_ops(rig, meanwhile=None) -> None:
    """Two messages behind ops are refused, and come again; meanwhile: what
    happens in between. Each op has a key that is to be used once.
    """
    traffic.patient(rig)
    rig.b.write(SOCK_MAX, str(LEAST_KB))
    sink = rig.b.start(f"helper_refused_op sink {rig.b.ip} {PORT}")
    cookies = sink.expect(r"ready (\d+ \d+)")[1]
    refused = _refused(rig.b)
    sender = rig.a.start(f"helper_refused_op send {rig.a.ip} {rig.b.ip} {PORT} "
                         f"{cookies}")
    sender.expect("connected")
    # so that it hears late that the port is congested
    rig.b.pause()
    sender.kill(signal.SIGUSR1)
    sender.expect("sent")
    rig.b.resume()
    remote.until(rig, lambda: _refused(rig.b) > refused + 1, "both are refused")
    if meanwhile:
        meanwhile()
    sink.kill(signal.SIGUSR1)
    for proc in (sink, sender):
        proc.expect("done")
        proc.wait()


def test_key(rig):
    """A message behind an op is refused: a key to be used once ends with the
    op. What comes again has no key, which may be another region's by then:
    wireshark.refused.
    """
    refused_ops(rig)


def test_drained(rig):
    """The receiver's node is drained meanwhile, and has forgotten the sender's: the
    messages come, as their ops were done.
    """
    def drain() -> None:
        remote.wait_above(rig.a, "send_refused", 1)
        rig.b.run("xrds-info drain")
        close.wait_gone(rig.b)
        ups = remote.counter(rig.a, "conn_up")
        rig.b.run("xrds-info undrain")
        remote.wait_above(rig.a, "conn_up", ups)
        stale = remote.counter(rig.a, "send_drop_stale_peer")
        rig.check(stale == 0, f"{stale} messages were dropped")

    refused_ops(rig, drain)
