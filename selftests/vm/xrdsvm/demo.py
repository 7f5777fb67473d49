# SPDX-License-Identifier: GPL-2.0-only
"""make demo: two nodes talk, and a first-time reader sees that they do."""

import os
import time

from . import qemu
from .kernels import Kernel
from .node import Failed, Node
from .rig import Rig, build_modules

# Development without the modules: XRDS_DEMO_MODULES=rds_rdma shows in-tree RDS.
MODULES = os.environ.get("XRDS_DEMO_MODULES", "xrds_ib")
PINGS = 10
SECONDS = 180
PROOF = ("sent_pkts", "rcvd_pkts", "rdma_sends", "rdma_recvs")
TROUBLE = ("rcvd_rnr_err", "send_rnr_err", "rcvd_seq_err",
           "completer_retry_err")


def run(kernel: Kernel) -> int:
    """The whole show; its exit status."""
    print("XRDS: reliable datagrams over RDMA, between two virtual nodes\n")
    print("  building, and booting two nodes ...", flush=True)
    modules = build_modules(kernel) if MODULES.startswith("xrds") else []
    with Rig(kernel, 2, modules) as rig:
        print(f"  kernel {kernel.release} under {qemu.accelerator()}, "
              f"up in {rig.boot_seconds:.0f} s\n")
        try:
            _show(rig)
            _unload(rig)
        except Failed as error:
            print(f"\nFAILED: {error}")
            return 1
        bad = [f"{n}: {line}" for n in rig.nodes for line in n.complaints()]
        for line in bad:
            print(line)
        return 1 if bad else 0


def _show(rig: Rig) -> None:
    for node in rig.nodes:
        node.run(f"modprobe -a {MODULES}")
        rdma = node.run("rdma link show rxe0/1").out.split()
        print(f"  {node}   {node.ip}   {node.ip6}   "
              f"rxe0 {rdma[rdma.index('state') + 1]} on eth0   "
              f"modprobe {MODULES}")
    before = [n.hw_counters() for n in rig.nodes]
    _ping(rig.a, rig.b)
    messages, volume = _messages(rig.a, rig.b)
    _proof(rig, before)
    _rdma(rig.a, rig.b)
    print(f"\nOK: {messages} messages, {volume / 2**20:.1f} MiB: none lost, "
          "doubled, changed or out of order")


def _ping(a: Node, b: Node) -> None:
    print(f"\nPing, {a} to {b}: messages to port 0, the kernel answers")
    for local, remote in ((a.ip, b.ip), (a.ip6, b.ip6)):
        out = a.run(f"demo ping {local} {remote} {PINGS}", SECONDS).out
        count, first, low, mean, high = out.split()
        print(f"  {remote:10} {count} answers, round trip {low} / {mean} / "
              f"{high} ms (min/mean/max), connected in {first} ms")


def _messages(a: Node, b: Node) -> tuple[int, int]:
    print(f"\nMessages, {a} to {b}: the receiver compares every byte and the "
          "order")
    receiver = b.start(f"demo recv {b.ip} {a.ip}")
    receiver.expect("ready")
    sender = a.start(f"demo send {a.ip} {b.ip}")
    messages = volume = 0
    for line in receiver.wait(SECONDS).out.splitlines()[1:]:
        size, count, elapsed = (float(word) for word in line.split())
        print(f"  {count:5.0f} x {_human(int(size)):>8}   as sent, in order   "
              f"{1000 * elapsed / count:8.1f} us each")
        messages += int(count)
        volume += int(count * size)
    sender.wait(SECONDS)
    return messages, volume


def _rdma(a: Node, b: Node) -> None:
    """Ops on memory of the other node, until that dies of them."""
    print(f"\nRDMA: {b} offers 1 MiB, {a} writes to it and reads from it, "
          "and\nwaits for messages, send space and the barrier in one poll()")
    b.start(f"demo offer {b.ip}").expect("ready")
    user = a.start(f"demo use {a.ip} {b.ip}")
    user.expect("writing", SECONDS)
    b.kill()
    died = time.monotonic()
    lines = user.wait(SECONDS).out.splitlines()
    seconds = time.monotonic() - died
    for line in lines[:lines.index("compared")]:
        print(f"  {line}")
    print(f"  {b} has what was written, {a} has read the same: byte by byte\n"
          f"  power of {b} cut, writes under way; {seconds:.1f} s later:\n"
          f"  {lines[-1]}")


def _human(size: int) -> str:
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"


def _proof(rig: Rig, before: list[dict[str, int]]) -> None:
    after = [n.hw_counters() for n in rig.nodes]
    print("\nRDMA carried them: hw_counters of rxe0 since the modules came")
    print(f"  {'':20}" + "".join(f"{str(n):>10}" for n in rig.nodes))
    for name in PROOF + TROUBLE:
        values = [new[name] - old[name] for old, new in zip(before, after)]
        print(f"  {name:20}" + "".join(f"{v:10}" for v in values))
    for node, old, new in zip(rig.nodes, before, after):
        if new["rdma_sends"] == old["rdma_sends"]:
            raise Failed(f"{node} sent nothing by RDMA")


def _unload(rig: Rig) -> None:
    for node in filter(Node.alive, rig.nodes):
        node.run(f"unload xrds_ib xrds {MODULES}")
