# shellcheck shell=bash
# Functions for the tests of a queue behind a server; after common.bash. The server stands at $server, and $admin is a token
# for it.

setup() {
	fresh
	needs setpriv
	served
	# shellcheck disable=SC2034 # for the tests
	server=$served_url admin=$PAWL_SERVER_TOKEN
	unset PAWL_SERVER_TOKEN
}

teardown() {
	local pid
	for pid in ${served_pid-} "${others[@]}"; do
		kill -9 "$pid" 2>/dev/null || true
	done
}

# ends_with_test PID: one more process that must not outlive the test
others=()
ends_with_test() {
	others+=("$1")
}

# events: the kinds of all events of the queue
events() {
	beside_server log --limit 0 --json | jq -r '.events[].event'
}
