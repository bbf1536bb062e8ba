# shellcheck shell=bash
# The options of the sanitizers and a build with them, for scripts in the top folder that run sanitized programs.
export ASAN_OPTIONS=detect_leaks=1:halt_on_error=1:strict_string_checks=1:detect_stack_use_after_return=1
export LSAN_OPTIONS=suppressions=$PWD/tools/lsan.suppressions:print_suppressions=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# build_sanitized DIR: builds all of pawl with them
build_sanitized() {
	[ -d "$1" ] || CC=gcc meson setup "$1" -Dtests=enabled -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 \
		-Dc_args='-fno-omit-frame-pointer -fno-sanitize-recover=all' >/dev/null || return
	ninja -C "$1" >/dev/null
}
# Without a symbolizer they would write a warning to the standard error of the program under test.
if ! command -v llvm-symbolizer >/dev/null; then
	ASAN_OPTIONS+=:symbolize=0
	UBSAN_OPTIONS+=:symbolize=0
fi
