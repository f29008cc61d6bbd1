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
HEADERS = $(eval HEADERS := $(shell scripts/kbuild/find-headers $(KVER)))$(HEADERS)
endif

BUILD := $(CURDIR)/build/$(KVER)
# The directory block/ of the kernel's source, for a kernel without BTF; not from the environment.
override BLOCK := $(if $(filter command,$(firstword $(origin BLOCK))),$(abspath $(BLOCK)))
POLICIES := $(wildcard *-iosched.c)
# DKMS has the schedulers only.
SOURCES := Kbuild $(POLICIES) include $(wildcard tests/ioload tests/kunit tests/lockhold tests/ssdemu tests/tide)
# A kernel of scripts/fetch-kernel that is of a later release than this machine has the
# /usr of that release.
NEWER_USR = $(wildcard $(HEADERS)/../../../build-usr)
IN_USR = $(if $(NEWER_USR),bwrap --bind / / --dev-bind /dev /dev --ro-bind $(NEWER_USR) /usr --setenv LANG C)
# Variables that name the kernel's own compiler; LLVM=-19, CC=gcc-13, CROSS_COMPILE= name another one.
COMPILER = $(eval COMPILER := $(shell LLVM='$(LLVM)' CROSS_COMPILE='$(CROSS_COMPILE)' \
	CC='$(if $(filter command,$(firstword $(origin CC))),$(CC))' \
	scripts/kbuild/find-compiler '$(HEADERS)' '$(KVER)'))$(COMPILER)
STRIP_MODULE = $(IN_USR) $(patsubst STRIP=%,%,$(filter STRIP=%,$(COMPILER))) -g
# W=1 and C=2 are passed on to the kernel's build.
KBUILD = $(IN_USR) $(MAKE) -C $(HEADERS) M=$(BUILD) $(COMPILER) $(if $(W),W=$(W)) $(if $(C),C=$(C)) \
	$(if $(BLOCK),BLOCK=$(BLOCK))

# Debian's kernel headers need gcc-12, which comes without a cc.
ifeq ($(origin CC),default)
CC := $(shell command -v cc || echo gcc-12)
endif
UPDATES = $(DESTDIR)/lib/modules/$(KVER)/updates
# A kernel tree has the key of its modules.
SIGN_KEY ?= $(wildcard $(HEADERS)/certs/signing_key.pem)
SIGN_CERT ?= $(HEADERS)/certs/signing_key.x509
VERSION = $(shell sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)

