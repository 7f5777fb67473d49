# SPDX-License-Identifier: GPL-2.0-only
"""Receivers are ready before data comes: no receiver-not-ready, ever."""

import traffic

TIMEOUT = 240
STARTS = 8


def test_start(rig):
    """Through many connection starts, with both sides sending at once."""
    for number in range(STARTS):
        before = [n.hw_counters() for n in rig.nodes]
        traffic.run(rig, 400, seed=number, sockets=8)
        for node, old in zip(rig.nodes, before):
            delta = traffic.grown(old, node.hw_counters())
            traffic.check_no_rnr(rig, node, delta)
            traffic.check_carried(rig, node, delta,
                                  traffic.fewer(rig, 400))
        # the next start is a new one on both sides
        for node in rig.nodes:
            node.run("modprobe -r xrds_ib xrds && modprobe xrds_ib")


def test_steady(rig):
    """Through a run with many sockets and all sizes, slow readers included."""
    before = [n.hw_counters() for n in rig.nodes]
    traffic.run(rig, 10000, seed=11, sockets=8, timeout=200)
    traffic.run(rig, 2000, seed=12, sockets=8, extra="-B 16384", port=6000)
    for node, old in zip(rig.nodes, before):
        delta = traffic.grown(old, node.hw_counters())
        traffic.check_no_rnr(rig, node, delta)
        traffic.check_carried(rig, node, delta,
                              traffic.fewer(rig, 12000))
