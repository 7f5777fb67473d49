# SPDX-License-Identifier: GPL-2.0-only
"""RDMA ops while connections break, nodes die, and memory is refused."""

import re
import signal

import close
import remote
import traffic

TIMEOUT = 240
FAULTS = "helper_rdma_faults"
NOBODY = "10.0.0.99"
LIMIT = 120                 # seconds, for the end of a mode
BREAK = "/sys/kernel/debug/xrds/break"
CUTS = 4
BREAKS = 3                  # by each side
PORT = 9100
CREDITS = 16
READS = 150
KILLS = 300
QUEUED = 256                # ops, twice what a queue pair takes


def outcome(out: str, name: str) -> dict[str, int]:
    """The numbers of a line "NAME: word=number ..."."""
    found = re.search(rf"^{name}: (.*)$", out, re.MULTILINE)
    return {key: int(value) for key, value in
            (word.split("=") for word in found.group(1).split())}


def _released(rig, pair: remote.Pair, what: str, happens,
              limit: float) -> dict[str, int]:
    """The outcome of a thousand ops when this happens. All barriers that wait
    for them are released by themselves. The program itself, by turns of the
    node, sees how soon that is when the transport has noticed, and how long no op
    has ended before: that may be so many seconds.
    """
    proc = pair.start(f"{FAULTS} outstanding", 1000)
    proc.expect("outstanding 1000 of")
    happens()
    proc.expect(r"^released .*\n", LIMIT)
    result = outcome(proc.wait().out, "outstanding")
    said = re.search(r"^released .* noticed (\d+) ms .*$", proc.out, re.MULTILINE)
    rig.diag(f"{what}: {said[0]}, limit {limit:.2f} s: {result}")
    rig.check(int(said[1]) < limit * 1000 * rig.kernel.slow, f"{what}: {said[0]}")
    return result


def _check_lost(rig, result: dict[str, int]) -> None:
    # how many end before depends on how soon the rig strikes
    rig.check(result["dropped"] >= QUEUED, "most had ended before")
    rig.check(not result["remote"], f"{result['remote']} ops were refused")


def test_peer_killed(rig):
    """A thousand ops end with a node's death, in time and by themselves."""
    limit = remote.detection(rig.a) + 2
    _check_lost(rig, _released(rig, remote.Pair(rig), "killed", rig.b.kill,
                               limit))


# the ends of the streams
test_peer_killed.leaves = "messages"
test_peer_killed.reboots = True


def test_peer_cut(rig):
    """They end as well when the peer is cut off."""
    limit = remote.detection(rig.a) + 2
    pair = remote.Pair(rig)
    _check_lost(rig, _released(rig, pair, "cut", rig.b.cut, limit))
    rig.b.join()
    pair.end()
    rig.b.wait_for("test $(helper_counter obj_msgs) -eq 0", 30)


def test_device_removed(rig):
    """And when a device is removed, at either end."""
    for node in rig.nodes:
        pair = remote.Pair(rig)
        result = _released(
            rig, pair, f"{node}'s device",
            lambda: node.run("rdma link delete rxe0", timeout=60), 3)
        # A device voids its regions before its queue pairs end. The first op
        # that meets that is refused, and the rest are flushed.
        rig.check(result["remote"] <= 1, f"{result['remote']} ops were refused")
        node.run("rdma link add rxe0 type rxe netdev eth0")
        pair.end()


def test_flood(rig):
    """Ops that no message follows visibly: all notify, nobody is stuck."""
    traffic.patient(rig)
    before = [n.hw_counters() for n in rig.nodes]
    ops = traffic.fewer(rig, 10000)
    out = remote.run(rig, f"{FAULTS} flood", ops)
    rig.diag(out.replace("\n", "; "))
    for node, old in zip(rig.nodes, before):
        delta = traffic.grown(old, node.hw_counters())
        traffic.check_no_rnr(rig, node, delta)
        traffic.check_carried(rig, node, delta, ops)


def _cuts(rig, proc) -> None:
    """Cut node B off until the connection is given up, several times."""
    proc.expect("flowing")
    for _ in range(traffic.fewer(rig, CUTS)):
        rig.b.cut()
        remote.wait_lost(rig.a, rig.b)
        rig.b.join()
        # data flows again
        done = remote.counter(rig.a, "rdma_done")
        remote.wait_above(rig.a, "rdma_done", done + 200)


def _breaks(rig, proc) -> None:
    """Either side gives the connection up while the other goes on with it."""
    for node in rig.nodes * traffic.fewer(rig, BREAKS):
        done = remote.counter(rig.a, "rdma_done")
        node.write(BREAK, "1")
        remote.wait_above(rig.a, "rdma_done", done + 100)
    rig.check(proc.code is None, "it has ended")


