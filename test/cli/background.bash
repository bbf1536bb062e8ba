# shellcheck shell=bash
# Functions for tests that start processes in the background; after common.bash. A process, or the test that starts it, adds
# its pid to the file `pids`.

setup() {
	fresh
	queue
	short_leases
}

teardown() {
	end_processes
}

# All processes of a test end with it, even if it fails. (SIGKILL also ends one that is stopped.)
end_processes() {
	local pid
	for pid in $(cat "${work-}/pids" 2>/dev/null); do
		kill -9 "$pid" 2>/dev/null || true
	done
}
