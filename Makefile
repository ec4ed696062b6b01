# SPDX-License-Identifier: Apache-2.0
#
# make help lists the targets. make demo and make test do all of their own
# set-up on a fresh Debian machine that has Go, gcc, make and root.

PREFIX  ?= /usr/local
DESTDIR ?=
libdir   = $(PREFIX)/lib/gojail
sbindir  = $(PREFIX)/sbin
docdir   = $(PREFIX)/share/doc/gojail
unitdir  = $(PREFIX)/lib/systemd/system
udevdir  = $(PREFIX)/lib/udev/rules.d
netdir   = $(PREFIX)/lib/systemd/network
presetdir = $(PREFIX)/lib/systemd/system-preset
mandir   = $(PREFIX)/share/man
bashdir  = $(PREFIX)/share/bash-completion/completions
fishdir  = $(PREFIX)/share/fish/vendor_completions.d
zshdir   = $(PREFIX)/share/zsh/site-functions# Debian's packages: vendor-completions

SHELL := /bin/bash
Q      = $(if $(V),,@)# make V=1 shows the commands

GO ?= go
ifeq ($(origin CC),default)
CC := gcc
endif
BUILD := build
# make ARCH=arm64 all, deb or rpm: for another machine, with Debian's cross compiler. HOST has the manual pages and the completions, which
# are made here for any.
HOSTARCH := $(shell $(GO) env GOHOSTARCH)
ARCH     ?= $(HOSTARCH)
override ARCH := $(patsubst x86_64,amd64,$(patsubst aarch64,arm64,$(ARCH)))
HOST      = $(BUILD)
ifneq ($(ARCH),$(HOSTARCH))
HOST  := build
BUILD := build/$(ARCH)
CROSS := $(or $(patsubst arm64,aarch64-linux-gnu-,$(filter arm64,$(ARCH))),$(patsubst amd64,x86_64-linux-gnu-,$(filter amd64,$(ARCH))),$(error ARCH=$(ARCH): gojail is for amd64 and arm64))
CC    := $(CROSS)gcc
CROSS_ENV := GOARCH=$(ARCH) CC=$(CC) CGO_ENABLED=1
endif
VERSION := $(or $(shell packaging/version),$(error packaging/version fails))

CFLAGS   ?= -O2 -g
override CFLAGS   += -std=gnu11 -fPIC -fdata-sections -fvisibility=hidden -fstack-protector-strong -Wall -Wextra -Werror
# The debugging information, and the build id, which is a sum of it, do not name the directory of the sources. Go's -trimpath does the same.
export PWD := $(CURDIR)# gcc takes a path over symbolic links from it
override CPPFLAGS := -ffile-prefix-map=$(CURDIR)=. $(CPPFLAGS) -D_GNU_SOURCE -Iinclude -Ispank -DGOJAIL_RELEASE='"$(VERSION)"'
override LDFLAGS  += -Wl,-z,relro -Wl,-z,noexecstack
# Each srun and slurmstepd loads the plugin, and needs few of its symbols, as of Slurm's own libraries: those too are bound lazily.
# Small variables stand together, apart from buffers: the first write to a page is a fault, and again after the fork of a task.
# Two mappings in the place of four, which are not taken down when srun ends: loaded in less time than an empty plugin.
SHIM_LDFLAGS     := -Wl,-z,lazy -Wl,--sort-section=alignment -Wl,-z,noseparate-code -Wl,-z,nodelete
LAUNCHER_LDFLAGS := -Wl,-z,now -pie

BRIDGE_PKG := ./spank/bridge
CLI_PKG    := ./gojail/cmd/gojail
GO_VERSION  = -X github.com/gojail/gojail/internal/version.text=$(VERSION)
HEALTH_PKG := ./healthcheck/cmd/gojail-healthcheck
EXPORTER_PKG := ./exporter/cmd/gojail-exporter
GO_SRCS     = go.mod go.sum include/gojail.h $(BUILD)/version \
	$(shell find exporter gojail healthcheck internal netsetup spank -name '*.go' -not -name '*_test.go' 2>/dev/null)

