# SPDX-License-Identifier: GPL-2.0-only
"""Memory that is not there while connections start over the wire.

Where XRDS starts connections (selftests/kmod/xrds_inject.c), on both nodes or
on one, allocations fail: with a probability, or once after so much was had. A
start that fails is tried again, so each message arrives, and once only. No
complaint, no leak, no hang; and with memory there is traffic again.

The allocations of system calls themselves fail in loop/faultinject.
"""

import contextlib
import signal

import traffic

KERNELS = "debug"
MODULES = "xrds_ib xrds_inject"
TIMEOUT = 300
PORT = 4630
EACH = 8            # addresses of a node: a connection from each to each
POINTS = 10         # places in a start where it fails
MEASURED = 3        # starts without a failure before that
PLENTY = 1 << 30    # more than a start takes, bytes or pages
GIDS = "/sys/class/infiniband/rxe0/ports/1/gids"
INJECT = ". /xrds/selftests/lib/inject.sh"


def _address(node, number: int) -> str:
    return f"10.1.{node.number}.{number + 1}"


@contextlib.contextmanager
def _addresses(rig):
    """Addresses between which there is no connection yet, while it lasts.

    The delay between attempts is not what is tested, so it is short.
    """
    for here, there in ((rig.a, rig.b), (rig.b, rig.a)):
        mine = " ".join(_address(here, n) for n in range(EACH))
        theirs = " ".join(_address(there, n) for n in range(EACH))
        _, mac = rig.switch.port(there.number)
        here.run("echo 5 > /proc/sys/net/rds/reconnect_max_delay_ms; "
                 f"for a in {mine}; do ip addr add $a/16 dev eth0; done; "
                 f"for a in {theirs}; do ip neigh add $a lladdr {mac} "
                 "dev eth0 nud permanent; done")
        here.wait_for(f"[ $(grep -hs ffff:0a01:{here.number:02x} {GIDS}/* | "
                      f"wc -l) = {EACH} ]")
    try:
        yield
    finally:
        for node in filter(lambda n: n.alive(), rig.nodes):
            node.run("ip addr flush dev eth0 to 10.1.0.0/16; "
                     "ip neigh flush dev eth0 nud permanent to 10.1.0.0/16")


class _Injection:
    """Allocations fail on a node, from enter to exit."""

    def __init__(self, node, kind: str, percent: int, times: int,
                 after: int = 0) -> None:
        self._node = node
        self._kind = kind
        self._limits = f"{percent} {times} {after}"
        self._times = times
        self._after = after
        self.struck = self.had = 0

    def __enter__(self) -> "_Injection":
        self._node.starved = True
        self._node.run(f"{INJECT}; inject_marked {self._kind} {self._limits}")
        return self

    def __exit__(self, *_exception) -> None:
        if self._node.alive():
            out = self._node.run(f"{INJECT}; inject_end {self._kind} "
                                 f"{self._times}; inject_had {self._kind} "
                                 f"{self._after}").out
            self.struck, self.had = map(int, out.split())


def _often(rig, kind: str, percent: int, first: int) -> None:
    """Starts from each to each of four addresses, from both sides at once."""
    chosen = [[_address(node, first + n) for n in range(4)]
              for node in rig.nodes]
    with _Injection(rig.a, kind, percent, 500) as a, \
            _Injection(rig.b, kind, percent, 500) as b:
        traffic.run(rig, 400, addresses=chosen, extra="-m 16384")
    for node, injection in zip(rig.nodes, (a, b)):
        rig.diag(f"{kind}, {percent} %, {node}: struck {injection.struck} "
                 "times")
        rig.check(injection.struck > 0, f"{node}: {kind} never struck")
    traffic.run(rig, 400, seed=2, addresses=chosen)


def test_often(rig):
    """Many starts at a time, and any allocation of them may fail. There are
    fewer pages in a start than objects.
    """
    with _addresses(rig):
        _often(rig, "failslab", 10, 0)
        _often(rig, "fail_page_alloc", 40, 4)


def _start(rig, number: int) -> None:
    """A connection that was not there before, by one message and its answer."""
    source = _address(rig.a, number // EACH)
    target = _address(rig.b, number % EACH)
    rig.a.run(f"xrds-ping -q -c 1 -w 60 -I {source} {target}", timeout=70)


def _measured(rig, kind: str, node, numbers) -> int:
    """Memory that starts take on a node, each of them at least."""
    had = []
    for number in numbers:
        with _Injection(node, kind, 100, 1, PLENTY) as injection:
            _start(rig, number)
        had.append(injection.had)
    rig.diag(f"{kind}, {node}: starts took {had}")
    return min(had)


def _once(rig, kind: str, node, numbers) -> None:
    """One failure in a start, at places all over it: near the begin more of
    them, where allocations are small. A start that was over before takes less
    than those that were measured, because buffers are shared.
    """
    most = _measured(rig, kind, node, numbers[:MEASURED])
    struck = []
    for point, number in enumerate(numbers[MEASURED:]):
        after = most * point * point // (POINTS * POINTS)
        with _Injection(node, kind, 100, 1, after) as injection:
            _start(rig, number)
        struck.append(injection.struck)
        if not injection.struck:
            most = min(most, injection.had)
    rig.diag(f"{kind}, {node}: struck {struck}")
    rig.check(2 * sum(struck) >= POINTS, f"{node}: {kind} struck {struck}")


def _once_each(rig, kind: str) -> None:
    with _addresses(rig):
        total = MEASURED + POINTS
        for number, node in enumerate(rig.nodes):
            first = number * total
            _once(rig, kind, node, range(first, first + total))
        traffic.run(rig, 400, addresses=[
            [_address(node, n) for n in range(2)] for node in rig.nodes])


def test_once_slab(rig):
    """The n-th object that a start asks for, on either side."""
    _once_each(rig, "failslab")


def test_once_pages(rig):
    """The n-th page that a start asks for, on either side."""
    _once_each(rig, "fail_page_alloc")


def test_zcopy(rig):
    """A send with MSG_ZEROCOPY that fails anywhere leaves nothing pinned."""
    sink = rig.b.start(f"helper_late_reader {rig.b.ip} {PORT} {4 << 20}")
    sink.expect("ready")
    sink.kill(signal.SIGUSR1)
    rig.a.starved = True
    rig.a.run(f"{INJECT}; inject_quiet")
    out = rig.a.run(f"helper_zcopy fail {rig.a.ip} {rig.b.ip} {PORT}",
                    timeout=60)
    rig.diag(out.out.strip())
