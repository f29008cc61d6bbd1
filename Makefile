# SPDX-License-Identifier: GPL-2.0
# Builds the I/O schedulers and the emulated SSD out of tree. `make help` lists
# the targets. Objects of each kernel go to build/<release>/, which holds links
# to the sources, so that the source tree stays clean.

ifdef KDIR
override KDIR := $(abspath $(KDIR))
KVER := $(shell $(MAKE) -s --no-print-directory -C $(KDIR) kernelrelease 2>/dev/null)
HEADERS = $(KDIR)
else
KVER ?= $(shell uname -r)
# Looked up once, and only by targets that need it.
HEADERS = $(eval HEADERS := $(shell scripts/find-headers $(KVER)))$(HEADERS)
endif

BUILD := $(CURDIR)/build/$(KVER)
POLICIES := $(wildcard *-iosched.c)
SOURCES := Kbuild $(POLICIES) include tests/ioload tests/kunit tests/ssdemu
# W=1 and C=2 are passed on to the kernel's build.
KBUILD = $(MAKE) -C $(HEADERS) M=$(BUILD) $(if $(W),W=$(W)) $(if $(C),C=$(C))

# Debian's kernel headers need gcc-12, which comes without a cc.
ifeq ($(origin CC),default)
CC := $(shell command -v cc || echo gcc-12)
endif
# Programs of tools/ are installed below PREFIX.
PREFIX ?= /usr/local
PROBE := $(DESTDIR)$(PREFIX)/lib/ssd-probe
PROBE_LINK := $(DESTDIR)$(PREFIX)/sbin/ssd-probe
PROBE_MAN := $(DESTDIR)$(PREFIX)/share/man/man8/ssd-probe.8

.DEFAULT_GOAL := modules
.PHONY: modules tools install install-tools uninstall check-abi link demo bench check soak lint docs clean help

modules: $(BUILD)/iosched-kernel.h ## build all modules (KVER=<release> or KDIR=<tree>)
	+$(KBUILD) modules

# Make the links anew each time, so that the link of a removed source is removed too.
$(BUILD)/.links: FORCE
	@test -n "$(KVER)" || { echo "error: $(KDIR) is not a configured kernel tree" >&2; exit 1; }
	@test -n "$(HEADERS)"
	@mkdir -p $(BUILD)
	@find $(BUILD) -type l -delete
	@cp -rs $(addprefix $(CURDIR)/,$(filter-out tests/%,$(SOURCES))) $(BUILD)
	@mkdir -p $(BUILD)/tests
	@cp -rs $(addprefix $(CURDIR)/,$(filter tests/%,$(SOURCES))) $(BUILD)/tests
	@touch $@

# Always called; the script rewrites the header only if an input has changed.
$(BUILD)/iosched-kernel.h: $(BUILD)/.links
	@scripts/gen-kernel-header --headers $(HEADERS) --release $(KVER) -o $@

# Without liburing the schedulers are installed nevertheless.
install: modules ## install modules into /lib/modules, run depmod, install ssd-probe
	$(KBUILD) INSTALL_MOD_DIR=updates modules_install
	depmod $(KVER)
	@if echo '#include <liburing.h>' | $(CC) -E - >/dev/null 2>&1; then \
		$(MAKE) --no-print-directory install-tools; \
	else echo "ssd-probe is not installed: liburing-dev is missing (then: make install-tools)"; fi

install-tools: tools ## install only ssd-probe, below PREFIX
	install -d $(PROBE)/ssd_probe $(dir $(PROBE_LINK)) $(dir $(PROBE_MAN))
	install tools/ssd-probe/ssd-probe build/tools/ssd-probe-io $(PROBE)
	install -m 644 $(wildcard tools/ssd-probe/ssd_probe/*.py) $(PROBE)/ssd_probe
	ln -sfr $(PROBE)/ssd-probe $(PROBE_LINK)
	install -m 644 tools/ssd-probe/ssd-probe.8 $(PROBE_MAN)

uninstall: ## remove what install has installed
	rm -f $(addprefix /lib/modules/$(KVER)/updates/,$(POLICIES:.c=.ko*) tests/ioload/ioload.ko* \
		tests/ssdemu/ssdemu.ko*)
	depmod $(KVER)
	rm -rf $(PROBE) $(PROBE_LINK) $(PROBE_MAN)

tools: build/tools/ssd-probe-io ## build the programs of tools/ (needs liburing-dev)

build/tools/ssd-probe-io: tools/ssd-probe/ssd-probe-io.c
	@mkdir -p $(@D)
	$(CC) -O2 -Wall -Wextra -o $@ $< -luring

check-abi: modules ## prove that the .ko files have the kernel's own layouts
	scripts/check-abi --headers $(HEADERS) --release $(KVER) $(BUILD)

link: ## link the schedulers into the kernel tree KDIR (then: make menuconfig there)
	scripts/link-into-kernel $(KDIR)

demo: ## try it: PASS beside the stock schedulers in a virtual machine
	scripts/setup build lab plots
	tests/bench/demo.py

# ONLY= names kinds, DEVICE= presets: tests/bench/bench.py --help.
bench: ## what each scheduler costs and gains (QUICK=1: a part of it; HOSTS=file: real drives)
	scripts/setup build lab plots $(if $(QUICK)$(HOSTS),,bench)
	tests/bench/bench.py $(if $(QUICK),--quick) $(if $(HOSTS),--hosts $(HOSTS)) \
		$(if $(ONLY),--only $(ONLY)) $(if $(DEVICE),--device $(DEVICE))

check: ## the tests that a change has to pass, most in virtual machines
	scripts/setup build lab lint debug tools
	$(MAKE) tools
	tests/run

soak: ## the robustness tests with new seeds for HOURS=n, and what was survived
	scripts/setup build lab debug
	tests/soak $(if $(KERNELS),--kernels "$(KERNELS)") $(or $(HOURS),1)

lint: ## checkpatch, sparse, shellcheck, ruff, codespell
	scripts/setup build lab lint
	scripts/lint

docs: ## rewrite the tables of tunables and the pictures in Documentation/
	scripts/doc-tables
	Documentation/pictures/draw

clean: ## remove build/
	rm -rf build

help: ## this list
	@echo 'Targets:'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 16
	@echo 'Variables:'
	@echo '  KVER=<release>  an installed or fetched kernel; default: the running one'
	@echo '  KDIR=<tree>     a full, built kernel tree instead'
	@echo '  PREFIX=<dir>    where ssd-probe is installed; default: /usr/local'
	@echo '  W=1, C=2        more warnings, sparse'
	@echo '  HOURS=n, KERNELS="host 6.12 debug-6.12"           for make soak'
	@echo '  QUICK=1, HOSTS=file, ONLY=kinds, DEVICE=presets   for make bench'

FORCE:
