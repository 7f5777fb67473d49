# SPDX-License-Identifier: GPL-2.0-only
"""xrds-ping: the kernel of a node answers, and errors are clear."""

import json
import re

import remote
import traffic

TIMEOUT = 90
WAITS = True
BOUND = "/proc/sys/net/xrds/max_pinned_kb"
LINGER_MS = "/proc/sys/net/xrds/linger_ms"
BREAK = "/sys/kernel/debug/xrds/break"
TIMEOUT_MS = "/proc/sys/net/xrds/connect_timeout_ms"
STATISTICS = re.compile(r"(\d+) sent, (\d+) answered")


def _ping(rig, target: str, options: str = "") -> None:
    out = rig.a.run(f"xrds-ping -c 5 -i 0.2 -w 30 {options} {target}",
                    timeout=40).out
    rig.check(STATISTICS.search(out).groups() == ("5", "5"), out)
    rig.check(out.count("answer from") == 5, out)


def test_ping(rig):
    """Both families, and the node itself."""
    for target in (rig.b.ip, rig.b.ip6, rig.a.ip, rig.a.ip6):
        _ping(rig, target)
    _ping(rig, rig.b.ip, f"-I {rig.a.ip}")


def test_flood(rig):
    """As fast as answers come."""
    out = rig.a.run(f"xrds-ping -q -c 2000 -i 0 -w 60 {rig.b.ip}",
                    timeout=70).out
    rig.check("answer from" not in out, out)


def test_flood_unanswered(rig):
    """A flood sleeps while no answer comes, once all pings are on their way."""
    used = []
    for seconds in (4, 12):
        out = rig.a.run("bash -c 'time -p xrds-ping -q -i 0 "
                        f"-w {seconds} 10.0.0.99'", check=False).out
        rig.check(" 0 answered" in out, out)
        used.append(sum(float(value) for value in re.findall(
            r"^(?:user|sys) ([\d.]+)$", out, re.M)))
    rig.diag(f"{used} s of the processor in 4 and 12 s")
    rig.check(used[1] - used[0] < 4,
              f"it has used the processor for {used} s of 4 and 12 s")


test_flood_unanswered.leaves = "messages"


def test_answer_to_nobody(rig):
    """A node that was pinged does not dial for ever, if the other one has gone
    before it has the answer: only as long as for a closed socket.
    """
    rig.b.write(TIMEOUT_MS, "2000")
    rig.b.write(LINGER_MS, "1000")
    rig.a.run(f"xrds-ping -c 1 -w 30 {rig.b.ip}", timeout=40)
    answers = remote.counter(rig.b, "send_pong")
    rig.b.run("modprobe sch_netem; tc qdisc add dev eth0 root netem loss 100%")
    rig.a.start(f"xrds-ping -c 1 -w 2 {rig.b.ip}")
    remote.wait_above(rig.b, "send_pong", answers)
    rig.a.cut()
    remote.wait_above(rig.b, "send_drop_pong", 0)
    rig.check(not remote.counter(rig.b, "obj_msgs"), "a message is left")


def test_answer_kept(rig):
    """A short outage loses no answer, whatever has ended the connection: here the
    peer has dialled again, and this request has come to nothing.
    """
    traffic.patient(rig)
    rig.b.write(TIMEOUT_MS, "1000")
    rig.a.run(f"xrds-ping -c 1 -w 30 {rig.b.ip}", timeout=40)
    answers, timeouts = (remote.counter(rig.b, name)
                         for name in ("send_pong", "conn_timeout"))
    rig.b.run("modprobe sch_netem; tc qdisc add dev eth0 root netem loss 100%")
    ping = rig.a.start(f"xrds-ping -c 1 -w 60 {rig.b.ip}")
    remote.wait_above(rig.b, "send_pong", answers)
    # it hears of the new request only
    rig.b.deaf()
    dials = remote.counter(rig.a, "conn_dial")
    rig.a.write(BREAK, "1")
    remote.wait_above(rig.a, "conn_dial", dials)
    rig.b.deaf(False)
    remote.wait_above(rig.b, "conn_timeout", timeouts)
    rig.b.run("tc qdisc del dev eth0 root")
    ping.wait(70)
    rig.check(not remote.counter(rig.b, "send_drop_pong"),
              "it was given up at once")


