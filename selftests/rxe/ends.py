# SPDX-License-Identifier: GPL-2.0-only
"""Streams end in order, over RDMA: the mark is behind the last message."""

import signal

import close
import remote
import traffic

TIMEOUT = 240
PORT = 4300
LIVES = 12                  # sockets that are bound to a port, one by one
MESSAGES = 12               # of each
SOCK_MAX = "/proc/sys/net/xrds/sock_max_recv_kb"
SMALL_KB = 256              # of it: less than they send
BYTES = 4096                # of SO_RCVBUF: one message
LINGER = "/proc/sys/net/xrds/linger_ms"
SLOW_WIRE = "netem rate 16mbit limit 10000"
BREAK = "/sys/kernel/debug/xrds/break"
FINISHED, LOST, ABORTED = range(3)


class Receiver:
    """Node B waits until so many streams have ended."""

    def __init__(self, rig, port: int, streams: int, messages: int,
                 reason: int = FINISHED):
        self.rig = rig
        self.port = port
        self.what = f"{port} {streams} {messages}"
        self.proc = rig.b.start(
            f"helper_stream_ends recv {rig.b.ip} {self.what} {reason}")
        self.proc.expect("ready")

    def send(self, how: str) -> str:
        return (f"helper_stream_ends send {self.rig.a.ip} {self.rig.b.ip} "
                f"{self.what} {how}")

    def ended(self, timeout: int = 200) -> None:
        """Nothing comes behind the marks, up to a last message."""
        self.rig.a.run(f"helper_stream_ends last {self.rig.a.ip} {self.rig.b.ip} "
                       f"{self.port}")
        self.proc.expect("all ended", timeout)
        self.proc.wait(10)


def test_thousand(rig):
    """1,000 closes with messages in flight."""
    receiver = Receiver(rig, PORT, 1000, 10)
    rig.a.run(receiver.send("close"), timeout=120)
    receiver.ended()


def test_aborted(rig):
    """And aborts: arriving messages are in order, and reason 2 behind them."""
    receiver = Receiver(rig, PORT, 300, 10, ABORTED)
    rig.a.run(receiver.send("abort"), timeout=60)
    receiver.ended()


def test_shutdown(rig):
    """The same by shutdown(), and of processes that are killed."""
    for port, count, how in ((PORT, 300, "shutdown"), (PORT + 1, 50, "die")):
        receiver = Receiver(rig, port, count, 10)
        rig.a.run(receiver.send(how), timeout=60)
        receiver.ended()


def _rebind(rig):
    """The receiver of messages that were queued without a connection"""
    traffic.patient(rig)
    receiver = rig.b.start(f"helper_rebind recv {rig.b.ip} {PORT} {LIVES} "
                           f"{MESSAGES}")
    receiver.expect("ready")
    rig.b.cut()
    try:
        rig.a.run(f"helper_rebind send {rig.a.ip} {rig.b.ip} {PORT} {LIVES} "
                  f"{MESSAGES}")
    finally:
        rig.b.join()
    return receiver


def _in_order(receiver) -> None:
    receiver.kill(signal.SIGCONT)
    receiver.expect("all there", timeout=60)
    receiver.wait()


def test_rebound(rig):
    """A port is bound again while messages of the closed socket wait: they and
    the end of their stream come before those of the new socket.
    """
    _in_order(_rebind(rig))


def test_rebound_refused(rig):
    """The same when the receiver has no room for all of it."""
    rig.b.write(SOCK_MAX, str(SMALL_KB))
    before = close.counters(rig.b)
    receiver = _rebind(rig)
    remote.wait_above(rig.b, "recv_drop_refused",
                      before.get("recv_drop_refused", 0))
    _in_order(receiver)


def test_before_connection(rig):
    """Ten messages and close() before there is a connection."""
    receiver = Receiver(rig, PORT, 1, 10)
    rig.b.cut()
    rig.a.run(receiver.send("close"), timeout=20)
    rig.b.join()
    receiver.ended()


def test_abort_before_connection(rig):
    """Aborted before there is a connection: no message, but reason 2."""
    receiver = Receiver(rig, PORT, 1, 10, ABORTED)
    rig.b.cut()
    rig.a.run(receiver.send("abort"), timeout=20)
    rig.b.join()
    receiver.ended()


