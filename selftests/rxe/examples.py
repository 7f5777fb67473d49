# SPDX-License-Identifier: GPL-2.0-only
"""The programs of Documentation/examples do what they say."""

import signal

import remote
import traffic

TIMEOUT = 120


def _pair(rig, program: str):
    """One on each node; output of the second, and of the first."""
    traffic.patient(rig)
    pairs = [(rig.a.ip, rig.b.ip), (rig.a.ip6, rig.b.ip6)]
    for here, there in pairs[:1] if rig.kernel.slow > 1 else pairs:
        server = rig.b.start(f"{program} {there} 4000")
        # a socket is listed once it is bound
        remote.until(rig, lambda: any(socket.get("laddr") == there and
                                      socket["lport"] == 4000 for socket in
                                      remote.shown(rig.b, "sockets")),
                     f"{program} is bound")
        out = rig.a.run(f"{program} {here} 4000 {there} 4000", timeout=60).out
        yield out, server.wait(30).out


def test_poll_loop(rig):
    """200 blocks are written from and into 16 places."""
    for out, _ in _pair(rig, "poll-loop"):
        # the 193rd is the last in the first place
        rig.check(str(193 - 256) in out, "the last block")


def test_barrier(rig):
    """A buffer is used for ten rounds of writes; the last one arrives."""
    before = rig.b.hw_counters()
    for out, served in _pair(rig, "barrier"):
        rig.check("8 of 8 blocks were read back" in out, "what was read")
        rig.check("done: 8 of 8 blocks are as they should be" in served,
                  "what was written")
    after = rig.b.hw_counters()
    # 10 * 8 writes of 16 KiB, and as much as 8 of them read
    rig.check(after["rcvd_pkts"] - before["rcvd_pkts"] > 88, "over RDMA")


def test_barrier_third(rig):
    """A message of a third program is for nobody: the memory is the one
    peer's, and its last message says that it is written.
    """
    traffic.patient(rig)
    offer = rig.b.start(f"barrier {rig.b.ip} 4000")
    remote.until(rig, lambda: remote.shown(rig.b, "sockets"), "it is bound")
    offer.kill(signal.SIGSTOP)

    def unread(count: int) -> None:
        remote.until(rig, lambda: len([
            m for m in remote.shown(rig.b, "messages")
            if m["queue"] == "receive"]) == count, f"{count} are unread")

    peer = rig.a.start(f"barrier {rig.a.ip} 4000 {rig.b.ip} 4000")
    unread(1)
    third = rig.a.start(f"helper_messages send --bind {rig.a.ip} "
                        f"--to {rig.b.ip} --port 4000 --sizes 4,4")
    unread(3)
    offer.kill(signal.SIGCONT)
    rig.check("done: 8 of 8" in offer.wait(30).out, offer.out)
    peer.wait(30)
    third.wait(30)


def test_node_events(rig):
    """A node that has sent and one that has received are told of each other."""
    program = "node-events"
    receiver = rig.b.start(f"{program} {rig.b.ip} 4000")
    remote.until(rig, lambda: remote.shown(rig.b, "sockets"), "it is bound")
    sender = rig.a.start(f"{program} {rig.a.ip} 4000 {rig.b.ip} 4000")
    receiver.expect("^received: hello$")
    told = ((receiver, rig.a), (sender, rig.b))
    rig.b.cut()
    for proc, peer in told:
        proc.expect(f"^{peer.ip} is down$")
    rig.b.join()
    for proc, peer in told:
        proc.expect(rf"^{peer.ip} is up again after \d+\.\d s$")


test_node_events.waits = True
