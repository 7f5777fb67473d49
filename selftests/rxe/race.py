# SPDX-License-Identifier: GPL-2.0-only
"""Races around refused messages, made long (selftests/kmod/xrds_race.c)."""

import contextlib
import signal

import overflow
import remote
import traffic

MODULES = "xrds_ib xrds_race"
TIMEOUT = 240
KNOBS = "/sys/module/xrds_race/parameters"
HELD_MS = 18000             # the watchdog of the kernel takes 20 s
PORT = 4710
COUNT = 200                 # messages of which a receiver takes some


@contextlib.contextmanager
def _apart(node):
    """The works of the modules run on one processor, all else on the other."""
    cpus = "/sys/devices/virtual/workqueue/cpumask"
    was = node.read(cpus).strip()
    node.run("for irq in /proc/irq/*/smp_affinity; do "
             "echo 1 2> /dev/null > $irq; done; true")
    node.write(cpus, "2")
    try:
        yield
    finally:
        node.write(cpus, was)
        node.run("for irq in /proc/irq/*/smp_affinity; do "
                 "echo 3 2> /dev/null > $irq; done; true")


def _count(node, what: str) -> int:
    return int(node.read(f"{KNOBS}/{what}"))


def _arm(node, race: str) -> int:
    """It is held when it comes next. Returns how many were met so far."""
    node.write(f"{KNOBS}/{race}", str(HELD_MS))
    return _count(node, "met")


def _met(rig, node, before: int) -> None:
    remote.until(rig, lambda: _count(node, "met") > before, "the race is met")


def test_told_again(rig):
    """The message that ends a refusal comes while the peer is told of the refusal
    once more: that must not acknowledge it, or the messages behind it come twice.
    """
    traffic.patient(rig)
    rig.b.write(overflow.SOCK_MAX, str(overflow.SMALL_KB))
    full = overflow.Full(rig, 1, 2000, steps=2)
    refused = full.before[0].get("send_refused", 0)
    remote.wait_above(rig.a, "send_refused", refused)
    with _apart(rig.b):
        # posted, and lost
        rig.b.loss(100)
        posted = remote.counter(rig.a, "ib_tx_frags")
        full.read_step()
        remote.wait_above(rig.a, "ib_tx_frags", posted)
        full.stop()
        rig.b.loss(0)
        met = _arm(rig.b, "refused")
        rig.b.join()
        _met(rig, rig.b, met)
    full.read_step()
    full.end(1)


def test_end_cancelled(rig):
    """The message that ends a refusal is cancelled on its way to the device, which
    has no room for it: the next message ends the refusal.
    """
    traffic.patient(rig)
    rig.b.write(overflow.SOCK_MAX, str(overflow.SMALL_KB))
    receiver = rig.b.start(f"helper_cancel_part recv {rig.b.ip} {PORT} {COUNT}")
    receiver.expect("ready")
    # nothing is under way before all of it is queued
    rig.b.cut()
    refused = remote.counter(rig.a, "send_refused")
    sender = rig.a.start(f"helper_cancel_part send {rig.a.ip} {rig.b.ip} {PORT} "
                         f"{COUNT} {overflow.BYTES}")
    sender.expect("queued")
    rig.b.join()
    remote.wait_above(rig.a, "send_refused", refused)
    with _apart(rig.a):
        held, met = _count(rig.a, "held"), _arm(rig.a, "resume")
        receiver.kill(signal.SIGUSR1)
        remote.until(rig, lambda: _count(rig.a, "held") > held, "it is held")
        sender.kill(signal.SIGUSR1)
        _met(rig, rig.a, met)
    sender.expect("delivered", timeout=60)
    sender.wait()
    rig.diag(receiver.wait(30).out.splitlines()[-1])