def test_own_connections(rig):
    """Connections of a node's own users do not keep peers from connecting."""
    for node in rig.nodes:
        node.run("modprobe -r xrds_ib xrds && modprobe xrds_ib")
    rig.a.write("/proc/sys/net/xrds/ib/max_conns", "4")
    for number in range(2, 10):
        rig.a.run(f"xrds-ping -q -c 1 -w 30 -I 127.0.0.1 127.0.0.{number}")
    rig.check(remote.counter(rig.a, "obj_conns") >= 8, "there are too few")
    rig.b.run(f"xrds-ping -q -c 1 -w 30 {rig.a.ip}", timeout=40)


def test_hosts(rig):
    """Several hosts: each has its statistics, also one that does not answer."""
    done = rig.a.run(f"xrds-ping -c 3 -i 0.1 -w 10 {rig.b.ip} 10.0.0.99 "
                     f"{rig.b.ip6}", timeout=40, check=False)
    found = re.findall(r"--- (\S+): \d+ sent, (\d+) answered", done.out)
    rig.check(found == [(rig.b.ip, "3"), ("10.0.0.99", "0"),
                        (rig.b.ip6, "3")] and done.code == 1, str(done))


test_hosts.leaves = "messages"


def test_several(rig):
    """Several at once, each with 64 on their way: all are answered."""
    pings = [rig.a.start(f"xrds-ping -q -c 600 -i 0 -w 60 {rig.b.ip}")
             for _ in range(3)]
    for ping in pings:
        ping.wait(70)


def test_no_answer(rig):
    """A node that is not there, or without RDS: no answer, no hang, the reason,
    and exit status 1.
    """
    done = rig.a.run("xrds-ping -c 3 -i 0.2 -w 10 10.0.0.99", check=False)
    rig.check(done.code == 1, f"exit {done.code}\n{done.out}")
    rig.check(" 0 answered" in done.out, done.out)
    rig.check("nobody answers at that address" in done.out, done.out)
    rig.b.run("modprobe -r xrds_ib", timeout=60)
    done = rig.a.run(f"xrds-ping -c 1 -w 10 {rig.b.ip}", check=False)
    rig.b.run("modprobe xrds_ib")
    rig.check(done.code == 1 and "no RDS is loaded" in done.out, done.out)


test_no_answer.leaves = "messages"


def test_old_failure(rig):
    """The error of an attempt that failed before the ping is not its reason."""
    rig.b.run("modprobe -r xrds_ib", timeout=60)
    ping = f"xrds-ping -c 1 -w 20 {rig.b.ip}"
    done = rig.a.run(ping, check=False)
    rig.check("no RDS is loaded" in done.out, done.out)
    rig.b.deaf()
    # the attempt before this one has ended
    dials = remote.counter(rig.a, "conn_dial")
    remote.wait_above(rig.a, "conn_dial", dials)
    done = rig.a.run(ping, check=False)
    rig.b.deaf(False)
    rig.b.run("modprobe xrds_ib")
    rig.check("nobody answers at that address" in done.out
              and "no RDS is loaded" not in done.out, done.out)


test_old_failure.leaves = "messages"


def test_errors(rig):
    """Mistakes are named, with exit status 2."""
    for options, words in (("-I 10.0.0.77 10.0.0.2", "no RDMA device has"),
                           ("", "usage"), ("-c 0 10.0.0.2", "count"),
                           ("-I 10.0.0.1 fd00::2", "10.0.0.1")):
        done = rig.a.run(f"xrds-ping {options}", check=False)
        rig.check(done.code == 2, f"{options}: exit {done.code}\n{done.out}")
        rig.check(words in done.out, f"{options}: {done.out}")
    rig.check(rig.a.run("xrds-ping --help").out.startswith("usage"), "help")


def test_options(rig):
    """Sizes up to the largest message, and JSON."""
    for size in (1, 4096, 1048576):
        out = rig.a.run(f"xrds-ping -j -s {size} -c 2 -i 0.1 -w 30 {rig.b.ip}",
                        timeout=40).out
        result = json.loads(out)
        rig.check(result["bytes"] == size and result["answered"] == 2, out)
        rig.check(0 < result["min_ms"] <= result["max_ms"], out)
    done = rig.a.run(f"xrds-ping -s 1048577 {rig.b.ip}", check=False)
    rig.check(done.code == 2 and "is not a size" in done.out, done.out)


