# SPDX-License-Identifier: GPL-2.0-only
"""Tests of the rig itself: "make -C selftests/unit rig" runs these."""

import io
import os
import socket
import subprocess
import tempfile
import types
import unittest
from contextlib import redirect_stdout
from pathlib import Path
from unittest import mock

from xrdsvm import beside, cli, faults, gdb, host, listing, needs, plant, rig, shell, \
    tap, tests, times
from xrdsvm.host import RigError
from xrdsvm.node import Node
from xrdsvm.tap import Point, Report, Skips
from xrdsvm.needs import PROG
from xrdsvm.tests import Test, find, leaks, newcomers, one_verdict


def verdicts(output: str, code: int = 0) -> tuple[int, int, int]:
    """How many have passed, failed, and been skipped."""
    points = tap.parse(output, code)
    return (sum(p.passed and not p.skipped for p in points),
            sum(not p.passed for p in points),
            sum(bool(p.skipped) for p in points))


class Tap(unittest.TestCase):
    """Programs that speak TAP."""

    def test_passed(self):
        self.assertEqual(verdicts("1..2\nok 1 - a\nok 2 - b # 3 ms\n"), (2, 0, 0))

    def test_failed(self):
        self.assertEqual(verdicts("ok 1 - a\nnot ok 2 - b\n1..2\n", 1), (1, 1, 0))

    def test_exit_status(self):
        self.assertEqual(verdicts("ok 1 - a\n1..1\n", 1), (1, 1, 0))

    def test_words_are_no_verdicts(self):
        self.assertEqual(verdicts("Ran 3 tests\n\nOK\n"), (0, 1, 0))

    def test_no_plan(self):
        self.assertEqual(verdicts("ok 1 - a\n"), (1, 1, 0))
        self.assertEqual(verdicts(""), (0, 1, 0))

    def test_plan_not_kept(self):
        self.assertEqual(verdicts("1..3\nok 1 - a\n"), (1, 1, 0))

    def test_two_plans(self):
        self.assertEqual(verdicts("1..1\nok 1 - a\n1..1\n"), (1, 1, 0))

    def test_skipped_case(self):
        self.assertEqual(verdicts("1..2\nok 1 - a # SKIP none\nok 2 - b\n"),
                         (1, 0, 1))

    def test_skipped_whole(self):
        self.assertEqual(verdicts("1..0 # SKIP none here\n"), (0, 0, 1))
        self.assertEqual(verdicts("no such thing\n", tap.KSFT_SKIP), (0, 0, 1))

    def test_skip_hides_no_failure(self):
        self.assertEqual(verdicts("1..1\nnot ok 1 - a # SKIP none\n", 1),
                         (0, 1, 0))

    def test_empty_plan_hides_no_failure(self):
        for output, code in (("1..0 # SKIP none\n", 1),
                             ("1..0 # SKIP none\nnot ok 1 - a\n", 1),
                             ("ok 1 - a\n1..0 # SKIP none\n", 0)):
            with self.subTest(output=output):
                self.assertTrue(verdicts(output, code)[1])


class Skipping(unittest.TestCase):
    """Skipped verdicts, and the list of those that may be."""

    def test_list(self):
        skips = Skips("# why\nloop/a*: case # SKIP no x*\n")
        self.assertTrue(skips.allow("loop/a@debug: case", "no x here"))
        self.assertFalse(skips.allow("loop/b: case", "no x here"))
        self.assertFalse(skips.allow("loop/a: case", "no y"))

    def test_report(self):
        report = Report()
        with redirect_stdout(io.StringIO()):
            report.add("loop/no_such_test", Point("", True, skipped="because"))
        self.assertEqual((report.failed, report.skipped), (1, 0))


