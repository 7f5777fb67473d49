# SPDX-License-Identifier: GPL-2.0-only
"""rds-info, rds-ping and rds-stress run as they are: each option, with nothing on
stderr.

They are not packaged: RDS_TOOLS_DIR names a folder that has them. Oracle's 2.3.11 has
all of these options. An older one is tried with those that its help lists.
"""

import os
import re

import remote
import traffic

TIMEOUT = 180
LATE = True
ERRORS = "/tmp/rds-tools.err"
PORT = 4000
STRESS = "ss -ltn | grep -q :4000"
# The options of rds-info, and a pattern of the output of each
INFO = {
    "-c": r"Counters:\n.*recv_queued ",
    "-k": r"RDS Sockets:\n.*{a} +4321 ",
    "-n": r"RDS Connections:\n.*{a} +{b} .*C",
    "-p": r"RDS Paths:\n.*{a} +{b} .* infiniba",
    "-r": r"Receive Message Queue:\n.*{a} +4321 +{b} ",
    "-s": r"Send Message Queue:\n",
    "-t": r"Retransmit Message Queue:\n",
    "-T": r"TCP Connections:\n",
    "-I": r"RDS IB Connections:\n.*{a} +{b} ",
}
# Those that change what others print
MORE = {
    "-v": (f"{' '.join(INFO)} -v", "Counters:"),
    "-a": ("-a -n", r"{b6} .*C"),
    "-N": ("-N -k", r"# Network namespace \d+ \(home namespace\)"),
    "-o": ("-I -o 'send_bytes, tx_poll_cnt'", "Send_bytes KiB +Tx_poll_cnt"),
}
# The runs of rds-stress, each with a pattern of the active side's output. They have
# all options but -s, -r, -p, -T and those below. A line of the first table:
LINE = r"^ *\d+ +[1-9]\d* +\d+ .*$"
SUM = r"^ *\d+ +[1-9]\d* +\d+ .*\(average\)$"
RUNS = {
    "sizes": ("-t 2 -d 8 -q 256 -a 64 -v", LINE),
    "long names": ("--tasks 1 --depth 2 --req-bytes 8K --ack-bytes 1K --verify "
                   "--tos 0 --port 4000", LINE),
    "one way, type of service": ("-o -Q 5 -d 4 --use-cong-monitor 0", LINE),
    "summary, priority": ("-z -R --show-params --show-histogram",
                          r"(?s)Req size +1024.*\(average\).*RTT histogram"),
    "processor": ("-c -z", SUM),
    "figures for scripts": ("--show-perfdata", r"^::1,1024,.*,[1-9]\d*\."),
    "writes and reads": ("-D 64K -q 1K -M 0 -v", LINE),
    "reads into vectors": ("-D 16K -I 4 -M 1 --rdma-use-fence 1 "
                           "--rdma-use-notify 1", LINE),
    "writes, keys for one use": ("-D 32K -M 2 --rdma-use-once 1 "
                                 "--rdma-use-get-mr 1 --rdma-key-o-meter",
                                 LINE),
    "one key for all": ("-D 32K --rdma-use-get-mr 1 --rdma-cache-mrs 1 "
                        "--rdma-alignment 64", LINE),
    "notices of sends": ("--async -d 4", LINE),
    "notices, with RDMA": ("--async -D 16K -d 2", LINE),
    "without RDS_INQ": ("--disable-inq -d 2", LINE),
    "bursts": ("--always-bursty -d 4", LINE),
    # a task that waits for others answers no peer: both ways would be a deadlock
    "bursts in step": ("--sync-always-bursty -o -d 4 -t 2", LINE),
}
# The key of this option's semaphore is a directory that in-tree RDS has.
IN_STEP = "--sync-always-bursty"
IN_TREE = ("unshare -m bash -c 'mount -t tmpfs none /sys/module && "
           'mkdir /sys/module/rds && exec "$@"\' - ')
# These may write to stderr by design.
SPEAKING = {
    "trace": ("-V -z", r"(?is)\A(?!.*(error|failed))"),
    "outliers": ("--show-outliers 1 -z", r"(?i)rtt"),
}
ABORT = "--abort-after 1 --cancel-sent-to"
OTHERS = {"-s", "-r", "-p", "-T", "-h", "--reset", "--connect-retries",
          "--send-addr", "--recv-addr", "--time", "--report-summary",
          "--report-cpu", "--trace", "--rtprio", "--one-way", "--rdma-bytes",
          "--rdma-buffers", "--rdma-mode"}


def _tools(rig) -> None:
    if not os.environ.get("RDS_TOOLS_DIR"):
        rig.skip("no RDS_TOOLS_DIR")
    traffic.patient(rig)


