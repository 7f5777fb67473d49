# SPDX-License-Identifier: GPL-2.0-only
"""xrds-perf -X: each node exchanges messages with all others."""

import re

NODES = 3
TIMEOUT = 120
SECONDS = 3
ERROR = 2


def _start(rig, options: str, third: str = "") -> list:
    """The same command on each node; something in front of that of the third."""
    addresses = " ".join(n.ip for n in rig.nodes)
    return [node.start(f"{third if node is rig.nodes[2] else ''} "
                       f"xrds-perf -X -v {options} {addresses}")
            for node in rig.nodes]


def test_mesh(rig):
    """Messages of 3 x 2 clients are checked, and counted each second."""
    for proc in _start(rig, f"-l 4K -d 4 -t {SECONDS}"):
        out = str(proc.wait(timeout=90))
        rig.check(re.search(r"^ *1 s: [1-9]\d*, .* slowest ", out, re.M), out)
        for node in rig.nodes:
            counted = re.search(rf"^ *{re.escape(node.ip)}: [1-9]", out, re.M)
            rig.check(bool(counted) == (node is not proc.node), out)


def test_rdma(rig):
    """The same with RDMA writes, and a process more for each peer."""
    for proc in _start(rig, "-m write -l 8K -d 4 -n 100 -T 2"):
        out = str(proc.wait(timeout=90))
        rig.check(len(re.findall(r"^  10\.\S+: 200", out, re.M)) == 2, out)


def test_wrong(rig):
    """A node sends wrong payload: it is found, and all nodes end."""
    procs = _start(rig, f"-t {TIMEOUT}",
                   "TAMPER=100 LD_PRELOAD=$(command -v helper_tamper)")
    outs = []
    for proc in procs:
        result = proc.wait(timeout=90, check=False)
        outs.append(str(result))
        rig.check(result.code == ERROR, f"exit {result.code}: {result}")
    rig.check("wrong payload: " in "".join(outs), "\n".join(outs))
