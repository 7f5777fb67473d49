# SPDX-License-Identifier: GPL-2.0-only
"""RDMA in network namespaces, where the driver can do that: soft-RoCE on 7.2.

    node1:  namespace s1        namespace s2
            v1, rx1  <-- veth -->  v2, rx2
            10.9.0.1               10.9.0.2
"""

import contextlib

NODES = 1
KERNELS = "7.2"
TIMEOUT = 120
NAMES = ("s1", "s2")


def _ip(number: int) -> str:
    return f"10.9.0.{number}"


@contextlib.contextmanager
def _namespaces(node):
    """Two of them, each with a device; they are gone when this ends well."""
    node.run("; ".join(f"ip netns add {name}" for name in NAMES))
    node.run("ip link add v1 netns s1 type veth peer name v2 netns s2")
    for number, name in enumerate(NAMES, 1):
        inside = f"ip netns exec {name}"
        node.run(f"{inside} ip addr add {_ip(number)}/24 dev v{number} && "
                 f"{inside} ip link set v{number} up && "
                 f"{inside} ip link set lo up && "
                 f"{inside} rdma link add rx{number} type rxe netdev v{number}")
    yield
    node.run("; ".join(f"ip netns del {name}" for name in NAMES))
    # a namespace takes its interfaces with it, and they their devices
    node.wait_for("! ls /sys/class/infiniband | grep -q ^rx[12]$", 60)


def _stream(node, count: int, number: int):
    role = "ab"[number - 1]
    return node.start(f"ip netns exec s{number} helper_stream -R {role} "
                      f"-l {_ip(number)} -r {_ip(3 - number)} -c {count} "
                      f"-S 1 -s 4 -i 60 -p 5000")


def _run(node, count: int) -> None:
    for proc in [_stream(node, count, number) for number in (1, 2)]:
        proc.wait(100)


def test_netns(rig):
    """Data flows between namespaces, and they end with their connections."""
    node = rig.a
    # the first namespace sees when the devices of others are gone
    node.run("rdma system set netns shared")
    with _namespaces(node):
        node.run("ip netns exec s1 bash -c 'echo 0 > "
                 "/proc/sys/net/xrds/idle_ms'")
        _run(node, 2000)
    # they can be made again with the same names and addresses
    with _namespaces(node):
        _run(node, 500)


def test_local(rig):
    """Nobody binds another namespace's address."""
    with _namespaces(rig.a):
        for inside in ("", "ip netns exec s2 "):
            done = rig.a.run(f"{inside}timeout 30 helper_hold_socket {_ip(1)}",
                             check=False)
            rig.check(done.code and "EADDRNOTAVAIL" in done.out,
                      f"bound: exit {done.code}: {done.out}")


def test_lingers(rig):
    """A namespace goes although its last messages find nobody."""
    with _namespaces(rig.a):
        rig.a.run("ip netns exec s1 bash -c 'echo 1000 > "
                  "/proc/sys/net/xrds/linger_ms'")
        _run(rig.a, 200)
        holder = rig.a.start("ip netns exec s1 helper_hold_socket "
                             f"{_ip(1)} {_ip(9)} 3")
        holder.expect("holding 3")
        holder.kill()
        holder.wait(check=False)


def test_classic(rig):
    """A namespace goes although its peer speaks as in-tree RDS does, and would
    dial again.
    """
    rig.a.run("modprobe -r xrds_ib && modprobe xrds_ib classic=1", timeout=30)
    with _namespaces(rig.a):
        _run(rig.a, 500)


def test_link_gone(rig):
    """The interface goes down before the namespace does."""
    with _namespaces(rig.a):
        _run(rig.a, 200)
        rig.a.run("ip netns exec s1 ip link set v1 down")
