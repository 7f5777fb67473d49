# SPDX-License-Identifier: GPL-2.0-only
"""make test-packages: the packages work, and leave nothing behind.

A clean Debian 12 with a kernel, its headers and DKMS is made once and kept. A
run works on an overlay of it: the packages are installed there by chroot, and
two nodes boot from it: they see the system through 9p, with a RAM disk of
their own on top.
"""

import os
import re
import shutil
import tempfile
from pathlib import Path

from . import host, kernels
from .host import BUILD, CACHE, TOP, VM, RigError, call, note
from .kernels import Kernel, publish
from .node import Failed, Node, stopwatch
from .rig import Rig
from .tap import Point, Report

SUITE = "bookworm"
# behind the line that debootstrap has written
SOURCES = """deb {mirror} {suite}-updates main
deb {mirror}-security {suite}-security main
"""
# openssl makes the key that DKMS signs with
PACKAGES = ("dkms", "openssl", "make", "gcc", "libc6-dev", "linux-libc-dev",
            "libmnl-dev")
QUIET = ("-q", "-y", "--no-install-recommends")
DKMS = "updates/dkms"

# arguments: clean root, overlay, tree, command; the mounts end with the process
IN_ROOT = """set -e
base=$1 over=$2 tree=$3
shift 3
root=$over/root
mount -t overlay overlay \
	-o "lowerdir=$base,upperdir=$over/upper,workdir=$over/work" "$root"
mkdir -p "$root$tree"
mount --bind "$tree" "$root$tree"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
exec chroot "$root" "$@"
"""
# All files but those that apt, dpkg and DKMS keep for themselves
FILES = """find / -xdev \\( -path /var/log -o -path /var/cache -o -path /tmp \
	-o -path /var/lib/apt -o -path '/var/lib/dpkg/[!i]*' \
	-o -path '/var/lib/dkms/mok.*' \\) -prune -o \
	\\( -type d -printf '%p %m\\n' -o -printf '%p %y %m %s %l\\n' \\)"""
# A node mounts the system so
MOUNT = """set -e
modprobe -a 9p 9pnet_virtio overlay
mkdir -p /mnt/share0 /mnt/share1 /mnt/own /mnt/root
for n in 0 1; do
	mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=131072 \
		share$n /mnt/share$n
done
mount -t tmpfs tmpfs /mnt/own
mkdir /mnt/own/upper /mnt/own/work
mount -t overlay overlay -o lowerdir=/mnt/share1:/mnt/share0,\
upperdir=/mnt/own/upper,workdir=/mnt/own/work /mnt/root
for dir in dev proc sys; do mount --rbind /$dir /mnt/root/$dir; done
"""


