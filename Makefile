# weir: one command for each wish. `make` builds, `make help` lists the rest.
#
# Each target first makes sure that what it needs is on the machine (scripts/setup: it says
# what is missing and installs only that), so a fresh checkout needs no other preparation.

BUILD  ?= build
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
DESTDIR ?=
T ?=
STRICT ?=
P ?=
SECONDS_EACH ?= 30

.DEFAULT_GOAL := build
.PHONY: build run test check fmt lint fuzz bench install tarball deb image docs proof help clean

build: ## the release binary build/weir (optimised, asserts on, hardened)
	@scripts/setup build
	@JOBS=$(JOBS) scripts/build $(BUILD) weir

run: build ## build, then the offline demo in the foreground
	@scripts/setup run || echo "make run: without espeak-ng there is no local speech" >&2
	@$(BUILD)/weir

test: ## all fast tests: units, fuzz corpora, end to end; T=name for one; STRICT=1 with -Werror
	@BUILD=$(BUILD) JOBS=$(JOBS) STRICT=$(STRICT) scripts/test $(T)

check: ## format check, lint, -Werror with gcc and clang, tests under sanitizers
	@BUILD=$(BUILD) JOBS=$(JOBS) scripts/check

fmt: ## format the C sources in place
	@scripts/setup lint
	@scripts/format

lint: ## layers, paths, warnings, static analysis
	@BUILD=$(BUILD) JOBS=$(JOBS) scripts/lint

fuzz: ## hunt with libFuzzer: P=sse for one parser, SECONDS_EACH=30
	@BUILD=$(BUILD) JOBS=$(JOBS) SECONDS_EACH=$(SECONDS_EACH) scripts/fuzz $(P)

bench: build ## numbers beside the last ones kept
	@scripts/setup bench
	@JOBS=$(JOBS) scripts/build $(BUILD) benches
	@BUILD=$(BUILD) bench/run.sh

install: build ## program, unit, manual pages, completion, examples, client library; PREFIX, DESTDIR
	@JOBS=$(JOBS) scripts/build $(BUILD) "manuals client_library"
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)" --strip

tarball: build ## build/weir-VERSION-linux-ARCH.tar.gz: a program that needs libc alone
	@JOBS=$(JOBS) scripts/build $(BUILD) manuals
	@BUILD=$(BUILD) scripts/tarball

deb: build ## build/weir_VERSION_ARCH.deb, a package for Debian 12
	@scripts/setup package
	@JOBS=$(JOBS) scripts/build $(BUILD) manuals
	@BUILD=$(BUILD) scripts/deb

image: build ## the container image weir:VERSION, with buildah, podman or docker; without a network
	@BUILD=$(BUILD) scripts/image

docs: ## the state drawings and the list of pages, written under docs/
	@BUILD=$(BUILD) JOBS=$(JOBS) scripts/docs

proof: ## full-size counts: ten million random messages, long fuzzing, conformance (hours)
	@BUILD=$(BUILD) JOBS=$(JOBS) scripts/proof

clean: ## remove the build folder
	@rm -rf $(BUILD)

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile
