# SPDX-License-Identifier: GPL-2.0-only
"""The dissector of tools/wireshark names every packet of a connection."""

import re
import shutil

import overflow
import traffic
from xrdsvm import host

TIMEOUT = 300
PACKAGES = "tshark"
ROCE = "udp.dstport == 4791"
FIELDS = ("frame.number", "infiniband.bth.opcode", "rds.name", "_ws.malformed",
          "_ws.lua.error")
# As the dissector says it of a packet that it can not make out
STRANGE = re.compile("unknown|malformed|before the capture")
OPENING = ("connection request, version 4.1, mask 0x0103",
           "connection reply, version ", "ready to use")


def _capture(rig, name: str):
    """Where a capture goes: it stays there to be looked at."""
    if not shutil.which("tshark"):
        rig.skip("no tshark on this host")
    path = host.BUILD / "logs" / f"{name}.pcap"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _names(rig, path) -> list[str]:
    """The names of the packets of a capture; each packet has one."""
    script = host.TOP / "tools/wireshark/xrds.lua"
    columns = [word for field in FIELDS for word in ("-e", field)]
    out = host.call("tshark", "-Q", "-X", f"lua_script:{script}", "-r", path,
                    "-Y", ROCE, "-T", "fields", "-E", "separator=|", *columns)
    rows = [line.split("|") for line in out.splitlines() if "|" in line]
    odd = [row for row in rows
           if not row[2] or any(row[3:]) or STRANGE.search(row[2])]
    rig.check(rows, f"no packets:\n{out}")
    rig.check(not odd, f"{len(odd)} of {len(rows)} packets:\n"
              + "\n".join(map("|".join, odd[:10])))
    rig.diag(f"{len(rows)} packets have {len({r[2] for r in rows})} names")
    return [row[2] for row in rows]


def _check_again(rig, path, names: list[str]) -> None:
    """Packets keep their names if each is transmitted twice."""
    twice = path.with_suffix(".twice")
    host.call("mergecap", "-w", twice, path, path)
    again = _names(rig, twice)
    rig.check(sorted(again) == sorted(2 * names),
              f"other names: {sorted(set(again) - set(names))[:10]}")


def _flags(path) -> str:
    """The names of flags that are set somewhere in a capture"""
    script = host.TOP / "tools/wireshark/xrds.lua"
    names = ("ack_required", "reply", "resume", "hb_ping", "hb_pong",
             "unknown")

    def seen(name: str) -> bool:
        # tshark may also complain that it runs as root
        out = host.call("tshark", "-Q", "-X", f"lua_script:{script}",
                        "-r", path, "-T", "fields", "-e", "frame.number",
                        "-Y", f"{ROCE} && rds.flags.{name} == 1")
        return any(line.isdigit() for line in out.splitlines())

    return " ".join(filter(seen, names))


def _check_named(rig, names: list[str], wanted) -> None:
    missing = [text for text in wanted if not any(text in n for n in names)]
    rig.check(not missing, f"no packet is called {missing}")


def _sizes(here, there, source: str, target: str) -> None:
    receiver = there.start(f"helper_messages recv --bind {target} --count 5")
    receiver.expect("listening")
    here.run(f"helper_messages send --bind {source} --to {target} "
             "--sizes 0,1,5000,16384,100000")
    receiver.wait()


def _end(rig) -> None:
    """In order: sockets' last messages are sent, then the module goes, and the
    far node has given its last answer when its connections have gone as well.
    """
    for node in rig.nodes:
        node.run("settled 20")
    rig.a.run("unload xrds_ib")
    rig.b.wait_for("state=$(rdma resource show cm_id) && "
                   "! grep -Eq 'state (DIS)?CONNECT ' <<< \"$state\"")


def test_xrds(rig):
    """From the connection request to the end, both address families, RDMA."""
    path = _capture(rig, "xrds")
    traffic.patient(rig)
    with rig.switch.capture(path):
        _sizes(rig.a, rig.b, rig.a.ip, rig.b.ip)
        _sizes(rig.a, rig.b, rig.a.ip6, rig.b.ip6)
        traffic.run(rig, 300, seed=31, extra="-b 16384 -B 16384")
        rig.a.run(f"demo ping {rig.a.ip} {rig.b.ip} 2")
        offer = rig.b.start(f"demo offer {rig.b.ip}")
        offer.expect("ready")
        user = rig.a.start(f"demo use {rig.a.ip} {rig.b.ip}")
        user.expect("writing")
        for program in (user, offer):
            program.kill()
            program.wait(check=False)
        _end(rig)
    names = _names(rig, path)
    _check_named(rig, names, OPENING + (
        "version 4.8", "HELLO", "clear to send", "data ", "fragment 1",
        "SEND Middle", "SEND Last", "acknowledge of packet", "acknowledgment",
        "CONG", "EOS", "FINISHED", "short header", "fragment 2, short header",
        "header is in the last packet", "ping", "pong", "RDMA write First",
        "RDMA write Last", "RDMA read request", "RDMA read response",
        "used key", "BYE", "BYE_ACK", "disconnect request",
        "disconnect reply"))
    _check_again(rig, path, names)


def test_classic(rig):
    """A connection to the kernel's own RDS."""
    path = _capture(rig, "classic")
    traffic.patient(rig)
    with rig.switch.capture(path):
        _sizes(rig.a, rig.b, rig.a.ip, rig.b.ip)
        _sizes(rig.b, rig.a, rig.b.ip, rig.a.ip)
        rig.a.run(f"demo ping {rig.a.ip} {rig.b.ip} 2")
        _end(rig)
    names = _names(rig, path)
    _check_named(rig, names, OPENING + (
        "version 4.1", "data ", "fragment 1", "congestion map", "ping",
        "pong", "acknowledgment", "acknowledge of packet",
        "disconnect request"))
    _check_again(rig, path, names)


test_classic.modules = ("xrds_ib", "rds_rdma")
test_classic.kernels = "6.1"


def test_refused(rig):
    """A message that was refused comes again without the key of its op."""
    path = _capture(rig, "refused")
    with rig.switch.capture(path):
        overflow.refused_ops(rig)
    # a packet that soft-RoCE sends again has the same name
    names = {name for name in _names(rig, path) if "used key" in name}
    rig.check(len(names) == 2, f"two ops, and {sorted(names)}")


def test_heartbeat(rig):
    """Heartbeats of Oracle's kernel have names, and so have their flags."""
    path = _capture(rig, "heartbeat")
    traffic.patient(rig)
    # the peer may be as slow as three of them are apart
    rig.a.write("/proc/sys/net/xrds/heartbeat_ms", "2000")
    with rig.switch.capture(path):
        for order in ("uek {} {} 0 3", "sums {} {} 0 1"):
            rig.b.run(f"echo {order.format(rig.a.ip, rig.b.ip)} "
                      "> /proc/xrds_hostile", timeout=30)
    names = _names(rig, path)
    _check_named(rig, names, (
        "version 4.1", "heartbeat 1, 0 > 0, 0 bytes", "heartbeat answer ",
        "wants one, answers heartbeats", "payload checksum 0x"))
    flags = _flags(path)
    rig.check(flags == "ack_required hb_ping hb_pong", f"flags: {flags}")


test_heartbeat.modules = ("xrds_ib", "xrds_hostile")
test_heartbeat.waits = True
