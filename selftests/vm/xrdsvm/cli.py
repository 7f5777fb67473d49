# SPDX-License-Identifier: GPL-2.0-only
"""The commands behind the Makefile's targets."""

import argparse
import contextlib
import os
import threading
from pathlib import Path

from . import (bench, ci, debugkernel, demo, emulator, faults, flaky, host,
               kernels, listing, matrix, needs, packages, qemu, shell, tests)
from .host import RigError, note
from .image import Extras
from .rig import Rig, build_modules
from .tap import Point, Report

SOAK_MSGS = "1000000"


def main() -> int:
    host.setup()
    args = _parse()
    try:
        return COMMANDS[args.command](args)
    except RigError as error:
        print(f"Bail out! {error}", flush=True)
        return 2


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="vm", description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("-t", "--test", help="only tests of this name")
    parser.add_argument("-k", "--kernel",
                        help=f"one of {', '.join(kernels.NAMES)}")
    parser.add_argument("-n", "--nodes", type=int, default=2)
    parser.add_argument("-m", "--modules", default="xrds_ib",
                        help="modules that 'shell' and 'run' load")
    parser.add_argument("-s", "--share", help="a folder for the nodes of 'shell'")
    parser.add_argument("-p", "--program", help="the program for 'run'")
    parser.add_argument("-a", "--arguments", default="",
                        help="its arguments")
    parser.add_argument("-N", "--times", type=int, default=20,
                        help="how often 'flaky' runs each test")
    parser.add_argument("-L", "--load", type=int, default=0,
                        help="busy processes beside the nodes of 'flaky'")
    parser.add_argument("-v", "--verbose", action="store_true",
                        help="show what ran on the nodes")
    args = parser.parse_args()
    if not args.kernel:
        args.kernel = matrix.KERNELS if args.command == "matrix" else "6.1"
    return args


def _chosen(pattern: str | None) -> list[tests.Test]:
    """All tests, or those that -t names; "unit" is none of these."""
    if pattern == "unit":
        return []
    return listing.choose(tests.find(), pattern)


def cmd_test(args) -> int:
    """Unit tests, and the short list of tests (or -t) on one kernel."""
    report = Report()
    chosen = _chosen(args.test)
    if not args.test:
        few = tests.newcomers(chosen)
        note(f"{len(few)} of {len(chosen)} tests: make test-full runs all")
        chosen = few
    _tests(args, chosen, report)
    return report.end()


def cmd_test_full(args) -> int:
    """Unit tests, then everything on one kernel (or -k a,b for several)."""
    report = Report()
    _tests(args, _chosen(args.test), report)
    return report.end()


def _tests(args, chosen: list[tests.Test], report: Report) -> None:
    if not args.test or args.test == "unit":
        fetching = threading.Thread(target=_fetch, daemon=True,
                                    args=(args.kernel, chosen))
        fetching.start()
        tests.unit(report)
        fetching.join()
    _on_kernels(args, chosen, report)


def _fetch(names: str, chosen: list[tests.Test]) -> None:
    """Bring kernels, packages and QEMU here, as far as no node is booted for
    that. A failed one is tried again when it is needed, and reported then.
    """
    for name in set(names.split(",")) & kernels.HEADERS.keys():
        with contextlib.suppress(RigError):
            kernels.find(name)
    with contextlib.suppress(RigError):
        tests.install(chosen)
        if not qemu.has_kvm():
            emulator.find()


def _on_kernels(args, chosen: list[tests.Test], report: Report) -> None:
    """One kernel that can not be had or built for does not end the others."""
    for name in args.kernel.split(","):
        try:
            tests.run(kernels.find(name), chosen, report, args.verbose,
                      beside=args.command != "test" and not args.test)
        except RigError as error:
            report.add(f"kernel/{name}", Point("", False, why=str(error)))


