# SPDX-License-Identifier: GPL-2.0-only
"""RDMA ops between two nodes, while nothing is wrong with the network."""

import remote

TIMEOUT = 180


def test_smoke(rig):
    """A write, a read, and both atomics, over IPv4 and IPv6."""
    for ipv6 in (False, True):
        remote.run(rig, "test_remote smoke", ipv6=ipv6)
