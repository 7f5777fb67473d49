# SPDX-License-Identifier: GPL-2.0-only
"""Debian sid's kernel: the newest there is.

Headers and compiler live in a sid root of their own in the cache, where our
modules are built by chroot; nothing of sid is installed on the machine.
"""

import os
import re
import tempfile
from pathlib import Path

from . import host
from .host import CACHE, RigError, call, note
from .kernels import Kernel, publish

ROOT = CACHE / "sid"
PACKAGES = ("make", "gcc", "libc6-dev", "linux-headers-amd64")
QUIET = ("-q", "-y", "--no-install-recommends")
# These warn in 7.2 although nothing of ours is wrong. A write whose queue pair
# fails between two of its packets goes on without a region; and in-tree RDS
# counts its buffers before all are back when it is unloaded.
FAULTS = ("rxe_mr_copy", "rds_ib_recv_exit")
# And one hangs: when a queue pair fails soft-RoCE frees the packets that wait for
# it with its state locked. Those of virtio_net are pages of a pool, and to give
# one back switches bottom halves on: the next packet may be received there, and
# if it is for that queue pair, it waits for the lock for ever. Without buffers
# that packets share there is no pool.
NIC = "mrg_rxbuf=off"
# arguments: root, tree, command; the mounts end with the process
IN_ROOT = """set -e
root=$1 tree=$2
shift 2
mkdir -p "$root$tree"
mount --bind "$tree" "$root$tree"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
exec chroot "$root" "$@"
"""


def find(name: str) -> Kernel:
    """The kernel of the sid root, which is made if it is not there."""
    if not ROOT.exists():
        _make_root()
    headers = next((ROOT / "usr/src").glob("linux-headers-*-amd64"), None)
    if not headers:
        raise RigError(f"no kernel headers in {ROOT}")
    release = headers.name.removeprefix("linux-headers-")
    tree = CACHE / "kernels" / release
    if not tree.exists():
        _fetch(release, tree)
    vmlinuz = tree / "usr/lib/modules" / release / "vmlinuz"
    return Kernel(name, release, Path("/usr/src") / headers.name, vmlinuz,
                  tree / "usr", append="panic_on_warn=0", faults=FAULTS,
                  nic=NIC, root=ROOT)


def _make_root() -> None:
    note("making a sid root (700 MB, once)")
    call(host.VM / "deps.sh", "debootstrap", timeout=900)
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as tmp:
        root = Path(tmp) / "sid"
        call("debootstrap", "--variant=minbase", "sid", root, timeout=1800)
        run_in(root, "apt-get", "install", *QUIET, *PACKAGES)
        publish(root, ROOT)


def _fetch(release: str, tree: Path) -> None:
    """Image and modules, downloaded by sid's apt and unpacked."""
    note(f"fetching the kernel {release}")
    tree.parent.mkdir(parents=True, exist_ok=True)
    depends = run_in(ROOT, "apt-cache", "depends", "--important",
                     f"linux-image-{release}")
    names = re.findall(rf"linux-\w+-{re.escape(release)}", depends)
    with tempfile.TemporaryDirectory(dir=tree.parent) as tmp:
        run_in(ROOT, "sh", "-c", f"cd {tmp} && apt-get download -q "
               "-o APT::Sandbox::User=root " + " ".join(sorted(set(names))),
               tree=Path(tmp))
        unpacked = Path(tmp) / "tree"
        for deb in Path(tmp).glob("*.deb"):
            call("dpkg", "-x", deb, unpacked)
        call(host.find_program("depmod"), "-b", unpacked / "usr", release)
        publish(unpacked, tree)


def run_in(root: Path, *command, tree: Path = host.TOP) -> str:
    """Run a command in the root, with a directory of ours bound into it."""
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive", LC_ALL="C",
               PATH="/usr/sbin:/usr/bin:/sbin:/bin")
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"):
        env.pop(name, None)
    return call("unshare", "-m", "sh", "-c", IN_ROOT, "in-root", root, tree,
                *command, timeout=1800, env=env)
