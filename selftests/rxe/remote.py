# SPDX-License-Identifier: GPL-2.0-only
"""RDMA between two nodes (test_serve and others), for tests; has none itself."""

from xrdsvm.node import Proc

LIMIT = 90


class Pair:
    """A serving process on node B, and one under test on node A."""

    def __init__(self, rig, ipv6=False, offered=0) -> None:
        """Serve; with so many bytes registered before anything else."""
        self.rig = rig
        self.here, self.there = ((rig.a.ip6, rig.b.ip6) if ipv6 else
                                 (rig.a.ip, rig.b.ip))
        self.server = rig.b.start(f"test_serve {self.there} {offered}")
        self.cookie = int(self.server.expect(r"ready (\d+)").group(1))

    def start(self, command: str, *arguments) -> Proc:
        """Start "PROGRAM MODE" under test."""
        words = " ".join(map(str, arguments))
        return self.rig.a.start(f"{command} {self.here} {self.there} {words}")

    def end(self) -> None:
        self.rig.check(self.server.code is None,
                       f"the server ended: {self.server.out}")
        self.server.kill()
        self.server.wait(check=False)


def run(rig, command: str, *arguments, ipv6=False, limit=LIMIT) -> str:
    """One mode from start to end; what it said."""
    pair = Pair(rig, ipv6)
    out = pair.start(command, *arguments).wait(limit).out
    pair.end()
    return out


def counter(node, name: str) -> int:
    """One of the counters of XRDS."""
    return int(str(node.run(f"test_counter {name}")))


def wait_above(node, name: str, value: int, timeout: float = 60) -> None:
    """Until a counter is greater than this."""
    node.wait_for(f"test $(test_counter {name}) -gt {value}", timeout)


def detection(node) -> float:
    """Seconds the device needs to give a peer up."""
    retries, exponent = (int(node.read(f"/proc/sys/net/xrds/ib/{name}"))
                         for name in ("retry_count", "ack_timeout"))
    return (retries + 1) * 4.096e-6 * 2 ** exponent
