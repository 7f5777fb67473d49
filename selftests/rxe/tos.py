# SPDX-License-Identifier: GPL-2.0-only
"""Sockets of different types of service use different connections."""

import close
import traffic

TIMEOUT = 90


def test_tos(rig):
    """Two types of service: two connections, and messages over both."""
    traffic.patient(rig)
    before = [close.counters(n) for n in rig.nodes]
    server = rig.b.start(f"helper_tos_echo serve {rig.b.ip}")
    server.expect("serving")
    client = rig.a.start(f"helper_tos_echo {rig.a.ip} {rig.b.ip}")
    client.expect("talked")
    # checks that failed say so
    rig.check("#" not in client.out, client.out)
    for node, old in zip(rig.nodes, before):
        grown = close.delta(node, old)
        rig.check(grown["conn_up"] == 2, f"{node}: up {grown['conn_up']} times")
        rig.check(close.counters(node)["obj_conns"] == 2,
                  f"{node}: {close.counters(node)['obj_conns']} connections")
