# SPDX-License-Identifier: GPL-2.0-only
"""Sockets that ask are told once when a node goes, and once when it is back.

NODE_ROUNDS in the environment is how often.
"""

import contextlib
import json
import os
import re
import signal
import time

import close
import remote

ROUNDS = int(os.environ.get("NODE_ROUNDS", "1"))
TIMEOUT = 240 + 60 * ROUNDS
WAITS = True
DEAD_MS = 5000
EARLY_MS = 100                  # jiffies of a busy machine lag
LATE_MS = 1000
PORT = 4700
LOCAL = 10000                   # port of the first socket
LATE_PORT = 4800                # of a program that comes later
MANY = 1000
IDLE_MS = 300
PATIENT_MS = 15000
CLOSES = 60                     # they take longer than that
HEARTBEAT = "/proc/sys/net/xrds/heartbeat_ms"
DEAD = "/proc/sys/net/xrds/peer_dead_ms"
MOST_KB = "/proc/sys/net/xrds/max_memory_kb"
SECOND = "10.0.0.22"            # address of node B
NODE = '"event": "node"'          # news of it
OLD = 20                        # messages for the node that is down
SHORT_DEAD_MS = 500
LONG_DEAD_MS = 600000
ENDED = "its connection has ended for long"


def watching(rig, sockets: int = 1, messages: int = 1):
    """A program that has a destination on node B, and is connected. Probes are all
    that can tell it that the node has gone.
    """
    rig.a.write(HEARTBEAT, "0")
    ups = remote.counter(rig.a, "conn_up")
    watch = rig.a.start(f"helper_node_events {rig.a.ip} {rig.b.ip} {PORT} "
                        f"{sockets} {messages}")
    watch.expect("watching")
    remote.wait_above(rig.a, "conn_up", ups)
    rig.a.wait_for("[ $(helper_counter obj_msgs) = 0 ]")
    return watch


def _events(watch) -> list[str]:
    return re.findall(r"port 0 (\w+) reason", watch.out)


def _told(watch, state: str, seen: int = 1, sockets: int = 1) -> None:
    """The next event of so many sockets, after those that were seen"""
    watch.expect(rf"(.* port 0 .*\n){{{seen}}}"
                 rf"(.* port 0 {state} .*\n){{{sockets}}}", 60)


