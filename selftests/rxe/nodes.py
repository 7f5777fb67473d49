# SPDX-License-Identifier: GPL-2.0-only
"""Sockets that ask are told once when a node goes, and once when it is back.

NODE_ROUNDS in the environment is how often.
"""

import os
import re
import time

import remote

ROUNDS = int(os.environ.get("NODE_ROUNDS", "1"))
TIMEOUT = 240 + 60 * ROUNDS
DEAD_MS = 5000
PORT = 4700
MANY = 1000
OLD = 20                        # messages for the node that is down


def _watch(rig, sockets: int = 1, messages: int = 1):
    """A program that has a destination on node B, and is connected."""
    ups = remote.counter(rig.a, "conn_up")
    watch = rig.a.start(f"helper_node_events {rig.a.ip} {rig.b.ip} {PORT} "
                        f"{sockets} {messages}")
    watch.expect("watching")
    remote.wait_above(rig.a, "conn_up", ups)
    rig.a.wait_for("[ $(helper_counter obj_msgs) = 0 ]")
    return watch


def _events(watch) -> list[str]:
    return re.findall(r"port 0 (\w+) reason", watch.out)


def _told(watch, state: str, seen: int) -> None:
    """The next event, after those that were seen"""
    watch.expect(rf"(.* port 0 .*\n){{{seen}}}.* port 0 {state} .*\n", 60)


def _down(rig, watch, begin: float, seen: int) -> None:
    _told(watch, "down", seen)
    took = time.monotonic() - begin
    rig.diag(f"down after {took:.1f} s")
    rig.check(took < (DEAD_MS / 1000 + 1) * rig.kernel.slow, f"{took:.1f} s")


def test_cable(rig):
    """A cable that is cut and joined: down, then up; nobody sends."""
    watch = _watch(rig)
    for number in range(ROUNDS):
        begin = time.monotonic()
        rig.b.cut()
        _down(rig, watch, begin, 2 * number)
        rig.b.join()
        _told(watch, "up", 2 * number + 1)
    rig.check(_events(watch) == ["down", "up"] * ROUNDS, watch.out)


def test_unloaded(rig):
    """A module that is unloaded and loaded: down, then reborn."""
    watch = _watch(rig)
    for number in range(ROUNDS):
        begin = time.monotonic()
        rig.b.run("modprobe -r xrds_ib xrds", timeout=30)
        _down(rig, watch, begin, 2 * number)
        rig.b.run("modprobe xrds_ib")
        _told(watch, "reborn", 2 * number + 1)
    rig.check(_events(watch) == ["down", "reborn"] * ROUNDS, watch.out)


def test_power(rig):
    """A node without power, booted anew: down, then reborn. The messages that
    were sent to it meanwhile are dropped, and counted.
    """
    watch = _watch(rig, messages=OLD)
    for number in range(ROUNDS):
        begin = time.monotonic()
        rig.b.kill()
        _down(rig, watch, begin, 2 * number)
        rig.b.boot()
        rig.b.wait_booted()
        rig.b.run("modprobe xrds_ib")
        _told(watch, "reborn", 2 * number + 1)
    rig.check(_events(watch) == ["down", "reborn"] * ROUNDS, watch.out)
    dropped = re.findall(r"reborn reason 0 dropped (\d+)", watch.out)
    rig.check(dropped == [str(OLD)] * ROUNDS, f"dropped {dropped}")


test_power.reboots = True


def test_many(rig):
    """A thousand sockets are told once each, and one that did not ask is not."""
    watch = _watch(rig, MANY)
    rig.b.cut()
    watch.expect(rf"(.* down .*\n){{{MANY}}}", 60)
    rig.b.join()
    watch.expect(rf"(.* up .*\n){{{MANY}}}", 60)
    for state in ("up", "down"):
        told = sorted(map(int, re.findall(rf"socket (\d+): .* {state} ",
                                          watch.out)))
        rig.check(told == list(range(MANY)), f"{state}: {len(told)} events")
