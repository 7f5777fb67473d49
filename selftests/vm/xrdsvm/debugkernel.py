# SPDX-License-Identifier: GPL-2.0-only
"""The kernel with KASAN, lockdep and kmemleak.

Built from Debian's kernel source and debug.config, once per machine and
configuration; or unpacked from a tarball that XRDS_DEBUG_KERNEL_TAR names.
Either way it is a directory with bzImage, modules/ (lib/modules/RELEASE) and
build/ (what KDIR= takes), which comes into the cache when a node has booted it.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import host
from .host import CACHE, VM, RigError, call, note
from .kernels import Kernel, download, publish
from .node import stopwatch
from .rig import Rig

HOME = CACHE / "debug-kernel"
CONFIG = VM / "debug.config"
SOURCE = "linux-source-6.1"
PACKAGES = ("bc", "bison", "flex", "gcc", "libc6-dev", "libelf-dev", "make",
            "perl", "python3", "xz-utils", "kmod")
MEMORY = 2048           # MiB a node
LOCALVERSION = "LOCALVERSION=-xrds-debug"
# no5lvl: while the kernel patches itself at boot, KASAN takes an access in an
# interrupt for a wild one if page tables have five levels.
# slub_debug=-: KASAN sees the faults of SLUB's checks, and sooner; with both the
# tests take half as long again.
APPEND = "pci=noacpi no5lvl slub_debug=-"
SLOW = 4.0
NOTE_SECONDS = 60       # between lines of progress


def find() -> Kernel:
    """The debug kernel: built before, or from the tarball."""
    home = _built()
    if not home.exists():
        home = _from_tarball()
    return _kernel(home)


def _kernel(home: Path) -> Kernel:
    release = next((home / "modules/lib/modules").iterdir()).name
    return Kernel("debug", release, home / "build", home / "bzImage",
                  home / "modules", append=APPEND, memory=MEMORY,
                  slow=SLOW, kmemleak=True, injects=True)


def available() -> bool:
    """Whether find() works without a build."""
    return _built().exists() or bool(os.environ.get("XRDS_DEBUG_KERNEL_TAR"))


def _built() -> Path:
    return HOME / hashlib.sha256(CONFIG.read_bytes()).hexdigest()[:16]


def _from_tarball() -> Path:
    name = os.environ.get("XRDS_DEBUG_KERNEL_TAR")
    if not name:
        raise RigError("no debug kernel here: make debug-kernel builds it")
    tarball = Path(name).resolve()
    if not tarball.exists():
        raise RigError(f"XRDS_DEBUG_KERNEL_TAR: {tarball} does not exist")
    state = tarball.stat()
    home = HOME / f"tar-{state.st_size}-{int(state.st_mtime)}"
    if not home.exists():
        call(VM / "deps.sh", "zstd", timeout=900)
        note(f"unpacking {tarball.name}")
        HOME.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=HOME) as tmp:
            tree = Path(tmp) / "tree"
            tree.mkdir()
            call("tar", "-C", tree, "-xf", tarball)
            _prove(tree)
            publish(tree, home)
    return home


def _prove(tree: Path) -> None:
    """Boot a node with it; RigError if that fails or the kernel complains."""
    note("booting a node with the new debug kernel")
    with Rig(_kernel(tree), 1, []) as rig:
        bad = rig.a.complaints()
        if bad:
            raise RigError("the new debug kernel complains while it boots\n"
                           + rig.a.last_words())
        note(f"the debug kernel has booted, in {rig.boot_seconds:.0f} s")


# ------------------------------------------------------------------- build


def build() -> None:
    """Build it from Debian's kernel source, unless that has been done."""
    if _built().exists():
        note("the debug kernel has been built already")
        return
    note("building the debug kernel: half an hour on two idle processors")
    call(VM / "deps.sh", *PACKAGES, timeout=900)
    HOME.mkdir(parents=True, exist_ok=True)
    elapsed = stopwatch()
    with tempfile.TemporaryDirectory(dir=HOME) as tmp:
        source = _source(Path(tmp))
        _configure(source)
        _compile(source)
        tree = Path(tmp) / "tree"
        _collect(source, tree)
        _prove(tree)
        publish(tree, _built())
    note(f"debug kernel built in {elapsed() / 60:.0f} minutes")


def _source(where: Path) -> Path:
    tarball = Path(f"/usr/src/{SOURCE}.tar.xz")
    if not tarball.exists():
        note(f"fetching {SOURCE}")
        download(SOURCE, where)
        deb = next(where.glob("*.deb"))
        call("dpkg", "-x", deb, where / "deb")
        tarball = where / "deb" / str(tarball).lstrip("/")
    note("unpacking the kernel source")
    call("tar", "-C", where, "-xf", tarball)
    return where / SOURCE


def _configure(source: Path) -> None:
    host.make("-s", "-C", source, f"KCONFIG_ALLCONFIG={CONFIG}", "allnoconfig")
    result = set((source / ".config").read_text().splitlines())
    lost = [line for line in CONFIG.read_text().splitlines()
            if line.startswith(("CONFIG_", "# CONFIG_")) and line not in result]
    if lost:
        raise RigError("not possible with this source: " + ", ".join(lost))


def _compile(source: Path) -> None:
    """Compile at low priority, with a line of progress now and then."""
    log = source / "build.log"
    elapsed = stopwatch()
    told = compiled = 0
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    command = ["nice", "make", f"-j{os.cpu_count()}", "-C", source,
               LOCALVERSION, "bzImage", "modules"]
    child = host.spawn(command, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, env=env)
    with open(log, "w", encoding="utf-8") as handle:
        for line in child.stdout:
            handle.write(line)
            compiled += line.lstrip().startswith(("CC", "AS"))
            if elapsed() - told > NOTE_SECONDS:
                told = elapsed()
                note(f"debug kernel: {compiled} files compiled, "
                     f"{told / 60:.0f} min")
    if child.wait():
        raise RigError("the debug kernel does not build\n"
                       + "\n".join(log.read_text().splitlines()[-15:]))
    host.reap(child)


def _collect(source: Path, tree: Path) -> None:
    """Keep the image, the modules, and the files to build modules outside."""
    tree.mkdir()
    shutil.copy(source / "arch/x86/boot/bzImage", tree / "bzImage")
    host.make("-s", "-C", source, f"INSTALL_MOD_PATH={tree / 'modules'}",
              LOCALVERSION, "modules_install")
    for link in (tree / "modules/lib/modules").glob("*/*"):
        if link.is_symlink():
            link.unlink()
    for path in _for_modules(source):
        copy = tree / "build" / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy, follow_symlinks=False)


def _for_modules(source: Path) -> list[Path]:
    """The files that kbuild needs for a module outside the tree."""
    found = [source / name for name in
             ("Makefile", ".config", "Module.symvers", "tools/objtool/objtool",
              "arch/x86/Kbuild")]
    found += (source / "arch/x86").glob("Makefile*")
    for name in ("include", "scripts", "arch/x86/include"):
        found += (source / name).rglob("*")
    return [p for p in found
            if p.is_symlink() or (p.is_file() and p.suffix != ".o")]
