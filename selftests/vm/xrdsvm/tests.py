# SPDX-License-Identifier: GPL-2.0-only
"""Finds the tests, and runs each between two module unloads.

selftests/prog/test_NAME.c and selftests/loop/NAME.sh run inside one node and
print TAP: the test loop/NAME. In selftests/rxe/NAME.py each function
test_WHAT(rig) is a test that runs on the host and directs the nodes. README.md
tells how to write one.
"""

import dataclasses
import fnmatch
import importlib.util
import math
import re
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import image, needs, tap, times
from .beside import Beside
from .host import BUILD, TOP, VM, RigError, call, note, try_make
from .image import Extras
from .kernels import Kernel
from .needs import PROG, RXE
from .node import Failed, Node, NodeDied, stopwatch
from .rig import Rig, Skip, build_modules
from .tap import Point, Report

LOOP = TOP / "selftests/loop"
SHORT = TOP / "selftests/short"
LOGS = BUILD / "logs"
OURS = ("xrds_ib", "xrds")
IN_TREE = ("rds_rdma", "rds_tcp", "rds")    # a test may load them instead
HEADERS = ("nodes", "timeout", "modules", "fresh", "kernels", "leaves",
           "boot", "memory", "packages")
UNLOAD_SECONDS = 60
SETTLE_SECONDS = 30         # an attempt to connect takes 10
SCAN_SECONDS = 120


def _of(node: Node, sets: tuple[str, ...]) -> str:
    """What a node gets; the last set is for the rest."""
    return sets[min(node.number, len(sets)) - 1]


@dataclass
class Test:
    """One test: its needs, and how to run it on a rig."""
    name: str
    run: Callable[[Rig], list[Point]]
    nodes: int = 1
    timeout: float = 120
    modules: tuple[str, ...] = ()       # one set for all nodes, or one each
    fresh: bool = False
    kernels: tuple[str, ...] = ()       # empty: all
    leaves: str = ""        # may be left: "messages"
    boot: tuple[str, ...] = ("",)       # kernel parameters, one set or one each
    memory: int = 0         # MiB that a node has at least; 0: the kernel's usual
    reboots: bool = False   # it cuts a node's power
    program: str = ""       # if the test is one program, which has cases
    packages: tuple[str, ...] = ()      # of Debian, beside those of deps.sh rig
    waits: bool = False     # mostly for time-outs, links, a node's boot
    measures: bool = False  # rates or times, so nothing runs beside it
    late: bool = False      # "make ci" runs it last, if there is time
    about: str = ""         # its claim, in a line
    path: Path | None = None        # its file

    def runs_on(self, kernel: Kernel) -> bool:
        return not self.kernels or kernel.name in self.kernels

    def modules_of(self, node: Node) -> str:
        """Modules to load on a node, as words."""
        return _of(node, self.modules) if self.modules else ""

    def boot_of(self, node: Node) -> str:
        """Kernel parameters of a node."""
        return f"{_of(node, self.boot)} {_of(node, needs.BOOT)}".strip()

    def fits(self, node: Node) -> bool:
        """Whether a node was booted as the test needs it."""
        return (node.parameters == self.boot_of(node) and
                node.memory == self.memory)

    def matches(self, pattern: str) -> bool:
        """By full name, file name, function name, or a glob for these."""
        tier, _, rest = self.name.partition("/")
        stem, _, function = rest.partition(".")
        return any(fnmatch.fnmatch(text, pattern) for text in
                   (self.name, tier, rest, stem, function,
                    f"{tier}/{stem}") if text)


# ------------------------------------------------------------------ finding


def find() -> list[Test]:
    """All tests, those for few nodes first."""
    tests = [_shell_test(p) for p in LOOP.glob("*.sh")]
    tests += filter(None, map(_program_test, PROG.glob("test_*.c")))
    tests.sort(key=lambda t: t.name)
    for path in sorted(RXE.glob("*.py")):
        tests += _python_tests(path)
    return sorted(tests, key=lambda t: t.nodes)


