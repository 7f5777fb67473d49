# SPDX-License-Identifier: GPL-2.0-only
"""A node boots from a base initramfs per kernel, and a payload per run.

The base (tools and the kernel's modules) is cached under a hash of all that
goes into it. The payload (our modules, test programs, scripts) is appended to
it: the kernel unpacks one archive after the other.
"""

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import host
from .cpio import Archive
from .host import CACHE, TOP, VM, call, note
from .kernels import Kernel, publish

# Loaded by init on every node. rxe on 6.1 fails without crc32_generic.
LOADED = ("virtio_pci", "virtio_console", "virtio_net", "crc32_generic",
          "rdma_rxe")
# On board for modprobe.
CARRIED = ("crc32c_generic", "rdma_cm", "rdma_ucm", "ib_uverbs", "rds",
           "rds_rdma", "rds_tcp", "veth", "dummy", "sch_netem", "sch_tbf",
           "sch_prio", "cls_u32", "siw", "crc32_pclmul", "9p", "9pnet_virtio",
           "overlay", "ext4", "brd")
PROGRAMS = ("bash", "date", "ip", "kmod", "rdma", "ss", "tc", "timeout")
KMOD_LINKS = ("modprobe", "insmod", "rmmod", "lsmod", "depmod", "modinfo")
# Programs written for RDS, or against it, where the host has them.
STRANGERS = ("qperf", "trinity")
RDS_TOOLS = ("rds-ping", "rds-info", "rds-stress")   # in $RDS_TOOLS_DIR
# rds-info -N opens it when it runs
RDS_TOOLS_LIBRARY = "libdhash.so.1"
ON_NODES = ("unload", "leaks", "settled", "holders", "neighbours",
            "watch_off")   # scripts
DIRECTORIES = ("dev", "proc", "sys", "tmp", "run", "root", "var", "mnt")


@dataclass(frozen=True)
class Extras:
    """Files of a node beside those that each node has."""
    modules: tuple[str, ...] = ()       # of the kernel
    programs: tuple[str, ...] = ()      # of the host, where it has them
    files: tuple[str, ...] = ()         # the same, with their libraries
    built: frozenset[str] | None = None     # of the test programs; None: all


def prepare(kernel: Kernel) -> None:
    """Make what all runs on a kernel share."""
    _own_programs()
    _base(kernel)


def build(kernel: Kernel, modules: list[Path], where: Path,
          extras: Extras = Extras()) -> Path:
    """The initramfs for a run: base and payload in one file."""
    base = _base(kernel)
    image = where / "initrd"
    with open(image, "wb") as out:
        out.write((base / "base.cpio").read_bytes())
        out.write(_payload(kernel, base, modules, extras))
    return image


def _base(kernel: Kernel) -> Path:
    """The directory with base.cpio and the same modules as a tree."""
    seed = hashlib.sha256(kernel.vmlinuz.read_bytes())
    for name in ("init", *ON_NODES, "agent.c", "xrdsvm/image.py", "xrdsvm/cpio.py"):
        seed.update((VM / name).read_bytes())
    for name in (*PROGRAMS, "busybox"):
        seed.update(host.find_program(name).read_bytes())
    path = CACHE / f"base-{kernel.release}" / seed.hexdigest()[:16]
    if not path.exists():
        note(f"making the base image for {kernel.release}")
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as tmp:
            tree = Path(tmp) / "tree"
            _copy_modules(kernel, tree / "lib/modules" / kernel.release)
            call(host.find_program("depmod"), "-b", tree, kernel.release)
            (tree / "base.cpio").write_bytes(bytes(_make_base(kernel, tree)))
            publish(tree, path)
    return path


def _make_base(kernel: Kernel, tree: Path) -> Archive:
    archive = Archive()
    for name in DIRECTORIES:
        archive.directory(name)
    archive.device("dev/console", 5, 1)
    archive.file("init", VM / "init")
    for name in ON_NODES:
        archive.file(f"sbin/{name}", VM / name)
    archive.file("sbin/agent", _own_programs() / "agent")
    archive.text("etc/passwd", "root:x:0:0:root:/root:/bin/bash\n"
                               "nobody:x:65534:65534:nobody:/tmp:/bin/bash\n")
    archive.text("etc/group", "root:x:0:\nnogroup:x:65534:\n")
    # As Debian has it: creating a socket must not load the in-tree module.
    archive.text("etc/modprobe.d/rds.conf", "blacklist rds\n")
    _add_programs(archive)
    archive.tree("lib", tree / "lib")
    load = [name for name in LOADED if _dependencies(kernel, name) is not None]
    archive.text("etc/modules", "".join(f"{name}\n" for name in load))
    return archive


