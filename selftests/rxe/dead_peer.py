# SPDX-License-Identifier: GPL-2.0-only
"""A node that is gone holds up nobody but those who want it."""

import time

import remote
import traffic

TIMEOUT = 240
WAITS = True
KILL_SECONDS = 1
NOBODY = "10.0.0.99"
STATUS_SECONDS = 60
DIALS = 1500                # more than wait for an interface at most
USER = 1001
FIRST = "10.64.0.1"
MANY = 100
TURNS = 3                   # at most, of others
BREAK = "/sys/kernel/debug/xrds/break"


def kill_holder(rig, peer: str, count: int, *, some: bool = True) -> None:
    """A process with messages that do not go ends promptly if killed; some
    there must be, unless the peer may refuse them.
    """
    holder = rig.a.start("echo pid $$; exec helper_hold_socket "
                         f"{rig.a.ip} {peer} {count}")
    held = int(holder.expect(r"^holding (\d+)\n")[1])
    took = remote.killed(rig.a, holder.expect(r"^pid (\d+)$")[1])
    holder.wait(check=False)
    rig.check(took < KILL_SECONDS * rig.kernel.slow,
              f"{took:.2f} s to end\n{holder.out}")
    rig.check(not some or held, f"nothing was queued\n{holder.out}")


def test_kill_never_there(rig):
    """To a node that never existed; queued, and waiting in sendmsg()."""
    for count in (10, 0):
        kill_holder(rig, NOBODY, count)


test_kill_never_there.leaves = "messages"


def test_kill_cut_off(rig):
    """To a node that was connected and vanished."""
    traffic.run(rig, 200)
    rig.b.cut()
    for count in (10, 0):
        kill_holder(rig, rig.b.ip, count)
    rig.b.join()
    traffic.run(rig, 200, seed=2)


def test_status(rig):
    """XRDS_DEST_STATUS says that a node was not reached, and that it is."""
    traffic.run(rig, 200)
    rig.b.cut()
    holder = rig.a.start(f"helper_hold_socket {rig.a.ip} {rig.b.ip} 10")
    holder.expect("state error", timeout=STATUS_SECONDS)
    rig.b.join()
    holder.expect(r"state error\n(.*\n)*state up", timeout=STATUS_SECONDS)
    holder.kill()


def test_partition(rig):
    """Messages to a dead node take nothing from those to a live one."""
    def took(seed: int) -> float:
        # by the clocks of the nodes: starting the programs does not count
        return max(float(result["secs"])
                   for result in traffic.run(rig, 2000, seed=seed))

    traffic.patient(rig)
    alone = [took(3)]
    holder = rig.a.start(f"helper_hold_socket {rig.a.ip} {NOBODY} 0")
    holder.expect("holding [1-9]")
    # what the dead node takes from them it takes in every turn
    beside = []
    for turn in range(TURNS):
        beside.append(took(4 + turn))
        if beside[-1] < 4 * alone[0] + 2:
            break
    rig.check(holder.code is None, "the holder ended")
    holder.kill()
    alone.append(took(4 + TURNS))
    rig.diag(f"2000 messages: {alone} s, {beside} s beside a dead node")
    # a message that waited for the dead node would wait for seconds, each
    rig.check(min(beside) < 4 * max(alone) + 2,
              "the dead node took time from others")


test_partition.leaves = "messages"


def test_shared(rig):
    """A user who asks for many more connections than may be tried does not hold
    up users of connections that have been up.
    """
    # those in front would take more than 100 s
    rig.a.write("/proc/sys/net/xrds/max_connects_per_s", "1")
    hold = f"exec su nobody -s /bin/bash -c 'helper_hold_socket {rig.a.ip}"
    # a hash finds the row in which a connection waits; hardly ever have both of two
    # peers the row of the user whose attempts are in vain
    holds = (hold, hold.replace(rig.a.ip, rig.a.ip6))
    peers = (rig.b.ip, rig.b.ip6)
    for begin, peer in zip(holds, peers):
        rig.a.start(f"{begin} {peer} 1'").expect("state up")
    rig.a.start(f"{hold} 10.0.0.100 1 & for n in {{101..{104 + MANY}}}; do "
                f"helper_hold_socket {rig.a.ip} 10.0.0.$n 1 & done; wait'")
    remote.wait_above(rig.a, "limit_dials", MANY)
    rig.a.write(BREAK, "1")
    pings = [rig.a.start(f"xrds-ping -c 1 -w 40 {peer}") for peer in peers]
    done = [ping.wait(60, check=False) for ping in pings]
    rig.diag(f"pings: {[ping.code for ping in done]}")
    rig.check(any(not ping.code for ping in done), f"both waited: {done}")


test_shared.leaves = "messages"


def test_cut_and_join(rig):
    """Frames vanish for a while, several times, in the midst of a stream."""
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=4, stall=100)
    stream.flowing()
    for pause in (0.5, 3, 6):
        rig.b.cut()
        time.sleep(pause)
        rig.b.join()
        time.sleep(1)
    stream.stop(150)


def test_pause(rig):
    """The peer stands still for a while."""
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=5, stall=100)
    stream.flowing()
    rig.b.pause()
    time.sleep(5)
    rig.b.resume()
    stream.stop(150)


def test_pause_minute(rig):
    """The peer stands still for longer than every timer."""
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=8, stall=150)
    stream.flowing()
    rig.b.pause()
    time.sleep(60)
    rig.b.resume()
    begin = time.monotonic()
    for node in rig.nodes:
        remote.wait_above(node, "recv_queued",
                          remote.counter(node, "recv_queued") + 30)
    seconds = time.monotonic() - begin
    rig.diag(f"data flows both ways after {seconds:.1f} s")
    stream.stop(200)


def test_link_down(rig):
    """The link is down longer than retries last."""
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=6, stall=100)
    stream.flowing()
    rig.a.link(False)
    time.sleep(10)
    rig.a.link(True)
    stream.stop(150)


def test_interface_down(rig):
    """An interface is down, and a thousand attempts fail meanwhile. When it is up
    again the peer is reached as before: what waits for the interface stays there.
    """
    traffic.run(rig, 200)
    # ends of streams need not wait for nodes that do not exist
    rig.a.write("/proc/sys/net/xrds/linger_ms", "1000")
    rig.a.run("ip link set eth0 down")
    try:
        remote.wait_lost(rig.a, rig.b)
        ended = remote.counter(rig.a, "ib_ep_freed")
        crowd = rig.a.start(f"helper_many_dials {rig.a.ip} {FIRST} {DIALS} {USER}")
        crowd.expect("waiting", timeout=60)
        remote.wait_above(rig.a, "ib_ep_freed", ended + DIALS, 100)
        crowd.kill()
        crowd.wait(check=False)
    finally:
        rig.a.run(f"ip link set eth0 up && neighbours 1 {len(rig.nodes)} && "
                  f"ip addr replace {rig.a.ip6}/64 dev eth0 nodad")
    rig.a.run(f"xrds-ping -c 1 -w 60 {rig.b.ip}", timeout=70)
    traffic.run(rig, 200, seed=2)
    rig.a.wait_for("[ $(helper_counter obj_msgs) = 0 ]", 60)


def test_device_gone(rig):
    """The RDMA device is removed under traffic and comes back."""
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=7, stall=100)
    stream.flowing()
    rig.a.run("rdma link delete rxe0", timeout=30)
    rig.a.run("rdma link add rxe0 type rxe netdev eth0")
    stream.stop(150)