def test_cuts(rig):
    """Connections break while streams end."""
    # closed sockets give up after a minute; cuts may take longer than that
    rig.a.write(LINGER, "600000")
    # and sending is to outlast them, on a fast machine as well
    rig.a.run(f"modprobe sch_netem; tc qdisc add dev eth0 root {SLOW_WIRE}")
    receiver = Receiver(rig, PORT, 1000, 10)
    sender = rig.a.start(receiver.send("close"))
    for _ in range(3):
        resets = remote.counter(rig.a, "conn_reset")
        remote.wait_above(rig.b, "recv_queued",
                          remote.counter(rig.b, "recv_queued") + 100)
        rig.b.cut()
        remote.wait_above(rig.a, "conn_reset", resets)
        rig.b.join()
    rig.a.run("tc qdisc del dev eth0 root")
    sender.expect("sent", 120)
    try:
        receiver.ended()
    finally:
        for node in rig.nodes:
            rig.diag(f"{node}: " + ", ".join(
                f"{name} {value}" for name, value in
                close.counters(node).items() if "drop" in name and value))
        rig.a.write(LINGER, "60000")


def test_unload(rig):
    """Modules that go away right after the last close() take no mark along, and
    bring none when they come back: a stream that has ended is not lost.
    """
    for number in range(3):
        close.patient(rig, rig.a)
        receiver = Receiver(rig, PORT + number, 20, 10)
        rig.a.run(receiver.send("close") + " && modprobe -r xrds_ib xrds",
                  timeout=100)
        close.was_patient(rig, rig.a)
        rig.a.run("modprobe xrds_ib")
        receiver.ended()


test_unload.modules = "xrds_ib xrds_patient"


def test_lost(rig):
    """A node that dies and comes back has ended all streams from it, once.

    A socket that reads no more gets no mark for them.
    """
    receiver = Receiver(rig, PORT, 3, 10, LOST)
    deaf = rig.b.start(f"helper_stream_ends deaf {rig.b.ip} {PORT + 1} 3 10")
    deaf.expect("ready")
    for port in (PORT, PORT + 1):
        rig.a.start(f"helper_stream_ends send {rig.a.ip} {rig.b.ip} "
                    f"{port} 3 10 hold").expect("sent")
    deaf.expect("deaf")
    rig.b.wait_for("test $(helper_counter recv_queued) -ge 60")
    rig.a.reboot()
    rig.a.run("modprobe xrds_ib")
    rig.b.run(f"xrds-ping -c 1 -w 60 {rig.a.ip}", timeout=70)
    traffic.run(rig, 100, port=PORT + 500)
    # the same node, on another connection: nothing new
    ups = remote.counter(rig.b, "conn_up")
    rig.b.write(BREAK, "1")
    traffic.run(rig, 100, port=PORT + 600, seed=2)
    rig.check(remote.counter(rig.b, "conn_up") > ups, "nothing broke")
    receiver.ended()
    deaf.expect("all ended", 200)
    deaf.wait(10)


test_lost.reboots = True
test_lost.timeout = 500


def test_lost_legacy(rig):
    """The same when the node comes back with a legacy version, or without it, also if
    the idle connection to it was forgotten.
    """
    for count, (load, forgotten) in enumerate((("xrds_ib classic=1", False),
                                               ("xrds_ib", False),
                                               ("xrds_ib classic=1", True))):
        receiver = Receiver(rig, PORT + count, 3, 10, LOST)
        before = close.counters(rig.b)
        rig.a.start(receiver.send("hold")).expect("sent")
        remote.wait_above(rig.b, "recv_queued", before["recv_queued"] + 29)
        if forgotten:
            rig.b.write(close.IDLE, "1000")
            remote.wait_above(rig.b, "conn_collected", before["conn_collected"])
        rig.a.reboot()
        rig.a.run(f"modprobe {load}")
        rig.b.run(f"xrds-ping -c 1 -w 60 {rig.a.ip}", timeout=70)
        remote.wait_above(rig.b, "recv_eos_lost", before["recv_eos_lost"] + 2, 20)
        receiver.ended()


test_lost_legacy.reboots = True
test_lost_legacy.timeout = 500


def test_lost_full(rig):
    """A socket that has too much to read gets no end of a lost stream."""
    rig.b.write(SOCK_MAX, "0")
    before = close.counters(rig.b)
    reader = rig.b.start(f"helper_late_reader {rig.b.ip} {PORT} {BYTES}")
    reader.expect("ready")
    sender = rig.a.start(f"helper_hold_socket {rig.a.ip} {rig.b.ip} 3 {PORT}")
    sender.expect("holding 3")
    remote.wait_above(rig.b, "recv_drop_refused",
                      before.get("recv_drop_refused", 0))
    rig.a.cut()
    sender.kill()
    sender.wait(check=False)
    rig.a.run("modprobe -r xrds_ib xrds", timeout=30)
    rig.a.run("modprobe xrds_ib")
    rig.a.join()
    rig.b.run(f"xrds-ping -c 1 -w 60 {rig.a.ip}", timeout=70)
    remote.wait_above(rig.b, "recv_drop_eos", before.get("recv_drop_eos", 0))
    grown = close.delta(rig.b, before)
    rig.check(not grown["recv_eos_lost"], f"{grown['recv_eos_lost']} were told")
