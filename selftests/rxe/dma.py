# SPDX-License-Identifier: GPL-2.0-only
"""A device with DMA addresses (selftests/kmod/xrds_dma.c): each piece of memory is
mapped, synced and unmapped as an adapter needs it.

Here every mapping of node A has a bounce buffer: bytes that were not synced are
missing. Memory that is lent by a key cannot have one, so it is node B's. On the
debug kernel DMA_API_DEBUG complains of each wrong step. There are no workarounds
for soft-RoCE, as on an adapter.
"""

import contextlib
import signal

import close
import rdma_faults
import remote
import traffic

KERNELS = "6.1 debug"
TIMEOUT = 240
PORT = 4750
FAILURES = "ib_tx_sg_mapping_failure"
ADAPTER = "DMA=xrds_dma xrds_dma.faultless=1"
BOOT = (f"{ADAPTER} swiotlb=force", ADAPTER)
PARAMETERS = "/sys/module/xrds_dma/parameters"
EVERY = (50, 7)             # mappings: one of so many fails
LIMIT = 100
PROGRAMS = 6
REGIONS = 2000              # of each
KILLS = 20


MAPPINGS = {                # how to count them, if the kernel can
    "bounce buffers": "cat /sys/kernel/debug/swiotlb/io_tlb_used",
    "mappings": "cd /sys/kernel/debug/dma-api && "
                "echo $(($(cat nr_total_entries) - $(cat num_free_entries)))",
}


def _bounced(rig) -> None:
    """Node A uses bounce buffers, for its receive buffers at least."""
    used = int(rig.a.read("/sys/kernel/debug/swiotlb/io_tlb_used"))
    rig.check(used > 0, "nothing was mapped")


def test_messages(rig):
    """All sizes both ways, over connections that break."""
    for node in rig.nodes:
        node.write("/proc/sys/net/rds/reconnect_max_delay_ms", "5")
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=91)
    stream.flowing()
    _bounced(rig)
    for node in rig.nodes:
        node.run("helper_break_conns 10", timeout=100)
    stream.stop(100)


def test_zerocopy(rig):
    """Payload from memory of the programs."""
    traffic.run(rig, 2000, seed=92, extra="--zerocopy")


def test_bundles(rig):
    """Small messages that go together."""
    traffic.run(rig, 5000, seed=93, extra="-m 200 --batch")


def test_many_requests(rig):
    """The headers of a long send queue fit a bounce buffer without payload only."""
    rig.a.write("/proc/sys/net/rds/ib/max_send_wr", "4096")
    traffic.run(rig, 200, seed=95)
    _bounced(rig)


def test_ops(rig):
    """RDMA writes, reads and atomics. Two pieces of a program's memory may share
    a line of the cache, which DMA_API_DEBUG does not take: here none do.
    """
    traffic.patient(rig)
    for mode in ("smoke", "pieces", "atomics"):
        remote.run(rig, f"helper_rdma {mode}")


def test_keys(rig):
    """Memory that would have a bounce buffer is not lent: a peer's data would
    stay in that.
    """
    result = rig.a.run(f"helper_serve_memory {rig.a.ip} 4096", check=False)
    rig.check(result.code and "EOPNOTSUPP" in result.out, result.out)


def _mappings(node) -> dict[str, int]:
    """Those that there are."""
    counts = {name: node.run(command, check=False)
              for name, command in MAPPINGS.items()}
    return {name: int(done.out) for name, done in counts.items()
            if not done.code}


def _use_everything(rig) -> None:
    """Ops, messages of all kinds over connections that break, and a program that
    is killed while it lends memory.
    """
    traffic.patient(rig)
    for mode in ("smoke", "pieces"):
        remote.run(rig, f"helper_rdma {mode}")
    for extra in ("", "-m 200 --batch", "--zerocopy"):
        stream = traffic.Stream(rig, traffic.ENDLESS, seed=96, extra=extra)
        stream.flowing()
        rig.a.run("helper_break_conns 3", timeout=100)
        stream.stop(100)
    proc = rig.b.start(f"helper_serve_memory {rig.b.ip} 4096")
    proc.expect("ready")
    proc.kill()
    proc.wait(check=False)


def test_leftovers(rig):
    """When the module has gone no mapping is left: with a receive queue that
    connections share, and with one of each.
    """
    for node in rig.nodes:
        node.run("modprobe -r xrds_ib")
    before = [_mappings(n) for n in rig.nodes]
    rig.check("bounce buffers" in before[0], f"{before}")
    for options in ("", "srq=0"):
        for node in rig.nodes:
            node.run(f"modprobe xrds_ib {options}")
        _use_everything(rig)
        for node in rig.nodes:
            node.run("modprobe -r xrds_ib")
        # the core of RDMA also has messages on their way
        remote.until(rig, lambda: [_mappings(n) for n in rig.nodes] == before,
                     f"as many mappings as before: {before}")


