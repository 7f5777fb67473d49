# SPDX-License-Identifier: GPL-2.0-only
"""A device that refuses what is posted to it (selftests/kmod/xrds_refuse.c).

Here and there in a chain of requests, of any kind. A connection ends by that
and another one follows; no message is lost or doubled, each op has one
outcome, and nothing is left.
"""

import contextlib
import signal

import rdma_faults
import remote
import traffic

MODULES = "xrds_ib xrds_refuse"
TIMEOUT = 240
KNOBS = "/sys/module/xrds_refuse/parameters"
DELAY = "/proc/sys/net/rds/reconnect_max_delay_ms"
REFUSED = 4         # on each node, at least


def _refused(node, kind: str) -> int:
    return int(node.read(f"{KNOBS}/refused_{kind}s"))


@contextlib.contextmanager
def _refusing(nodes, kind: str, every: int):
    """Each so many-th request is refused, while it lasts."""
    for node in nodes:
        node.write(f"{KNOBS}/{kind}", str(every))
    try:
        yield
    finally:
        for node in nodes:
            node.write(f"{KNOBS}/{kind}", "0")


def _wait_refused(rig, kind: str) -> None:
    before = [_refused(node, kind) for node in rig.nodes]

    def enough() -> bool:
        return all(_refused(node, kind) >= count + REFUSED
                   for node, count in zip(rig.nodes, before))

    remote.until(rig, enough, f"{REFUSED} {kind}s refused on each node")


def _report(rig, kind: str, counter: str) -> None:
    for node in rig.nodes:
        count = _refused(node, kind)
        rig.diag(f"{node}: {count} refused, {counter} "
                 f"{remote.counter(node, counter)}")
        rig.check(remote.counter(node, counter) > 0, f"{node}: no {counter}")


def test_sends(rig):
    """Messages of all sizes both ways, and ops, some of them refused."""
    for node in rig.nodes:
        # the delay between attempts is not what is tested
        node.write(DELAY, "5")
    pair = remote.Pair(rig)
    ops = pair.start("helper_rdma_faults marks", 1000000)
    ops.expect("flowing")
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=61, stall=100)
    stream.flowing()
    for every in (300, 101, 53):
        with _refusing(rig.nodes, "send", every):
            _wait_refused(rig, "send")
        rig.check(ops.code is None, "the ops have ended")
    stream.stop(150)
    done = remote.counter(rig.a, "rdma_done")
    remote.wait_above(rig.a, "rdma_done", done + 100)
    ops.kill(signal.SIGUSR1)
    result = rdma_faults.outcome(ops.wait(rdma_faults.LIMIT).out, "marks")
    rig.diag(f"{result}")
    rig.check(result["dropped"] > 0 and result["success"] > 100, f"{result}")
    pair.end()
    traffic.run(rig, 400, seed=62, port=6000)
    _report(rig, "send", "ib_tx_post_error")


def test_buffers(rig):
    """Receive buffers: those that were not posted are posted later."""
    with _refusing(rig.nodes, "recv", 3):
        traffic.run(rig, 4000, seed=63, sockets=8, port=6100)
    _report(rig, "recv", "ib_rx_post_error")


def test_no_buffers(rig):
    """A device that takes no receive buffer for a while: traffic stands still,
    and goes on over the same connection.
    """
    posted = "xrds-info --json devices | grep -o 'recv-posted.: *[0-9]*'"
    # a slow machine may need longer than that to look, and longer than the
    # queue pair may complete nothing
    traffic.patient(rig)
    ups = [remote.counter(node, "conn_up") for node in rig.nodes]
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=64, stall=100,
                            port=6200)
    stream.flowing()
    refused = _refused(rig.b, "recv")
    with _refusing([rig.b], "recv", 1):
        remote.until(rig, lambda: _refused(rig.b, "recv") > refused,
                     "a buffer is refused")
        rig.b.wait_for(f"a=$({posted}); sleep 0.5; test \"$({posted})\" = "
                       "\"$a\"")
        rig.diag(f"{rig.b.run(posted).out.strip()}, and stays so")
    for result in stream.stop(150):
        rig.diag(f"longest rest: {result['max_gap_ms']} ms")
    rig.check([remote.counter(node, "conn_up") for node in rig.nodes] ==
              [up + 1 for up in ups], "another connection was needed")


def test_registration(rig):
    """A region that the device does not register: an errno, and it works when
    the device does.
    """
    with _refusing([rig.b], "send", 1):
        out = rig.b.run(f"helper_serve_memory {rig.b.ip} 4096", check=False)
        rig.check(out.code != 0, "it was registered")
        rig.diag(out.out.strip())
    rig.check(_refused(rig.b, "send") > 0, "nothing was refused")
    rig.check(remote.counter(rig.b, "obj_mrs") == 0, "a region is left")
    remote.Pair(rig, offered=4096).end()
