# A thin front end for Meson. Every target first installs the missing Debian packages that it needs (tools/setup).

PREFIX ?= /usr/local
export PAWL = $(CURDIR)/build/pawl

all: ## build build/pawl
	@tools/setup build
	@[ -f build/build.ninja ] || meson setup build
	@ninja -C build

demo: ## run twenty workers on one queue and kill some of them
	@tools/setup demo
	@$(MAKE) --no-print-directory all
	@demo/run

check: ## run all checks of CI: both compilers, tests, sanitizers, linters; about 10 minutes on 2 cores
	@tools/setup check
	@tools/check

test: ## run the tests of each part with gcc, on SQLite; below 2 minutes on 2 cores
	@tools/setup check
	@tools/check -v test

soak: ## run in full what check only samples, for hours: torture, simulator, mutants, faults, group commit, fuzzers, coding agents; FOR=20m limits the time
	@tools/setup check
	@$(MAKE) --no-print-directory all
	@tools/soak $(FOR)

coverage: ## measure the branch coverage of src/core by the unit tests
	@tools/setup check
	@tools/check -v coverage

bench: ## compare the speed of pawl with its alternatives
	@tools/setup bench
	@$(MAKE) --no-print-directory all
	@bench/run

compare: ## test other queues as pawl tests its own: who gives a task to two agents, accepts late results, loses tasks
	@tools/setup compare
	@$(MAKE) --no-print-directory all
	@tools/compare

install: ## install under PREFIX (/usr/local); DESTDIR is respected
	@tools/setup build
	@if [ -f build/build.ninja ]; then meson configure build --prefix="$(abspath $(PREFIX))"; \
		else meson setup build --prefix="$(abspath $(PREFIX))"; fi
	@DESTDIR="$(DESTDIR)" meson install -C build

docs: all ## generate the pages of doc/ that come from tables, and the pictures of the terminal
	@tools/gen-docs build doc
	@tools/terminal-picture build >doc/terminal.svg.new && mv doc/terminal.svg.new doc/terminal.svg
	@tools/board-picture build >doc/board.svg.new && mv doc/board.svg.new doc/board.svg

pictures: all ## take the pictures of the web board in README.md (it needs Chromium)
	@tools/web-picture build doc

format: ## clang-format the sources in place
	@tools/setup check
	@find . -path './build*' -prune -o -name '*.[ch]' -exec clang-format -i {} +

lint: ## check format, layers, names and words, and run cppcheck and shellcheck
	@tools/setup check
	@tools/check -v format cppcheck shellcheck layers names words

clean: ## remove all build folders
	@rm -rf build build-*

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' Makefile | expand -t 12

.PHONY: all demo check test soak coverage bench compare install docs format lint clean help
