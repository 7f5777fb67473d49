# SPDX-License-Identifier: GPL-2.0-only
"""MSG_ZEROCOPY: the device reads the memory of the program, and it is told when
that has ended.

A stream's buffers are spoiled as soon as their completion is read.
"""

import signal

import close
import remote
import traffic

TIMEOUT = 240
PORT = 4620
ZEROCOPY = "--zerocopy"
BREAK = "echo 1 > /sys/kernel/debug/xrds/break"


def _no_copies(rig, before: list[int]) -> None:
    """Each side has sent large messages from the program's memory."""
    for node, old in zip(rig.nodes, before):
        sent = remote.counter(node, "send_zcopy") - old
        rig.check(sent > 0, f"{node}: all payload was copied")


def _zcopied(rig) -> list[int]:
    return [remote.counter(n, "send_zcopy") for n in rig.nodes]


def test_stream(rig):
    """All sizes, from memory of all kinds, in pieces, both ways."""
    before = _zcopied(rig)
    traffic.run(rig, 3000, seed=31, extra=ZEROCOPY)
    _no_copies(rig, before)


def test_resent(rig):
    """Broken connections: messages are sent again from the same memory."""
    for node in rig.nodes:
        node.write("/proc/sys/net/rds/reconnect_max_delay_ms", "1")
        node.write("/proc/sys/net/rds/reconnect_min_delay_ms", "1")
    before = _zcopied(rig)
    sent = [close.counters(n)["send_retransmit"] for n in rig.nodes]
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=32, extra=ZEROCOPY)
    stream.flowing()
    for node in rig.nodes:
        node.run("helper_break_conns 20", timeout=100)
    stream.stop(100)
    _no_copies(rig, before)
    again = sum(close.counters(n)["send_retransmit"] - old
                for n, old in zip(rig.nodes, sent))
    rig.check(again > 0, "nothing was sent again")


def _met(rig):
    """A receiver, and a sender that has sent it a message."""
    sink = rig.b.start(f"helper_late_reader {rig.b.ip} {PORT} {1 << 20}")
    sink.expect("ready")
    sender = rig.a.start(f"helper_zcopy hold {rig.a.ip} {rig.b.ip} {PORT}")
    sender.expect("met")
    rig.b.cut()
    return sink, sender


def _cut_off(rig):
    """A sender whose message has left its program and not reached its peer."""
    _, sender = _met(rig)
    sender.kill(signal.SIGUSR1)
    sender.expect("^busy")
    return sender


def test_completion(rig):
    """The memory is the program's again when the peer has the message."""
    sender = _cut_off(rig)
    rig.b.join()
    sender.expect("^free", timeout=60)
    sender.wait()


def test_peer_killed(rig):
    """So it is when the message is given up."""
    sender = _cut_off(rig)
    rig.b.reboot()
    rig.b.run("modprobe xrds_ib")
    sender.expect("^free", timeout=90)
    sender.wait()


test_peer_killed.reboots = True


def test_legacy(rig):
    """A message waits for a node, which comes back with in-tree RDS: its memory may
    be in pieces that fill no fragment of such a peer, and its receiver is gone. It
    is given up.
    """
    sink, sender = _met(rig)
    rig.a.run(BREAK)
    remote.wait_lost(rig.a, rig.b)
    sender.kill(signal.SIGUSR1)
    sender.expect("^busy")
    stale = remote.counter(rig.a, "send_drop_stale_peer")
    sink.kill()
    sink.wait(check=False)
    rig.b.run("modprobe -r xrds_ib xrds && modprobe rds_rdma", timeout=60)
    rig.b.join()
    sender.expect("^free", timeout=60)
    sender.wait()
    rig.check(remote.counter(rig.a, "send_drop_stale_peer") == stale + 1,
              "it was sent")
    rig.b.run("unload rds_rdma rds && modprobe xrds_ib", timeout=60)


test_legacy.kernels = "6.1 6.12"
test_legacy.waits = True


def test_killed(rig):
    """A program may end meanwhile: its memory is kept as long as it takes."""
    sender = _cut_off(rig)
    sender.kill(signal.SIGKILL)
    sender.wait(check=False)
    rig.b.join()
    # the message arrives, though the program is gone
    rig.b.wait_for("test $(helper_counter recv_queued) -eq 2")


def _reader(rig) -> None:
    sink = rig.b.start(f"helper_late_reader {rig.b.ip} {PORT} {4 << 20}")
    sink.expect("ready")
    sink.kill(signal.SIGUSR1)


def test_batch(rig):
    """One call sends several messages."""
    before = _zcopied(rig)[0]
    _reader(rig)
    rig.a.run(f"helper_zcopy batch {rig.a.ip} {rig.b.ip} {PORT}", timeout=60)
    rig.check(_zcopied(rig)[0] == before + 4, "payload was copied")


def test_limits(rig):
    """Bounds of locked memory, and memory that cannot be read."""
    _reader(rig)
    rig.a.run(f"helper_zcopy limits {rig.a.ip} {rig.b.ip} {PORT}", timeout=60)
