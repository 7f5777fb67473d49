# SPDX-License-Identifier: GPL-2.0-only
"""The same port of two addresses of one node: two destinations."""

import signal

import remote
import traffic

TIMEOUT = 120
PORT = 4540
SECOND = "10.0.0.22"
BREAK = "/sys/kernel/debug/xrds/break"


def _sends_twice(rig, to: str) -> None:
    """A message, its acknowledgment, and another one, which the peer's news of
    congestion, sent when the connection came up, does not stop.
    """
    proc = rig.a.start(f"helper_linger {rig.a.ip} {to} {PORT} 40")
    proc.expect("connected")
    proc.kill(signal.SIGCONT)
    proc.expect("closed")
    proc.wait()


def _blocked(rig):
    sender = rig.a.start(f"helper_congested {rig.a.ip} {rig.b.ip} {PORT}")
    sender.expect("blocked")
    return sender


def test_congested(rig):
    """Congestion of one leaves the other free, also on new connections, which
    begin with the full list of congested ports.
    """
    traffic.patient(rig)
    rig.b.run(f"ip addr add {SECOND}/24 dev eth0")
    remote.wait_bound(rig.b, SECOND)
    try:
        sinks = [rig.b.start(f"helper_late_reader {here} {PORT} 65536")
                 for here in (rig.b.ip, SECOND)]
        for sink in sinks:
            sink.expect("ready")
        # the loss of the connection would release it
        sender = _blocked(rig)
        sender.kill()
        sender.wait(check=False)
        _sends_twice(rig, SECOND)
        rig.a.write(BREAK, "1")
        _sends_twice(rig, SECOND)
        sender = _blocked(rig)
        sinks[0].kill(signal.SIGUSR1)
        sender.expect("released")
        sender.wait()
        for sink in sinks:
            sink.kill()
            sink.wait(check=False)
        rig.a.run("settled 20", timeout=60)
    finally:
        rig.b.run(f"ip addr del {SECOND}/24 dev eth0")


test_congested.waits = True
