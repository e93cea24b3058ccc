# Short commands for the build, which is CMake's (CMakeLists.txt, CMakePresets.json).
#
# The release build is in build/, the others are in build/<preset>.

PREFIX ?= /usr/local
JOBS := $(shell nproc)
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(JOBS)
export CTEST_PARALLEL_LEVEL ?= $(JOBS)
# Evaluated for each command: tools/setup may have just installed ninja.
export CMAKE_GENERATOR ?= $(if $(shell command -v ninja),Ninja,Unix Makefiles)

.PHONY: all setup test asan tsan fuzz check coverage bench install clean help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

all: build-release       ## build libraries, programs and tests, in build/

setup:                   ## install missing packages, or print the command that does
	@tools/setup

test: test-release asan tsan ## build and run all tests: release, then under the sanitizers

asan: test-asan          ## the tests with address and undefined-behaviour sanitizers (clang)

tsan: test-tsan          ## the tests with the thread sanitizer

fuzz: test-fuzz          ## a short run of every fuzzer

check: setup             ## format, lint, include rules, banned calls, headers, WebAssembly
	@tools/check

coverage: setup          ## line and branch coverage of lib/core; fails below 100 %
	@tools/coverage

bench: build-release     ## print the table of costs, write build/bench.json
	bench/run build

.PHONY: demo
demo:                    ## watch an outage with naive retries and with bide, for twenty seconds; writes bide-demo.html
	@tools/setup build
	@cmake -S . -B build/install > /dev/null
	@cmake --build build/install --target cli_bide cli_demo
	@build/install/bide demo

install:                 ## into $(DESTDIR)$(PREFIX); needs a C compiler, cmake, libcurl, hiredis, OpenSSL, jansson, inih, scdoc
	@tools/setup build
	@cmake -S . -B build/install > /dev/null
	@cmake --build build/install
	cmake --install build/install --prefix "$(PREFIX)"
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig

.PHONY: deb
deb:                     ## Debian packages bide, libbide0 and libbide-dev, in build/deb
	@tools/deb

clean:                   ## remove build/
	rm -rf build

help:                    ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

build-%: setup
	@cmake --preset $* > /dev/null
	@cmake --build --preset $*

test-%: build-%
	@echo "== tests: $*"
	@ctest --preset $*
