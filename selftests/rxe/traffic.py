# SPDX-License-Identifier: GPL-2.0-only
"""Streams between two nodes (helper_stream), for tests; has no test itself."""

import re
import signal

import remote
from xrdsvm.node import Failed, Node, Proc

SUMMARY = re.compile(r"^stream: (.*)$", re.MULTILINE)
ENDLESS = 100000000         # messages, more than there is time for
RNR = ("rcvd_rnr_err", "send_rnr_err", "retry_rnr_exceeded_err")


class Stream:
    """Both ways between two nodes; every message is checked at both ends."""

    def __init__(self, rig, count: int, *, seed=1, sockets=4, stall=60,
                 ipv6=False, port=5000, addresses=None, extra="",
                 first="") -> None:
        """addresses: those of either node, instead of its own one; extra:
        more options; first: those of the first node alone.

        A slow kernel sends fewer than count, see fewer().
        """
        count = fewer(rig, count)

        def side(role: str, here: Node, there: Node) -> Proc:
            local, remote = (",".join(addresses[n.number - 1]) if addresses
                             else n.ip6 if ipv6 else n.ip
                             for n in (here, there))
            # the test's own limit is the first to strike on slow kernels
            limit = int(stall * rig.kernel.slow)
            return here.start(f"helper_stream -R {role} -l {local} -r {remote} "
                              f"-c {count} -S {seed} -s {sockets} "
                              f"-i {limit} -p {port} {extra} "
                              f"{first if here is rig.a else ''}")

        self.procs = [side("a", rig.a, rig.b), side("b", rig.b, rig.a)]

    def flowing(self) -> None:
        """Wait until data has arrived on both sides."""
        for proc in self.procs:
            proc.expect("data flows")

    def running(self) -> bool:
        return any(p.code is None for p in self.procs)

    def failed(self) -> bool:
        return any(p.code for p in self.procs)

    def stop(self, timeout: float) -> list[dict[str, str]]:
        """As end(), but neither side begins another message."""
        if not all(p.code is None for p in self.procs):
            raise Failed("the stream is over, or has failed:\n" +
                         "\n".join(_tail(p.out) for p in self.procs))
        for proc in self.procs:
            proc.kill(signal.SIGUSR1)
        return self.end(timeout)

    def end(self, timeout: float) -> list[dict[str, str]]:
        """Both summaries; the test fails if a message was not right."""
        results = [p.wait(timeout, check=False) for p in self.procs]
        bad = [f"{p.node}: exit {r.code}\n{_tail(r.out)}"
               for p, r in zip(self.procs, results) if r.code]
        if bad:
            raise Failed("\n".join(bad))
        return [summary(r.out) for r in results]


def summary(out: str) -> dict[str, str]:
    found = SUMMARY.search(out)
    if not found:
        raise Failed(f"no summary\n{_tail(out)}")
    return dict(word.split("=") for word in found.group(1).split())


def _tail(out: str, count: int = 60) -> str:
    return "\n".join(out.splitlines()[-count:])


def fewer(rig, count: int) -> int:
    """As many as COUNT is on a kernel of usual speed."""
    return max(1, count // int(rig.kernel.slow))


def patient(rig) -> None:
    """No connection is given up for want of processor time.

    Soft-RoCE gives a peer up after a few seconds without an acknowledgment, and
    a busy machine lets a node stand still for longer. Not for tests that cut.
    """
    for node in rig.nodes:
        if "xrds_ib" in node.modules():
            node.write("/proc/sys/net/xrds/ib/ack_timeout", "20")
            node.write("/proc/sys/net/xrds/heartbeat_ms", "0")


def acknowledge_all(rig) -> None:
    """In-tree RDS asks for an acknowledgment of each message.

    It asks for one in nine else, so that its last messages are unacknowledged for
    good, and a program cannot know whether they have arrived.
    """
    for node in rig.nodes:
        if "rds" in node.modules():
            node.write("/proc/sys/net/rds/max_unacked_packets", "0")


def run(rig, count: int, timeout: float = 100, **options):
    return Stream(rig, count, **options).end(timeout)


def get_credits(rig, count: int) -> None:
    """Until node A has more credits than this for node B. A busy peer gets them, but one
    burst may leave few where the receiver is as fast as the sender.
    """
    def enough() -> bool:
        run(rig, 400, seed=51)
        return remote.shown(rig.a, "connections")[0]["credits"] > count

    remote.until(rig, enough, f"more than {count} credits")


def grown(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: after[name] - before[name] for name in after}


def check_carried(rig, node: Node, delta: dict[str, int], least: int) -> None:
    """RDMA carried it: the device's own counters say so."""
    for name in ("sent_pkts", "rcvd_pkts"):
        rig.check(delta[name] >= least,
                  f"{node}: {name} grew by {delta[name]}, not by {least}")


def check_no_rnr(rig, node: Node, delta: dict[str, int]) -> None:
    for name in RNR:
        rig.check(delta[name] == 0, f"{node}: {name} grew by {delta[name]}")