SHIM     := $(BUILD)/lib/gojail/spank_gojail.so
SUBMIT   := $(BUILD)/lib/gojail/job_submit_gojail.so
LAUNCHER := $(BUILD)/lib/gojail/gojail-launcher
PROLOG   := $(BUILD)/lib/gojail/prolog-1
LIBRARY  := $(BUILD)/lib/gojail/libgojail.so
SESSION  := $(BUILD)/lib/gojail/gojail-session
CLI      := $(BUILD)/sbin/gojail
JAILCLI  := $(BUILD)/lib/gojail/gojail
HEALTH   := $(BUILD)/sbin/gojail-healthcheck
EXPORTER := $(BUILD)/sbin/gojail-exporter
MAN      := $(HOST)/man/gojail.8# and the others
GRAFANA  := $(HOST)/grafana/gojail-job.json# and the others
PAGES    := $(wildcard docs/*.md)

# Each binary is its folder and what both are linked with.
SHIM_SRCS      = $(wildcard spank/common/*.c spank/release/*.c spank/plugin/*.c)
LAUNCHER_SRCS  = $(wildcard spank/common/*.c spank/launcher/*.c)
SUBMIT_SRCS    = $(wildcard spank/release/*.c spank/submit/*.c)
PROLOG_SRCS    = $(wildcard spank/common/*.c spank/prolog/*.c)
SESSION_SRCS   = $(wildcard spank/common/*.c spank/session/*.c)
C_HDRS         = $(wildcard spank/*/*.h include/*.h)

.PHONY: all help man deps rootfs unit race shuffle test site pod containers gpu rota test-slurm test-vm vm-self test-packages test-escape test-all vm vm-storage vm-shell lint demo bench bench-isolation bench-sessions bench-net bench-health bench-storage bench-images bench-exporter cluster cluster-down install install-docs uninstall cross deb rpm dist fuzz asan clean

all: $(SHIM) $(SUBMIT) $(LAUNCHER) $(PROLOG) $(SESSION) $(LIBRARY) $(CLI) $(JAILCLI) $(HEALTH) $(EXPORTER) $(MAN) $(GRAFANA) ## build plugin, launcher, Prolog, gojail-session, library, commands, manual pages and dashboards below build/
	@:

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

# Written only when it differs: a commit that changes the version alone links anew.
$(BUILD)/version: FORCE
	@mkdir -p $(@D)
	@[ "$$(cat $@ 2>/dev/null)" = '$(VERSION)' ] || echo '$(VERSION)' >$@

FORCE:

$(SHIM): $(SHIM_SRCS) $(C_HDRS) Makefile $(BUILD)/version
	@mkdir -p $(@D)
	@echo '#include <slurm/spank.h>' | $(CC) $(CPPFLAGS) -fsyntax-only -xc - 2>/dev/null || \
		{ echo "$(CC) finds no slurm/spank.h: install libslurm-dev (of SchedMD: slurm-smd-dev; RPM: slurm-devel), or name its place: make CPPFLAGS=-I/opt/slurm/include"; exit 1; }
	@echo "building $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -shared $(LDFLAGS) $(SHIM_LDFLAGS) -o $@ $(SHIM_SRCS)

$(SUBMIT): $(SUBMIT_SRCS) $(C_HDRS) Makefile $(BUILD)/version | $(SHIM)
	@echo "building $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -shared $(LDFLAGS) -o $@ $(SUBMIT_SRCS)

$(LAUNCHER): $(LAUNCHER_SRCS) $(C_HDRS) Makefile $(BUILD)/version
	@mkdir -p $(@D)
	@echo "building $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(LAUNCHER_LDFLAGS) -o $@ $(LAUNCHER_SRCS) -ldl

$(PROLOG): $(PROLOG_SRCS) $(C_HDRS) Makefile $(BUILD)/version
	@mkdir -p $(@D)
	@echo "building $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(LAUNCHER_LDFLAGS) -Wl,--gc-sections -ffunction-sections -o $@ $(PROLOG_SRCS)

# Unprivileged here: only make install makes it set-user-ID.
$(SESSION): $(SESSION_SRCS) $(C_HDRS) Makefile $(BUILD)/version
	@mkdir -p $(@D)
	@echo "building $@"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(LAUNCHER_LDFLAGS) -Wl,--gc-sections -ffunction-sections -o $@ $(SESSION_SRCS)

# Go's build id is left out: it is a sum of the C compiler's flags, too, which name the directory of the sources. The linker's is one of the file.
$(LIBRARY): $(GO_SRCS)
	@mkdir -p $(@D)
	@echo "building $@"
	$(Q)$(CROSS_ENV) $(GO) build -buildmode=c-shared -trimpath -buildvcs=false -ldflags='$(GO_VERSION) -buildid= -extldflags=-Wl,--build-id=sha1' -o $@ $(BRIDGE_PKG)
	@rm -f $(@:.so=.h)

$(CLI): $(GO_SRCS)
	@mkdir -p $(@D)
	@echo "building $@"
	$(Q)$(CROSS_ENV) $(GO) build -trimpath -buildvcs=false -ldflags='$(GO_VERSION)' -o $@ $(CLI_PKG)

# For users in jails, whatever C library is there. Without cgo it knows /etc/passwd only: it is not for the node.
$(JAILCLI): $(GO_SRCS)
	@mkdir -p $(@D)
	@echo "building $@"
	$(Q)$(CROSS_ENV) CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags='$(GO_VERSION) -s -w' -o $@ $(CLI_PKG)

# The driver's library has what go-nvml calls only when it is loaded: never bound at the start, as hardened builds are.
$(HEALTH): $(GO_SRCS)
	@mkdir -p $(@D)
	@echo "building $@"
	$(Q)$(CROSS_ENV) $(GO) build -trimpath -buildvcs=false -ldflags='$(GO_VERSION) -extldflags=-Wl,-z,lazy' -o $@ $(HEALTH_PKG)

# It listens to the network, and is not started for each job.
$(EXPORTER): $(GO_SRCS)
	@mkdir -p $(@D)
	@echo "building $@"
	$(Q)$(CROSS_ENV) $(GO) build -buildmode=pie -trimpath -buildvcs=false -ldflags='$(GO_VERSION)' -o $@ $(EXPORTER_PKG)

man: $(MAN) ## the manual pages and completions, below build/man, from the commands and the example files
	@:

$(MAN): $(GO_SRCS) $(wildcard packaging/man/*) $(wildcard *.toml.example) CHANGELOG.md
ifneq ($(ARCH),$(HOSTARCH))
	@$(MAKE) --no-print-directory ARCH=$(HOSTARCH) $@
else
	@echo "building $(@D)"
	$(Q)rm -rf $(@D)
	$(Q)$(GO) run -trimpath -buildvcs=false -ldflags='$(GO_VERSION)' ./packaging/man $(@D)
endif

# No JSON of Grafana is among the sources: it repeats for each panel what packaging/grafana/render.go says once.
$(GRAFANA): $(wildcard packaging/grafana/*.go)
	@echo "building $(@D)"
	$(Q)rm -rf $(@D)
	$(Q)$(GO) run ./packaging/grafana $(@D)

deps: ## install the Debian packages that are missing
	@tests/deps.sh

rootfs: deps ## make the jail of the tests and the demo, once
	@tests/rootfs/make

lint: deps ## gofmt, vet, staticcheck, shellcheck, clang-format, spelling, and the layout of the tree
	@tests/lint

unit: ## what needs neither root nor Slurm, within two minutes
	@$(GO) build -o $(BUILD)/summary ./tests/summary
	@set -o pipefail; $(GO) test -json -short $$($(GO) list ./... | grep -vE '/tests/(containers|gpu|pod|prometheus|session|slurm|escape|shim|site|storage$$|vm(/inside)?$$)|/spank/bridge') | CI= $(BUILD)/summary

# The tests that TEST selects, or a part of those in the directories: PART=2/3 is the second of three. All without either.
select = $(or $(TEST),$(if $(PART),$(or $(shell $(GO) run ./tests/rota -part $(PART) $(1)),$(error no part $(PART) of the tests)),.))

# What starts no cluster. As root, tests that need root run as well.
CLUSTERLESS = $$($(GO) list ./... | grep -vE '/tests/(containers|escape|gpu|packages|pod|prometheus|session|site|slurm|storage$$|vm)|/healthcheck/cli$$')

# Of the bridge only the test: the detector's memory has fixed addresses, which a library in another program does not get
# ("ThreadSanitizer failed to allocate"). What the bridge calls is among the other packages.
# Without the variable, each program that has the detector sleeps for a second at its end, and tests end hundreds.
race: export GORACE := atexit_sleep_ms=0
race: all ## what starts no cluster, with Go's race detector
	@$(GO) build -o $(BUILD)/summary ./tests/summary
	@set -o pipefail; tests/disk $(GO) test -race -json -count=1 -timeout 40m $(CLUSTERLESS) | $(BUILD)/summary

shuffle: all ## what starts no cluster, twice, each time in another order; SHUFFLE=SEED: in the order that a seed gives
	@$(GO) build -o $(BUILD)/summary ./tests/summary
	@set -o pipefail; for seed in $(or $(SHUFFLE),$$(date +%N | sed 's/^0*//') $$(date +%s)); do echo "make shuffle SHUFFLE=$$seed"; \
		tests/disk $(GO) test -shuffle=$$seed -json -count=1 -timeout 40m $(CLUSTERLESS) | $(BUILD)/summary || exit; done

# So many parts of the tests run at the same time (tests/all). More than two share tests/slurm among them.
PARTS ?= 3

# The build comes after deps (Slurm's headers) and the tests after both.
test: lint ## lint, and everything but the long suites, on a private Slurm; LOAD=4: beside so many busy loops; PARTS=1: one test at a time
	@$(MAKE) --no-print-directory all rootfs
	@$(GO) build -o $(BUILD)/summary ./tests/summary
	@$(if $(LOAD),tests/load $(LOAD)) tests/disk $(BUILD)/summary -again "$(GO) test -json -count=1 -timeout 50m" -parts $(PARTS) tests/all

rota: ## of the long suites, what continuous integration runs for this commit (tests/README.md); SLOT=name: what that slot has
	@plan=$$($(GO) run ./tests/rota $(or $(SLOT),turn)) || exit; \
		while IFS=$$'\t' read -r slot minutes command <&3; do \
			echo "==== $$slot, about $$minutes minutes: $$command"; bash -c "$$command" </dev/null || exit; done 3<<<"$$plan"

# The packages of tests/releases/test.
SUITE_DIRS := ./tests/slurm ./tests/escape ./tests/session ./healthcheck/cli

# Each release of Slurm comes from the Debian suite that has it, in a root of its own.
RELEASE ?= 22.05 24.11 26.05

test-slurm: deps ## the suite on RELEASE="22.05 24.11 26.05"; SLURM=DIR: on one installed there; PART=2/3: a third of it; TEST=Name: only this
	@$(GO) build -o $(BUILD)/summary ./tests/summary
	@columns="$(if $(SLURM),$$(tests/releases/installed '$(SLURM)'),$(RELEASE))" || exit; \
		$(BUILD)/summary -each -columns "$$columns" -again tests/releases/test tests/releases/test $(TEST_ARGS) $(if $(TEST)$(PART),-run '$(call select,$(SUITE_DIRS))')

# The kernel of the VM: 6.1, 6.12 or newest, that of Debian 12, 13 and testing.
KERNEL ?= 6.12
vm-self test-vm vm vm-storage bench-storage vm-shell: export GOJAIL_KERNEL = $(KERNEL)
# make vm ARCH=arm64: an emulated guest of that processor.
vm vm-shell: export GOJAIL_ARCH = $(ARCH)

# What is skipped where the kernel has no project quotas for ext4; the guest's has.
QUOTA_TESTS := TestTeardownForgetsTheLimit|TestTeardownWhateverTheUserDid/ext4_quota_give_it_other_projects

# Of the suite on a private Slurm, what is long because it tries each of many moments, faults or features runs in the VM with WHOLE=1 only; and
# TestCDI needs devices that the guest does not have.
LONG_IN_VM := $(if $(WHOLE),,TestKilledAtAnyMoment|TestFailClosed|TestEarlierPlugin|TestSlurmDoesToTasks|TestContainerPlugin|TestX11|TestOCI|TestCDI)

vm-self: deps ## the VM itself, and quotas in it
	@$(GO) build -o $(BUILD)/summary ./tests/summary
	@tests/vm/fetch
	@set -o pipefail; $(GO) test -json -count=1 -timeout 20m ./tests/vm | $(BUILD)/summary -each
	@set -o pipefail; $(GO) run ./tests/vm/ctl test host '$(QUOTA_TESTS)' ./gojail/sandbox | $(BUILD)/summary
	@set -o pipefail; $(GO) run ./tests/vm/ctl test host . ./gojail/mount ./gojail/imagefile | $(BUILD)/summary

test-vm: vm-self ## the VM itself, then its tests on each RELEASE, in a VM with SR-IOV and cgroup v2; SUITE=Name: of the suite only these
	@LONG='$(LONG_IN_VM)' $(BUILD)/summary -each -columns "$(RELEASE)" -again tests/vm/test tests/vm/test

test-all: ## all of them: every release, in the VM too, with the longest tests there (hours)
	@GOJAIL_SOAK=2000 $(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory test-packages
	@$(MAKE) --no-print-directory pod
	@$(MAKE) --no-print-directory containers
	@$(MAKE) --no-print-directory test-slurm
	@WHOLE=1 $(MAKE) --no-print-directory test-vm

test-packages: deps ## the packages: the same bytes at two places, installed, upgraded and purged; TEST=Name: only this
	@$(MAKE) --no-print-directory all
	@$(GO) build -o $(BUILD)/summary ./tests/summary
	@set -o pipefail; $(GO) test -json -count=1 -timeout 60m -run '$(or $(TEST),.)' ./tests/packages | $(BUILD)/summary -each

site: deps ## three machines with systemd and packages, as one cluster; TEST=Name: only this; PART=2/3: a third of all; WHOLE=1: a long soak
	@$(MAKE) --no-print-directory all
	@tests/site/make
	@tests/site/packages
	@tests/site/slurm
	@$(GO) build -o $(BUILD)/summary ./tests/summary
	@set -o pipefail; $(GO) test -json -count=1 -timeout 24h -run '$(call select,./tests/site)' ./tests/site | $(BUILD)/summary -each

pod: deps ## slurmd in podman's containers, as Slinky's pods have it, on each RELEASE from 24.11 on; TEST=Name: only this
	@tests/deps.sh podman runc conmon
	@$(MAKE) --no-print-directory all
	@$(GO) build -o $(BUILD)/summary ./tests/summary
	@$(BUILD)/summary -each -columns "$(filter-out 22.05,$(RELEASE))" tests/pod/test -run '$(or $(TEST),.)' ./tests/pod

containers: deps ## Podman, bubblewrap and the like in jails, as docs/containers.md says; TEST=Name: only this
	@$(MAKE) --no-print-directory all rootfs
	@tests/rootfs/make containers podman buildah crun uidmap slirp4netns fuse-overlayfs bubblewrap charliecloud proot squashfuse squashfs-tools busybox-static libcap2-bin ca-certificates
	@$(GO) build -o $(BUILD)/summary ./tests/summary
	@set -o pipefail; $(GO) test -json -count=1 -run '$(or $(TEST),.)' ./tests/containers | $(BUILD)/summary -each

gpu: deps ## jobs in jails on the NVIDIA GPUs of this machine, and the health check of them; RELEASE=24.11: of that release
	@$(MAKE) --no-print-directory all rootfs
	@$(if $(findstring command,$(origin RELEASE)),tests/releases/make $(RELEASE))
	@$(GO) build -o $(BUILD)/summary ./tests/summary
	@set -o pipefail; $(if $(findstring command,$(origin RELEASE)),GOJAIL_RELEASE=$(RELEASE)) $(GO) test -json -count=1 ./tests/gpu | $(BUILD)/summary

test-escape: deps ## all attacks on a jail, with thousands of rounds of the races; PART=2/3: a third of them
	@$(MAKE) --no-print-directory all rootfs
	@$(GO) build -o $(BUILD)/summary ./tests/summary
	@set -o pipefail; GOJAIL_ESCAPE=all tests/disk $(GO) test -json -count=1 -timeout 60m -run '$(call select,./tests/escape)' ./tests/escape | $(BUILD)/summary -each

vm: deps ## TEST=Name: one test in the VM, on RELEASE; PART=2/3: a third of them; PACKAGE=./tests/slurm: of the suite; KERNEL=6.1, 6.12 or newest; ARCH=arm64
	@$(GO) build -o $(BUILD)/summary ./tests/summary
	@$(BUILD)/summary -each -columns "$(firstword $(RELEASE))" -again tests/vm/test tests/vm/test -run '$(call select,$(or $(PACKAGE),./tests/vm/inside))$(and $(PART),$(LONG_IN_VM),!$(LONG_IN_VM))' $(or $(PACKAGE),./tests/vm/inside)

vm-storage: deps ## jails on NFS, in the VM, on RELEASE and KERNEL; TEST=Name: only this; PART=2/3: a third of all
	@$(GO) build -o $(BUILD)/summary ./tests/summary
	@$(BUILD)/summary -each -columns "$(firstword $(RELEASE))" -again tests/storage/test tests/storage/test -run '$(call select,./tests/storage)' ./tests/storage

bench-storage: deps ## in the VM: a directory on NFS beside image files there, on RELEASE
	@tests/releases/make $(firstword $(RELEASE))
	@tests/vm/fetch
	@tests/storage/fetch
	@$(GO) run ./tests/vm/ctl bench $(firstword $(RELEASE)) 'Storage$$' ./tests/storage
	@$(GO) run ./tests/vm/ctl bench $(firstword $(RELEASE)) StorageOfManyNodes ./tests/storage

vm-shell: deps ## a shell in the VM, on RELEASE and KERNEL
	@tests/releases/make $(firstword $(RELEASE))
	@tests/vm/fetch
	@$(GO) run ./tests/vm/ctl shell $(firstword $(RELEASE))

demo: deps ## a private Slurm with a jail: what a user and an administrator see
	@$(MAKE) --no-print-directory all rootfs
	@$(GO) run ./tests/demo

bench: deps ## what a launch costs, against plain Slurm and others
	@$(MAKE) --no-print-directory all rootfs
	@$(GO) run ./tests/bench $(BENCH_ARGS)
	@$(MAKE) --no-print-directory bench-isolation bench-sessions bench-net bench-health

bench-isolation: deps ## what each part of a job's isolation costs
	@$(MAKE) --no-print-directory all rootfs
	@$(GO) run ./tests/bench -of isolation -mode first,later $(BENCH_ARGS)

bench-sessions: deps ## what an ssh session costs, against plain sshd and its ChrootDirectory
	@$(MAKE) --no-print-directory all rootfs
	@$(GO) run ./tests/bench -of sessions $(BENCH_ARGS)

bench-health: deps ## what a run of the health check costs, against NHC (NHC=DIR, its tree)
	@$(MAKE) --no-print-directory all
	@$(GO) run ./tests/bench/health

bench-images: deps ## what building a jail from an image costs, against umoci, podman and tar, where installed
	@$(MAKE) --no-print-directory all
	@$(GO) run ./tests/bench/images $(BENCH_ARGS)

bench-exporter: ## what gojail-exporter costs on 5,000 nodes and 100,000 jobs
	@$(GO) run ./tests/bench/exporter $(BENCH_ARGS)

bench-net: deps ## what a job's network costs, against CNI plugins' steps and bare messages
	@$(GO) test -run '^$$' -bench 'Attach|Release' -benchtime 20x -count 5 ./netsetup/attach

cluster: deps ## start a private Slurm with gojail and leave it running
	@$(MAKE) --no-print-directory all rootfs
	@$(GO) run ./tests/harness/ctl up

cluster-down: ## end it
	@$(GO) run ./tests/harness/ctl down

install: all install-docs ## install below $(DESTDIR)$(PREFIX); PREFIX=/usr, DESTDIR=DIR for a package
	install -d $(DESTDIR)$(libdir) $(DESTDIR)$(sbindir)
	install -m 755 $(SHIM) $(SUBMIT) $(LAUNCHER) $(PROLOG) $(LIBRARY) $(JAILCLI) $(DESTDIR)$(libdir)
	install -m 4755 $(SESSION) $(DESTDIR)$(libdir)
	install -m 755 $(CLI) $(HEALTH) $(EXPORTER) $(DESTDIR)$(sbindir)
	install -d $(DESTDIR)$(unitdir) $(DESTDIR)$(udevdir) $(DESTDIR)$(netdir) $(DESTDIR)$(presetdir)
	for unit in vf nccl metrics exporter; do sed 's|/usr/local/sbin|$(sbindir)|; s|/usr/local/share/doc/gojail|$(docdir)|' \
		packaging/systemd/gojail-$$unit.service >$(DESTDIR)$(unitdir)/gojail-$$unit.service; done
	install -m 644 packaging/systemd/gojail-nccl.timer packaging/systemd/gojail-metrics.timer $(DESTDIR)$(unitdir)
	sed 's|/usr/local/sbin|$(sbindir)|' packaging/systemd/slurmd-dynamic >$(DESTDIR)$(libdir)/slurmd-dynamic
	chmod 755 $(DESTDIR)$(libdir)/slurmd-dynamic
	install -d $(DESTDIR)$(docdir)/systemd
	for name in slurmd slurmd-dynamic slurmctld; do sed 's|/usr/local/lib/gojail|$(libdir)|' packaging/systemd/$$name.conf >$(DESTDIR)$(docdir)/systemd/$$name.conf || exit; done
	install -m 644 packaging/udev/80-gojail-vf.rules $(DESTDIR)$(udevdir)
	install -m 644 packaging/systemd/10-gojail-vf.network $(DESTDIR)$(netdir)
	install -m 644 packaging/systemd/50-gojail.preset $(DESTDIR)$(presetdir)
	install -d $(addprefix $(DESTDIR)$(mandir)/,man5 man8) $(DESTDIR)$(bashdir) $(DESTDIR)$(fishdir) $(DESTDIR)$(zshdir)
	install -m 644 $(dir $(MAN))*.5 $(DESTDIR)$(mandir)/man5
	install -m 644 $(dir $(MAN))*.8 $(DESTDIR)$(mandir)/man8
	install -m 644 $(dir $(MAN))bash/* $(DESTDIR)$(bashdir)
	install -m 644 $(dir $(MAN))fish/* $(DESTDIR)$(fishdir)
	install -m 644 $(dir $(MAN))zsh/* $(DESTDIR)$(zshdir)

install-docs: $(GRAFANA) ## the documentation, dashboards and alerts alone, likewise
	install -d $(addprefix $(DESTDIR)$(docdir)/,docs grafana prometheus)
	install -m 644 LICENSE gojail.toml.example network.toml.example health.toml.example slurm.conf.example $(DESTDIR)$(docdir)
	for page in README.md CHANGELOG.md SECURITY.md $(PAGES); do sed -Ef packaging/docs.sed $$page >$(DESTDIR)$(docdir)/$$page && \
		chmod 644 $(DESTDIR)$(docdir)/$$page || exit; done
	install -m 644 $(dir $(GRAFANA))*.json $(DESTDIR)$(docdir)/grafana
	install -m 644 packaging/prometheus/*.rules.yml $(DESTDIR)$(docdir)/prometheus
	sed 's|/usr/local/lib/gojail|$(libdir)|' plugstack.conf.example >$(DESTDIR)$(docdir)/plugstack.conf.example

cross: # the compiler of another ARCH
	@$(if $(CROSS),tests/deps.sh $(patsubst aarch64%,gcc-aarch64%,$(patsubst x86_64%,gcc-x86-64%,$(CROSS:-=))) libc6-dev-$(ARCH)-cross)

deb: cross all ## packages of Debian below build/package: gojail, and gojail-slurm for all releases of Slurm; ARCH=arm64
	@ARCH=$(ARCH) packaging/build deb

rpm: cross all ## likewise, RPM
	@ARCH=$(ARCH) packaging/build rpm

dist: ## the sources of the commit as a tarball below build/package, which know their version without git
	@mkdir -p $(BUILD)/package
	@version=$$(packaging/version HEAD) && echo "$$version" >$(BUILD)/package/.version && \
		git archive --prefix="gojail-$$version/" --add-file=$(BUILD)/package/.version -o "$(BUILD)/package/gojail-$$version.tar.gz" HEAD && \
		rm $(BUILD)/package/.version && echo "$(BUILD)/package/gojail-$$version.tar.gz"

uninstall: ## remove what install put below $(DESTDIR)$(PREFIX)
	rm -f $(addprefix $(DESTDIR)$(libdir)/,$(notdir $(SHIM) $(SUBMIT) $(LAUNCHER) $(PROLOG) $(SESSION) $(LIBRARY) $(JAILCLI)) slurmd-dynamic) \
		$(addprefix $(DESTDIR)$(docdir)/,README.md CHANGELOG.md SECURITY.md LICENSE gojail.toml.example network.toml.example \
		health.toml.example slurm.conf.example plugstack.conf.example $(PAGES)) $(addprefix $(DESTDIR)$(sbindir)/,gojail gojail-healthcheck gojail-exporter) \
		$(DESTDIR)$(mandir)/man8/gojail.8 $(DESTDIR)$(mandir)/man8/gojail-*.8 $(addprefix $(DESTDIR)$(mandir)/man5/,gojail.toml.5 network.toml.5 health.toml.5) \
		$(addprefix $(DESTDIR)$(bashdir)/,gojail gojail-healthcheck gojail-exporter) $(addprefix $(DESTDIR)$(fishdir)/,gojail.fish gojail-healthcheck.fish gojail-exporter.fish) \
		$(addprefix $(DESTDIR)$(zshdir)/,_gojail _gojail-healthcheck _gojail-exporter) \
		$(addprefix $(DESTDIR)$(unitdir)/,gojail-vf.service gojail-nccl.service gojail-nccl.timer gojail-metrics.service gojail-metrics.timer gojail-exporter.service) \
		$(addprefix $(DESTDIR)$(docdir)/systemd/,slurmd.conf slurmd-dynamic.conf slurmctld.conf) $(DESTDIR)$(docdir)/grafana/gojail-*.json $(DESTDIR)$(docdir)/prometheus/gojail-*.rules.yml \
		$(DESTDIR)$(udevdir)/80-gojail-vf.rules $(DESTDIR)$(netdir)/10-gojail-vf.network \
		$(DESTDIR)$(presetdir)/50-gojail.preset
	-rmdir --ignore-fail-on-non-empty $(DESTDIR)$(libdir) $(DESTDIR)$(docdir)/systemd $(DESTDIR)$(docdir)/grafana $(DESTDIR)$(docdir)/prometheus $(DESTDIR)$(docdir)/docs $(DESTDIR)$(docdir)

fuzz: ## each fuzz test for FUZZTIME
	@tests/fuzz.sh $(or $(FUZZTIME),10s)

asan: all ## the shim under ASan and UBSan in a small host program
	$(GO) test -count=1 -v ./tests/shim

clean: ## remove what was built; the jail in build/cache stays
	rm -rf $(addprefix $(BUILD)/,earlier lib sbin man summary tools version)
