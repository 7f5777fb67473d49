# SPDX-License-Identifier: GPL-2.0-only
#
# XRDS outside the kernel tree. "make help" lists the targets.

# The kernel to build for: KDIR= names a headers or build directory. Default:
# the running kernel's, or else the newest Debian headers (6.1 preferred), which
# "make install" does not take.
RUNNING := $(shell uname -r)
KDIR ?= $(firstword \
	$(wildcard /lib/modules/$(RUNNING)/build) \
	$(shell ls -d /usr/src/linux-headers-6.1.*-amd64 2>/dev/null | sort -rV) \
	$(shell ls -d /usr/src/linux-headers-*-amd64 2>/dev/null | sort -rV))
KREL := $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' \
	"$(KDIR)/include/generated/utsrelease.h" 2>/dev/null)

# Objects never land among the sources: each kernel has a directory with links
# to the sources, so that builds for several kernels do not meet.
B ?= $(CURDIR)/build/$(KREL)
CHECKER := selftests/check
VM := python3 selftests/vm/vm
DEPS := selftests/vm/deps.sh
VERSION := $(shell sed -n 's/.*XRDS_VERSION.*"\(.*\)"/\1/p' net/xrds/version.h)

all: modules

help:
	@echo '  make              build xrds.ko and xrds_ib.ko (KDIR=, W=1)'
	@echo '  make install      install modules for KDIR, tools, header, pages'
	@echo '                    (DESTDIR=, PREFIX=)'
	@echo '  make install-dkms the same, modules by DKMS for each kernel'
	@echo '  make uninstall    remove all of that'
	@echo '  make deb          Debian packages, in build/deb'
	@echo '  make rpm          RPM packages, in build/rpm'
	@echo '  make demo         two virtual nodes exchange datagrams over RDMA'
	@echo '  make test         the unit tests, and the most important tests of one'
	@echo '                    node and of several: twelve minutes (T=name runs'
	@echo '                    one, KERNEL=6.1|6.12|7.2|debug, V=1 shows more)'
	@echo '  make list         all tests, with the time each took (T=, KERNEL=)'
	@echo '  make test-full    all tests on one kernel: forty minutes'
	@echo '  make test-all     the same on every kernel, debug kernel included,'
	@echo '                    and test-the-tests'
	@echo '  make test-the-tests  makes mistakes on purpose (selftests/faults):'
	@echo '                    the tests have to notice them'
	@echo '  make flaky        runs each test N=20 times and counts failures (T=,'
	@echo '                    KERNEL=, LOAD=2 busy processes on the host)'
	@echo '  make test-packages  installs, uses and removes the packages, in a'
	@echo '                    clean Debian and on nodes that boot from it'
	@echo '  make matrix       builds without warnings and tests, on 6.1, 6.12'
	@echo '                    and 7.2 (T=, KERNEL=6.1,7.2)'
	@echo '  make soak         the long soak (SOAK_MSGS=, SOAK_SEED=)'
	@echo '  make fuzz         feeds random input to the wire decoder for ten minutes'
	@echo '                    (FUZZ_SECONDS=), and prints its coverage of wire/*.c'
	@echo '  make bench        compares the cost of XRDS with plain verbs, TCP and'
	@echo '                    others, in virtual time, and plots it (BENCH=quick:'
	@echo '                    fewer cases; BENCH_PROFILE=case: time per function)'
	@echo '  make shell        boot nodes and type commands (NODES=2, KERNEL=;'
	@echo '                    SHARE=folder is at /mnt there; "gdb" debugs)'
	@echo '  make run          runs a program or a C file of yours on all nodes'
	@echo '                    (PROG=, ARGS=, NODES=2, KERNEL=)'
	@echo '  make debug-kernel the kernel with KASAN, lockdep and kmemleak'
	@echo '  make style sparse doc unit     the checks, one by one'
	@echo '  make ci           all checks and tests that CI runs: 75 minutes'
	@echo '  make clean'