def test_registrations(rig):
    """Several programs register memory, and have the device make so many keys valid
    and invalid at a time: none fails, also when others are killed meanwhile.
    """
    device, = remote.shown(rig.b, "devices")
    rig.check("fences" in device["flags"], "XRDS has workarounds")
    procs = [rig.b.start(f"helper_rdma_device_gone spend {rig.b.ip} {rig.a.ip} "
                         f"{traffic.fewer(rig, REGIONS)}")
             for _ in range(PROGRAMS)]
    rig.b.run(f"helper_kill_registering {rig.b.ip} "
              f"{traffic.fewer(rig, KILLS)}", timeout=LIMIT)
    for proc in procs:
        proc.wait(LIMIT)


def _check_no_reset(rig, before) -> None:
    for node, old in zip(rig.nodes, before):
        reset = close.delta(node, old)["conn_reset"]
        rig.check(not reset, f"{node}: {reset} connections have ended")


def test_few_mappings(rig):
    """Payload that cannot be mapped waits: no connection ends for it."""
    traffic.patient(rig)
    before = [close.counters(n) for n in rig.nodes]
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=94, sockets=8,
                            extra=f"-b {4 << 20} -B {4 << 20}")
    remote.wait_above(rig.a, FAILURES, before[0][FAILURES] + 20)
    stream.stop(100)
    _check_no_reset(rig, before)


# in units of 2 KiB; receive buffers take most of it
test_few_mappings.boot = (f"{ADAPTER} swiotlb=2048,force", ADAPTER)


def test_few_mappings_of_ops(rig):
    """Ops that cannot be mapped wait for those in progress: none fails, and no
    connection ends.
    """
    traffic.patient(rig)
    before = [close.counters(n) for n in rig.nodes]
    server = rig.b.start(f"xrds-perf -s -p {PORT} {rig.b.ip}")
    server.expect("ready", 30)
    # 10 MiB at a time; soft-RoCE looks behind the end of a region of 1 MiB
    rig.a.run(f"xrds-perf -v -m write -l 992K -T 11 -w 0 -n 8 -p {PORT} "
              f"{rig.b.ip}", timeout=150)
    server.kill()
    server.wait(check=False)
    counts = close.delta(rig.a, before[0])
    rig.diag(f"{counts[FAILURES]} times without a mapping")
    rig.check(counts[FAILURES] > 0, "all ops were mapped")
    _check_no_reset(rig, before)


# receive buffers leave about half
test_few_mappings_of_ops.boot = (f"{ADAPTER} swiotlb=4096,force", ADAPTER)


def _failed(rig) -> int:
    return int(rig.a.read(f"{PARAMETERS}/failed"))


@contextlib.contextmanager
def _failing(rig, every: int):
    """Every so many-th mapping fails."""
    rig.a.write(f"{PARAMETERS}/every", str(every))
    try:
        yield
    finally:
        rig.a.write(f"{PARAMETERS}/every", "0")


def test_failing(rig):
    """Mappings fail, of all that connections begin with and of messages: each
    message arrives.
    """
    traffic.patient(rig)
    rig.a.write("/proc/sys/net/rds/reconnect_max_delay_ms", "5")
    before = _failed(rig)
    for every in EVERY:
        with _failing(rig, every):
            stream = traffic.Stream(rig, traffic.ENDLESS, seed=95, stall=100)
            stream.flowing()
            rig.a.run("xrds-info reset all")
            remote.wait_above(rig.a, "recv_queued",
                              remote.counter(rig.a, "recv_queued") + 100, 100)
            stream.stop(100)
    rig.diag(f"{_failed(rig) - before} have failed")
    rig.check(_failed(rig) > before + 20, "few have failed")


def test_failing_ops(rig):
    """Ops that cannot be mapped, when nothing is in progress that will free a
    mapping, end as ops of which nothing has left the node.
    """
    traffic.patient(rig)
    rig.a.run(f"xrds-ping -c 1 -w 30 {rig.b.ip}", timeout=40)
    before = [close.counters(n) for n in rig.nodes]
    for kind in ("write", "read", "atomic"):
        pair = remote.Pair(rig)
        proc = pair.start("helper_rdma_faults one_way", kind)
        proc.expect("ready")
        with _failing(rig, 1):
            proc.kill(signal.SIGUSR1)
            result = rdma_faults.outcome(proc.wait(LIMIT).out, "one_way")
        rig.check(result["rejected"] and not result["done"],
                  f"{kind}: {result}")
        pair.end()
    _check_no_reset(rig, before)


def test_failing_key(rig):
    """Memory that cannot be mapped is not lent, and can be later."""
    before = _failed(rig)
    lend = f"helper_serve_memory {rig.a.ip} 4096"
    with _failing(rig, 1):
        result = rig.a.run(lend, check=False)
    rig.check(result.code and "ENOMEM" in result.out, result.out)
    rig.check(_failed(rig) == before + 1, f"{_failed(rig) - before} have failed")
    proc = rig.a.start(lend)
    proc.expect("ready")
    proc.kill()
    proc.wait(check=False)


# a region has no bounce buffer
test_failing_key.boot = ADAPTER