def _own_programs() -> Path:
    out = host.BUILD / "vm"
    host.make("-s", "-C", VM, f"OUT={out}")
    return out


def netswitch() -> Path:
    """The switch that joins the nodes, built for the host."""
    return _own_programs() / "netswitch"


@functools.cache
def tsc_khz() -> int:
    """Frequency of the host's time stamp counter; 0: unknown."""
    return int(call(_own_programs() / "tsc_khz"))


def _add_programs(archive: Archive) -> None:
    busybox = host.find_program("busybox")
    for applet in call(busybox, "--list").split():
        archive.link(f"bin/{applet}", "busybox")
    archive.file("bin/busybox", busybox)
    for name in PROGRAMS:
        archive.program(f"bin/{name}", host.find_program(name))
    for name in KMOD_LINKS:
        archive.link(f"sbin/{name}", "../bin/kmod")
        archive.link(f"bin/{name}", "kmod")


def _copy_modules(kernel: Kernel, target: Path) -> None:
    """The modules that nodes need, with all they depend on."""
    names = {name: _dependencies(kernel, name) for name in LOADED + CARRIED}
    files = {path for paths in names.values() for path in paths or ()}
    for path in sorted(files) + sorted(kernel.modules.glob("modules.*")):
        copy = target / path.relative_to(kernel.modules)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)


def _dependencies(kernel: Kernel, name: str) -> list[Path] | None:
    """A module's files in loading order; [] if built in, None if unknown."""
    done = subprocess.run(
        [host.find_program("modprobe"), "-d", kernel.modroot, "-S",
         kernel.release, "--show-depends", name],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        check=False)
    if done.returncode:
        return None
    words = (line.split() for line in done.stdout.splitlines())
    return [Path(os.path.realpath(w[1])) for w in words if w[0] == "insmod"]


def _payload(kernel: Kernel, base: Path, modules: list[Path],
             extras: Extras) -> bytes:
    archive = Archive()
    archive.program("bin/demo", _own_programs() / "demo")
    if modules:
        _add_modules(archive, kernel, base, modules, extras)
    for part in ("bench", "lib", "loop", "rxe"):
        archive.tree(f"xrds/selftests/{part}", TOP / "selftests" / part)
    _add_strangers(archive, extras)
    for program in programs(extras.built):
        archive.program(f"xrds/selftests/prog/build/{program.name}", program)
    return bytes(archive)


def _add_strangers(archive: Archive, extras: Extras) -> None:
    wanted = STRANGERS + (("perf",) if os.environ.get("BENCH_PROFILE") else ())
    for name in wanted + extras.programs:
        found = shutil.which(name)
        if found:
            archive.program(f"bin/{name}", Path(found))
    for name in extras.files:
        if os.path.exists(name):
            archive.program(name, Path(name))
    folder = os.environ.get("RDS_TOOLS_DIR")
    for name in RDS_TOOLS if folder else ():
        tool = Path(folder) / name
        if tool.exists():
            archive.program(f"bin/{name}", tool)
    for path in Path("/usr/lib").glob(f"*/{RDS_TOOLS_LIBRARY}") if folder else ():
        archive.program(str(path), path)


def programs(names: frozenset[str] | None = None) -> list[Path]:
    """The test programs that have been built, or some of them."""
    built = TOP / "selftests" / "prog" / "build"
    found = built.iterdir() if built.is_dir() else ()
    return sorted(p for p in found if p.is_file() and os.access(p, os.X_OK) and
                  (names is None or p.name in names))


def _add_modules(archive: Archive, kernel: Kernel, base: Path,
                 modules: list[Path], extras: Extras) -> None:
    """Our modules where modprobe finds them, with dependencies worked out, and
    more of the kernel's.
    """
    place = Path("lib/modules") / kernel.release
    with tempfile.TemporaryDirectory() as tmp:
        tree = Path(tmp) / place
        shutil.copytree(base / place, tree)
        (tree / "extra").mkdir()
        for name in extras.modules:
            for path in _dependencies(kernel, name) or ():
                if not any(tree.rglob(path.name)):
                    shutil.copy(path, tree / "extra" / path.name)
        for module in modules:
            call("strip", "--strip-debug", "-o",
                 tree / "extra" / module.name, module)
        call(host.find_program("depmod"), "-b", tmp, kernel.release)
        archive.tree(f"{place}/extra", tree / "extra")
        for path in tree.glob("modules.*"):
            archive.file(f"{place}/{path.name}", path)