def _options(text: str) -> set[str]:
    """Those in a help or in a command line."""
    return set(re.findall(r"(?<![\w-])(--?[A-Za-z][\w-]*)", text))


def _listed(rig, tool: str) -> set[str]:
    """The options in the help of a tool: it has one line for each."""
    text = rig.a.run(f"{tool} -h 2>&1", check=False).out
    lines = [line for line in text.splitlines()
             if re.match(r"\s+-", line) and "$ " not in line]
    return {option for line in lines for option in
            _options(re.match(r"\s+(-\w\b,? ?)?(--[\w-]+)?", line)[0])}


def _knows(listed: set[str], command: str) -> bool:
    """An old tool lists no long names, and has those of old options."""
    return _options(command) <= listed | {"-v", "-R", "-s", "-r", "-p"}


def _run(rig, command: str, silent: bool = True, timeout: float = 60) -> str:
    out = rig.a.run(f"{command} 2> {ERRORS}", timeout=timeout).out
    said = rig.a.read(ERRORS)
    rig.check(bool(said) != silent, f"{command}: stderr: {said or 'nothing'}")
    return out


def _traffic(rig) -> None:
    """A connection for each family, and messages that are not read."""
    rig.a.start(f"helper_late_reader {rig.a.ip} 4321 65536").expect("ready")
    holder = rig.b.start(f"helper_hold_socket {rig.b.ip} {rig.a.ip} 3 4321")
    holder.expect("holding 3")
    rig.a.run(f"xrds-ping -q -c 1 -w 30 {rig.b.ip6}", timeout=40)
    remote.until(rig, lambda: rig.a.run(
        "xrds-info messages queue=receive | grep -c :4321", check=False
    ).out.strip() == "3", "messages are there")


def _shows(rig, options: str, pattern: str) -> None:
    names = {"a": rig.a.ip, "b": rig.b.ip, "b6": rig.b.ip6}
    for name, value in names.items():
        pattern = pattern.replace(f"{{{name}}}", re.escape(value))
    out = _run(rig, f"rds-info {options}")
    rig.check(re.search(pattern, out, re.S), f"{options}: {pattern}: {out}")


def test_info(rig):
    """Each option of rds-info, and none."""
    _tools(rig)
    listed = _listed(rig, "rds-info")
    rig.check(listed <= INFO.keys() | MORE.keys(), f"unknown: {listed}")
    _traffic(rig)
    for option in listed & INFO.keys():
        _shows(rig, option, INFO[option])
    for option, (options, pattern) in MORE.items():
        if option == "-v" or "-p" in listed:
            words = [w for w in options.split(" ")
                     if w not in INFO or w in listed]
            _shows(rig, " ".join(words), pattern)
    for option in listed & INFO.keys() - {"-p"}:
        _shows(rig, "", INFO[option])


def test_uek_rows(rig):
    """With net.xrds.uek_rows it shows the process and congestion of a socket, and
    the queue pairs of a connection.
    """
    _tools(rig)
    if "-p" not in _listed(rig, "rds-info"):
        return
    _traffic(rig)
    rig.check(re.search(rf"{rig.a.ip} +4321 .* -1$",
                        _run(rig, "rds-info -k"), re.M), "it has more already")
    rig.a.write("/proc/sys/net/xrds/uek_rows", "1")
    out = _run(rig, "rds-info -k")
    rig.check(re.search(rf"{rig.a.ip} +4321 .* 0 +\d+ +helper_late_rea$", out,
                        re.M), out)
    one, = (c for c in remote.shown(rig.a, "connections")
            if c["faddr"] == rig.b.ip)
    out = _run(rig, "rds-info -I -v")
    rig.check(re.search(rf"{rig.b.ip} .* {one['qpn']} +{one['peer-qpn']} ",
                        out), out)


def test_ping(rig):
    """Each option of rds-ping."""
    _tools(rig)
    runs = {"-c 3": rig.b.ip, f"-c 3 -i 100msec -I {rig.a.ip}": rig.b.ip,
            "-c 9 -n 3 -i 0.1": rig.b.ip, "-c 3 -Q 5 -i 0.1": rig.b.ip,
            "-c 3 -i 0.1": rig.b.ip6}
    listed = _listed(rig, "rds-ping")
    rig.check(listed <= _options(" ".join(runs)), f"unknown: {listed}")
    for options, address in runs.items():
        if not _knows(listed | {"-i"}, options) or \
           (":" in address and "-n" not in listed):
            continue
        out = _run(rig, f"rds-ping {options} {address}")
        count = int(options.split()[1])
        rig.check(out.count("usec") == count, f"{options}: {out}")


