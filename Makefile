# Short commands for the build, which is CMake's (CMakeLists.txt, CMakePresets.json).
#
# The release build is in build/, the others are in build/<preset>.

PREFIX ?= /usr/local
JOBS := $(shell nproc)
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(JOBS)
# Most tests wait for a clock or a process for most of their time.
export CTEST_PARALLEL_LEVEL ?= $(shell expr 2 \* $(JOBS))
# Evaluated for each command: tools/setup may have just installed ninja.
export CMAKE_GENERATOR ?= $(if $(shell command -v ninja),Ninja,Unix Makefiles)

.PHONY: all setup test asan tsan fuzz check check-all check-deep check-loaded check-elsewhere coverage bench install clean help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

all: build-release       ## build libraries, programs and tests, in build/

setup:                   ## install missing packages, or print the command that does
	@tools/setup

test: test-release       ## build and run all tests (release build); at most five minutes on two cores

asan: test-asan          ## the tests with address and undefined-behaviour sanitizers (clang)

tsan: test-tsan          ## the tests with the thread sanitizer

fuzz: test-fuzz          ## a short run of every fuzzer

check: setup             ## format, lint, include rules, banned calls, headers, WebAssembly
	@tools/check

coverage: setup          ## line and branch coverage of lib/core; fails below 100 %
	@tools/coverage

check-loaded: build-release ## the tests with real clocks and processes, beside eight busy loops
	@tools/check-loaded

check-elsewhere: build-release ## the tests of programs and pages with other awks and locales, and as an ordinary user
	@tools/check-elsewhere

.PHONY: mcdc
mcdc: setup              ## coverage of conditions (MC/DC) of the engine, the fleet's protocol and shared targets
	@echo "== mcdc"
	@tools/mcdc

.PHONY: spin
spin: setup              ## the Spin models of lock-free and distributed code
	@echo "== spin"
	@tests/spin/run

.PHONY: abi
abi: build-release       ## the interface of the libraries against tests/abi/*.abi; tools/check-abi --write renews these
	@echo "== abi"
	@tools/check-abi

.PHONY: mutation
mutation: setup          ## a sample of mutants of the engine, which a test must notice; full: tools/mutate
	@echo "== mutation"
	@tools/mutate --sample 500

.PHONY: torture
torture: build-release   ## the programs and libraries with failing allocations and system calls; full: tests/torture/run --full
	@echo "== torture"
	@tests/torture/run

.PHONY: bare
bare:                    ## make demo and make test in a fresh Debian 12 (debootstrap); as root, 5 GB
	@tools/bare

# The steps are in the order of their price. Each is a target of its own.
check-all: test check abi check-elsewhere coverage mcdc mutation torture spin fuzz deb asan tsan check-loaded ## everything that CI runs; at most an hour on two cores

check-deep: check-all bare ## check-all, make bare, then what takes hours
	@tools/mutate
	@tests/torture/run --full

bench: build-release     ## print the table of costs, write build/bench.json
	bench/run build

.PHONY: demo
demo:                    ## watch an outage with naive retries and with bide, for twenty seconds; writes bide-demo.html
	@tools/setup build
	@cmake -S . -B build/install > /dev/null
	@cmake --build build/install --target cli_bide cli_demo
	@build/install/bide demo

install:                 ## into $(DESTDIR)$(PREFIX); needs a C compiler, cmake, libcurl, hiredis, OpenSSL, scdoc
	@tools/setup build
	@cmake -S . -B build/install > /dev/null
	@cmake --build build/install
	cmake --install build/install --prefix "$(PREFIX)"
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig

.PHONY: deb
deb:                     ## Debian packages bide, libbide0 and libbide-dev, in build/deb; checked by lintian and for hardening
	@tools/deb
	@tools/check-hardening

clean:                   ## remove build/
	rm -rf build

help:                    ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24

build-%: setup
	@cmake --preset $* > /dev/null
	@cmake --build --preset $*

# ctest hides the output of tests that pass, and with it their seeds (tests/support/seed.h).
test-%: build-%
	@day=$${BIDE_TEST_DAY:-$$(($$(date +%s) / 86400))}; \
	    echo "== tests: $*; each test's fixed seed, mostly 1, and the seed of the day $$((day * 1000003)) (BIDE_TEST_DAY=$$day)"; \
	    BIDE_TEST_DAY=$$day ctest --preset $*
