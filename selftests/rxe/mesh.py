# SPDX-License-Identifier: GPL-2.0-only
"""xrds-perf -X: each node exchanges messages with all others."""

import re

import remote

NODES = 3
TIMEOUT = 120
SECONDS = 3
ERROR = 2


def _start(rig, options: str, nodes=None, before: str = "") -> list:
    """The same command on each of these nodes, with something in front."""
    addresses = " ".join(n.ip for n in rig.nodes)
    return [node.start(f"{before} xrds-perf -X -v {options} {addresses}")
            for node in nodes or rig.nodes]


def _check_peers(rig, procs: list, count: str) -> None:
    """Each node has had as many messages with each of the others."""
    for proc in procs:
        out = str(proc.wait(timeout=90))
        for node in rig.nodes:
            found = re.search(rf"^ *{re.escape(node.ip)}: {count}\b", out, re.M)
            rig.check(bool(found) == (node is not proc.node), out)


def test_mesh(rig):
    """Messages of 3 x 2 clients are checked, and counted each second."""
    procs = _start(rig, f"-l 4K -d 4 -t {SECONDS}")
    _check_peers(rig, procs, r"[1-9]\d*")
    for proc in procs:
        # a slow machine may have none in one of them
        rig.check(re.search(r"^ *\d s: [1-9]\d*, .* slowest ", proc.out, re.M),
                  proc.out)


def test_rdma(rig):
    """The same with RDMA writes, and a process more for each peer."""
    _check_peers(rig, _start(rig, "-m write -l 8K -d 4 -n 100 -T 2"), "200")


def test_late(rig):
    """A node that starts when the orders of the others were lost there."""
    late = rig.nodes[2]
    procs = _start(rig, "-n 100", rig.nodes[:2])
    remote.wait_above(late, "recv_drop_no_sock", 1)
    _check_peers(rig, procs + _start(rig, "-n 100", [late]), "100")


def test_wrong(rig):
    """A node sends wrong payload: it is found, and all nodes end."""
    tamper = "TAMPER=100 LD_PRELOAD=$(command -v helper_tamper)"
    outs = []
    for proc in (_start(rig, f"-t {TIMEOUT}", rig.nodes[:2]) +
                 _start(rig, f"-t {TIMEOUT}", rig.nodes[2:], tamper)):
        result = proc.wait(timeout=90, check=False)
        outs.append(str(result))
        rig.check(result.code == ERROR, f"exit {result.code}: {result}")
    rig.check("wrong payload: " in "".join(outs), "\n".join(outs))


def test_missing(rig):
    """A node never starts: the others say which, and end."""
    for proc in _start(rig, "-n 100", rig.nodes[:2]):
        result = proc.wait(timeout=60, check=False)
        rig.check(result.code == ERROR, f"exit {result.code}: {result}")
        rig.check(f"{rig.nodes[2].ip} port 18800: xrds-perf does not run there"
                  in str(result) or "ended" in str(result), str(result))