def _passive(rig, there: str, before: str = ""):
    proc = rig.b.start(f"{before}rds-stress -r {there} -p {PORT} 2> {ERRORS}")
    rig.b.wait_for(STRESS)
    return proc


def _stress(rig, options: str, silent=None, here: str = "",
            there: str = "") -> str:
    """Patterns are checked on both nodes. These nodes, or both, say nothing."""
    here, there = here or rig.a.ip, there or rig.b.ip
    before = IN_TREE if IN_STEP in options else ""
    passive = _passive(rig, there, before)
    done = rig.a.run(f"{before}rds-stress -r {here} -s {there} -p {PORT} -T 2 "
                     f"{options} 2> {ERRORS}", timeout=60, check=False)
    rig.check(not done.code, f"{done}\n{rig.a.read(ERRORS)}")
    passive.wait(30)
    for node in rig.nodes if silent is None else silent:
        said = node.read(ERRORS)
        rig.check(not said, f"{node}: {options}: stderr: {said}")
    return done.out


def _abort(rig) -> None:
    """The parent ends, and its child tells how long it took to cancel."""
    passive = _passive(rig, rig.b.ip)
    out = rig.a.run(
        f"rds-stress -r {rig.a.ip} -s {rig.b.ip} -p {PORT} -d 4 {ABORT} "
        f"2> {ERRORS}; echo status $?; "
        f"until grep 'parent [0-9]* exited' {ERRORS}; do sleep 0.1; done").out
    rig.check("status 142" in out, f"it was not aborted: {out}")
    rig.check(re.search(rf"RDS_CANCEL_SENT_TO\({rig.b.ip}:\d+\).* took", out),
              out)
    passive.kill()


def _runs(rig, wanted) -> None:
    _tools(rig)
    listed = _listed(rig, "rds-stress")
    for name, (options, pattern) in RUNS.items():
        if wanted(options) and _knows(listed, options):
            out = _stress(rig, options)
            rig.check(re.search(pattern, out, re.M), f"{name}: {out}")


def test_stress(rig):
    """Options of rds-stress, for messages."""
    _runs(rig, lambda options: "-D" not in options)


def test_stress_rdma(rig):
    """Options of rds-stress, for RDMA."""
    _runs(rig, lambda options: "-D" in options)


def test_stress_others(rig):
    """IPv6, resets, late servers, and options that write to stderr."""
    _tools(rig)
    listed = _listed(rig, "rds-stress")
    tried = _options(" ".join([ABORT, *(options for options, _ in (
        *RUNS.values(), *SPEAKING.values()))]))
    rig.check(listed <= tried | OTHERS,
              f"options that no test has: {listed - tried - OTHERS}")
    if "--reset" in listed:
        out = _stress(rig, "-d 2 -v", here=rig.a.ip6, there=rig.b.ip6)
        rig.check(re.search(LINE, out, re.M), out)
        for here, there in ((rig.a.ip, rig.b.ip), (rig.a.ip6, rig.b.ip6)):
            rig.a.run(f"xrds-ping -q -c 1 -w 30 {there}", timeout=40)
            before = remote.counter(rig.a, "conn_reset")
            _run(rig, f"rds-stress -r {here} -s {there} --reset")
            remote.wait_above(rig.a, "conn_reset", before)
        early = rig.a.start(f"rds-stress -s {rig.b.ip} -T 1 -z "
                            "--connect-retries 30")
        early.expect("retrying")
        rig.b.start(f"rds-stress -r {rig.b.ip}")
        rig.check(re.search(SUM, early.wait(60).out, re.M), early.out)
    for options, pattern in SPEAKING.values():
        if _knows(listed, options):
            out = _stress(rig, options, silent=())
            said = rig.a.read(ERRORS)
            rig.check(re.search(pattern, said), f"{options}: {out}\n{said}")
    if _knows(listed, ABORT):
        _abort(rig)


test_info.timeout = test_stress_others.timeout = 240
test_stress.timeout = test_stress_rdma.timeout = 240


def test_mixed(rig):
    """Node 2 has mainline RDS, for which the tools have complaints."""
    _tools(rig)
    out = _run(rig, f"rds-ping -c 3 {rig.b.ip}")
    rig.check(out.count("usec") == 3, out)
    for name in ("sizes", "writes and reads"):
        out = _stress(rig, RUNS[name][0], silent=(rig.a,))
        rig.check(re.search(LINE, out, re.M), f"{name}: {out}")


test_mixed.modules = ("xrds_ib", "rds_rdma")
test_mixed.kernels = "6.1"