class System:
    """A clean Debian with a kernel, and the changes that a run makes to it."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.base = CACHE / f"{SUITE}-{kernel.release}-{len(PACKAGES)}"
        if not self.base.exists():
            self._make()
        # where there is systemd it is there
        (self.base / "etc/modules-load.d").mkdir(exist_ok=True)
        self.over = Path(tempfile.mkdtemp(prefix="tmp.packages.", dir=CACHE))
        for name in ("upper", "work", "root"):
            (self.over / name).mkdir()

    def close(self) -> None:
        shutil.rmtree(self.over, ignore_errors=True)

    def _make(self) -> None:
        note(f"making a clean {SUITE} root (1.3 GB, once)")
        with tempfile.TemporaryDirectory(dir=CACHE) as tmp:
            root, over = Path(tmp) / "root", Path(tmp) / "over"
            call("debootstrap", "--variant=minbase", SUITE, root, timeout=1800)
            sources = root / "etc/apt/sources.list"
            first = sources.read_text()
            sources.write_text(first + SOURCES.format(mirror=first.split()[1],
                                                      suite=SUITE))
            for script in ("apt-get update -q", "apt-get install " +
                           " ".join((*QUIET, *PACKAGES,
                                     f"linux-image-{self.kernel.release}",
                                     f"linux-headers-{self.kernel.release}")),
                           "apt-get clean"):
                self._call_in(("chroot", root), script)
            shutil.rmtree(over, ignore_errors=True)
            publish(root, self.base)

    @staticmethod
    def _call_in(words: tuple, script: str) -> str:
        # INITRD: the rig has its own
        env = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
               "LC_ALL": "C", "HOME": "/root",
               "DEBIAN_FRONTEND": "noninteractive", "INITRD": "No"}
        return call(*words, "sh", "-ec", script, timeout=1800, env=env)

    def run(self, script: str) -> str:
        """Run shell text in it, with this tree at its place."""
        return self._call_in(("unshare", "-m", "sh", "-c", IN_ROOT, "in-root",
                              self.base, self.over, TOP), script)

    def files(self) -> set[str]:
        return set(self.run(FILES).splitlines())


def run(report: Report) -> None:
    """All of it, on the default kernel; the verdicts go to the report."""
    kernel = kernels.find("6.1")
    system = System(kernel)
    try:
        clean = system.files()
        _step(report, "pkg/rpm", _rpm)
        if _step(report, "pkg/deb", _build, "deb") and \
                _step(report, "pkg/install", _install, system):
            _step(report, "pkg/node", _nodes, system)
        _step(report, "pkg/remove", _remove, system, clean)
        for target in ("install", "install-dkms"):
            _step(report, f"pkg/make {target}", _make_install, system, target,
                  clean)
        _step(report, "pkg/rpm again", _rpm_again, system, clean)
    finally:
        system.close()


def _step(report: Report, name: str, step, *args) -> bool:
    elapsed = stopwatch()
    point = Point("", True)
    try:
        step(*args)
    except (Failed, RigError) as error:
        point = Point("", False, why=str(error))
    report.add(name, point, elapsed())
    return point.passed


def _check(condition, why: str) -> None:
    if not condition:
        raise Failed(why)


def _build(kind: str) -> None:
    env = dict(os.environ)
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"):
        env.pop(name, None)
    out = call(TOP / "tools/install" / kind, timeout=1800, env=env)
    for line in out.splitlines():
        if line[:2] in ("E:", "W:"):
            note(f"  {line}")


def _rpm() -> None:
    """The same files as those of make, installed by rpm below a folder."""
    _build("rpm")
    with tempfile.TemporaryDirectory() as tmp:
        made, root = Path(tmp) / "made", Path(tmp) / "root"
        call("make", "-s", "-C", TOP, "install-dkms", f"DESTDIR={made}",
             "PREFIX=/usr", "MODPROBE_D=/usr/lib/modprobe.d",
             "MODULES_LOAD_D=/usr/lib/modules-load.d", timeout=600)
        root.mkdir()
        call("rpm", "--root", root, "-i", "--nodeps", "--noscripts",
             *sorted((BUILD / "rpm").glob("xrds-*.rpm")), timeout=600)
        found = [{str(f.relative_to(top)).removesuffix(".gz")
                  for f in top.rglob("*") if f.is_file() and not
                  re.search(r"/\.?rpm(db)?/|/licenses/|/\.build-id/", str(f))}
                 for top in (made, root)]
        _check(found[0] == found[1], f"other files: {found[0] ^ found[1]}")
        out = call(root / "usr/bin/xrds-info", "--version", timeout=60)
        _check(out.startswith("xrds-info "), out)
        conf = (root / "usr/src").glob("xrds-*/dkms.conf")
        _check("#" not in next(conf).read_text().split("PACKAGE_VERSION")[1],
               "dkms.conf has no version")


def _check_modules(system: System, place: str, ib: str = "") -> None:
    """They are in place; "ib" is the folder that has xrds_ib.ko in it."""
    modules = f"/lib/modules/{system.kernel.release}"
    found = system.run(f"find {modules} -name 'xrds*.ko'; "
                       f"modprobe -S {system.kernel.release} -R net-pf-21")
    _check(set(found.split()) == {f"{modules}/{place}/xrds.ko",
                                  f"{modules}/{place}{ib}/xrds_ib.ko", "xrds"},
           f"modules, and who is AF_RDS:\n{found}")
    depends = system.run(f"modprobe -S {system.kernel.release} "
                         "--show-depends xrds_ib")
    _check("rdma_cm" in depends, f"depmod was not called:\n{depends}")


def _install(system: System) -> None:
    """The packages, with the dependencies they ask for; then the header."""
    system.run(f"apt-get install {' '.join(QUIET)} {BUILD}/deb/xrds-*.deb")
    _check_modules(system, DKMS)
    system.run("xrds-ping --help; xrds-perf --help")
    system.run(f"gcc -Wall -Werror -fsyntax-only "
               f"{TOP}/Documentation/examples/poll-loop.c")


def _nodes(system: System) -> None:
    note("booting two nodes of it")
    with Rig(system.kernel, 2, [], shares=(system.base, system.over / "upper")) \
            as rig:
        for node in rig.nodes:
            node.run(MOUNT, timeout=120)
            _in(node, "modprobe xrds_ib", 180)
            where = str(_in(node, "modinfo -n xrds"))
            _check(DKMS in where, f"xrds is {where}")
        for a, b in ((rig.a, rig.b), (rig.b, rig.a)):
            for address in (b.ip, b.ip6):
                _in(a, f"xrds-ping -c 3 {address}")
        for node in rig.nodes:
            _in(node, "modprobe -r xrds_ib xrds")
            _check(not node.modules() & {"xrds", "xrds_ib"}, "not unloaded")
        bad = [f"{n}: {line}" for n in rig.nodes for line in n.complaints()]
        _check(not bad, "\n".join(bad))


def _in(node: Node, command: str, timeout: float = 60):
    return node.run(f"chroot /mnt/root {command}", timeout)


def _remove(system: System, clean: set[str]) -> None:
    system.run("apt-get purge --autoremove -q -y xrds-dkms xrds-tools")
    _check_clean(system, clean)


def _make_install(system: System, target: str, clean: set[str]) -> None:
    release = system.kernel.release
    make = f"make -s -C {TOP} KDIR=/usr/src/linux-headers-{release}"
    if target == "install-dkms":        # over an older version, which goes
        system.run(f"{make} {target} VERSION=0.0.1")
    system.run(f"{make} {target}")
    if target == "install-dkms":
        found = system.run("ls -d /usr/src/xrds-* /var/lib/dkms/xrds/[0-9]*")
        _check(len(found.split()) == 2 and "0.0.1" not in found,
               f"sources and modules of one version:\n{found}")
    if target == "install":
        _check_modules(system, "extra/net/xrds", "/ib")
    else:
        _check_modules(system, DKMS)
    system.run("xrds-ping --help")
    system.run(f"{make} uninstall")
    _check_clean(system, clean)


def _rpm_again(system: System, clean: set[str]) -> None:
    """A package with other sources and the version that is installed already: its
    scriptlet builds them.
    """
    package, = (BUILD / "rpm").glob("xrds-dkms-*.rpm")
    behind, before = (call("rpm", "-qp", "--qf", f"%{{{tag}}}", package,
                           timeout=60) for tag in ("POSTIN", "PREUN"))
    # the version of the sources, as in _make_install
    system.run(f"make -s -C {TOP} install-dkms PREFIX=/usr")
    system.run("echo 'MODULE_INFO(again, \"yes\");' | "
               "tee -a /usr/src/xrds-*/net/xrds/main.c")
    system.run(behind)
    _check_modules(system, DKMS)
    found = system.run(f"modinfo -k {system.kernel.release} -F again xrds")
    _check(found.strip() == "yes", "the modules of before are in place")
    system.run(before)
    system.run(f"make -s -C {TOP} uninstall PREFIX=/usr")
    _check_clean(system, clean)


def _check_clean(system: System, clean: set[str]) -> None:
    """The files are those of before: no more, no less, none changed."""
    now = system.files()
    odd = [f"left: {line}" for line in sorted(now - clean)] + \
          [f"gone: {line}" for line in sorted(clean - now)]
    _check(not odd, "\n".join(odd[:20]))