class OneVerdict(unittest.TestCase):
    """A test passes or fails, not both."""

    def test_failed_afterwards(self):
        left = Point("nothing is left", False, why="obj_socks 2")
        self.assertEqual(one_verdict([Point("", True)], [left]), [left])
        skipped = Point("", True, skipped="why")
        self.assertEqual(one_verdict([skipped], [left]), [left])

    def test_others_stay(self):
        left, failed = Point("left", False), Point("", False)
        case, other = Point("case", True), Point("other", True)
        self.assertEqual(one_verdict([failed], [left]), [failed, left])
        self.assertEqual(one_verdict([case], [left]), [case, left])
        self.assertEqual(one_verdict([case, other], []), [case, other])
        self.assertEqual(one_verdict([Point("", True)], []), [Point("", True)])


class Holders(unittest.TestCase):
    """The script that names programs whose sockets are left on a node, run here."""

    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)

    def holders(self, *inodes: int) -> str:
        """Its output for sockets with these inodes."""
        fake = Path(self.place.name) / "xrds-info"
        rows = "".join(f"echo '7  10.0.0.1:4000  -  64  0  1  0  {inode}  loop'\n"
                       for inode in inodes)
        fake.write_text(f"#!/bin/sh\necho $1\necho ID LOCAL\n{rows}")
        fake.chmod(0o755)
        path = f"{self.place.name}:{os.environ['PATH']}"
        return subprocess.run([Path(__file__).parent / "holders"], text=True,
                              env={**os.environ, "PATH": path}, check=True,
                              stdout=subprocess.PIPE).stdout

    def test_program(self):
        with socket.socket(socket.AF_UNIX) as sock:
            said = self.holders(os.fstat(sock.fileno()).st_ino)
        self.assertIn("socket 7, 10.0.0.1:4000 to -: 64 bytes to send", said)
        self.assertIn(f", process {os.getpid()}\n", said)
        self.assertIn(f"thread {os.getpid()}: ", said)

    def test_no_program(self):
        self.assertIn("no program has it open", self.holders(1))

    def test_none(self):
        self.assertNotIn("socket 7", self.holders())


class Console(unittest.TestCase):
    """Complaints of the kernel, through reboots."""

    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        kernel = types.SimpleNamespace(faults=())
        self.node = Node(1, kernel, Path("initrd"), Path(self.place.name),
                         None, 1)
        self.node.console.touch()

    def write(self, text: str) -> None:
        with open(self.node.console, "a", encoding="utf-8") as console:
            console.write(text)

    def test_seen_once(self):
        self.write("all is well\nWARNING: CPU: 0\n")
        self.assertEqual(self.node.complaints(), ["WARNING: CPU: 0"])
        self.assertEqual(self.node.complaints(), [])

    def test_out_of_memory(self):
        """Each line of it, as the kernel leaves some out."""
        lines = ["cat invoked oom-killer: gfp_mask=0xdc0, order=0",
                 "Out of memory: Killed process 77 (cat) total-vm:2048kB"]
        self.write("Memory is plenty\n" + "\n".join(lines) + "\n")
        self.assertEqual(self.node.complaints(), lines)

    def test_seen_through_reboots(self):
        for number in range(3):
            self.write(f"BUG: number {number}\n")
            self.node._put_console_away()
        self.write("BUG: number 3\n")
        self.assertEqual(len(self.node.complaints()), 4)
        self.assertEqual(self.node.complaints(), [])


class Finding(unittest.TestCase):
    """The tests of this tree."""

    def test_names_differ(self):
        names = [t.name for t in find()]
        self.assertEqual(len(names), len(set(names)))

    def test_programs(self):
        found = {t.name: t for t in find()}
        for path in PROG.glob("test_*.c"):
            with self.subTest(program=path.stem):
                self.assertIn(f"loop/{path.stem.removeprefix('test_')}", found)

    def test_needs(self):
        test = next(t for t in find() if t.name == "loop/sysctl")
        self.assertEqual((test.timeout, test.modules, test.program),
                         (60, ("xrds_ib",), "test_sysctl"))

    def test_newcomers(self):
        everything = find()
        chosen = newcomers(everything)
        self.assertTrue(any(t.nodes == 2 for t in chosen))
        self.assertLess(len(chosen), len(everything))


