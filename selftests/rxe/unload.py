# SPDX-License-Identifier: GPL-2.0-only
"""The modules are refused to go while in use, and go at any other time.

UNLOADS in the environment chooses another number of unloads than that of every
day.
"""

import os

import remote
import traffic

UNLOADS = int(os.environ.get("UNLOADS", "10"))
STRANDED = 3
TIMEOUT = 240 + 6 * UNLOADS


def _check_refused(rig, node, module: str) -> None:
    done = node.run(f"rmmod {module}", check=False)
    rig.check(done.code and "in use" in done.out.lower(),
              f"{node}: rmmod {module}: exit {done.code}: {done.out}")


def test_refused_under_load(rig):
    """Under traffic: refused, the traffic goes on, and later it works."""
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=1)
    stream.flowing()
    for _ in range(5):
        for node in rig.nodes:
            _check_refused(rig, node, "xrds_ib")
            _check_refused(rig, node, "xrds")
    stream.stop(150)
    for node in rig.nodes:
        node.run("modprobe -r xrds_ib && modprobe -r xrds", timeout=30)
        rig.check(not node.modules() & {"xrds", "xrds_ib"},
                  f"{node}: still there")


def test_after_traffic(rig):
    """Right after traffic, while the peer is connected; again and again."""
    for number in range(UNLOADS // 2):
        traffic.run(rig, 200, seed=number)
        rig.a.run("modprobe -r xrds_ib xrds", timeout=30)
        rig.a.run("modprobe xrds_ib")
        traffic.run(rig, 200, seed=number + 100, port=6000)
        rig.b.run("modprobe -r xrds_ib xrds", timeout=30)
        rig.b.run("modprobe xrds_ib")


def test_both_at_once(rig):
    """Both ends of a connection at the same moment."""
    for number in range(UNLOADS // 2):
        traffic.run(rig, 200, seed=number)
        procs = [n.start("modprobe -r xrds_ib xrds") for n in rig.nodes]
        for proc in procs:
            proc.wait(30)
        for node in rig.nodes:
            node.run("modprobe xrds_ib")
    traffic.run(rig, 200)


def test_dead_processes_queue(rig):
    """With messages of a killed process for a node that is not there."""
    for _ in range(3):
        holder = rig.a.start(f"helper_hold_socket {rig.a.ip} 10.0.0.99 10")
        holder.expect("holding 10$")
        holder.kill()
        holder.wait(check=False)
        rig.a.wait_for("modprobe -r xrds_ib xrds", 30)
        rig.a.run("modprobe xrds_ib")


test_dead_processes_queue.waits = True


def test_peer_unloads(rig):
    """The peer's modules go and come under a socket that stays open here."""
    holder = rig.a.start(f"helper_hold_socket {rig.a.ip} {rig.b.ip} 5 5000")
    holder.expect("holding 5$")
    rig.b.run("modprobe -r xrds_ib xrds", timeout=30)
    rig.b.run("modprobe xrds_ib")
    traffic.run(rig, 500, port=6000)
    rig.check(holder.code is None, "the holder ended")


def _strand(rig, what: str, delay_ms: int) -> None:
    """A program ends, and the module goes before its last work is done."""
    knob = "/proc/sys/net/xrds/loop/delay_ms"
    for _ in range(STRANDED):
        rig.a.write(knob, str(delay_ms))
        rig.a.run(f"helper_exit_unload {rig.a.ip} {what}", timeout=60)
        rig.a.write(knob, "0")
        rig.a.wait_for("[ $(helper_counter obj_rops) -eq 0 ] && "
                       "[ $(helper_counter obj_mrs) -eq 0 ]")
        rig.a.run("modprobe xrds_ib")
    traffic.run(rig, 200)


def test_used_keys(rig):
    """Right after keys were used for the last time, while they are ended."""
    _strand(rig, "keys", 300)


def test_op_left(rig):
    """With an op of a closed socket on its way over loopback."""
    _strand(rig, "op", 1000)