def _lender(rig, port: int):
    lender = rig.b.start(f"xrds-ping -l {port} {rig.b.ip}")
    lender.expect("offering memory at")
    return lender


def test_rdma(rig):
    """Memory that is lent is written and read back, of all sizes."""
    traffic.patient(rig)
    _lender(rig, 4990)
    for size in (1, 4096, 65537, 1048576):
        out = rig.a.run(f"xrds-ping -r 4990 -j -s {size} -c 3 -i 0 -w 30 "
                        f"{rig.b.ip}", timeout=40).out
        result = json.loads(out)
        rig.check(result["bytes"] == size and result["answered"] == 3, out)
    out = rig.a.run(f"xrds-ping -r 4990 -c 2 -i 0.1 -w 30 {rig.b.ip}",
                    timeout=40).out
    rig.check(out.count("written and read back") == 2, out)
    for number in range(20):        # more than there are places
        rig.a.run(f"xrds-ping -q -r 4990 -c 1 -w 30 {rig.b.ip}", timeout=40)
    used = rig.b.run("helper_counter used_keys").out.strip()
    rig.check(int(used) <= 16, f"{used} keys are left")


def test_rdma_failures(rig):
    """No memory is offered; its owner ends; memory that cannot be offered, or
    cannot be pinned here.
    """
    done = rig.a.run(f"xrds-ping -r 4991 -c 1 -w 7 {rig.b.ip}", check=False)
    rig.check(done.code == 1 and "xrds-ping -l 4991" in done.out,
              f"exit {done.code}\n{done.out}")
    lender = _lender(rig, 4992)
    probes = rig.a.start(f"xrds-ping -r 4992 -i 0.1 {rig.b.ip}")
    probes.expect("seq=3")
    lender.kill()
    done = probes.wait(30, check=False)
    rig.check(done.code == 2 and "has ended" in done.out,
              f"exit {done.code}\n{done.out}")
    before = rig.b.read(BOUND)
    rig.b.write(BOUND, "64")
    _lender(rig, 4993)
    done = rig.a.run(f"xrds-ping -r 4993 -s 1048576 -c 1 -w 20 {rig.b.ip}",
                     check=False)
    rig.b.write(BOUND, before.strip())
    rig.check(done.code == 2 and "quota" in done.out,
              f"exit {done.code}\n{done.out}")
    _lender(rig, 4994)
    rig.a.write(BOUND, "64")
    done = rig.a.run(f"xrds-ping -r 4994 -s 1048576 -c 1 -w 20 {rig.b.ip}",
                     check=False)
    rig.a.write(BOUND, before.strip())
    rig.check(done.code == 2 and "(net.xrds.max_pinned_kb" in done.out,
              f"exit {done.code}\n{done.out}")


def _gone(rig, probes) -> None:
    """It ends by itself, after one op that was refused."""
    done = probes.wait(30, check=False)
    rig.check(done.code == 2 and "memory there is void" in done.out,
              f"exit {done.code}\n{done.out}")


def test_rdma_void(rig):
    """A prober whose memory was lost with its device, or was taken for another
    prober, ends. It does not reset the connection with each probe.
    """
    lender = _lender(rig, 4995)
    probes = rig.a.start(f"xrds-ping -r 4995 -i 0.2 {rig.b.ip}")
    probes.expect("seq=3")
    rig.b.run("rdma link delete rxe0 && rdma link add rxe0 type rxe netdev eth0")
    _gone(rig, probes)
    # the other half of the same pair of ops is flushed
    refused = remote.counter(rig.a, "ib_rdma_remote_error")
    rig.check(refused == 1, f"{refused} ops were refused")
    lender.kill()
    _lender(rig, 4996)
    probes = rig.a.start(f"xrds-ping -r 4996 -i 0.2 {rig.b.ip}")
    probes.expect("seq=3")
    others = rig.a.start("for i in {1..16}; do "
                         f"xrds-ping -r 4996 {rig.b.ip} & done; wait")
    _gone(rig, probes)
    others.kill()