class Facts(unittest.TestCase):
    """Facts that a test states about itself."""

    def test_packages(self):
        found = {t.name: t for t in find()}
        self.assertIn("tshark", found["rxe/wireshark.xrds"].packages)
        self.assertEqual(found["rxe/dropin.qperf"].packages, ("qperf",))
        self.assertEqual(found["loop/send"].packages, ())

    def test_about(self):
        for test in find():
            with self.subTest(test=test.name):
                self.assertTrue(test.about)


class Needed(unittest.TestCase):
    """Programs and modules of a test."""

    def of(self, *names: str) -> needs.Needs:
        found = {t.name: t for t in find()}
        return needs.of(found[name] for name in names)

    def test_one_node(self):
        wanted = self.of("loop/recv")
        self.assertEqual(wanted.programs, {"test_recv", *needs.SETTLED})
        self.assertEqual(wanted.modules, {"xrds"})

    def test_other_files(self):
        wanted = self.of("rxe/close.idle")      # by its imports
        self.assertIn("helper_stream", wanted.programs)
        self.assertIn("xrds_ib", wanted.modules)
        self.assertNotIn("xrds_hostile", wanted.modules)
        self.assertIn("helper_fuzzers", self.of("loop/fuzz").programs)

    def test_all(self):
        command = Test("faults/space", lambda rig: [])
        self.assertTrue(needs.of([command]).module("xrds_hostile"))
        self.assertIsNone(needs.of([command]).programs)
        wanted = needs.of(find()).modules
        self.assertLessEqual(needs.helpers() - {"xrds_floor"}, wanted)
        for test in find():
            with self.subTest(test=test.name):
                self.assertLessEqual(set(" ".join(test.modules).split()) &
                                     {"xrds_ib", *needs.helpers()},
                                     needs.of([test]).modules)


class Parameters(unittest.TestCase):
    """Kernel parameters of nodes: those of a test, and of BOOT."""

    def of(self, boot: str) -> list[str]:
        test = Test("rxe/some", lambda rig: [], boot=("a", "b"))
        with mock.patch.object(needs, "BOOT", tuple(boot.split(";"))):
            return [test.boot_of(mock.Mock(number=n)) for n in (1, 2, 3)]

    def test_none(self):
        self.assertEqual(self.of(""), ["a", "b", "b"])

    def test_all_nodes(self):
        self.assertEqual(self.of("x y"), ["a x y", "b x y", "b x y"])

    def test_each_node(self):
        self.assertEqual(self.of("x;y"), ["a x", "b y", "b y"])


class Choosing(unittest.TestCase):
    """T=, and make list."""

    def setUp(self):
        def of(name: str, nodes: int) -> Test:
            return Test(name, lambda rig: [], nodes, about=f"{name} works.")

        self.found = [of("loop/send", 1), of("loop/recv", 1),
                      of("rxe/close.idle", 2), of("rxe/close.unload", 2)]

    def names(self, pattern: str | None) -> list[str]:
        return [t.name for t in listing.choose(self.found, pattern)]

    def test_names(self):
        self.assertEqual(self.names("loop/send,rxe/close*"),
                         ["loop/send", "rxe/close.idle", "rxe/close.unload"])
        self.assertEqual(len(self.names(None)), 4)

    def test_wrong_name(self):
        for pattern in ("rxe/close.idl", "loop/send,rxe/close.idl"):
            with self.assertRaisesRegex(RigError, "near it: .*rxe/close.idle"):
                self.names(pattern)

    def test_list(self):
        with tempfile.TemporaryDirectory() as place, \
                mock.patch.object(times, "TIMES", Path(place) / "times.json"):
            times.remember({"loop/send": 61.25, "loop/recv": 1, "old": 3})
            times.remember({"loop/recv": 59, "loop/send@debug": 300})
            with redirect_stdout(io.StringIO()) as out:
                listing.show(self.found, {"loop/send"}, "6.1")
        lines = out.getvalue().splitlines()
        self.assertEqual(lines[1].split(), ["loop/send", "*", "1", "61.2",
                                            "loop/send", "works."])
        self.assertEqual(lines[3].split()[:3], ["rxe/close.idle", "2", "-"])
        self.assertEqual(lines[-1], "* make test runs it: 1 tests, 1 min; all of "
                         "these: 4 tests, 2 min (2 have not run here yet)")