def _interrupted(rig, mode: str, *arguments, offered=0) -> dict[str, int]:
    """A mode that goes on until told, through cuts; and a while after."""
    pair = remote.Pair(rig, offered=offered)
    if offered:
        rig.check(remote.counter(rig.b, "obj_conns") == 0,
                  "there is a connection before the first op")
        arguments = (pair.cookie, *arguments)
    proc = pair.start(f"{FAULTS} {mode}", *arguments)
    _cuts(rig, proc)
    _breaks(rig, proc)
    proc.kill(signal.SIGUSR1)
    result = outcome(proc.wait(LIMIT).out, mode)
    rig.diag(f"{mode}: {result}")
    pair.end()
    return result


def _check_some(rig, result: dict[str, int]) -> None:
    """Ops were lost, and others were not."""
    rig.check(result["dropped"] > 0 and
              result["success"] > traffic.fewer(rig, 300), f"{result}")


def test_refused(rig):
    """A bad op fails by its own fault; nobody else's message is lost."""
    traffic.patient(rig)
    pair = remote.Pair(rig)
    # short queues, for the ops pass through them
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=41, stall=100,
                            sockets=2, extra="-m 4096 -b 16384 -B 16384")
    stream.flowing()
    pair.start(f"{FAULTS} refused", 3).wait(LIMIT)
    pair.end()
    for result in stream.stop(150):
        rig.diag(f"the stream: {result}")
    rig.check(remote.counter(rig.a, "ib_rdma_remote_error") == 21,
              "not the device has refused them")


test_refused.waits = True


def test_freed(rig):
    """A peer's op does not touch memory that its owner has taken back."""
    traffic.patient(rig)
    pair = remote.Pair(rig)
    proc = pair.start("helper_free_in_use freed")
    streams = 0
    while proc.code is None:
        traffic.run(rig, 2000, seed=43, stall=100)
        streams += 1
    rig.diag("; ".join(proc.wait(LIMIT).out.splitlines()))
    rig.diag(f"meanwhile {streams} streams")
    pair.end()
    rig.check(remote.counter(rig.b, "ib_rdma_remote_error") >= 6,
              "not the device has refused them")


def test_no_write_below_mark(rig):
    """Below the mark no buffer is written to, through broken connections."""
    result = _interrupted(rig, "poison")
    _check_some(rig, result)


test_no_write_below_mark.late = True


def test_atomics(rig):
    """Atomics may be lost with a connection, none is done twice."""
    result = _interrupted(rig, "adders")
    _check_some(rig, result)


def test_marks_cut(rig):
    """The mark passes what was lost, posted or not, and never goes back."""
    result = _interrupted(rig, "marks", 1000000)
    _check_some(rig, result)
    rig.check(not result["remote"] and not result["other"], f"{result}")


test_marks_cut.late = True


def test_keys(rig):
    """A key is older than the first connection, and outlives each."""
    result = _interrupted(rig, "keys", offered=1 << 20)
    rig.check(result["success"] > 10, f"{result}")


test_keys.late = True


def test_marks_wrong_keys(rig):
    """The mark passes ops that the peer has refused."""
    traffic.patient(rig)
    result = outcome(remote.run(rig, f"{FAULTS} marks", 900, 300), "marks")
    rig.diag(f"{result}")
    rig.check(result["remote"] == 3, f"{result}")
    rig.check(result["success"] > 100, f"{result}")


def test_marks_nobody(rig):
    """The mark passes ops for a node that was never there."""
    out = rig.a.run(f"{FAULTS} nobody {rig.a.ip} {NOBODY} 300",
                    timeout=LIMIT).out
    result = outcome(out, "marks")
    rig.check(result["dropped"] == 300, f"{result}")


test_marks_nobody.leaves = "messages"


def test_acks_lost(rig):
    """No status claims that an op was not done, when only the answer is lost.

    Packets to the initiator are lost; its writes and atomics are done. A read
    without an answer has brought nothing, and its status says no more either.
    """
    for kind in ("write", "atomic", "read"):
        pair = remote.Pair(rig)
        before = remote.counter(rig.a, "send_drop_op")
        proc = pair.start(f"{FAULTS} one_way", kind)
        proc.expect("ready")
        rig.a.loss(100)
        proc.kill(signal.SIGUSR1)
        proc.expect("ended:", LIMIT)
        rig.a.loss(0)
        ended = outcome(proc.wait(LIMIT).out, "ended")
        result = outcome(proc.out, "one_way")
        dropped = remote.counter(rig.a, "send_drop_op") - before
        rig.diag(f"{kind}: {ended}, {result}, send_drop_op {dropped}")
        rig.check(ended["dropped"] == 20, f"{kind}: not all open: {ended}")
        rig.check(dropped == 20, f"{kind}: send_drop_op rose by {dropped}")
        rig.check(kind == "read" or result["unsaid"] > 0,
                  f"no {kind} was done: the test shows nothing")
        pair.end()


test_acks_lost.waits = True


