# SPDX-License-Identifier: GPL-2.0-only
"""To cancel the messages to one destination costs these, and no others; one that
is on its way in part comes as a whole, or not at all.

CANCEL_OTHERS in the environment is the number of messages of others that are
queued on the same connection.
"""

import os
import signal

import close
import remote
import traffic

TIMEOUT = 240
MEMORY = 1536               # MiB; for a million messages
OTHERS = int(os.environ.get("CANCEL_OTHERS", "1000000"))
PORT = 4900
CANCELLED = 3               # by helper_cancel_part
# The first message takes seconds: it is cancelled before it has gone
SLOW_WIRE = "netem rate 1mbit limit 10000"
FAST_WIRE = "netem rate 1gbit limit 10000"
BREAK = "echo 1 > /sys/kernel/debug/xrds/break"


def test_cancel(rig):
    """Among a million messages to a node that is away."""
    rig.b.cut()
    rig.a.write("/proc/sys/net/xrds/max_memory_kb", str(1400 << 10))
    out = rig.a.run(f"helper_cancel {rig.a.ip} {rig.b.ip} {PORT} "
                    f"{traffic.fewer(rig, OTHERS)}", timeout=200,
                    check=False)
    rig.diag("; ".join(out.out.splitlines()))
    rig.check(not out.code, out.out)


def _in_part(rig, breaks: bool) -> None:
    """Large messages are cancelled while the first one is on its way."""
    traffic.patient(rig)
    receiver = rig.b.start(f"helper_cancel_part recv {rig.b.ip} {PORT}")
    receiver.expect("ready")
    rig.a.run(f"modprobe sch_netem; tc qdisc add dev eth0 root {SLOW_WIRE}")
    before = close.counters(rig.a)
    sender = rig.a.start(f"helper_cancel_part send {rig.a.ip} {rig.b.ip} {PORT}")
    sender.expect("queued")
    remote.wait_above(rig.a, "ib_tx_frags", before["ib_tx_frags"] + 2)
    sender.kill(signal.SIGUSR1)
    if breaks:
        remote.wait_above(rig.a, "send_drop_closed",
                          before["send_drop_closed"] + CANCELLED - 1)
        rig.a.run(BREAK)
    remote.wait_above(rig.a, "send_drop_closed",
                      before["send_drop_closed"] + CANCELLED - 2)
    rig.a.run(f"tc qdisc change dev eth0 root {FAST_WIRE}")
    sender.expect("delivered", timeout=60)
    sender.wait()
    rig.diag(receiver.wait(20).out.splitlines()[-1])
    grown = close.delta(rig.a, before)
    rig.check(grown["send_drop_closed"] == CANCELLED,
              f"{grown['send_drop_closed']} messages were cancelled")
    rig.check(grown["conn_reset"] == breaks, f"{grown['conn_reset']} resets")


def test_in_part(rig):
    """The connection goes on."""
    _in_part(rig, False)


def test_in_part_broken(rig):
    """The connection breaks as well."""
    _in_part(rig, True)