def newcomers(found: list[Test]) -> list[Test]:
    """Those of "make test"; RigError if it lists one that does not exist."""
    lines = (line.strip() for line in SHORT.read_text("utf-8").splitlines())
    names = {line for line in lines if line and not line.startswith("#")}
    if unknown := names - {t.name for t in found}:
        raise RigError(f"{SHORT}: no test is called {' '.join(sorted(unknown))}")
    return [t for t in found if t.name in names]


def _comment(path: Path) -> list[str]:
    """Lines of the comment at the head of a file."""
    end = "*/" if path.suffix == ".c" else "\n\n"
    text = path.read_text(encoding="utf-8").partition(end)[0]
    return re.findall(r"^(?:#| \*)(?!!) ?(.*)$", text, re.MULTILINE)


def _head(path: Path) -> dict[str, str]:
    """The needs of a test, from the head of its file."""
    return dict(re.findall(rf"^({'|'.join(HEADERS)}): *(.*)$",
                           "\n".join(_comment(path)), re.MULTILINE))


def _opening(path: Path) -> str:
    """The head of a file without the test's needs, as a line."""
    prose = [line for line in _comment(path) if not line.startswith("SPDX") and
             not re.match(rf"({'|'.join(HEADERS)}):", line)]
    return " ".join(" ".join(prose).split())


def _shell_test(path: Path) -> Test:
    return _loop_test(path.stem, f"bash /xrds/selftests/loop/{path.name}", path,
                      _head(path))


def _program_test(path: Path) -> Test | None:
    """None: the file says nothing, so a script runs it."""
    if not (head := _head(path)):
        return None
    test = _loop_test(path.stem.removeprefix("test_"), path.stem, path, head)
    test.program = path.stem
    return test


def _loop_test(name: str, command: str, path: Path,
               head: dict[str, str]) -> Test:
    timeout = float(head.get("timeout", 120))

    def run(rig: Rig) -> list[Point]:
        done = rig.a.run(f"cd /tmp && {command}", timeout, check=False)
        return tap.parse(done.out, done.code)

    return Test(f"loop/{name}", run, int(head.get("nodes", 1)), timeout,
                (head.get("modules", "xrds"),),
                head.get("fresh", "no") in ("yes", "true", "1"),
                tuple(head.get("kernels", "").split()),
                head.get("leaves", ""), (head.get("boot", ""),),
                memory=int(head.get("memory", 0)),
                packages=tuple(head.get("packages", "").split()),
                about=_opening(path), path=path)