class MakeTest(unittest.TestCase):
    """make test, without its tests."""

    def test_newcomers(self):
        args = types.SimpleNamespace(test=None, kernel="6.1", verbose=False)
        with mock.patch.object(cli, "_tests") as run, \
                mock.patch.object(Report, "end", return_value=0), \
                redirect_stdout(io.StringIO()) as out:
            self.assertEqual(cli.cmd_test(args), 0)
        chosen = run.call_args[0][1]
        self.assertEqual([t.name for t in chosen],
                         [t.name for t in newcomers(find())])
        self.assertIn(f"{len(chosen)} of ", out.getvalue())


class Installing(unittest.TestCase):
    """make install refuses what it would put into a wrong place."""

    def refused(self, *args: str) -> str:
        with mock.patch.dict(os.environ):
            for name in ("KDIR", "DESTDIR"):
                os.environ.pop(name, None)
            out, code = host.try_make("-n", "-C", host.TOP, *args)
        self.assertNotEqual(code, 0, out)
        return out

    def test_other_kernel(self):
        for target in ("install", "install-modules"):
            self.assertIn("No headers of the running kernel",
                          self.refused(target, "RUNNING=none"))

    def test_relative(self):
        self.assertIn("DESTDIR= must be absolute",
                      self.refused("install-conf", "DESTDIR=there"))


class Growing(unittest.TestCase):
    """Nodes that join others."""

    def test_grow(self):
        kernel = types.SimpleNamespace()
        with mock.patch.object(rig, "Switch") as switch, \
                mock.patch.object(rig.image, "build"), \
                mock.patch.object(rig, "Node") as node:
            made = [mock.Mock(number=n, tainted=n == 2) for n in (1, 2, 3)]
            node.side_effect = made
            with rig.Rig(kernel, 1, [], most=3) as nodes:
                self.assertEqual(nodes.nodes, made[:1])
                nodes.grow(2)
                made[0].run.assert_called_once_with("neighbours 1 2")
                nodes.grow(3)
                self.assertEqual(nodes.nodes, made)
        switch.assert_called_once_with(3)
        for number, one in enumerate(made, 1):
            with self.subTest(node=number):
                one.boot.assert_called_once_with()
                one.shutdown.assert_called_once_with()
                self.assertEqual(one.total, 3)
        made[0].run.assert_called_with("neighbours 1 3")
        made[1].run.assert_not_called()     # it will be booted anew

    def test_leaks(self):
        """Looked for when tests for so many nodes are over, and told once."""
        kernel = types.SimpleNamespace(kmemleak=True)
        clean, leaky = (mock.Mock(kernel=kernel, boots=1, tainted=False,
                                  served=["loop/send"]) for _ in range(2))
        clean.start.return_value.wait.return_value.out = ""
        leaky.start.return_value.wait.return_value.out = "unreferenced object"
        report = Report()
        with redirect_stdout(io.StringIO()) as out:
            leaks([clean, leaky], report)
            leaks([clean, leaky], report)
        self.assertEqual((report.passed, report.failed), (1, 1))
        self.assertIn("boot 1, tests: loop/send", out.getvalue())
        self.assertFalse(clean.tainted)
        self.assertTrue(leaky.tainted)      # it is booted anew


