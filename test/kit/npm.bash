# shellcheck shell=bash
# Functions for tests with programs from npm; after test/cli/common.bash.

# from_npm [SET]: in setup_file: $FROM_NPM is the folder with the programs of `tools/mcp-clients SET`, or $LACKS says why
# there is none
from_npm() {
	export FROM_NPM LACKS=''
	FROM_NPM=$("$PAWL_SOURCE/tools/mcp-clients" "$@" 2>"$BATS_FILE_TMPDIR/why") && return
	[ $? -eq 77 ] || {
		cat "$BATS_FILE_TMPDIR/why"
		return 1
	}
	LACKS=$(tail -n 1 "$BATS_FILE_TMPDIR/why")
}

# needs_npm: in setup
needs_npm() {
	[ -z "$LACKS" ] || skip "$LACKS"
}