def _python_tests(path: Path) -> list[Test]:
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(f"rxe_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise RigError(f"{path}: {error!r}") from error
    finally:
        sys.path.remove(str(path.parent))
    names = [n for n in vars(module) if n.startswith("test_")]
    return [_python_test(path.stem, module, name) for name in names]


def _tuple(words: str | tuple[str, ...]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else words


def _python_test(stem: str, module, name: str) -> Test:
    function = getattr(module, name)

    def option(key: str, default):
        """Of the function, or else of the whole file."""
        return getattr(function, key, getattr(module, key.upper(), default))

    def run(rig: Rig) -> list[Point]:
        function(rig)
        return [Point("", True)]

    what = name.removeprefix("test_")
    title = f"rxe/{stem}" if what == stem else f"rxe/{stem}.{what}"
    return Test(title, run, option("nodes", 2), option("timeout", 120),
                _tuple(option("modules", "xrds_ib")),
                option("fresh", False), tuple(option("kernels", "").split()),
                option("leaves", ""), _tuple(option("boot", "")),
                memory=option("memory", 0), reboots=option("reboots", False),
                packages=_tuple(option("packages", ())),
                waits=option("waits", False),
                measures=option("measures", False),
                late=option("late", False),
                about=_about(function, module), path=Path(module.__file__))


def _about(function, module) -> str:
    """The first paragraph of its documentation, or of its file's."""
    text = function.__doc__ or module.__doc__ or ""
    return " ".join(text.partition("\n\n")[0].split())


# ------------------------------------------------------------------ running


def run(kernel: Kernel, tests: list[Test], report: Report,
        verbose: bool = False, top: Path = TOP,
        wanted: Callable[[Test], bool] = lambda _test: True,
        beside: bool = False) -> None:
    """Run tests on one kernel; nodes stay, and others join them. The modules
    are built from the tree at top. Each test is asked for once more
    when its turn has come, if somebody wants to know. Tests that mostly wait
    may run on nodes of their own beside the others.
    """
    tests = [t for t in tests if t.runs_on(kernel)]
    if not tests:
        return
    modules, extras = prepare(kernel, tests, report, top)
    elapsed = stopwatch()
    image.prepare(kernel)

    def some(which: list[Test], heard: Report, first=lambda: None) -> None:
        if which:
            _Runner(kernel, which, heard, verbose, wanted, first).run(modules,
                                                                      extras)

    alone = [t for t in tests if not beside or not t.waits]
    rest = [t for t in tests if t not in alone]
    try:
        if rest:
            with Beside(lambda relay: some(rest, relay), report) as other:
                some(alone, report, other.wait)
        else:
            some(alone, report)
    finally:
        if top == TOP:
            times.remember(report.took)
    note(f"kernel {kernel.release}: tier of {len(tests)} test(s) took "
         f"{elapsed():.0f} s")


def install(tests: list[Test]) -> None:
    """The Debian packages that these tests name."""
    if packages := sorted({name for t in tests for name in t.packages}):
        call(VM / "deps.sh", *packages, timeout=900)


def prepare(kernel: Kernel, tests: list[Test], report: Report,
            top: Path = TOP) -> tuple[list[Path], Extras]:
    """Install and build the needs of these tests: modules, and the other files
    of nodes.
    """
    try:
        install(tests)
    except RigError as error:       # tests that need none of them can run
        report.add("packages", Point("", False, why=str(error)))
    note(f"kernel {kernel.release}: building")
    wanted = needs.of(tests)
    modules = build_modules(kernel, top, wanted)
    needs.build_programs(wanted)
    return modules, Extras(built=wanted.programs)


@dataclass
class _Runner:
    """Runs tests for few nodes first: these stay, and others join them. Before
    the first test that must be alone it waits for other runners.
    """
    kernel: Kernel
    tests: list[Test]
    report: Report
    verbose: bool
    wanted: Callable[[Test], bool]
    alone: Callable[[], None]

    def run(self, modules: list[Path], extras: Extras) -> None:
        counts = sorted({t.nodes for t in self.tests})
        with Rig(self.kernel, counts[0], modules, extras=extras,
                 most=counts[-1]) as rig:
            for count in counts:
                if count > len(rig.nodes):
                    self.alone()
                    rig.grow(count)
                self._group(rig, [t for t in self.tests if t.nodes == count])

    def _group(self, rig: Rig, tests: list[Test]) -> None:
        """Those for all nodes that run now."""
        name = f"kernel {self.kernel.release}: {len(rig.nodes)} node(s)"
        note(f"{name} up in {rig.boot_seconds:.1f} s")
        watch = stopwatch()
        for test in filter(self.wanted, sorted(tests, key=_alone)):
            if _alone(test):
                self.alone()
            leaks_before(test, rig, self.report)
            Trial(test, rig, self.report, self.verbose).run()
        note(f"{name}, {len(tests)} test(s): {watch():.0f} s")
        leaks(rig.nodes, self.report)


def _alone(test: Test) -> bool:
    """Whether nothing may run beside it."""
    return test.measures or test.nodes > 2


def leaks_before(test: Test, rig: Rig, report: Report) -> None:
    """Of the nodes that this test, or its preparation, boots anew."""
    leaks([n for n in rig.nodes if n.tainted or test.fresh or test.reboots or
           not test.fits(n)], report)


def leaks(nodes: list[Node], report: Report) -> None:
    """Memory that has leaked on these nodes since the last scan, by kmemleak."""
    scans = [(n, n.start("leaks")) for n in nodes
             if n.kernel.kmemleak and n.alive() and n.served]
    for node, scan in scans:
        elapsed = stopwatch()
        try:
            found = scan.wait(SCAN_SECONDS).out
        except Failed as error:
            found = str(error)
        report.add(f"kmemleak/{node}, boot {node.boots}, tests: "
                   f"{' '.join(node.served)}", Point("", not found, why=found),
                   elapsed())
        node.served = []
        node.tainted |= bool(found)     # it would be found again


def one_verdict(points: list[Point], after: list[Point]) -> list[Point]:
    """All verdicts of a test. One without cases that has passed, and has failed
    afterwards, has not passed.
    """
    if after and len(points) == 1 and points[0].passed and not points[0].name:
        points = []
    return points + after


class Trial:
    """One run of one test, from clean nodes to clean nodes."""

    def __init__(self, test: Test, rig: Rig, report: Report,
                 verbose: bool = False, logs: Path | None = None) -> None:
        self.test = test
        self.rig = rig
        self.report = report
        self.verbose = verbose
        # "KERNEL debug" and "KERNEL 6.1" results must not look alike
        self.title = test.name if rig.kernel.name == "6.1" \
            else f"{test.name}@{rig.kernel.name}"
        self.logs = logs or LOGS / self.title.replace("/", "-")
        self.mourned: set[Node] = set()     # their death was reported
        self.boots: list[int] = []          # of the nodes, when it began

    def run(self) -> None:
        elapsed = stopwatch()
        shutil.rmtree(self.logs, ignore_errors=True)
        points = self._guard(self._prepare)
        if not points:
            points = self._guard(self._body)
            points = one_verdict(points, self._guard(self._clean) +
                                 self._unannounced())
        points = one_verdict(points, self._complaints())
        seconds = elapsed()
        self.report.ran(self.title, seconds)
        if not all(p.passed for p in points) or self.verbose:
            points[-1].why += f"\nlogs: {self._keep_logs()}"
        for point in points:
            self.report.add(self.title, point,
                            seconds if len(points) == 1 else None)
        if self.verbose:
            self._show()

    def _guard(self, step) -> list[Point]:
        """The verdicts of a step; an exception is one."""
        try:
            return step() or []
        except Skip as reason:
            return [Point("", True, skipped=str(reason))]
        except NodeDied as error:
            self.mourned.add(error.node)
            return [Point("", False, why=_where(error) + str(error))]
        except (Failed, RigError) as error:
            return [Point("", False, why=_where(error) + str(error))]
        except Exception:       # a mistake in the test: fail it, go on
            return [Point("", False, why=traceback.format_exc())]

    # --------------------------------------------------------------- steps

    def _prepare(self) -> None:
        down = [n for n in self.rig.nodes if self.test.fresh or not n.alive()
                or n.tainted or not self.test.fits(n)]
        for node in down:
            node.parameters = self.test.boot_of(node)
            node.memory = self.test.memory
            node.kill()
            node.boot()
        for node in down:
            node.wait_booted()
        for node in self.rig.nodes:
            node.served.append(self.test.name)
        self.boots = [n.boots for n in self.rig.nodes]
        self._on_all(self._load)

    def _on_all(self, step) -> list:
        """The results of a step on each node; all take it at once."""
        with ThreadPoolExecutor(len(self.rig.nodes)) as pool:
            return list(pool.map(step, self.rig.nodes))

    def _load(self, node: Node) -> None:
        node.transcript.write_text("")
        node.starved = False
        if modules := self.test.modules_of(node):
            node.run(f"modprobe -a {modules}")

    def _body(self) -> list[Point]:
        limit = self.test.timeout * self.rig.kernel.slow

        def late(_signum, _frame):
            raise Failed(f"not finished after {limit:g} s")

        before = signal.signal(signal.SIGALRM, late)
        signal.alarm(math.ceil(limit))
        try:
            return self.test.run(self.rig)
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)

    def _clean(self) -> list[Point]:
        """Undo faults, end leftovers, unload: nothing may be left."""
        points = []
        failed: set[Node] = set()

        def take(name: str, step, node: Node) -> list[Point]:
            found = self._guard(lambda: step(node))
            if found:
                failed.add(node)
            return [dataclasses.replace(p, name=name) for p in found]

        # a socket that lingers on one node needs the modules of the other
        for name, step in (("faults are undone", self._heal_node),
                           ("nothing is left", self._settle_node),
                           ("modules are unloaded", self._unload_node)):
            for found in self._on_all(
                    lambda n: [] if n in failed else take(name, step, n)):
                points += found
        return points

    @staticmethod
    def _heal_node(node: Node) -> None:
        if node.alive():
            node.tainted = True     # until proven clean
            node.heal()

    def _lives(self, node: Node) -> bool:
        if node.alive():
            return True
        if not node.killed and node not in self.mourned:
            raise NodeDied(node, f"{node} died")
        return False

    def _settle_node(self, node: Node) -> None:
        if self._lives(node):
            limit = round(SETTLE_SECONDS * node.kernel.slow)
            done = node.run(f"settled {limit} {self.test.leaves}",
                            2 * SETTLE_SECONDS, check=False)
            if done.code:
                raise Failed(f"{node}: {done}")
            for line in done.out.splitlines():
                name, steps, most, *end = line.split()
                if name == "off":
                    self.report.off(int(steps), f"{most} to {end[0]}",
                                    self.title)
                    continue
                self.report.hold(name, int(steps), int(most), self.title)
                if int(steps) > int(most):
                    raise Failed(f"{node}: {steps} steps of {name} in one hold "
                                 f"of a lock, {most} at most (xrds.h)")

    def _unload_node(self, node: Node) -> None:
        if not self._lives(node):
            return
        names = " ".join(dict.fromkeys(
            (*OURS, *self.test.modules_of(node).split(), *IN_TREE)))
        node.run(f"unload {names}", UNLOAD_SECONDS)
        node.tainted = False

    def _unannounced(self) -> list[Point]:
        """kmemleak has to look before a test cuts a node's power."""
        if self.test.reboots or self.boots == [n.boots for n in
                                               self.rig.nodes]:
            return []
        return [Point("reboots", False, why="it boots a node anew, and has no "
                      "attribute reboots that says so")]

    def _complaints(self) -> list[Point]:
        points = []
        for node in self.rig.nodes:
            if (lines := node.complaints()) and node not in self.mourned:
                node.tainted = True
                points.append(Point(f"{node}'s kernel log", False,
                                    why="\n".join(lines[:8])))
        return points

    # ---------------------------------------------------------------- logs

    def _keep_logs(self) -> str:
        self.logs.mkdir(parents=True, exist_ok=True)
        for node in self.rig.nodes:
            for path in node.console.parent.glob(f"{node}.*"):
                shutil.copy(path, self.logs)
        return str(self.logs.relative_to(TOP))

    def _show(self) -> None:
        for node in self.rig.nodes:
            for line in node.transcript.read_text(errors="replace").splitlines():
                note(f"  {node}| {line}")


def _where(error: Exception) -> str:
    """The line of the test that failed."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).is_relative_to(RXE):
            return f"{Path(frame.filename).name}:{frame.lineno}: {frame.line}\n"
    return ""


# --------------------------------------------------------------- unit tests


def unit(report: Report) -> None:
    """The user-space tests: selftests/unit's own make targets, as tests."""
    place = TOP / "selftests/unit"
    if not (place / "Makefile").exists():
        return
    for target in ("check", "coverage", "rig", "checks", "programs",
                   "fuzz-smoke"):
        elapsed = stopwatch()
        out, code = try_make("-s", "-C", place, target)
        points = tap.parse(out, code)
        if len(points) == 1 and points[0].name == "verdict" and not code:
            points[-1] = Point("", True)        # it does not speak TAP
        if code:
            LOGS.mkdir(parents=True, exist_ok=True)
            (LOGS / f"unit-{target}").write_text(out)
            points[-1].why += f"\nlogs: build/logs/unit-{target}"
        for point in points:
            report.add(f"unit/{target}", point,
                       elapsed() if len(points) == 1 else None)
