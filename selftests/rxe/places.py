# SPDX-License-Identifier: GPL-2.0-only
"""The completion queue of a connection has a place for each work request.

The peer is cut off until each send slot of node A is in use, and so is the
work request that nudges the device. The receives that the peer may cause need
places beside them, and so do the markers that drain the queue pair. Soft-RoCE
rounds a queue up to one place less than a power of two. The numbers here are
such that FULL places are needed: a queue made for fewer has FULL - 1.
"""

import re

import remote
import traffic
from xrdsvm.node import Failed

TIMEOUT = 120
FULL = 128
WINDOW = 40                 # receives that a peer with credits may cause
SHARED = 64                 # that a peer without may cause: all buffers
PEER_WINDOW = 400           # of node B: no credits are short
NUDGE = 1


def _places(node) -> int:
    """The size of the completion queue, as the RDMA core has it"""
    shown = node.run("rdma resource show cq dev rxe0").out
    found = re.findall(r"\bcqe (\d+) .*\[xrds_ib\]", shown)
    if len(found) != 1:
        raise Failed(f"not one completion queue:\n{shown}")
    return int(found[0])


def _fill(rig, options: str, slots: int):
    """A stream whose sender has no slot left, and its connection"""
    # a queue of its own has the whole window from the begin
    for node, more in ((rig.a, ""), (rig.b, "srq=0")):
        node.run(f"modprobe -r xrds_ib && modprobe xrds_ib {options} {more}",
                 timeout=30)
    for node, window in ((rig.a, WINDOW), (rig.b, PEER_WINDOW)):
        node.write("/proc/sys/net/xrds/ib/recv_window", str(window))
        node.write("/proc/sys/net/xrds/ib/bundle_bytes", "0")
    rig.a.write("/proc/sys/net/rds/ib/max_send_wr", str(slots))
    rig.a.write("/proc/sys/net/rds/ib/max_recv_wr", str(SHARED))
    traffic.patient(rig)
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=71, sockets=8,
                            extra="-m 1000")
    stream.flowing()
    nudged = remote.counter(rig.a, "ib_tx_nudged")
    rig.b.cut()

    def used() -> bool:
        return remote.shown(rig.a, "connections")[0]["send-used"] == slots

    remote.until(rig, used, f"{slots} slots are in use")
    remote.wait_above(rig.a, "ib_tx_nudged", nudged)
    rig.check(used(), "slots were given back")
    return stream, remote.shown(rig.a, "connections")[0]


def _check(rig, options: str, receives: int, markers: int):
    """With so many receives, and so many markers that drain the queue pair"""
    slots = FULL - NUDGE - receives - markers
    stream, conn = _fill(rig, options, slots)
    rig.check(conn["send-slots"] == slots, f"{conn['send-slots']} slots")
    rig.check(conn["recv-window"] == WINDOW, f"{conn['recv-window']} credits")
    places = _places(rig.a)
    rig.diag(f"{places} places, {FULL} may be needed")
    rig.check(places >= FULL, f"{places} places, {FULL} may be needed")
    rig.b.join()
    stream.stop(90)


def test_shared(rig):
    """A peer with credits, and a receive queue that is shared."""
    _check(rig, "", WINDOW, 1)


def test_own(rig):
    """The same with a receive queue of its own."""
    _check(rig, "srq=0", WINDOW, 2)


def test_classic(rig):
    """A classic peer has no credits: it may use all buffers of the queue."""
    _check(rig, "classic=1", SHARED, 1)
    posted = sum(d["recv-posted"] for d in remote.shown(rig.a, "devices"))
    rig.check(posted > WINDOW, f"{posted} receive buffers")
