# shellcheck shell=bash
# Functions that test/cli/postgres*.bats share. They run under test/kit/postgres-serve, which starts a server; each test
# has a schema of its own.

# fresh() removes the variables of the kit
pg_port=${PAWL_TEST_PG_PORT-} pg_bin=${PAWL_TEST_PG_BIN-} pg_dir=${PAWL_TEST_PG_DIR-} pg_run=${PAWL_TEST_PG_RUN-}
# shellcheck disable=SC2034 # for the tests
cuts=${PAWL_TEST_CUTS:-4} kills=${PAWL_TEST_KILLS:-5} # soak-postgres asks for more

setup() {
	[ -n "$pg_port" ] || skip "needs a PostgreSQL server: test/kit/postgres-serve"
	fresh
	schema=test-$BATS_SUITE_TEST_NUMBER-$$
	base=postgres://tester@127.0.0.1:$pg_port
	uri="$base/postgres?schema=$schema"
	# shellcheck disable=SC2034 # for the tests
	role=role_${BATS_SUITE_TEST_NUMBER}_$$
}

# sql STATEMENT [DATABASE]: its answer
sql() {
	"$pg_bin/psql" -X -q -At -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$pg_port" -U tester "${2-postgres}" -c "$1"
}

start() {
	pawl init --store "$uri"
}

# proxy [PORT]: starts one in front of the server, or of another one; $through is the URI through it
proxy() {
	"$PAWL_SOURCE/test/kit/postgres-proxy" "${1-$pg_port}" "$work" 3>&- &
	proxy_pid=$!
	until [ -e "$work/port" ]; do
		kill -0 "$proxy_pid"
		sleep 0.05
	done
	through=${uri/:$pg_port/:$(cat "$work/port")}
}

finish_proxy() {
	[ -z "${proxy_pid-}" ] || kill "$proxy_pid" 2>/dev/null || :
}

# pooler MODE USER: starts PgBouncer in front of the server; it connects as USER, and $pool_port is its port
pooler() {
	local _
	pool_dir=$(mktemp -d "${TMPDIR:-/tmp}/pawl-pool-XXXXXX")
	for _ in 1 2 3 4 5; do # another program may have the port
		pool_port=$((20000 + RANDOM % 40000))
		pooler_up "$@" && return
	done
	cat "$pool_dir/log"
	return 1
}

pooler_up() {
	local as=()
	printf '%s\n' '[databases]' "postgres = host=127.0.0.1 port=$pg_port user=$2" '[pgbouncer]' \
		listen_addr=127.0.0.1 "listen_port=$pool_port" auth_type=any "pool_mode=$1" default_pool_size=3 \
		unix_socket_dir= "logfile=$pool_dir/log" >"$pool_dir/ini"
	if [ "$(id -u)" -eq 0 ]; then
		chown -R nobody "$pool_dir" # it refuses to run as root
		as=(setpriv --reuid=nobody "--regid=$(id -g nobody)" --clear-groups)
	fi
	"${as[@]}" pgbouncer -q "$pool_dir/ini" 3>&- &
	pool=$!
	until [ -s "$pool_dir/log" ] && grep -q "listening on 127.0.0.1:$pool_port" "$pool_dir/log"; do
		kill -0 "$pool" 2>/dev/null || return 1
		sleep 0.05
	done
}

finish_pooler() {
	[ -n "${pool-}" ] || return 0
	kill "$pool" 2>/dev/null || :
	wait "$pool" || :
	rm -r "$pool_dir"
	pool=''
}

teardown() {
	finish_proxy
	finish_pooler
}

# cut POINT WORD...: runs pawl with WORDs, cut at POINT; leaves the answer in $output
cut() {
	local point=$1
	shift
	echo "$point" >"$work/cut"
	output=$("$PAWL" "$@" --json --store "$through" 2>&1) || :
	[ ! -e "$work/cut" ] || return 1
}

# how: the answer's word about the change: made, no or unknown
how() {
	jq -r 'if .ok then "made" else .error.applied end' <<<"$output"
}

# server NAME [OPTION...]: starts a copy of the server; $port is its port
server() {
	local name=$1 _
	shift
	"$pg_run" "$pg_bin/pg_basebackup" -h 127.0.0.1 -p "$pg_port" -U tester -D "$pg_dir/$name" -c fast --no-sync "$@"
	for _ in 1 2 3 4 5; do
		port=$((20000 + RANDOM % 40000))
		server_up "$name" && return
	done
	cat "$pg_dir/$name.log"
	return 1
}

# server_up NAME: after a crash the server syncs each of its 1,000 files, unless it asks for the whole file system
server_up() {
	"$pg_run" "$pg_bin/pg_ctl" -s -w -D "$pg_dir/$1" -l "$pg_dir/$1.log" \
		-o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$pg_dir -c max_connections=300 \
			-c recovery_init_sync_method=syncfs" start >/dev/null 2>&1 3>&-
}

server_end() {
	"$pg_run" "$pg_bin/pg_ctl" -s -m immediate -D "$pg_dir/$1" stop
	rm -r "${pg_dir:?}/$1"
}
