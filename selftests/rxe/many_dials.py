# SPDX-License-Identifier: GPL-2.0-only
"""Connections that wait to be made take little from others."""

import re
import time

import close
import remote

TIMEOUT = 300
MEASURES = True
MEMORY = 1200               # MiB
PORT = 4800
CROWD = 30000
USER = 1001
OTHER = 1002
TRIPS = 200
LIMIT = 60                  # seconds for them
LOOK = 5                    # seconds
IDLE = 0.5
SLOWER = 20
FIRST = "10.64.0.1"
SHARED = 2000               # connections, the last of which goes to node B
LAST = "10.64.7.208"
NETS = "10.64.0.0/13"
SYSCTL = "/proc/sys/net/xrds"
RATE = f"{SYSCTL}/max_connects_per_s"


def _median_us(rig, what: str, address: str = "") -> int:
    out = rig.a.run(f"helper_round_trips ask {rig.a.ip} {address or rig.b.ip} "
                    f"{PORT} {OTHER} {TRIPS} {LIMIT}",
                    timeout=2 * LIMIT).out.strip()
    rig.diag(f"{what}: {out}")
    rig.check(out.startswith(f"{TRIPS} of {TRIPS} "), f"{what}: {out}")
    return int(re.search(r"median_us=(\d+)", out)[1])


def _times(node) -> tuple[int, int]:
    """Of all processors, in ticks: idle, and in all."""
    words = [int(n) for n in node.read("/proc/stat").split("\n")[0].split()[1:]]
    return words[3] + words[4], sum(words)


def _idle(node) -> float:
    """The part of some seconds in which a node had nothing to do."""
    before = _times(node)
    time.sleep(LOOK)
    idle, all_ = (now - old for now, old in zip(_times(node), before))
    return idle / all_


def _crowded(rig, alone: int) -> None:
    conns = remote.counter(rig.a, "obj_conns")
    crowd = rig.a.start(f"helper_many_dials {rig.a.ip} {FIRST} {CROWD} {USER}")
    crowd.expect("waiting", timeout=120)
    some = remote.counter(rig.a, "obj_conns") - conns
    rig.check(some >= CROWD, f"only {some} connections are there")
    # a new value has all looked at, now and not when nobody wants them
    close.idle(rig, 500, [rig.a])
    idle = _idle(rig.a)
    rig.diag(f"{idle:.0%} of the time is idle")
    rig.check(idle >= IDLE, f"{idle:.0%} of the time is idle")
    beside = _median_us(rig, f"beside {CROWD} that wait")
    rig.check(beside <= SLOWER * alone, f"{beside} us, alone {alone} us")
    crowd.kill()
    crowd.wait(check=False)
    # those that nobody wants leave the line without a turn, whatever the rate
    rig.a.wait_for("[ $(helper_counter obj_msgs) = 0 ]")
    remote.until(rig.a, lambda: remote.counter(rig.a, "obj_conns") <= conns,
                 "connections that nobody wants are gone", 120)


def test_wait(rig):
    """A user's 30,000 connections wait for their turn, a few of which are tried in
    a second. Meanwhile the processors are idle, and round trips of another user are
    as fast as they were.
    """
    server = rig.b.start(f"helper_round_trips serve {rig.b.ip} {PORT}")
    server.expect("ready")
    alone = _median_us(rig, "alone")
    rig.a.write(RATE, "5")
    # ends of streams need not wait for nodes that do not exist
    rig.a.write(f"{SYSCTL}/linger_ms", "1000")
    rig.a.run(f"ip route add {NETS} dev eth0")
    try:
        _crowded(rig, alone)
    finally:
        rig.a.run(f"ip route del {NETS}")
    server.kill()
    server.wait(check=False)


def test_shared(rig):
    """A user has made the connection to a node behind thousands of others that wait
    for their turn. Another user needs it, and has a turn of his own.
    """
    rig.b.run(f"ip addr add {LAST}/32 dev eth0")
    rig.a.write(RATE, "20")
    rig.a.write(f"{SYSCTL}/linger_ms", "1000")
    rig.a.run(f"ip route add {NETS} dev eth0")
    try:
        server = rig.b.start(f"helper_round_trips serve {LAST} {PORT}")
        server.expect("ready")
        crowd = rig.a.start(f"helper_many_dials {rig.a.ip} {FIRST} {SHARED} {USER}")
        crowd.expect("waiting", timeout=120)
        _median_us(rig, "over a connection of the crowd", LAST)
        for proc in (crowd, server):
            proc.kill()
            proc.wait(check=False)
    finally:
        rig.a.run(f"ip route del {NETS}")
        rig.b.run(f"ip addr del {LAST}/32 dev eth0")