# Programs of tools/ are installed below PREFIX; what udev and zsh read elsewhere,
# if PREFIX is not /usr.
PREFIX ?= /usr/local
UDEVDIR ?= $(if $(filter /usr,$(PREFIX)),/usr/lib/udev,/etc/udev)
ZSHDIR ?= $(PREFIX)/share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
# Not from the environment: uninstall removes this folder.
LIB = $(PREFIX)/lib/ssd-iosched
LIBRARY := $(patsubst tools/%,%,$(wildcard tools/*/ssd_*/*.py tools/*/ssd_*/*/*.py \
	tools/*/trace_to_fio/*.py tools/*/trace_to_fio/*/*.py tools/*/ssd_*/*.json \
	tools/*/ssd_*/schemas/* tools/*/ssd_*/templates/* tools/*/jobs/*))
PROGRAMS := tools/ssd-probe/ssd-probe build/tools/ssd-probe-io tools/ssdctl/ssdctl \
	tools/trace-to-fio/trace-to-fio
LINKS := $(PREFIX)/sbin/ssd-probe $(PREFIX)/sbin/ssdctl $(PREFIX)/bin/trace-to-fio
HWDB := tools/ssdctl/udev/60-ssd-iosched.hwdb
# Files with their folders. Folders that only these files need are removed with them.
TOOL_FILES := tools/ssd-probe/ssd-probe.8=$(PREFIX)/share/man/man8/ssd-probe.8 \
	tools/ssdctl/ssdctl.8=$(PREFIX)/share/man/man8/ssdctl.8 \
	tools/trace-to-fio/trace-to-fio.1=$(PREFIX)/share/man/man1/trace-to-fio.1 \
	tools/trace-to-fio/completion/trace-to-fio.bash=$(PREFIX)/share/bash-completion/completions/trace-to-fio \
	tools/trace-to-fio/completion/_trace-to-fio=$(ZSHDIR)/_trace-to-fio \
	tools/ssdctl/completion/ssdctl.bash=$(PREFIX)/share/bash-completion/completions/ssdctl \
	tools/ssdctl/completion/ssd-probe.bash=$(PREFIX)/share/bash-completion/completions/ssd-probe \
	tools/ssdctl/completion/_ssdctl=$(ZSHDIR)/_ssdctl \
	tools/ssdctl/udev/60-ssd-iosched-hwdb.rules=$(UDEVDIR)/rules.d/60-ssd-iosched-hwdb.rules \
	$(HWDB)=$(UDEVDIR)/hwdb.d/60-ssd-iosched.hwdb
TOOL_FOLDERS := $(ZSHDIR) $(PREFIX)/share/zsh $(PREFIX)/share/man/man8 $(PREFIX)/share/man/man1 \
	$(PREFIX)/share/bash-completion/completions $(PREFIX)/share/bash-completion
# What ssdctl and ssd-probe write; of the rules those that persist has written.
WRITTEN := /etc/ssd-iosched /var/lib/ssd-iosched /var/lib/ssd-probe \
	/etc/udev/rules.d/.ssd-iosched.*
RULES := /etc/udev/rules.d/70-ssd-iosched-*.rules
# Whether a package of this name is installed, whoever made it.
PACKAGED = { dpkg-query -W -f '$${db:Status-Status}' $(1) | grep -qx installed || rpm -q $(1) || \
	pacman -Qq $(1); } >/dev/null 2>&1
HWDB_UPDATE := systemd-hwdb update $(if $(filter /usr,$(PREFIX)),--usr)
# Without entries of its own /etc needs no database, if /usr has one.
HWDB_RESTORE := $(if $(filter /usr,$(PREFIX)),$(HWDB_UPDATE),if ls /etc/udev/hwdb.d/*.hwdb \
	>/dev/null 2>&1 || { [ ! -e /usr/lib/udev/hwdb.bin ] && [ ! -e /lib/udev/hwdb.bin ]; }; \
	then $(HWDB_UPDATE); else rm -f /etc/udev/hwdb.bin; fi)

# Not from the environment, where it is the kernel's.
DEB_ARCH = $(if $(filter command,$(firstword $(origin ARCH))),$(ARCH))

# The source tree of DKMS, below DKMS_ROOT: the schedulers, without the tests.
DKMS_TREE = $(DKMS_ROOT)/usr/src/ssd-iosched-$(VERSION)
DKMS_SOURCES := Makefile Kbuild $(POLICIES) $(sort $(shell find include -name "*.h")) \
	$(wildcard scripts/kbuild/*.py)
DKMS_SCRIPTS := $(filter-out %.py %__pycache__,$(wildcard scripts/kbuild/*))

.DEFAULT_GOAL := modules
.PHONY: modules tools install install-modules install-tools uninstall dkms dkms-source \
	dkms-remove check-abi check-headers upstream-modules link demo bench check check-all \
	check-bench check-kernels check-packages soak kunit lint docs deb release \
	compile_commands.json clean help

modules: $(BUILD)/iosched-kernel.h $(if $(BLOCK),$(BUILD)/.block) ## build all modules (KVER=<release> or KDIR=<tree>)
	+$(KBUILD) modules

# Make the links anew each time, so that the link of a removed source is removed too.
$(BUILD)/.links: FORCE
	@test -n "$(KVER)" || { echo "error: $(KDIR) is not a configured kernel tree" >&2; exit 1; }
	@test -n "$(HEADERS)"
	@test -n "$(COMPILER)"
	@mkdir -p $(BUILD)
	@find $(BUILD) -type l -delete
	@cp -rs $(addprefix $(CURDIR)/,$(filter-out tests/%,$(SOURCES))) $(BUILD)
	@mkdir -p $(BUILD)/tests
	$(if $(filter tests/%,$(SOURCES)),@cp -rs $(addprefix $(CURDIR)/,$(filter tests/%,$(SOURCES))) $(BUILD)/tests)
	@touch $@

# Modules in UPSTREAM that need what the kernel does not export (tests/bench/upstream.py).
upstream-modules:
	+@$(KBUILD) M=$(UPSTREAM) KBUILD_MODPOST_WARN=1 modules >$(UPSTREAM)/log 2>&1 || { cat $(UPSTREAM)/log >&2; exit 1; }

# Always called; the script rewrites the header only if an input has changed.
$(BUILD)/iosched-kernel.h: $(BUILD)/.links
	@scripts/kbuild/gen-kernel-header --headers $(HEADERS) --release $(KVER) $(if $(BLOCK),--block $(BLOCK)) -o $@

# The versions of the elevator's symbols are digests of all types that they depend on: if elevator.c
# of BLOCK gives those of the kernel, its headers are the kernel's.
$(BUILD)/.block: $(BUILD)/iosched-kernel.h FORCE
	@mkdir -p $(BUILD)/block
	@printf 'obj-m := elevator.o\nccflags-y := -w -I$(BLOCK)\n' >$(BUILD)/block/Kbuild
	@cp $(BLOCK)/elevator.c $(BUILD)/block
	+@$(KBUILD) M=$(BUILD)/block elevator.o >$(BUILD)/block/log 2>&1 || { echo "error: BLOCK is not of" \
		"this kernel's source: elevator.c does not compile with the headers of $(KVER)" \
		"($(BUILD)/block/log)" >&2; exit 1; }
	@scripts/kbuild/check-symbols $(HEADERS)/Module.symvers $(BUILD)/block/.elevator.o.cmd
	@touch $@

# Without liburing the schedulers are installed nevertheless.
install: install-modules ## install modules into /lib/modules, run depmod, install-tools
	@if echo '#include <liburing.h>' | $(CC) -E - >/dev/null 2>&1; then \
		$(MAKE) --no-print-directory install-tools; \
	else echo "the programs are not installed: liburing-dev is missing (then: make install-tools)"; fi

# Only the schedulers: the other modules are for guests.
install-modules: modules
	install -d $(UPDATES)
	for module in $(POLICIES:.c=.ko); do \
		rm -f $(UPDATES)/$$module* && \
		install $(BUILD)/$$module $(UPDATES) && $(STRIP_MODULE) $(UPDATES)/$$module && \
		$(if $(SIGN_KEY),$(HEADERS)/scripts/sign-file \
			$$(sed -n 's/^CONFIG_MODULE_SIG_HASH=//p' $(HEADERS)/include/config/auto.conf | tr -d \") \
			$(SIGN_KEY) $(SIGN_CERT) $(UPDATES)/$$module,:) && \
		chmod 644 $(UPDATES)/$$module || exit 1; done
	$(if $(DESTDIR),,depmod $(KVER))

install-tools: tools ## install only ssdctl, ssd-probe and trace-to-fio, below PREFIX
	for file in $(LIBRARY); do \
		install -D -m 644 tools/$$file $(DESTDIR)$(LIB)/$${file#*/} || exit 1; done
	printf '%s\n' '"""The version of the project."""' 'VERSION = "$(VERSION)"' | \
		install -m 644 /dev/stdin $(DESTDIR)$(LIB)/ssd_common/version.py
	install $(PROGRAMS) $(DESTDIR)$(LIB)
	install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/bin
	for link in $(LINKS); do \
		ln -sfr $(DESTDIR)$(LIB)/$${link##*/} $(DESTDIR)$$link || exit 1; done
	for file in $(TOOL_FILES); do \
		install -D -m 644 $${file%=*} $(DESTDIR)$${file#*=} || exit 1; done
	sed -i 's|/usr/sbin/|$(PREFIX)/sbin/|g' $(DESTDIR)$(UDEVDIR)/rules.d/60-ssd-iosched-hwdb.rules
	$(if $(DESTDIR),,! grep -q '^block:' $(HWDB) || ! command -v systemd-hwdb >/dev/null || \
		$(HWDB_UPDATE))

# Beside a package of the programs, what they have written is the package's.
uninstall: ## remove what install has installed, of all kernels, and what ssdctl has written
	for folder in $(wildcard $(DESTDIR)/lib/modules/*/updates); do \
		rm -f $(addprefix $$folder/,$(POLICIES:.c=.ko)); \
		rmdir --ignore-fail-on-non-empty $$folder; \
		kernel=$$(dirname $$folder); \
		if [ ! -e $$kernel/modules.order ]; then rmdir --ignore-fail-on-non-empty $$kernel; \
		else $(if $(DESTDIR),:,depmod $$(basename $$kernel)); fi; done
	rm -rf $(addprefix $(DESTDIR),$(LIB) $(LINKS))
	for file in $(TOOL_FILES); do rm -f $(DESTDIR)$${file#*=}; done
	$(if $(DESTDIR),,! $(call PACKAGED,ssd-iosched-utils) || exit 0;) \
	rm -rf $(addprefix $(DESTDIR),$(WRITTEN)); \
	for file in $(wildcard $(addprefix $(DESTDIR),$(RULES))); do \
		! head -n 1 $$file | grep -q '^# Written by ssdctl persist' || rm $$file; done
	for folder in $(addprefix $(DESTDIR),$(TOOL_FOLDERS)); do \
		[ ! -d $$folder ] || rmdir --ignore-fail-on-non-empty $$folder; done
	$(if $(DESTDIR),,! command -v systemd-hwdb >/dev/null || { $(HWDB_RESTORE); })

dkms: ## build and install the modules with DKMS for each kernel that can have them
	$(MAKE) --no-print-directory dkms-remove
	$(MAKE) --no-print-directory dkms-source
	dkms add -m ssd-iosched -v $(VERSION)
	failed=; for kernel in $$(cd /lib/modules && ls -v); do \
		[ ! -d /lib/modules/$$kernel/build/ ] || \
		dkms install -m ssd-iosched -v $(VERSION) -k $$kernel || [ $$? = 77 ] || \
			failed="$$failed $$kernel"; done; \
	[ -z "$$failed" ] || { echo "error: no modules for$$failed: DKMS says above why" >&2; exit 1; }

dkms-source: # write what DKMS builds from
	rm -rf $(DKMS_TREE)
	for file in $(DKMS_SOURCES); do install -D -m 644 $$file $(DKMS_TREE)/$$file || exit 1; done
	for file in $(DKMS_SCRIPTS); do install -D $$file $(DKMS_TREE)/$$file || exit 1; done
	sed 's/#MODULE_VERSION#/$(VERSION)/' dkms.conf >$(DKMS_TREE)/dkms.conf

dkms-remove: ## remove what make dkms has installed, of all versions
	@! $(call PACKAGED,ssd-iosched-dkms) || \
		{ echo "error: the package ssd-iosched-dkms is installed: remove it first" >&2; exit 1; }
	for source in $(wildcard /var/lib/dkms/ssd-iosched/*/source); do \
		version=$$(basename $$(dirname $$source)); \
		dkms remove -m ssd-iosched -v $$version --all || exit 1; done
	rm -rf /usr/src/ssd-iosched-[0-9]*

tools: build/tools/ssd-probe-io ## build the programs of tools/ (needs liburing-dev)

build/tools/ssd-probe-io: tools/ssd-probe/ssd-probe-io.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(or $(CFLAGS),-O2) -Wall -Wextra $(LDFLAGS) -o $@ $< -luring

check-abi: modules ## prove that the .ko files have the kernel's own layouts
	scripts/kbuild/check-abi --headers $(HEADERS) --release $(KVER) $(BUILD)

check-headers: modules ## prove that each header parses on its own
	scripts/kbuild/check-headers $(BUILD) $(HEADERS)

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

check: ## a part of the tests, in 12 to 25 minutes: builds, unit tests, programs, the oldest and newest kernel
	scripts/setup build lab arm64 debug pictures tools deb
	$(MAKE) tools
	tests/run --quick --results build/check-quick

check-all: ## all tests on their kernels, in an hour; what a change has to pass
	scripts/setup build lab arm64 debug pictures tools deb systems
	$(MAKE) tools
	tests/run $(if $(AFTER),--after $(AFTER)) $(if $(WITHIN),--within $(WITHIN))

check-packages: ## the packages in whole Debian systems, lintian, rpm and makepkg
	scripts/setup build lab arm64 tools deb packages systems systems-arm64
	$(MAKE) tools
	tests/run install packages packages-others \
		$(basename $(notdir $(wildcard tests/host/system-*)))

check-kernels: ## build for all kernels that Debian's suites have, boot the newest; writes kernels.md's table
	scripts/setup build lab arm64 rt
	tests/kernels

check-bench: ## long tests: of the benchmark, the emulated SSD's garbage collection, locks, memory, 128 queues
	scripts/setup build lab plots bench
	tests/run $(basename $(notdir $(wildcard tests/*/bench-*.py))) ssdemu-gc ssdemu-wa \
		lock-holds scale many-queues

soak: ## the robustness tests with new seeds for HOURS=n, and what was survived
	scripts/setup build lab debug
	tests/soak $(if $(KERNELS),--kernels "$(KERNELS)") $(or $(HOURS),1)

kunit: ## unit tests with 1,000 sequences each (10,000: tests/run kunit; SEED=n repeats them)
	tests/run --quick --results build/check-kunit kunit

lint: ## checkpatch, sparse, shellcheck, ruff, codespell, mandoc, reuse, links; as root it installs what is missing
	$(if $(filter 0,$(shell id -u)),scripts/setup build lab lint)
	scripts/lint

deb: ## build the Debian packages in build/deb/ (ARCH=arm64: build/deb-arm64/)
	scripts/setup deb $(if $(DEB_ARCH),arm64)
	packaging/build deb build/deb$(addprefix -,$(DEB_ARCH)) $(DEB_ARCH)

release: ## tarball, packages, results, notes, checksums in build/release/ (TAG=1: and a tag)
	@[ "$$(cat build/lint-passed 2>&1)" = "$$(git rev-parse 'HEAD^{tree}')" ] || \
		{ echo "error: make lint has not passed on this commit" >&2; exit 1; }
	$(if $(TAG),@! git rev-parse -q --verify refs/tags/v$(VERSION) >/dev/null || \
		{ echo "error: there is a tag v$(VERSION)" >&2; exit 1; })
	scripts/setup deb
	packaging/build release
	$(if $(TAG),git tag -a v$(VERSION) --cleanup=whitespace \
		-F build/release/ssd-iosched-$(VERSION)-notes.md)

docs: ## rewrite what is made of tables and results: lists, tables, advice and pictures in Documentation/
	scripts/doc-tables
	scripts/doc-kinds
	scripts/real-drives
	Documentation/pictures/draw

compile_commands.json: modules ## what clangd reads (KVER=<release>), see .clangd
	scripts/compile-commands $(BUILD) $(HEADERS) >$@ || { rm $@; exit 1; }

clean: ## remove build/
	rm -rf build

help: ## this list
	@echo 'Targets:'
	@sed -n 's/^\([a-z_.-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 24
	@echo 'Variables:'
	@echo '  KVER=<release>  an installed or fetched kernel; default: the running one'
	@echo '  KDIR=<tree>     a full, built kernel tree instead'
	@echo '  BLOCK=<dir>     block/ of the source of a kernel without BTF'
	@echo '  PREFIX=<dir>    where the programs are installed; default: /usr/local'
	@echo '  DESTDIR=<dir>   install below this folder'
	@echo '  LLVM=-<version> a clang of this version, for a kernel that clang has built'
	@echo '  SIGN_KEY=<file> SIGN_CERT=<file>   sign the modules that are installed'
	@echo '  W=1, C=2        more warnings, sparse'
	@echo '  TAG=1           tag the release v<version>; nothing is pushed'
	@echo '  HOURS=n, KERNELS="host 6.12 debug-6.12"           for make soak'
	@echo '  QUICK=1, HOSTS=file, ONLY=kinds, DEVICE=presets   for make bench'

FORCE:
