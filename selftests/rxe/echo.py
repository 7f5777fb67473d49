# SPDX-License-Identifier: GPL-2.0-only
"""N:N echo with reserved replies: nobody is refused, nobody gets stuck."""

import os
import signal

NODES = 4
SECONDS = int(os.environ.get("ECHO_SECONDS", "30"))
TIMEOUT = 120 + 2 * SECONDS
PORT = 4300


def test_echo(rig):
    """Every socket is client and server, all saturated for half a minute."""
    procs = []
    for node in rig.nodes:
        peers = " ".join(n.ip for n in rig.nodes if n is not node)
        procs.append(node.start(
            f"helper_echo_mesh {node.ip} {PORT} {SECONDS} {peers}"))
    for proc in procs:
        proc.expect("ready")
    for proc in procs:
        proc.kill(signal.SIGUSR1)
    for proc in procs:
        proc.expect("answered", timeout=SECONDS + 60)
    for proc in procs:
        proc.kill(signal.SIGTERM)
    for proc in procs:
        rig.diag(f"{proc.node}: {str(proc.wait(timeout=20)).splitlines()[-1]}")