class OnNodesOfTheirOwn(unittest.TestCase):
    """Tests beside others."""

    @staticmethod
    def _some(report):
        report.add("loop/send", Point("", True), 1.0)
        report.ran("loop/send", 1.0)
        report.hold("loop", 5, 9, "loop/send")

    def test_reports(self):
        report = Report()
        with redirect_stdout(io.StringIO()) as out:
            with beside.Beside(self._some, report) as other:
                other.wait()
        self.assertEqual(out.getvalue(), "ok 1 - loop/send # 1.0 s\n")
        self.assertEqual(report.took, {"loop/send": 1.0})
        self.assertEqual(report.holds, {"loop": (5, 9, "loop/send")})

    def test_fails(self):
        """Neither an exception nor a sudden end goes unnoticed."""
        for work in (lambda _report: 1 / 0, lambda _report: os._exit(3)):
            report = Report()
            with redirect_stdout(io.StringIO()), mock.patch("sys.stderr"), \
                    beside.Beside(work, report):
                pass
            self.assertIn("beside", report.failures)

    def test_alone(self):
        """Tests that measure come when nothing runs beside them any more."""
        events = []

        def ran(trial):
            events.append(trial.test.name)

        chosen = [Test("rxe/measures", lambda _rig: [], 2, measures=True),
                  Test("rxe/both", lambda _rig: [], 2)]
        runner = tests._Runner(mock.Mock(release=""), chosen, Report(), False,
                               lambda _test: True,
                               lambda: events.append("alone"))
        with mock.patch.object(tests, "Rig") as nodes, \
                mock.patch.object(tests.Trial, "run", ran), \
                redirect_stdout(io.StringIO()):
            nodes.return_value.__enter__.return_value = mock.Mock(
                nodes=[], boot_seconds=1.0)
            runner.run([], None)
        self.assertEqual(events[-3:], ["rxe/both", "alone", "rxe/measures"])


class Debugger(unittest.TestCase):
    """Symbols of a kernel and its modules for gdb."""

    def test_symbols(self):
        text = ("ffffffff81000000 T _stext\nffffffff81000040 t same\n"
                "ffffffff82000000 D data\nffffffff81000080 t same\n"
                "0000000000000000 A percpu\n")
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "symbols"
            path.write_bytes(gdb.elf(gdb.parse_kallsyms(text)))
            listed = host.call("nm", path).split("\n")
        self.assertEqual([line.split()[::2] for line in listed if line],
                         [["ffffffff81000000", "_stext"],
                          ["ffffffff82000000", "data"],
                          ["ffffffff81000040", "same"],
                          ["ffffffff81000080", "same"]])

    def test_module(self):
        command = gdb.add_module(Path("/build/xrds.ko"),
                                 ".text:0xffffffffc0000000\n.bss:0xffffffffc0001\n"
                                 ".init.text:0xffffffffc0002\n.data..x:0xf1\n")
        self.assertEqual(command, "add-symbol-file /build/xrds.ko "
                         "-s .text 0xffffffffc0000000 -s .bss 0xffffffffc0001"
                         " -s .data..x 0xf1")


class OwnProgram(unittest.TestCase):
    """make run PROG=."""

    def test_c(self):
        with tempfile.TemporaryDirectory() as place, \
                mock.patch.object(shell, "BUILD", Path(place)):
            source = Path(place) / "mine.c"
            source.write_text("#include <linux/xrds.h>\n"
                              "int main(void) { return 0; }\n")
            self.assertEqual(shell.program(source),
                             Path(place) / "run/mine")
            host.call(Path(place) / "run/mine")

    def test_script(self):
        self.assertEqual(shell.program(__file__), Path(__file__).resolve())
        with self.assertRaisesRegex(RigError, "no such file"):
            shell.program("/no/such/file")


class Mistakes(unittest.TestCase):
    """selftests/faults: the code may have changed since."""

    def test_apply(self):
        for fault in faults.find("*", True):
            with self.subTest(fault.name):
                self.assertTrue(plant.changes(fault, host.TOP))

    def test_tests_exist(self):
        known = {t.name: t for t in find()}
        for fault in faults.find("*", True):
            for name in fault.tests:
                with self.subTest(fault.name):
                    faults.named(fault, name, known)

    def test_other_failure(self):
        heard = faults._Heard()
        fault = plant.Fault("lost", caught=r": order(\.v6)?:")
        heard.add("loop/send", Point("nothing is left", False, why="3 messages"))
        self.assertFalse(faults._judge(fault, heard).passed)
        heard.add("loop/send", Point("order: they stay in order", False))
        with redirect_stdout(io.StringIO()):
            self.assertTrue(faults._judge(fault, heard).passed)


if __name__ == "__main__":
    unittest.main()
