# SPDX-License-Identifier: GPL-2.0-only
"""Every message once and in order, over a network with faults.

One percent of the packets is lost, some overtake others, and the link goes
down and up every few seconds, while all sockets send both ways. SOAK_MSGS
(each way) and SOAK_SEED choose another run than that of every day.

Since Linux 6.12 soft-RoCE's special queue pair dies for good when the connection
manager happens to repeat a message while there is no carrier (net/xrds/ib/cm_id.c);
the more often the link goes down, the surer. There all frames are lost for a
while in place of that, long enough for connections to be lost as well;
dead_peer.link_down has the carrier.
"""

import os
import random
import time

import traffic

MSGS = int(os.environ.get("SOAK_MSGS", "20000"))
SEED = int(os.environ.get("SOAK_SEED", "0")) or random.SystemRandom().randrange(
    1, 1 << 31)
SOCKETS = 8
STALL = 120                 # seconds
MSGS_PER_SECOND = 20        # at the very least
TIMEOUT = 300 + MSGS // MSGS_PER_SECOND
LATE = True
UP = (2.0, 5.0)             # seconds between flaps
DOWN = (0.2, 1.5)
CUT = (0.5, 6.0)
CARRIER = ("6.1", "debug")  # kernels that bear its loss at any moment
NETEM = "netem loss 1% delay 1ms reorder 25% 50% limit 10000"


def _flap(rig, dice: random.Random) -> None:
    node = dice.choice(rig.nodes)
    if rig.kernel.name in CARRIER:
        node.link(False)
        time.sleep(dice.uniform(*DOWN))
        node.link(True)
    else:
        node.cut()
        time.sleep(dice.uniform(*CUT))
        node.join()


def _report(rig, text: str, last: list[float]) -> None:
    if time.monotonic() - last[0] > 30:
        last[0] = time.monotonic()
        rig.diag(f"soak: {text}")


def test_soak(rig):
    """All of it at once."""
    rig.diag(f"soak: {MSGS} messages each way, SOAK_SEED={SEED}")
    dice = random.Random(SEED)
    for node in rig.nodes:
        node.run(f"modprobe sch_netem; tc qdisc add dev eth0 root {NETEM}")
    before = [n.hw_counters() for n in rig.nodes]
    stream = traffic.Stream(rig, MSGS, seed=SEED, sockets=SOCKETS, stall=STALL)
    flaps, last = 0, [time.monotonic()]
    due = time.monotonic() + dice.uniform(*UP)
    while stream.running() and not stream.failed():
        if time.monotonic() >= due:
            _flap(rig, dice)
            flaps += 1
            due = time.monotonic() + dice.uniform(*UP)
        _report(rig, f"{flaps} flaps, {_progress(stream)}", last)
        time.sleep(0.1)
    for result, node in zip(stream.end(STALL), rig.nodes):
        rig.diag(f"soak: {node}: {flaps} flaps, " +
                 ", ".join(f"{key} {result[key]}" for key in
                           ("rcvd", "bytes_rcvd", "secs", "max_gap_ms")))
    rig.check(flaps > 0, "it was over before the link went down once")
    for node, old in zip(rig.nodes, before):
        delta = traffic.grown(old, node.hw_counters())
        traffic.check_carried(rig, node, delta, traffic.fewer(rig, MSGS))
        rig.check(delta["rcvd_seq_err"] + delta["out_of_seq_request"] +
                  delta["completer_retry_err"] + delta["duplicate_request"] > 0,
                  f"{node}: no packet was lost or overtaken")


def _progress(stream: traffic.Stream) -> str:
    lines = stream.procs[0].out.splitlines()
    return lines[-1].lstrip("# ") if lines else "no output yet"
