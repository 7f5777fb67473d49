# SPDX-License-Identifier: GPL-2.0-only
"""The end of a socket or of a device between two nodes, as the peer sees it."""

import re
import signal

import close
import traffic

TIMEOUT = 120
WAITS = True
PORT = 4520


def test_device_removed(rig):
    """A device that is removed ends its connections in order."""
    close.patient(rig, rig.a)
    traffic.run(rig, 300)
    before = close.counters(rig.b)
    rig.a.run("rdma link delete rxe0", timeout=60)
    rig.b.wait_for(f"[ $(helper_counter conn_closed) -gt "
                   f"{before['conn_closed']} ]")
    grown = close.delta(rig.b, before)
    rig.a.run("rdma link add rxe0 type rxe netdev eth0")
    for name in ("conn_reset", "conn_timeout", "send_drop_stale_peer",
                 "send_drop_conn_dead"):
        rig.check(grown[name] == 0, f"{name} grew by {grown[name]}")
    close.was_patient(rig, rig.a)
    traffic.run(rig, 300, seed=2)


test_device_removed.modules = "xrds_ib xrds_patient"


def _linger(rig, seconds: int, cut: bool) -> tuple[int, int]:
    """Milliseconds that close() took: by the clock, and in turns of the node"""
    proc = rig.a.start(f"helper_linger {rig.a.ip} {rig.b.ip} {PORT} {seconds}")
    proc.expect("connected")
    if cut:
        rig.b.cut()
    proc.kill(signal.SIGCONT)
    out = proc.wait(60).out
    if cut:
        rig.b.join()
    took, turns = map(int, re.search(
        r"closed after (\d+) ms, (\d+) in turns", out).groups())
    rig.diag(f"SO_LINGER {seconds} s: close() took {took} ms, {turns} in turns")
    return took, turns


def test_linger(rig):
    """SO_LINGER: close() waits for the acknowledgment, and no longer than asked
    for when the peer is cut off.
    """
    _, turns = _linger(rig, 40, False)
    rig.check(turns < 20000 * rig.kernel.slow, f"close() took {turns} ms")
    took, turns = _linger(rig, 2, True)
    rig.check(took >= 1900, f"close() gave up after {took} ms")
    rig.check(turns < 10000 * rig.kernel.slow, f"close() took {turns} ms")


def test_namespace(rig):
    """A network namespace that is deleted ends its connections in order."""
    node = rig.a
    close.patient(rig, node)
    # the first namespace sees when the devices of others are gone
    node.run("rdma system set netns shared")
    node.run("ip netns add s1 && ip netns add s2 && "
             "ip link add v1 netns s1 type veth peer name v2 netns s2")
    for number in (1, 2):
        inside = f"ip netns exec s{number}"
        node.run(f"{inside} ip addr add 10.9.0.{number}/24 dev v{number} && "
                 f"{inside} ip link set v{number} up && "
                 f"{inside} ip link set lo up && {inside} rdma link add "
                 f"rx{number} type rxe netdev v{number}")
    # such a namespace listens, and has connections, while a socket is bound there
    holders = [node.start(f"ip netns exec s{number} helper_hold_socket "
                          f"10.9.0.{number}") for number in (1, 2)]
    for holder in holders:
        holder.expect("holding")
    ping = "xrds-ping -c 1 -w 30 10.9.0.1"
    node.run(f"ip netns exec s2 {ping}", timeout=40)
    count = "ip netns exec s2 helper_counter"
    before = {name: int(str(node.run(f"{count} {name}")))
              for name in ("conn_closed", "conn_reset", "conn_timeout")}
    # its process would keep the namespace
    holders[0].kill()
    holders[0].wait(check=False)
    node.run("ip netns del s1")
    node.wait_for(f"[ $({count} conn_closed) -gt {before['conn_closed']} ]")
    for name in ("conn_reset", "conn_timeout"):
        now = int(str(node.run(f"{count} {name}")))
        rig.check(now == before[name], f"{name} grew by {now - before[name]}")
    close.was_patient(rig, node)
    holders[1].kill()
    holders[1].wait(check=False)
    node.run("ip netns del s2")
    node.wait_for("! ls /sys/class/infiniband | grep -q ^rx[12]$", 60)


test_namespace.modules = "xrds_ib xrds_patient"
test_namespace.nodes = 1
test_namespace.kernels = "7.2"
