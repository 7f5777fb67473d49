# SPDX-License-Identifier: GPL-2.0-only
"""XRDS and in-tree RDS on the same wire."""

import traffic

KERNELS = "6.1"
MODULES = ("xrds_ib", "rds_rdma")
TIMEOUT = 120
BUFFERS = "-b 2097152"      # in-tree RDS takes no message that is larger


def _stream(rig, count: int, **options):
    for node in rig.nodes:
        node.write("/proc/sys/net/core/wmem_max", "4194304")
    return traffic.Stream(rig, count, extra=BUFFERS, **options)


def test_in_tree(rig):
    """In-tree RDS on both nodes: the programs of these tests work there."""
    _stream(rig, 300, seed=31).end(60)


test_in_tree.modules = "rds_rdma"


def test_stream(rig):
    """Both ways at once, all sizes up to 1 MiB."""
    _stream(rig, 300, seed=32).end(60)
