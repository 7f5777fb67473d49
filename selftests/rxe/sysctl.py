# SPDX-License-Identifier: GPL-2.0-only
"""The manual page lists every sysctl, with the default that it has."""

import pathlib
import re

NODES = 1
TIMEOUT = 60
PAGE = pathlib.Path(__file__).parents[2] / "Documentation/man/xrds.7"
ITEM = re.compile(r"^\.It (Va net\..*)$", re.MULTILINE)
NAMES = re.compile(r"Va (net\.[\w.]+)(?: P[qo] ([^,]*\w))?")


def _page() -> dict[str, str]:
    """Default of each sysctl; of names without one, that of the next."""
    found: dict[str, str] = {}
    for item in ITEM.findall(PAGE.read_text()):
        nameless = []
        for name, default in NAMES.findall(item):
            nameless.append(name)
            if default:
                default = default.removesuffix(" Pc")
                found |= dict.fromkeys(nameless, default)
                nameless = []
    return found


def test_sysctl(rig):
    """Names and defaults agree, both ways."""
    files = str(rig.a.run("cd /proc/sys && grep -r . net/rds net/xrds"))
    there = dict(line.split(":") for line in files.splitlines())
    there = {name.replace("/", "."): value for name, value in there.items()}
    memory = int(rig.a.read("/proc/meminfo").split()[1])
    words = {"all memory": memory, "a quarter of the memory": memory // 4,
             "a thirty-second of the memory": memory // 32}
    page = {name: str(words.get(default, default))
            for name, default in _page().items()}
    for name in sorted(page | there):
        rig.check(page.get(name) == there.get(name),
                  f"{name} is {there.get(name)}, in the page {page.get(name)}")
