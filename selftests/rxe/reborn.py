# SPDX-License-Identifier: GPL-2.0-only
"""A node that died and came back ends its own streams, and no others."""

import remote

NODES = 3
TIMEOUT = 240
REBOOTS = True
PORT = 4560


def test_streams(rig):
    """One stream is lost of the two that a receiver has."""
    server, other, dies = rig.nodes
    sink = server.start(f"helper_late_reader {server.ip} {PORT} {1 << 20}")
    sink.expect("ready")
    queued = remote.counter(server, "recv_queued")
    for node in (other, dies):
        holder = node.start(f"helper_hold_socket {node.ip} {server.ip} 1 "
                            f"{PORT}")
        holder.expect("holding 1")
    remote.wait_above(server, "recv_queued", queued + 1)
    lost = remote.counter(server, "recv_eos_lost")
    dies.reboot()
    dies.run("modprobe xrds_ib")
    dies.run(f"xrds-ping -c 1 -w 60 {server.ip}", timeout=70)
    remote.wait_above(server, "recv_eos_lost", lost)
    other.run(f"xrds-ping -c 1 -w 60 {server.ip}", timeout=70)
    now = remote.counter(server, "recv_eos_lost")
    rig.check(now == lost + 1, f"{now - lost} streams were lost")
