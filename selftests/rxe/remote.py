# SPDX-License-Identifier: GPL-2.0-only
"""RDMA between two nodes (helper_serve_memory and others), for tests; it has
none itself.
"""

import json
import re
import signal
import time

from xrdsvm.node import Failed, Proc

LIMIT = 90


class Pair:
    """A serving process on node B, and one under test on node A."""

    def __init__(self, rig, ipv6=False, offered=0) -> None:
        """Serve; with so many bytes registered before anything else."""
        self.rig = rig
        self.here, self.there = ((rig.a.ip6, rig.b.ip6) if ipv6 else
                                 (rig.a.ip, rig.b.ip))
        self.server = rig.b.start(f"helper_serve_memory {self.there} {offered}")
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


def run(rig, command: str, *arguments, ipv6=False, limit=LIMIT,
        held=False) -> str:
    """One mode from start to end; its output. Held: it has the other node
    stopped now and then.
    """
    pair = Pair(rig, ipv6)
    proc = pair.start(command, *arguments)
    number = 1
    while held and proc.expect(rf"^(hold {number}|done)$")[1] != "done":
        rig.b.pause()
        proc.kill(signal.SIGUSR1)
        proc.expect(f"^go {number}$")
        rig.b.resume()
        proc.kill(signal.SIGUSR1)
        number += 1
    out = proc.wait(limit).out
    pair.end()
    return out


def counter(node, name: str) -> int:
    """One of the counters of XRDS."""
    return int(str(node.run(f"helper_counter {name}")))


def wait_above(node, name: str, value: int, timeout: float = 60) -> None:
    """Until a counter is greater than this."""
    node.wait_for(f"test $(helper_counter {name}) -gt {value}", timeout)


def shown(node, what: str) -> list[dict]:
    """Rows of xrds-info: the node's connections, sockets, ..."""
    return json.loads(node.run(f"xrds-info --json {what}").out)[what]


def until(where, condition, why: str, timeout: float = 60) -> None:
    """Until a condition holds that asks a node; where: this, or the rig."""
    end = time.monotonic() + timeout * where.kernel.slow
    while not condition():
        if time.monotonic() > end:
            raise Failed(f"not within {timeout:g} s: {why}")


def wait_bound(node, address: str) -> None:
    """Until a socket can be bound to an address that the node has got."""
    def bound() -> bool:
        holder = node.start(f"helper_hold_socket {address}")
        found = holder.expect(r"^holding|got E\w+")
        holder.kill()
        holder.wait(check=False)
        return found[0] == "holding"

    until(node, bound, f"a socket is bound to {address}")


def wait_lost(node, peer) -> None:
    """Until a node has given its connection to a peer up. Between nodes that
    are cut off from each other none comes up before they are joined.
    """
    until(node, lambda: not any(c["faddr"] == peer.ip and c["state"] == "up"
                                for c in shown(node, "connections")),
          f"{node} gives up the connection to {peer}")


def killed(node, pid: str, timeout: float = 60, **counters: int) -> float:
    """Seconds from the death of a process until it has ended and these counters
    have these values, by turns of the node: a host that stops it does not count.
    """
    words = " ".join(f"{name} {value}" for name, value in counters.items())
    out = node.run(f"helper_killed {pid} {words}", timeout).out
    return int(re.search(r"^took (\d+) ms", out)[1]) / 1e3


def detection(node) -> float:
    """Seconds the device needs to give a peer up."""
    retries, exponent = (int(node.read(f"/proc/sys/net/xrds/ib/{name}"))
                         for name in ("retry_count", "ack_timeout"))
    return (retries + 1) * 4.096e-6 * 2 ** exponent
