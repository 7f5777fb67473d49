# SPDX-License-Identifier: GPL-2.0-only
"""Several messages in one SEND: nothing else about them may change.

Messages are sent as by sendmmsg() (helper_stream -M), with calls that end early
now and then, and are checked as ever. The counters say that they went together.
"""

import close
import traffic

TIMEOUT = 200
MODULES = "xrds_ib xrds_nomem"
NO_MEMORY = "/sys/module/xrds_nomem/parameters"
KNOB = "/proc/sys/net/xrds/ib/bundle_bytes"
AUTOCORK = "/proc/sys/net/xrds/ib/autocork_us"
SMALL = "-M -m 1500"


def _run(rig, count: int, seed: int, extra: str = SMALL, **options) -> list:
    """A stream both ways; returns what the counters grew by."""
    before = [close.counters(n) for n in rig.nodes]
    traffic.run(rig, count, timeout=150, seed=seed, extra=extra, **options)
    for node in rig.nodes:
        # the ends of the streams go together as well
        node.run("settled 20", timeout=60)
    return [close.delta(n, old) for n, old in zip(rig.nodes, before)]


def _check_bundled(rig, grown: list) -> None:
    for node, counts in zip(rig.nodes, grown):
        rig.diag(f"{node}: {counts['ib_tx_bundled']} messages in "
                 f"{counts['ib_tx_bundles']} bundles")
        rig.check(counts["ib_tx_bundles"] > 0, f"{node}: no bundle")
        rig.check(counts["ib_tx_bundled"] >= 2 * counts["ib_tx_bundles"],
                  f"{node}: bundles of one message")


def test_stream(rig):
    """Small messages both ways: bundles of one side are taken apart by the
    other.
    """
    traffic.patient(rig)
    grown = _run(rig, 6000, seed=61)
    _check_bundled(rig, grown)
    rig.check(not any(counts["conn_reset"] for counts in grown),
              "the connection was lost")
    for one, two in (grown, grown[::-1]):
        for what in ("bundles", "bundled"):
            rig.check(one[f"ib_tx_{what}"] == two[f"ib_rx_{what}"],
                      f"{what}: {one[f'ib_tx_{what}']} sent, "
                      f"{two[f'ib_rx_{what}']} received")


def test_mixed_sizes(rig):
    """Those that are too large for it stand between bundles, in their order."""
    _check_bundled(rig, _run(rig, 3000, seed=62, extra="-M -m 40000"))


def test_small_buffers(rig):
    """Calls end for want of space and for congestion all the time."""
    _run(rig, 3000, seed=63, extra=f"{SMALL} -b 4096 -B 4096")


def test_loss(rig):
    """Frames are lost; the device repeats bundles."""
    for node in rig.nodes:
        node.loss(2)
    _check_bundled(rig, _run(rig, 2000, seed=64))


def test_reconnect(rig):
    """Bundles are cut off, and their messages sent again."""
    grown = _reconnect(rig, SMALL)
    _check_bundled(rig, grown)


def _reconnect(rig, extra: str) -> list:
    """Under a stream; returns what the counters grew by."""
    for node in rig.nodes:
        node.write("/proc/sys/net/rds/reconnect_max_delay_ms", "1")
        node.write("/proc/sys/net/rds/reconnect_min_delay_ms", "1")
    before = [close.counters(n) for n in rig.nodes]
    stream = traffic.Stream(rig, traffic.ENDLESS, seed=65, extra=extra)
    stream.flowing()
    for node in rig.nodes:
        node.run("helper_break_conns 10", timeout=100)
    stream.stop(60)
    grown = [close.delta(n, old) for n, old in zip(rig.nodes, before)]
    for node, counts in zip(rig.nodes, grown):
        rig.check(counts["conn_up"] >= 20,
                  f"{node}: up {counts['conn_up']} times")
    return grown


def test_no_memory(rig):
    """No memory to take a bundle apart: the connection is lost once, and has no
    bundles from then on. No message is lost, however often it happens.
    """
    traffic.patient(rig)
    rig.b.write(f"{NO_MEMORY}/every", "50")
    grown = _run(rig, 3000, seed=67)
    rig.b.write(f"{NO_MEMORY}/every", "0")
    struck = int(rig.b.read(f"{NO_MEMORY}/struck"))
    for node, counts in zip(rig.nodes, grown):
        rig.diag(f"{node}: " + ", ".join(f"{name} {counts[name]}" for name in (
            "conn_up", "ib_rx_bundles", "ib_rx_copy_no_mem")))
    rig.check(struck >= 5, f"struck {struck} times only")
    rig.check(grown[1]["ib_rx_bundles"] > 0, "no bundle came")
    # the first connection, the one without bundles, and maybe one that crossed
    rig.check(all(counts["conn_up"] <= 3 for counts in grown),
              "connections are lost again and again")


def test_unwanted(rig):
    """A node that does not want them says so: none are sent, either way."""
    rig.b.write(KNOB, "0")
    for node, counts in zip(rig.nodes, _run(rig, 2000, seed=66)):
        for name in ("ib_tx_bundles", "ib_rx_bundles"):
            rig.check(counts[name] == 0, f"{node}: {name} {counts[name]}")


def test_calls(rig):
    """sendmmsg() from such an address to itself: accepted messages come."""
    for address in (rig.a.ip, rig.a.ip6):
        rig.a.run(f"test_bundle -a {address}", timeout=90)


def _cork(rig, microseconds: int) -> None:
    """Soft-RoCE's round trip is much longer here than by default."""
    for node in rig.nodes:
        node.write(AUTOCORK, str(microseconds))


def _check_corked(rig, grown: list) -> None:
    _check_bundled(rig, grown)
    for node, counts in zip(rig.nodes, grown):
        rig.check(counts["ib_tx_corks"] > 0, f"{node}: no message waited")


def test_corked(rig):
    """Each call has one message. Those that find others on their way go together,
    and none stays behind.
    """
    traffic.patient(rig)
    _cork(rig, 1000000)
    for options in ("", "-b 4096 -B 4096", "-m 40000"):
        grown = _run(rig, 2000, seed=68, extra=f"-m 1000 {options}", stall=20)
        _check_corked(rig, grown)
        rig.check(not any(counts["conn_reset"] for counts in grown),
                  "the connection was lost")


def test_corked_reconnect(rig):
    """A connection ends while messages wait: they go over the next one."""
    _cork(rig, 1000000)
    _check_corked(rig, _reconnect(rig, "-m 1000"))


def test_uncorked(rig):
    """Without others on their way no message waits, and with 0 none ever does."""
    traffic.patient(rig)
    rig.b.start(f"xrds-perf -s {rig.b.ip}").expect("ready")
    for longest, depth in ((1000000, 1), (0, 16)):
        _cork(rig, longest)
        before = close.counters(rig.a)
        rig.a.run(f"xrds-perf -l 64 -d {depth} -n 400 {rig.b.ip}", timeout=60)
        corks = close.delta(rig.a, before)["ib_tx_corks"]
        rig.check(corks == 0, f"depth {depth}: messages waited {corks} times")
