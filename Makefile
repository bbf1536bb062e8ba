# Thin: Meson does the work. Every target first installs the Debian packages it lacks (tools/setup).

PREFIX ?= /usr/local
export PAWL = $(CURDIR)/build/pawl

all: ## build build/pawl
	@tools/setup build
	@[ -f build/build.ninja ] || meson setup build
	@ninja -C build

demo: ## twenty workers on one queue, some of them killed
	@tools/setup demo
	@$(MAKE) --no-print-directory all
	@demo/run

check: ## what CI runs: both compilers, all tests, sanitizers, linters; about 6 minutes on 2 cores
	@tools/setup check
	@tools/check

test: ## the test suite alone, with gcc
	@tools/setup check
	@tools/check -v gcc

soak: ## the long runs, all that check samples: torture, simulator, mutants, faults, shared commit, fuzzers; FOR=20m cuts them short
	@tools/setup check
	@$(MAKE) --no-print-directory all
	@tools/soak $(FOR)

coverage: ## branch coverage of src/core by the unit tests
	@tools/setup check
	@tools/check -v coverage

bench: ## side by side with what you would use instead
	@tools/setup bench
	@$(MAKE) --no-print-directory all
	@bench/run

install: ## install under PREFIX (/usr/local); DESTDIR is honoured
	@tools/setup build
	@if [ -f build/build.ninja ]; then meson configure build --prefix="$(abspath $(PREFIX))"; \
		else meson setup build --prefix="$(abspath $(PREFIX))"; fi
	@DESTDIR="$(DESTDIR)" meson install -C build

docs: all ## write the pages of doc/ that are made from the program's tables, and the picture of the terminal
	@tools/gen-docs build doc
	@tools/terminal-picture build >doc/terminal.svg.new && mv doc/terminal.svg.new doc/terminal.svg

format: ## clang-format the sources in place
	@tools/setup check
	@find . -path './build*' -prune -o -name '*.[ch]' -exec clang-format -i {} +

lint: ## format, cppcheck, shellcheck, layers, words
	@tools/setup check
	@tools/check -v format cppcheck shellcheck layers words

clean: ## remove what was built
	@rm -rf build build-*

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' Makefile | expand -t 12

.PHONY: all demo check test soak coverage bench install docs format lint clean help
