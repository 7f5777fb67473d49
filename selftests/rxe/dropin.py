# SPDX-License-Identifier: GPL-2.0-only
"""Programs written for RDS run as they are, and find what they know.

System calls and RDS_INFO_* dumps come out as with mainline RDS, but for a list:
Documentation/differences.rst has every line of helper_print_calls and
helper_print_dumps that differs, with both outcomes. One that differs and is not
in the list is a failure, and so is one in the list that does not differ.
"""

import os
import re
from pathlib import Path

TIMEOUT = 180
TOP = Path(__file__).parents[2]
ENTRY = re.compile(r"^\* ``([^`]+)``: ``([^`]*)``, here ``([^`]*)``$", re.M)


def listed(prefix) -> dict[str, tuple[str, str]]:
    text = (TOP / "Documentation/differences.rst").read_text(encoding="utf-8")
    return {name: (theirs, ours) for name, theirs, ours in ENTRY.findall(text)
            if name.startswith("info") == (prefix == "info")}


def outcomes(node, command) -> dict[str, str]:
    lines = node.run(command, timeout=60).out.splitlines()
    assert lines[-1] == "end", lines[-1]
    return dict(line.split(": ", 1) for line in lines[:-1])


def with_mainline(node, command):
    """The outcomes with mainline RDS in place of XRDS."""
    node.run("rmmod xrds_ib xrds && modprobe rds && modprobe rds_rdma")
    try:
        return outcomes(node, command)
    finally:
        node.run("rmmod rds_rdma rds && modprobe xrds_ib")
        # messages for no socket go at once
        node.write("/proc/sys/net/xrds/linger_ms", "1\n")


def compare(rig, command, want):
    theirs = with_mainline(rig.a, command)
    ours = outcomes(rig.a, command)

    rig.diag(f"{len(theirs)} outcomes, {len(want)} differ by intent")
    wrong = []
    for name in dict.fromkeys([*theirs, *ours, *want]):
        found = theirs.get(name, "nothing"), ours.get(name, "nothing")
        if want.get(name, (found[0], found[0])) != found:
            wrong.append(f"* ``{name}``: ``{found[0]}``, here ``{found[1]}``")
    rig.check(not wrong, "not as listed:\n" + "\n".join(wrong))
    return theirs


def test_calls(rig):
    """System calls, as the list of differences says."""
    tried = compare(rig, "helper_print_calls", listed("calls"))
    rig.check(len(tried) >= 150, "fewer than 150 calls")


def test_info(rig):
    """RDS_INFO_* dumps, as the list of differences says."""
    a = rig.a
    silent = f"{a.ip.rsplit('.', 1)[0]}.99", f"{a.ip6.rsplit(':', 1)[0]}:99"
    compare(rig, f"helper_print_dumps {a.ip} {a.ip6} {silent[0]} {silent[1]}",
            listed("info"))


# On the debug kernel mainline RDS has complaints of its own.
test_calls.nodes = test_info.nodes = 1
test_calls.kernels = test_info.kernels = "6.1 6.12"


# Over TCP the two sides tell each other their addresses; the client does not
# wait until the server listens for that.
QPERF_TRIES = 20


def _qperf(rig, client, server):
    if client.run("command -v qperf", check=False).code:
        rig.skip("no qperf")
    serving = server.start("qperf -lp 19765")
    server.wait_for("ss -ltn | grep -q :19765")
    before = client.hw_counters()["sent_pkts"]
    out = ""
    for test in ("rds_lat", "rds_bw"):
        for _ in range(QPERF_TRIES):
            tried = client.run(f"qperf -lp 19765 -to 60 -t 2 {server.ip} {test}",
                               timeout=100, check=False)
            if "Connection refused" not in tried.out:
                break
        rig.check(not tried.code, f"{test}: {tried.out}")
        out += tried.out
    rig.diag(f"from {client} to {server}: " + " ".join(out.split()))
    rig.check(re.search(r"\blatency\s+=\s+[\d.]+ ", out), "no latency")
    rig.check(re.search(r"\bbw\s+=\s+[\d.]+ ([KMG]B|bytes)/sec", out), "no rate")
    rig.check(client.hw_counters()["sent_pkts"] > before + 100,
              "RDMA did not carry it")
    serving.kill()
    serving.wait(check=False)


def test_qperf(rig):
    """qperf's latency and bandwidth over RDS."""
    _qperf(rig, rig.a, rig.b)


test_qperf.packages = "qperf"


def test_qperf_mixed(rig):
    """The same; node1 has XRDS, node2 has mainline RDS."""
    _qperf(rig, rig.a, rig.b)
    _qperf(rig, rig.b, rig.a)


test_qperf_mixed.packages = "qperf"
test_qperf_mixed.modules = ("xrds_ib", "rds_rdma")
test_qperf_mixed.kernels = "6.1"


def test_qperf_mainline(rig):
    """The same with mainline RDS on both nodes: qperf itself works."""
    _qperf(rig, rig.a, rig.b)


test_qperf_mainline.packages = "qperf"
test_qperf_mainline.modules = "rds_rdma"
test_qperf_mainline.kernels = "6.1"


def test_trinity(rig):
    """A wild program leaves nothing behind and stops nobody."""
    calls = int(os.environ.get("XRDS_TRINITY_CALLS", "1000"))
    if rig.a.run("command -v trinity", check=False).code:
        rig.skip("no trinity")
    # its remains go soon
    rig.a.write("/proc/sys/net/xrds/linger_ms", "1000\n")
    rig.a.run("mkdir -p /tmp/trinity && chmod 777 /tmp/trinity")
    done = rig.a.run(
        "cd /tmp/trinity && su nobody -s /bin/bash -c '"
        f"trinity -q -a 64 -s 12345 -N {calls} -C 2 -P PF_RDS -l off --enable-fds=sockets"
        " -c bind -c connect -c getsockname -c getpeername -c getsockopt"
        " -c setsockopt -c sendto -c sendmsg -c sendmmsg -c recvfrom"
        " -c recvmsg -c recvmmsg -c ioctl -c shutdown -c listen"
        " -c accept -c socket < /dev/null 2>&1 | tail -n 20'",
        timeout=120, check=False)
    rig.diag(done.out)
    ran = re.search(r"Ran (\d+) syscalls", done.out)
    rig.check(ran and int(ran[1]) >= calls, "trinity did not do its work")
    rig.a.run("rm -rf /tmp/trinity; ! pidof trinity")
    rig.a.run("helper_stream -l 127.0.0.1 -c 100")


test_trinity.nodes = 1
test_trinity.packages = "trinity"
