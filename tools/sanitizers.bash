# shellcheck shell=bash
# The options of the sanitizers, for scripts in the top folder that run sanitized programs.
export ASAN_OPTIONS=detect_leaks=1:halt_on_error=1:strict_string_checks=1:detect_stack_use_after_return=1
export LSAN_OPTIONS=suppressions=$PWD/tools/lsan.suppressions:print_suppressions=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# Without a symbolizer they would write a warning to the standard error of the program under test.
if ! command -v llvm-symbolizer >/dev/null; then
	ASAN_OPTIONS+=:symbolize=0
	UBSAN_OPTIONS+=:symbolize=0
fi
