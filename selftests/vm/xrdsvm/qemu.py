# SPDX-License-Identifier: GPL-2.0-only
"""One QEMU process, and whether this machine can run it under KVM."""

import contextlib
import hashlib
import json
import os
import platform
import select
import shutil
import socket
import tempfile
import time
from pathlib import Path

from . import emulator, host
from .host import CACHE, RigError, note, spawn
from .kernels import Kernel

APPEND = ("console=ttyS0 panic=-1 mitigations=off nokaslr no_timer_check "
          "tsc=reliable panic_on_warn=1 oops=panic softlockup_panic=1 "
          "hung_task_panic=1 sysctl.kernel.hung_task_timeout_secs=60 "
          "sysctl.kernel.watchdog_thresh=30 random.trust_cpu=on "
          "rcupdate.rcu_cpu_stall_timeout=60 "
          "net.ifnames=0 printk.devkmsg=on quiet loglevel=5")
KVM_PROOF_SECONDS = 20
QMP_SECONDS = 20
CPUS = int(os.environ.get("XRDS_VM_CPUS") or 2)

# One nanosecond of the guest's time for each instruction of its one processor,
# even on a busy host: so a guest's figures can be repeated. Without two of the
# processor's features, copies count by the number of bytes.
VIRTUAL_TIME = ("-accel", "tcg,thread=single", "-smp", "1",
                "-icount", "shift=0,sleep=off", "-rtc", "clock=vm",
                "-cpu", "max,-erms,-fsrm")
VIRTUAL_CLOCK = " tsc_early_khz=1000000"


class Machine:
    """A running QEMU: its agent channel, its monitor, its console log."""

    def __init__(self, kernel: Kernel, initrd: Path, console: Path,
                 environment: str, net=None, accel: str | None = None,
                 virtual_time: bool = False,
                 shares: tuple[Path, ...] = ()) -> None:
        self.console = console
        self.agent, agent_qemu = socket.socketpair()
        self._qmp, qmp_qemu = socket.socketpair()
        self._qmp.settimeout(QMP_SECONDS)
        fds = [agent_qemu.fileno(), qmp_qemu.fileno()]
        if virtual_time:
            machine, clock = [emulator.SYSTEM, *VIRTUAL_TIME], VIRTUAL_CLOCK
        else:
            accel = accel or accelerator()
            machine, clock = _processors(accel), _clock(accel)
        args = self._args(kernel, initrd, machine, f"{clock} {environment}")
        args += ["-chardev", f"socket,id=agent,fd={fds[0]}",
                 "-chardev", f"socket,id=qmp,fd={fds[1]}",
                 "-mon", "chardev=qmp,mode=control"]
        for number, share in enumerate(shares):
            args += ["-virtfs", f"local,path={share},mount_tag=share{number},"
                                "security_model=none,readonly=on"]
        if net:
            fd, mac = net
            fds.append(fd)
            args += ["-netdev",
                     f"dgram,id=net0,local.type=fd,local.str={fd}",
                     "-device", f"virtio-net-pci,netdev=net0,mac={mac},"
                                "romfile=,host_mtu=9000" +
                                (f",{kernel.nic}" if kernel.nic else "")]
        errors = open(f"{console}.qemu", "wb")
        with errors, agent_qemu, qmp_qemu:
            self.process = spawn(args, pass_fds=fds, stdin=-3, stdout=errors,
                                 stderr=errors)
        self._monitor = self._qmp.makefile("rw")
        self._greeted = False

    def _args(self, kernel, initrd, machine, append) -> list[str]:
        return [*machine, "-m", str(kernel.memory),
                "-nodefaults", "-no-user-config", "-display", "none",
                "-no-reboot", "-kernel", str(kernel.vmlinuz),
                "-initrd", str(initrd),
                "-append", f"{APPEND} {kernel.append}{append}",
                "-chardev", f"file,id=console,path={self.console}",
                "-serial", "chardev:console", "-device", "virtio-serial-pci",
                "-device", "virtserialport,chardev=agent,name=agent"]

    def qmp(self, command: str, **arguments) -> None:
        """One monitor command; RigError if QEMU refuses or is gone."""
        try:
            if not self._greeted:
                self._monitor.readline()
                self._greeted = True
                self._ask({"execute": "qmp_capabilities"})
            self._ask({"execute": command, "arguments": arguments})
        except (OSError, ValueError) as error:
            raise RigError(f"QMP {command}: {error}") from error

    def _ask(self, message: dict) -> None:
        self._monitor.write(json.dumps(message) + "\n")
        self._monitor.flush()
        while True:
            reply = json.loads(self._monitor.readline())
            if "error" in reply:
                raise ValueError(reply["error"]["desc"])
            if "return" in reply:
                return

    def alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        """End it at once; the console log stays."""
        host.reap(self.process)
        self.agent.close()
        with contextlib.suppress(OSError):
            self._monitor.close()
        self._qmp.close()


def _processors(accel: str) -> list[str]:
    smp = ["-smp", str(CPUS)]
    if accel == "kvm":
        return [emulator.SYSTEM, "-accel", accel, "-cpu", "host", *smp]
    return [emulator.find(), "-accel", f"{accel},thread=multi", "-cpu", "max",
            *smp]


def _clock(accel: str) -> str:
    """Under TCG a guest has the host's time stamp counter, and on a busy host
    it cannot find out how fast that is.
    """
    from . import image
    khz = image.tsc_khz() if accel == "tcg" else 0
    return f" tsc_early_khz={khz}" if khz else ""


_proven: str | None = None


def accelerator() -> str:
    """kvm if a node was seen to boot with it on this machine, else tcg."""
    global _proven
    if not _proven:
        _proven = os.environ.get("XRDS_ACCEL") or _remembered()
    return _proven


def has_kvm() -> bool:
    """Whether KVM may work: it is there."""
    return os.access("/dev/kvm", os.R_OK | os.W_OK)


def _remembered() -> str:
    """The answer for this machine and boot, found out once."""
    if not has_kvm():
        return "tcg"
    identity = platform.platform().encode()
    for source in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):
        with contextlib.suppress(OSError):
            identity += Path(source).read_bytes()
    memory = CACHE / f"accel-{hashlib.sha256(identity).hexdigest()[:16]}"
    if not memory.exists():
        answer = _prove_kvm()
        memory.parent.mkdir(parents=True, exist_ok=True)
        memory.write_text(answer)
    return memory.read_text()


def _prove_kvm() -> str:
    """Boot a node under KVM: creating a VM proves little."""
    from . import image, kernels
    note("trying KVM")
    kernel = kernels.find("6.1")
    where = Path(tempfile.mkdtemp(prefix="xrds-kvm."))
    machine = None
    try:
        initrd = image.build(kernel, [], where)
        machine = Machine(kernel, initrd, where / "console", "NODE=1 NODES=1",
                          accel="kvm")
        answer = "kvm" if _says_hello(machine) else "tcg"
    finally:
        if machine:
            machine.close()
        shutil.rmtree(where)
    note("KVM works" if answer == "kvm" else "KVM boots no node: using TCG")
    return answer


def _says_hello(machine: Machine) -> bool:
    deadline = time.monotonic() + KVM_PROOF_SECONDS
    while machine.alive() and time.monotonic() < deadline:
        ready, _, _ = select.select([machine.agent], [], [], 0.2)
        if ready:
            return machine.agent.recv(16).startswith(b"hello")
    return False