modules: mirror
	@flock "$(B)/lock" tools/probe/probe "$(KDIR)" "$(B)"
	@flock "$(B)/lock" $(MAKE) --no-print-directory -C "$(KDIR)" M="$(B)" modules

mirror:
	@test -n "$(KREL)" || { echo "No kernel headers" \
		"$(if $(KDIR),in $(KDIR),on this machine):" \
		"apt install linux-headers-amd64, or give KDIR=." >&2; exit 1; }
	@mkdir -p "$(B)"
	@flock "$(B)/lock" find "$(B)" -xtype l -delete
	@flock "$(B)/lock" cp -rsf "$(CURDIR)/Kbuild" "$(CURDIR)/net" \
		"$(CURDIR)/include" "$(B)"

# ----------------------------------------------------------------- install

# each make that is called is in another directory
ifneq ($(patsubst /%,,$(firstword $(DESTDIR))),)
$(error DESTDIR= must be absolute)
endif

PREFIX ?= /usr/local
MODPROBE_D ?= /etc/modprobe.d
MODULES_LOAD_D ?= /etc/modules-load.d
DKMS_SRC := $(DESTDIR)/usr/src/xrds-$(VERSION)
SHARE := $(DESTDIR)$(PREFIX)/share
INCLUDE := $(DESTDIR)$(PREFIX)/include/linux
DOC := $(SHARE)/doc/xrds
COMPLETION := $(SHARE)/bash-completion/completions
MANS := $(wildcard Documentation/man/*.[1-9])
PAGES := $(wildcard Documentation/*.rst)
EXAMPLES := $(wildcard Documentation/examples/*.c)
COMPLETIONS := $(wildcard tools/completion/*)
IN_TOOLS = $(MAKE) -C tools DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)"

# Without KDIR= or DESTDIR= they are for the running kernel, and no other one.
ifneq ($(filter install install-modules,$(MAKECMDGOALS)),)
ifeq ($(DESTDIR)$(filter-out file,$(origin KDIR))$(filter $(KREL),$(RUNNING)),)
$(error No headers of the running kernel: \
	apt install linux-headers-$(RUNNING), or give KDIR=)
endif
endif

install: install-tools install-modules install-conf

# The kernel's build signs the modules if it is configured to. It runs no
# depmod.
install-modules: modules
	$(MAKE) -C "$(KDIR)" M="$(B)" INSTALL_MOD_DIR=extra \
		$(if $(DESTDIR),INSTALL_MOD_PATH="$(DESTDIR)") modules_install
	$(if $(DESTDIR),,depmod "$(KREL)")

install-dkms: install-dkms-source install-tools install-conf
	sed 's/#MODULE_VERSION#/$(VERSION)/' tools/install/dkms.conf \
		> "$(DKMS_SRC)/dkms.conf"
	$(if $(DESTDIR),,tools/install/dkms-all $(VERSION))

install-dkms-source:
	$(if $(DESTDIR),,tools/install/dkms-all $(VERSION) check)
	install -d "$(DKMS_SRC)/tools"
	cp -r Makefile Kbuild net include "$(DKMS_SRC)"
	cp -r tools/probe "$(DKMS_SRC)/tools"

install-conf:
	install -d "$(DESTDIR)$(MODPROBE_D)" "$(DESTDIR)$(MODULES_LOAD_D)"
	install -m 644 tools/install/modprobe.conf \
		"$(DESTDIR)$(MODPROBE_D)/xrds.conf"
	install -m 644 tools/install/modules-load.conf \
		"$(DESTDIR)$(MODULES_LOAD_D)/xrds.conf"

install-tools:
	$(IN_TOOLS) install
	install -d "$(INCLUDE)" "$(SHARE)/xrds"
	install -m 644 include/uapi/linux/xrds.h \
		include/uapi/linux/xrds_netlink.h "$(INCLUDE)"
	install -m 644 Documentation/netlink/specs/xrds.yaml "$(SHARE)/xrds"
	install -m 644 tools/wireshark/xrds.lua "$(SHARE)/xrds"
	for page in $(MANS); do \
		install -m 644 -D -t "$(SHARE)/man/man$${page##*.}" "$$page" || \
		exit; done
	install -m 644 -D -t "$(DOC)" $(PAGES)
	install -m 644 -D -t "$(DOC)/examples" $(EXAMPLES)
	$(if $(COMPLETIONS),install -m 644 -D -t "$(COMPLETION)" $(COMPLETIONS))

# Directories that are empty now are removed, too.
uninstall:
	$(if $(DESTDIR),rm -rf "$(DKMS_SRC)",tools/install/dkms-all $(VERSION) remove)
	rm -rf "$(SHARE)/xrds" "$(DOC)"
	rm -f "$(DESTDIR)$(MODPROBE_D)/xrds.conf" \
		"$(DESTDIR)$(MODULES_LOAD_D)/xrds.conf" "$(INCLUDE)/xrds.h" \
		"$(INCLUDE)/xrds_netlink.h"
	for page in $(notdir $(MANS)); do \
		rm -f "$(SHARE)/man/man$${page##*.}/$$page"; done
	rm -f $(COMPLETIONS:tools/completion/%="$(COMPLETION)/%")
	$(IN_TOOLS) uninstall
	for dir in "$(INCLUDE)" "$(COMPLETION)" "$(SHARE)/bash-completion" \
		"$(SHARE)/doc" "$(SHARE)"/man/man*; do \
		test ! -d "$$dir" || \
		rmdir --ignore-fail-on-non-empty "$$dir" || exit; done
	for dir in "$(DESTDIR)"/lib/modules/*/extra/net/xrds; do \
		test -d "$$dir" || continue; \
		cd "$$dir/../.." && rm -rf net/xrds && \
		rmdir --ignore-fail-on-non-empty net ../extra && \
		$(if $(DESTDIR),:,depmod "$$(basename "$$(dirname "$$PWD")")") || \
		exit; done

deb:
	@$(DEPS) deb
	@tools/install/deb

rpm:
	@$(DEPS) rpm
	@tools/install/rpm

clean:
	rm -rf build
	for dir in selftests/prog selftests/unit tools; do \
		test ! -f $$dir/Makefile || $(MAKE) -C $$dir clean; done

# ------------------------------------------------------------------- tests

RUN = $(VM) $@ $(if $(T),-t '$(T)') $(if $(KERNEL),-k '$(KERNEL)') \
	$(if $(V),-v) $(if $(NODES),-n $(NODES)) $(if $(N),-N $(N)) \
	$(if $(LOAD),-L $(LOAD)) $(if $(SHARE),-s '$(SHARE)') \
	$(if $(PROG),-p '$(PROG)') $(if $(ARGS),--arguments='$(ARGS)')

test test-full test-all:
	@$(DEPS) rig $(if $(T),,unit)
	@$(RUN)

bench:
	@$(DEPS) bench $(if $(BENCH_PROFILE),linux-perf)
	@$(RUN)

demo soak shell run debug-kernel test-the-tests matrix flaky:
	@$(DEPS) rig
	@$(RUN)

test-packages:
	@$(DEPS) rig deb rpm debootstrap
	@$(RUN)

list:
	@$(DEPS) python3
	@$(RUN)

unit:
	@$(DEPS) unit
	@$(VM) unit

fuzz:
	@$(DEPS) unit
	@$(MAKE) -C selftests/unit fuzz

# ------------------------------------------------------------------ checks

style sparse doc:
	@$(DEPS) check
	@$(CHECKER)/$@

ci:
	@$(DEPS) rig unit check
	@$(VM) ci

.PHONY: all help modules mirror install install-modules install-dkms \
	install-dkms-source install-conf install-tools uninstall deb rpm clean bench \
	demo list test test-full test-all test-packages matrix flaky soak shell run fuzz \
	debug-kernel test-the-tests unit style sparse doc ci