def cmd_test_all(args) -> int:
    """Everything on every kernel; and then whether it can fail at all."""
    args.kernel = ",".join(kernels.NAMES)
    report = Report()
    _tests(args, _chosen(args.test), report)
    if not args.test:
        _packages(report)
        _faults(args, report)
    return report.end()


def cmd_test_the_tests(args) -> int:
    """Mistakes made on purpose (or -t, one of them) must be noticed."""
    report = Report()
    _faults(args, report)
    return report.end()


def _faults(args, report: Report) -> None:
    try:
        faults.run(report, args.verbose, args.test or "*",
                   bool(args.test) or args.command == "test-all")
    except RigError as error:
        report.add("faults", Point("", False, why=str(error)))


def cmd_flaky(args) -> int:
    """Which tests fail by chance?"""
    chosen = _chosen(args.test)
    report = Report()
    flaky.run(kernels.find(args.kernel), chosen, args.times, args.load, report)
    return report.end()


def cmd_matrix(args) -> int:
    """Builds and tests on all supported kernels, with a table."""
    report = Report()
    matrix.run(args.kernel.split(","), _chosen(args.test), report, args.verbose)
    return report.end()


def cmd_test_packages(_args) -> int:
    """The packages work once installed, and leave nothing behind."""
    report = Report()
    _packages(report)
    return report.end()


def _packages(report: Report) -> None:
    try:
        packages.run(report)
    except RigError as error:
        report.add("pkg", Point("", False, why=str(error)))


def cmd_unit(_args) -> int:
    report = Report()
    tests.unit(report)
    return report.end()


def cmd_soak(args) -> int:
    os.environ.setdefault("SOAK_MSGS", SOAK_MSGS)
    args.test = args.test or "soak"
    return cmd_test(args)


def cmd_ci(_args) -> int:
    return ci.run()


def cmd_list(args) -> int:
    """List tests, and how long each takes."""
    short = {t.name for t in tests.newcomers(tests.find())}
    listing.show(_chosen(args.test), short, args.kernel)
    return 0


def cmd_demo(args) -> int:
    return demo.run(kernels.find(args.kernel))


def cmd_bench(args) -> int:
    return bench.run(kernels.find(args.kernel), args.test or "*")


def cmd_shell(args) -> int:
    """Boot nodes and run what is typed."""
    kernel = kernels.find(args.kernel)
    shares = (Path(args.share).resolve(),) if args.share else ()
    if shares and not shares[0].is_dir():
        raise RigError(f"SHARE={args.share}: no such folder")
    if shares and not any(kernel.modules.rglob("9p.ko*")):
        raise RigError(f"SHARE= needs 9p, which kernel {kernel.name} has not")
    needs.build_programs()
    with Rig(kernel, args.nodes, build_modules(kernel), shares=shares) as rig:
        shell.run(rig, args.modules, bool(shares))
    return 0


def cmd_run(args) -> int:
    """Run a program of the user's on all nodes."""
    if not args.program:
        raise RigError("PROG= names a program, or a file in C")
    program = shell.program(args.program)
    kernel = kernels.find(args.kernel)
    extras = Extras(files=(str(program),), built=frozenset())
    with Rig(kernel, args.nodes, build_modules(kernel, needs=needs.Needs(
            modules=frozenset({needs.IB}))), extras=extras) as rig:
        return shell.run_program(rig, program, args.arguments, args.modules)


def cmd_debug_kernel(_args) -> int:
    debugkernel.build()
    return 0


COMMANDS = {
    "test": cmd_test,
    "test-full": cmd_test_full,
    "test-all": cmd_test_all,
    "test-packages": cmd_test_packages,
    "test-the-tests": cmd_test_the_tests,
    "flaky": cmd_flaky,
    "matrix": cmd_matrix,
    "unit": cmd_unit,
    "list": cmd_list,
    "soak": cmd_soak,
    "ci": cmd_ci,
    "bench": cmd_bench,
    "demo": cmd_demo,
    "shell": cmd_shell,
    "run": cmd_run,
    "debug-kernel": cmd_debug_kernel,
}