def told_down(rig, watch, seen: int = 0, sockets: int = 1) -> int:
    """By the clock of node A, and not much later by its turns, which are returned.
    A node that stands still sends its probe late, and then waits half as long again
    for the answer.
    """
    _told(watch, "down", seen, sockets)
    silent, turns = map(int, re.findall(
        r"silent for (\d+) ms, (\d+) in turns", watch.out)[-1])
    why = f"down after {silent} ms of silence, {turns} in turns"
    rig.diag(why)
    rig.check(silent >= DEAD_MS - EARLY_MS and
              turns < DEAD_MS * 3 // 2 * rig.kernel.slow, why)
    return turns


def _last(rig, watch, told: list[str], turns: list[int]) -> None:
    """Down once more, behind these events: one that came twice stands before that.
    So many turns passed before the others; in one case at least the node did not
    stand still.
    """
    turns.append(told_down(rig, watch, len(told)))
    rig.check(_events(watch) == [*told, "down"], watch.out)
    rig.check(min(turns) <= DEAD_MS + LATE_MS, f"down after {turns} ms in turns")


def _shown(rig, **fields) -> dict:
    """The node's row of xrds-info, in which these fields are so, or missing."""
    row, = remote.shown(rig.a, "nodes")
    for name, value in fields.items():
        name = name.replace("_", "-")
        rig.check(row.get(name) == value, f"{name} is not {value}: {row}")
    return row


def _long_enough(rig, milliseconds: int) -> None:
    rig.check(milliseconds >= DEAD_MS - EARLY_MS, f"{milliseconds} ms of silence")


def test_cable(rig):
    """A cable that is cut and joined: down, then up; nobody sends. Netlink tells the
    same.
    """
    watch = watching(rig)
    _shown(rig, state="up", up_conns=1, watches=1, reason=None, silent_ms=None,
           outage_ms=None)
    news = rig.a.start("xrds-info --json events")
    news.expect("listening", 20)
    turns = []
    for number in range(ROUNDS):
        rig.b.cut()
        turns.append(told_down(rig, watch, 2 * number))
        row = _shown(rig, state="down", up_conns=0, reason="lost", outage_ms=None)
        _long_enough(rig, row["silent-ms"])
        rig.b.join()
        _told(watch, "up", 2 * number + 1)
        outage = int(re.findall(r" up .* after (\d+) ms", watch.out)[-1])
        _long_enough(rig, outage)
        _shown(rig, state="up", up_conns=1, reason=None, silent_ms=None,
               outage_ms=outage)
        rig.check(re.findall(r" reason (\d+) ", watch.out)[-2:] == ["1", "0"],
                  watch.out)

    def told() -> list[str]:
        return re.findall(rf".*{NODE}.*\n", news.out)

    remote.until(rig.a, lambda: len(told()) >= 2 * ROUNDS, f"news: {NODE}")
    events = map(json.loads, told())
    rig.check([(e["state"], e.get("reason")) for e in events] ==
              [("down", "lost"), ("up", None)] * ROUNDS, news.out)
    rig.b.cut()
    _last(rig, watch, ["down", "up"] * ROUNDS, turns)


def test_already_down(rig):
    """A program that asks when the node is down already is told at once."""
    watch = watching(rig)
    rig.b.cut()
    told_down(rig, watch)
    late = rig.a.start(f"helper_node_events {rig.a.ip} {rig.b.ip} {LATE_PORT} 1 1")
    late.expect("watching")
    _told(late, "down", 0)
    rig.b.join()
    for program, seen in ((watch, 1), (late, 1)):
        _told(program, "up", seen)
        rig.check(_events(program) == ["down", "up"], program.out)


def test_unloaded(rig):
    """A module that is unloaded and loaded: down, then reborn."""
    watch = watching(rig)
    turns = []
    for number in range(ROUNDS):
        rig.b.run("modprobe -r xrds_ib xrds", timeout=30)
        turns.append(told_down(rig, watch, 2 * number))
        rig.b.run("modprobe xrds_ib")
        _told(watch, "reborn", 2 * number + 1)
    rig.b.cut()
    _last(rig, watch, ["down", "reborn"] * ROUNDS, turns)


def test_two_readers(rig):
    """A reader that cannot take the news of a rebirth leaves it to the next one.
    That one has it, and sleeps, while the node goes and comes back: another
    reader hears of that alone.
    """
    rig.a.write(HEARTBEAT, "0")
    reader = rig.a.start(f"helper_node_readers {rig.a.ip} {rig.b.ip} {PORT} {OLD}")
    reader.expect("watching")
    # after an orderly end the messages would be for any node
    rig.b.cut()
    rig.b.run("modprobe -r xrds_ib xrds", timeout=60)
    reader.expect("queued", 60)
    rig.b.run("modprobe xrds_ib")
    rig.b.join()
    reader.expect("sleeps", 60)
    rig.b.cut()
    reader.expect("sleeps\nmain: down", 60)
    rig.b.join()
    reader.expect("main: up dropped 0\nsleeper: reborn dropped "
                  f"{OLD}\n", 60)
    reader.wait()


def _reborn(rig, watch, ends) -> None:
    """Node B ends that way, and is booted anew: down, then reborn."""
    turns = []
    for number in range(ROUNDS):
        ends()
        turns.append(told_down(rig, watch, 2 * number))
        rig.b.boot()
        rig.b.wait_booted()
        rig.b.run("modprobe xrds_ib")
        _told(watch, "reborn", 2 * number + 1)
    rig.b.cut()
    _last(rig, watch, ["down", "reborn"] * ROUNDS, turns)


def test_power(rig):
    """A node without power, booted anew: down, then reborn. The messages that
    were sent to it meanwhile are dropped, and counted.
    """
    watch = watching(rig, messages=OLD)
    _reborn(rig, watch, rig.b.kill)
    dropped = re.findall(r"reborn reason 0 dropped (\d+)", watch.out)
    rig.check(dropped == [str(OLD)] * ROUNDS, f"dropped {dropped}")


test_power.reboots = True


def _restart(node) -> None:
    """An orderly end: the network goes down, then the kernel restarts."""
    node.killed = True
    node.start("ip link set eth0 down; reboot -f")
    remote.until(node, lambda: not node.alive(), f"{node} restarts")


def test_reboot(rig):
    """A node that is rebooted in order: down, then reborn."""
    watch = watching(rig)
    _reborn(rig, watch, lambda: _restart(rig.b))


test_reboot.reboots = True


def _calm(node) -> bool:
    """Has no connection been up for longer than a node is silent that is down?"""
    row, = remote.shown(node, "nodes")
    return not row["up-conns"] and row["since-ms"] > 2 * SHORT_DEAD_MS


def _idle(rig, node) -> None:
    remote.until(node, lambda: _calm(node), f"{node}: {ENDED}")
    row, = remote.shown(node, "nodes")
    rig.check(row["state"] == "idle", f"{node}: {row}")


@contextlib.contextmanager
def _namespace(node):
    """It has eth0, with a device, and a program that holds a socket."""
    inside = "ip netns exec s2"
    node.run("ip netns add s2 && ip link set eth0 netns s2")
    node.run(f"{inside} ip link set eth0 up && "
             f"{inside} ip addr add {node.ip}/24 dev eth0 && "
             f"{inside} neighbours {node.number} {node.total} && "
             f"{inside} rdma link add rxe0 type rxe netdev eth0")
    holder = node.start(f"{inside} helper_hold_socket {node.ip}")
    holder.expect("holding")
    yield
    # its process would keep the namespace
    holder.kill()
    node.run("ip netns del s2")


def _home(node) -> None:
    """The first namespace has eth0 again, and its device is gone."""
    node.wait_for("[ -e /sys/class/net/eth0 ] && "
                  "! [ -e /sys/class/infiniband/rxe0 ]")


def test_namespace(rig):
    """A network namespace of the peer's that is deleted: down. Another one with
    its address: reborn.
    """
    rig.b.run("rdma link delete rxe0")
    with _namespace(rig.b):
        watch = watching(rig)
    turns = []
    for number in range(ROUNDS):
        turns.append(told_down(rig, watch, 2 * number))
        _home(rig.b)
        with _namespace(rig.b):
            _told(watch, "reborn", 2 * number + 1)
    _last(rig, watch, ["down", "reborn"] * ROUNDS, turns)
    _home(rig.b)
    rig.b.run(f"ip link set eth0 up && ip addr add {rig.b.ip}/24 dev eth0 && "
              f"ip addr add {rig.b.ip6}/64 dev eth0 nodad && "
              f"neighbours {rig.b.number} {rig.b.total}")


test_namespace.kernels = "7.2"


def test_source(rig):
    """Nodes that sockets have received from, and never sent to. One socket asks
    before, one after that, and one does not ask.
    """
    watch = rig.a.start(f"helper_node_events {rig.a.ip} {rig.b.ip} {PORT} 2 0")
    watch.expect("bound")
    for number in range(3):
        rig.b.start(f"helper_hold_socket {rig.b.ip} {rig.a.ip} 1 "
                    f"{LOCAL + number}").expect("holding 1")
    watch.expect("watching")
    rig.b.cut()
    told_down(rig, watch, 0, 2)
    rig.b.join()
    _told(watch, "up", 2, 2)
    for state in ("up", "down"):
        told = sorted(re.findall(rf"socket (\d): .* {state} ", watch.out))
        rig.check(told == ["0", "1"], f"{state}: {watch.out}")


def test_no_memory(rig):
    """Without memory for the news of one more node, a socket keeps those that it
    has. Once there is memory the next message brings the others, though nothing
    is sent on its connection.
    """
    rig.a.write(HEARTBEAT, "0")
    rig.b.run(f"ip addr add {SECOND}/24 dev eth0")
    remote.wait_bound(rig.b, SECOND)
    watch = rig.a.start(f"helper_node_events {rig.a.ip} {rig.b.ip} {PORT} 2 0")
    watch.expect("bound")
    for number in range(3):
        rig.b.start(f"helper_hold_socket {rig.b.ip} {rig.a.ip} 1 {LOCAL + number}")
    watch.expect("watching")
    bound = rig.a.read(MOST_KB)
    rig.a.write(MOST_KB, "0")
    sender = rig.b.start(f"helper_hold_socket {SECOND} {rig.a.ip} 1 {LOCAL}")
    sender.expect("state up")
    rig.b.wait_for("[ $(helper_counter obj_msgs) = 0 ]")
    watch.kill(signal.SIGUSR1)
    watch.expect("again: Disk quota exceeded, 1\n")
    rig.a.write(MOST_KB, bound)
    ends = remote.counter(rig.a, "recv_eos")
    sender.kill()
    remote.wait_above(rig.a, "recv_eos", ends)
    rig.b.cut()
    _told(watch, "down", 0, 3)
    told = sorted(re.findall(r"(socket \d: \S+) .* down ", watch.out))
    rig.check(told == [f"socket 0: {rig.b.ip}", f"socket 0: {SECOND}",
                       f"socket 1: {rig.b.ip}"], watch.out)
    rig.b.join()
    rig.b.run(f"ip addr del {SECOND}/24 dev eth0")


def test_legacy(rig):
    """A node with in-tree RDS that is cut off, or unloads it: down, and up. It
    has no identity.
    """
    watch = watching(rig)
    rig.b.cut()
    told_down(rig, watch)
    rig.b.join()
    _told(watch, "up")
    rig.b.run("unload rds_rdma rds")
    told_down(rig, watch, 2)
    rig.b.run("modprobe rds_rdma")
    _told(watch, "up", 3)
    rig.check(_events(watch) == ["down", "up"] * 2, watch.out)


test_legacy.modules = ("xrds_ib", "rds_rdma")
test_legacy.kernels = "6.1 6.12"


def test_idle(rig):
    """A connection that the peer closes whenever it is idle: no event, for
    longer than a node is silent that is down.
    """
    # a node that stands still for DEAD_MS is down
    rig.a.write(DEAD, str(PATIENT_MS))
    watch = watching(rig)
    closed = remote.counter(rig.a, "conn_closed")
    start = time.monotonic()
    close.idle(rig, IDLE_MS)
    remote.wait_above(rig.a, "conn_closed", closed + CLOSES, 240)
    took = time.monotonic() - start
    rig.check(took > PATIENT_MS / 1e3, f"{CLOSES} closes in {took:.1f} s")
    close.idle(rig, 0)
    rig.b.cut()
    _told(watch, "down", 0)
    rig.check(_events(watch) == ["down"], watch.out)


def test_reset(rig):
    """A connection that nobody uses is reset: its node is not down, and a socket that
    asks then is told nothing.
    """
    for node in rig.nodes:
        node.write(DEAD, str(SHORT_DEAD_MS))
        node.start(f"helper_hold_socket {node.ip}").expect("holding")
    rig.a.run(f"xrds-ping -c 1 -w 60 {rig.b.ip}", timeout=70)
    rig.a.wait_for("[ $(helper_counter obj_msgs) = 0 ]")
    rig.b.wait_for("[ $(helper_counter obj_msgs) = 0 ]")
    rig.a.run(f"xrds-info reset {rig.b.ip}")
    for node in rig.nodes:
        _idle(rig, node)
        node.write(DEAD, str(DEAD_MS))
    watch = watching(rig)
    rig.a.run(f"xrds-ping -c 1 -w 60 {rig.b.ip}", timeout=70)
    rig.check(not _events(watch), watch.out)


def test_wrong_key(rig):
    """An op with a wrong key is the last that a connection has: it ends, and neither
    node is down.
    """
    for node in rig.nodes:
        node.write(DEAD, str(SHORT_DEAD_MS))
    op = remote.Pair(rig).start("helper_rdma_faults wrong_key")
    op.expect("ready")
    for node in rig.nodes:
        # it would make the connection again
        node.wait_for("[ $(helper_counter obj_msgs) = 0 ]")
    op.kill(signal.SIGUSR1)
    op.expect("ended")
    for node in rig.nodes:
        _idle(rig, node)


def test_sooner(rig):
    """The time after which a node is down becomes shorter, while that of a lost one
    runs.
    """
    rig.a.write(DEAD, str(LONG_DEAD_MS))
    watch = watching(rig)
    rig.b.cut()
    rig.a.run(f"xrds-info reset {rig.b.ip}")
    remote.wait_lost(rig.a, rig.b)
    rig.a.write(DEAD, str(SHORT_DEAD_MS))
    _told(watch, "down", 0)


def test_many(rig):
    """A thousand sockets are told once each, and one that did not ask is not. An
    event that came twice stands before those of another cut.
    """
    watch = watching(rig, MANY)

    def told(state: str, times: int) -> list[int]:
        """The sockets, when there are so many events for each"""
        # one expression for all lines would look at all of them for each
        remote.until(rig, lambda: len(re.findall(rf"^socket .* {state} .*\n",
                                                 watch.out, re.M)) >=
                     MANY * times, f"all are told: {state}")
        return sorted(map(int, re.findall(rf"^socket (\d+): .* {state} ",
                                          watch.out, re.M)))

    rig.b.cut()
    told("down", 1)
    rig.b.join()
    told("up", 1)
    rig.b.cut()
    for state, times in (("down", 2), ("up", 1)):
        sockets = told(state, times)
        rig.check(sockets == sorted([*range(MANY)] * times),
                  f"{state}: {len(sockets)} events")
