# SPDX-License-Identifier: GPL-2.0-only
"""Many idle connections: their cost, and their end.

The cost of those of in-tree RDS is measured beside it, on the same nodes; fewer
do, as each costs megabytes, and it has no collection to wait for.

ADDRESSES in the environment is the number of remote addresses; there is a
connection from each of 16 local ones to each of them.
"""

import json
import os

import close
import traffic
from reconnect import memory_kib

LOCAL = 16
REMOTE = int(os.environ.get("ADDRESSES", "32"))
CROSSING = 8                # the same where both sides end at the same moment
ROUNDS = 4
SMALL_QUEUE = 80            # receive buffers: not one for each of these
DELAY = "modprobe sch_netem; tc qdisc add dev eth0 root netem delay 50ms"
BUFFERS = 4 * 64            # windows that a device has receive buffers for
IN_TREE = 4                 # in-tree RDS: from so many addresses to so many
TIMEOUT = 500
QUARANTINED = ("kmalloc-512", "kmalloc-1k", "kmalloc-2k", "kmalloc-4k")
GIDS = "/sys/class/infiniband/rxe0/ports/1/gids"


def _addresses(node, number: int) -> list[str]:
    return [f"10.1.{node.number}.{n + 1}" for n in range(number)]


def _add(rig, here, there, mine: list[str], theirs: list[str]) -> None:
    _, mac = rig.switch.port(there.number)
    here.run(f"for a in {' '.join(mine)}; do ip addr add $a/16 dev eth0; done; "
             f"for a in {' '.join(theirs)}; do ip neigh add $a lladdr {mac} "
             "dev eth0 nud permanent; done")
    here.wait_for(f"[ $(grep -hs ffff:0a01:{here.number:02x} {GIDS}/* | "
                  f"wc -l) = {len(mine)} ]")


def _remove(node) -> None:
    node.run("ip addr flush dev eth0 to 10.1.0.0/16; "
             "ip neigh flush dev eth0 nud permanent to 10.1.0.0/16")


def _memory_kib(node) -> int:
    """Without that of threads: the kernel starts some for work that waits for
    devices, when all connections end at once, and keeps them for five minutes.
    The rest of one takes about as much as its stack.

    KASAN keeps up to a 32nd of the memory after it has been freed.
    """
    if node.kernel.name == "debug":
        for cache in QUARANTINED:
            node.run(f"echo 1 > /sys/kernel/slab/{cache}/shrink", timeout=60)
    stacks = int(node.run("grep KernelStack /proc/meminfo").out.split()[1])
    return memory_kib(node) - 2 * stacks


def _mesh(rig, near: list[str], far: list[str]):
    mesh = rig.a.start(f"helper_connect_mesh {','.join(near)} {','.join(far)}")
    mesh.expect(f"connected {len(near) * len(far)}$", timeout=200)
    return mesh


def _posted(node) -> int:
    devices = json.loads(node.run("xrds-info --json devices").out)["devices"]
    return sum(device["recv-posted"] for device in devices)


def _end(*procs) -> None:
    for proc in procs:
        proc.kill()
        proc.wait(check=False)


def _connect(rig, local: int, remote: int) -> tuple[list[str], list[str]]:
    """Both nodes have addresses, and connections stay. Returns the addresses."""
    near, far = _addresses(rig.a, local), _addresses(rig.b, remote)
    _add(rig, rig.a, rig.b, near, far)
    _add(rig, rig.b, rig.a, far, near)
    close.idle(rig, 0)
    return near, far


def _in_tree(rig, near: list[str], far: list[str]) -> str:
    """Bytes of a connection of in-tree RDS on either node.

    The nodes are booted anew behind that: in-tree RDS leaves things behind when
    it is unloaded with connections, and on 7.2 the kernel then panics.
    """
    for node in rig.nodes:
        node.run("unload xrds_ib xrds && modprobe rds_rdma")
    # objects that the first connection makes for all
    first = _mesh(rig, near[:1], far[:1])
    before = [memory_kib(n) for n in rig.nodes]
    mesh = _mesh(rig, near[1:1 + IN_TREE], far[1:1 + IN_TREE])
    costs = [(memory_kib(node) - used) * 1024 // IN_TREE ** 2
             for node, used in zip(rig.nodes, before)]
    _end(first, mesh)
    for node in rig.nodes:
        node.kill()
        node.boot()
    for node in rig.nodes:
        node.wait_booted()
        node.run("modprobe xrds_ib")
    return ", ".join(f"{node} {cost}" for node, cost in zip(rig.nodes, costs))


def test_idle_connections(rig):
    """Memory for each connection, measured; collection brings it back."""
    # hundreds of idle connections, each with heartbeats: one that was lost would stay
    traffic.patient(rig)
    near, far = _connect(rig, LOCAL, REMOTE)
    pairs = LOCAL * REMOTE
    # objects that the first connection makes for all
    first = _mesh(rig, near[:1], far[:1])
    before = [_memory_kib(n) for n in rig.nodes]
    mesh = _mesh(rig, near, far)
    costs = []
    for node, used in zip(rig.nodes, before):
        conns = close.counters(node)["obj_conns"]
        rig.check(conns == pairs, f"{node}: {conns} connections")
        grown = _memory_kib(node) - used
        rig.diag(f"{node}: {pairs} idle connections: {grown} KiB, "
                 f"{grown * 1024 // pairs} bytes each")
        costs.append(grown)
        posted = _posted(node)
        rig.check(posted <= BUFFERS, f"{node}: {posted} receive buffers")
    close.idle(rig, 500)
    for node in rig.nodes:
        close.wait_gone(node, 120)
    for node, used, cost in zip(rig.nodes, before, costs):
        more = _memory_kib(node) - used
        rig.diag(f"{node}: all collected: {more} KiB more than with one")
        # slabs and page tables that are not quite empty
        rig.check(more < cost // 10, f"{node}: {more} KiB of {cost} stay")
    rig.check(mesh.code is None, "the mesh ended")
    _end(first, mesh)
    # which complains of itself on a kernel that looks
    if rig.kernel.name != "debug":
        rig.diag(f"in-tree RDS: bytes for each of {IN_TREE ** 2} idle "
                 f"connections: {_in_tree(rig, near, far)}")
        return
    for node in rig.nodes:
        _remove(node)


test_idle_connections.reboots = True


def test_crossing(rig):
    """Both sides end all connections, where credits come late: the last word of
    each comes through.
    """
    for node in rig.nodes:
        node.run("modprobe -r xrds_ib && modprobe xrds_ib", timeout=30)
        node.write("/proc/sys/net/rds/ib/max_recv_wr", str(SMALL_QUEUE))
    traffic.patient(rig)
    near, far = _connect(rig, LOCAL, CROSSING)
    before = [close.counters(n) for n in rig.nodes]
    for _ in range(ROUNDS):
        mesh = _mesh(rig, near, far)
        for node in rig.nodes:
            node.run(DELAY)
        close.idle(rig, 300)
        for node in rig.nodes:
            close.wait_gone(node, 60)
        close.idle(rig, 0)
        for node in rig.nodes:
            node.run("tc qdisc del dev eth0 root")
        _end(mesh)
    for node, old in zip(rig.nodes, before):
        grown = close.delta(node, old)
        for name in ("conn_reset", "conn_timeout"):
            rig.check(grown[name] == 0, f"{node}: {name} grew by {grown[name]}")
        _remove(node)
