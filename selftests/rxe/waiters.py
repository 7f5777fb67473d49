# SPDX-License-Identifier: GPL-2.0-only
"""A port that clears costs its own waiters, of very many on a connection."""

import signal

import traffic

TIMEOUT = 300
MEMORY = 1024               # MiB
PORT = 10000
PORTS = 8000
SENDERS = 13                # waiters of a port
TRIPS_PORT = 4800


def test_waiters(rig):
    """Only the waiters of a port that clears are looked at, and others on the
    connection notice nothing. Over the loopback: loop/waiters.
    """
    traffic.patient(rig)
    for node in rig.nodes:
        for name in ("max_memory_kb", "max_recv_kb"):
            node.write(f"/proc/sys/net/xrds/{name}", str(900 << 10))
    nr = traffic.fewer(rig, PORTS)
    server = rig.b.start(f"helper_round_trips serve {rig.b.ip} {TRIPS_PORT}")
    server.expect("ready")
    ports = rig.b.start(f"helper_waiters ports {rig.b.ip} {PORT} {nr}")
    ports.expect("ready")
    waiters = rig.a.start(f"helper_waiters wait {rig.a.ip} {rig.b.ip} {PORT} "
                          f"{nr} {SENDERS} {TRIPS_PORT}")
    waiters.expect("waiting", timeout=200)
    ports.kill(signal.SIGUSR1)
    for line in waiters.wait(100, check=False).out.splitlines():
        rig.diag(line)
    waiters.wait()
