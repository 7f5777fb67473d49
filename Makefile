# SPDX-License-Identifier: GPL-2.0-only
#
# XRDS outside the kernel tree. "make help" lists the targets.

# The kernel to build for: KDIR= names a headers or build directory. Default:
# the running kernel's, or else the newest Debian headers (6.1 preferred).
KDIR ?= $(firstword \
	$(wildcard /lib/modules/$(shell uname -r)/build) \
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
MODPROBE_D := /etc/modprobe.d

all: modules

help:
	@echo '  make              build xrds.ko and xrds_ib.ko (KDIR=, W=1)'
	@echo '  make install      install them, with a modprobe.d file'
	@echo '  make demo         two virtual nodes exchange datagrams over RDMA'
	@echo '  make test         unit, loopback and two-node tests (T=name runs'
	@echo '                    one, KERNEL=6.1|6.12|7.2|debug, V=1 shows more)'
	@echo '  make test-all     the same on every kernel, debug kernel included,'
	@echo '                    and test-the-tests'
	@echo '  make test-the-tests  does the debug kernel notice mistakes that'
	@echo '                    are made on purpose (selftests/faults)?'
	@echo '  make soak         the long soak (SOAK_MSGS=, SOAK_SEED=)'
	@echo '  make bench        ratios to the verbs below and to what competes, in'
	@echo '                    virtual time, and plots (BENCH=quick: fewer of'
	@echo '                    them; BENCH_PROFILE=case: which functions it is in)'
	@echo '  make shell        boot nodes and type commands (NODES=2)'
	@echo '  make debug-kernel the kernel with KASAN, lockdep and kmemleak'
	@echo '  make style sparse doc unit     the checks, one by one'
	@echo '  make ci           all checks and tests that CI runs, in an hour'
	@echo '  make clean'

modules: mirror
	@tools/probe/probe "$(KDIR)" "$(B)"
	@flock "$(B)/lock" $(MAKE) --no-print-directory -C "$(KDIR)" M="$(B)" modules

mirror:
	@test -n "$(KREL)" || { echo "No kernel headers in '$(KDIR)':" \
		"apt install linux-headers-amd64, or give KDIR=." >&2; exit 1; }
	@mkdir -p "$(B)"
	@find "$(B)" -xtype l -delete
	@cp -rsf "$(CURDIR)/Kbuild" "$(CURDIR)/net" "$(CURDIR)/include" "$(B)"

install: modules
	$(MAKE) -C "$(KDIR)" M="$(B)" INSTALL_MOD_DIR=extra \
		$(if $(DESTDIR),INSTALL_MOD_PATH="$(DESTDIR)") modules_install
	install -d "$(DESTDIR)$(MODPROBE_D)"
	printf '%s\n' '# Both serve AF_RDS: a socket must not load the in-tree one.' \
		'blacklist rds' > "$(DESTDIR)$(MODPROBE_D)/xrds.conf"

clean:
	rm -rf build
	for dir in selftests/prog selftests/unit tools; do \
		test ! -f $$dir/Makefile || $(MAKE) -C $$dir clean; done

# ------------------------------------------------------------------- tests

RUN = $(VM) $@ $(if $(T),-t '$(T)') $(if $(KERNEL),-k '$(KERNEL)') \
	$(if $(V),-v) $(if $(NODES),-n $(NODES))

test test-all:
	@$(DEPS) rig $(if $(T),,unit)
	@$(RUN)

bench:
	@$(DEPS) bench $(if $(BENCH_PROFILE),linux-perf)
	@$(RUN)

demo soak shell debug-kernel test-the-tests:
	@$(DEPS) rig
	@$(RUN)

unit:
	@$(DEPS) unit
	@$(VM) unit

# ------------------------------------------------------------------ checks

style sparse doc:
	@$(DEPS) check
	@$(CHECKER)/$@

ci:
	@$(DEPS) rig unit check
	@$(VM) ci

.PHONY: all help modules mirror install clean bench demo test test-all soak shell \
	debug-kernel test-the-tests unit style sparse doc ci