def test_reads_lost(rig):
    """Reads go on when the message behind one is lost, with others behind it.

    Soft-RoCE repeats that message first. If that had a fence, and the next read
    were in progress, neither would end.
    """
    server = rig.b.start(f"xrds-perf -s -p {PORT} {rig.b.ip}")
    server.expect("ready")
    before = close.counters(rig.a)
    # neither a node that stands still for two seconds nor some losses in a row are
    # the end of the connection
    for node in rig.nodes:
        for name, value in (("ib/ack_timeout", 18), ("heartbeat_ms", 0),
                            ("peer_dead_ms", 60000)):
            node.write(f"/proc/sys/net/xrds/{name}", str(value))
    rig.b.loss(10)
    rig.a.run(f"xrds-perf -m read -l 1K -d 8 -n {READS} -w 0 -p {PORT} "
              f"{rig.b.ip}", timeout=LIMIT)
    rig.b.loss(0)
    grown = close.delta(rig.a, before)
    for name in ("ib_tx_stalled", "conn_reset"):
        rig.check(not grown[name], f"{name} {grown[name]}")
    server.kill()
    server.wait(check=False)


test_reads_lost.waits = True


def test_process_killed(rig):
    """Pinned memory of a killed process is freed, its peer gone or not."""
    limit = remote.detection(rig.a) + 2
    for cut in (False, True):
        pair = remote.Pair(rig)
        proc = pair.start(f"echo pid $$; exec {FAULTS} hold", 500)
        proc.expect("ready")
        pid = proc.expect(r"^pid (\d+)$")[1]
        if cut:
            rig.b.cut()
        proc.kill(signal.SIGUSR1)
        held = int(proc.expect(r"holding (\d+)").group(1))
        rig.check(held >= 100, f"only {held} ops are under way")
        rig.check(remote.counter(rig.a, "obj_mrs") == 1, "no region")
        seconds = remote.killed(rig.a, pid, obj_rops=0, obj_mrs=0)
        proc.wait(check=False)
        rig.diag(f"cut: {cut}, {held} ops: {seconds:.2f} s")
        if cut:
            rig.check(seconds < limit * rig.kernel.slow,
                      f"ops ended after {seconds:.1f} s")
            rig.b.join()
            # a connection that ended at this side only does not acknowledge
            # the peer's messages: the peer's heartbeat finds out
            rig.b.wait_for("test $(helper_counter obj_msgs) -eq 0", 30)
        pair.end()


def test_device_gone(rig):
    """The device goes under ops, at either end, and comes back."""
    for number, node in enumerate(rig.nodes):
        pair = remote.Pair(rig)
        proc = pair.start(f"{FAULTS} marks", 1000000)
        proc.expect("flowing")
        remote.wait_above(rig.a, "rdma_done",
                          remote.counter(rig.a, "rdma_done") + 300)
        node.run("rdma link delete rxe0", timeout=30)
        node.run("rdma link add rxe0 type rxe netdev eth0")
        # ours work again; the remote region has ended with its device
        name = ("rdma_done", "ib_rdma_remote_error")[number]
        remote.wait_above(rig.a, name, remote.counter(rig.a, name) +
                          (300, 3)[number])
        proc.kill(signal.SIGUSR1)
        result = outcome(proc.wait(LIMIT).out, "marks")
        rig.diag(f"{node}: {result}")
        rig.check(result["dropped"] > 0, f"{result}")
        rig.check(not result["other"], f"{result}")
        # the region is another node's, and has lost its device or not
        rig.check(bool(result["remote"]) == bool(number), f"{result}")
        pair.end()


def test_canceled(rig):
    """Of ops that are cancelled those that had not begun are told so, and have
    written nothing; the outcome of the others is open, as their peer is gone.
    """
    # some are to be posted, and nothing is to end before they are cancelled
    for node in rig.nodes:
        node.write("/proc/sys/net/xrds/heartbeat_ms", "0")
        node.write("/proc/sys/net/xrds/ib/ack_timeout", "18")
    traffic.get_credits(rig, CREDITS)
    pair = remote.Pair(rig)
    proc = pair.start(f"{FAULTS} cancel")
    proc.expect("ready")
    rig.b.cut()
    proc.kill(signal.SIGUSR1)
    proc.expect("ended", LIMIT)
    rig.b.join()
    result = outcome(proc.wait(LIMIT).out, "cancel")
    rig.diag(f"{result}")
    rig.check(result["canceled"] > 0 and result["dropped"] > 0, f"{result}")
    rig.check(result["canceled"] + result["dropped"] == 1000, f"{result}")
    pair.end()


def test_killed_registering(rig):
    """A process that is killed while the device registers its memory takes
    nothing from others: the device has answered.
    """
    rig.a.run(f"helper_kill_registering {rig.a.ip} {traffic.fewer(rig, KILLS)}",
              timeout=LIMIT)
