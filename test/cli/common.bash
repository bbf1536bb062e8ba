# shellcheck shell=bash
# Functions that all test/cli/*.bats share. A test runs in a new folder with its own queue and its own
# home, and without the caller's PAWL_ variables.
#
#   PAWL             the program under test
#   PAWL_TEST_STORE  URI of the store, e.g. sqlite:{dir}/q.db; default: the queue.db that `pawl init` makes.
#                    {dir} is a new folder of the test, {id} a word that no other test has.
#                    http://: a server on a free port, with a database of its own, which ends with the test.
#   PAWL_TEST_READER the program that `snapshot` reads the queue with; default: PAWL. It saves time if PAWL has sanitizers.
#   PAWL_TEST_MANY   number of tasks, for tests with many of them; default: 10,000.
#   PAWL_TEST_SHARE  N: `sampled` keeps one of N items; PAWL_TEST_SAMPLE, a number, decides which.
#
# The expected exit code comes first, then the command:
#   call CODE ARG...    text; leaves $output and $stderr
#   ask CODE ARG...     --json; one object on stdout that fits the code, nothing on stderr
#   lines CODE ARG...   --porcelain
# meta.bats reads these calls: it fails if a command, or a code that its help names, has none.

# bats looks at every command in order to know the line of a failure, which is a third of the time. Here the failure says it.
set +T
trace_failures() {
	trap 'BATS_ERROR_STATUS=${BATS_ERROR_STATUS:-$?}; bats_debug_trap "$BASH_SOURCE"; BATS_DEBUG_LAST_LINENO=(); bats_error_trap' ERR
}

bats_require_minimum_version 1.5.0

# shellcheck source=test/kit/says.bash
. "${BASH_SOURCE[0]%/*}/../kit/says.bash" # says, complains, not

declare -gA code_names=([0]=SUCCESS [1]=LOCK_FREE [2]=USAGE [10]=NO_TASKS [20]=CONFLICT [21]=LOST_LOCK
	[30]=API_ERROR [40]=MISCONFIGURED [41]=INCOMPLETE_SUBTASKS [44]=NOT_FOUND [45]=VIOLATION)

setup() {
	fresh
	queue
}

fresh() {
	local name
	trace_failures
	for name in $(compgen -e PAWL_); do
		case $name in
		PAWL_SOURCE | PAWL_BUILD | PAWL_MODULE_DIR | PAWL_TEST_STORE | PAWL_TEST_MANY | PAWL_TEST_WRITE) ;;
		*) unset "$name" ;;
		esac
	done
	no_coding_agent
	unset NO_COLOR LOGNAME GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR
	export HOME=$BATS_TEST_TMPDIR/home TZ=UTC LC_ALL=C.UTF-8 USER=tester TERM=xterm
	export XDG_STATE_HOME=$HOME/state XDG_CONFIG_HOME=$HOME/config
	export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
	work=$(cd "$BATS_TEST_TMPDIR" && pwd -P)/work
	mkdir -p "$HOME" "$work"
	cd "$work" || return
}

# no_coding_agent: as in a person's shell, since the tests may run inside a coding agent
no_coding_agent() {
	unset "${!CLAUDE@}" "${!CODEX_@}" "${!GEMINI_@}" "${!CURSOR_@}" "${!COPILOT_@}" "${!OPENCODE@}" "${!CLINE_@}" \
		"${!GOOSE_@}" QWEN_CODE AI_AGENT
}

# sampled ITEM...: prints all items, or a share of them, but at least one
share=${PAWL_TEST_SHARE:-1} sample=${PAWL_TEST_SAMPLE:-0} # `fresh` unsets the variables
sampled() {
	local item place=$sample every=$(($# < share ? $# : share))
	for item; do
		((place++ % every)) || echo "$item"
	done
}

# queue: makes a queue in this folder, on the store under test
queue() {
	local uri=${PAWL_TEST_STORE-}
	uri=${uri//'{dir}'/"$BATS_TEST_TMPDIR"}
	uri=${uri//'{id}'/"test-$BATS_SUITE_TEST_NUMBER-$$"}
	[[ $uri != http* ]] || served
	"$PAWL" init -q ${uri:+--store "$uri"}
}

# bare_repository NAME: makes it at $remote, and gives the commits of this test an author
bare_repository() {
	export XDG_CACHE_HOME=$HOME/cache GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
	remote=$BATS_TEST_TMPDIR/$1.git
	git init -q --bare "$remote"
}

# served: starts a server for this test; $uri is its address
served() {
	served_home=$BATS_TEST_TMPDIR/served
	mkdir -p "$served_home"
	beside_server init -q
	export PAWL_SERVER_TOKEN
	PAWL_SERVER_TOKEN=$(beside_server token create test --role admin --agent '*' -q)
	start_server 127.0.0.1:0
	uri=$served_url
}

beside_server() {
	(
		cd "$served_home" && unset PAWL_STORE
		PAWL_SERVER_STATE=$served_home/state "$PAWL" "$@"
	)
}

# start_server ADDRESS: the server must not outlive the test, whatever becomes of it
start_server() {
	local log=$BATS_TEST_TMPDIR/served.log
	(
		cd "$served_home" && unset PAWL_STORE
		export PAWL_SERVER_STATE=$served_home/state PAWL_SERVE_CALLS_PER_SECOND=100000 PAWL_SERVE_BURST=100000
		exec setpriv --pdeathsig KILL "$PAWL" serve --listen "$1" --log none 2>"$log" 3>&- </dev/null
	) &
	served_pid=$!
	disown "$served_pid" # `wait` of a test is for its own processes
	until served_url=$(sed -n 's/^pawl: open \([^ ]*\).*/\1/p' "$log" 2>/dev/null) && [ -n "$served_url" ]; do
		kill -0 "$served_pid" || return
		sleep 0.01
	done
}

# A server has its own settings, and reads them when it starts.
set_beside_server() {
	beside_server "$@" >/dev/null
	kill -9 "$served_pid"
	while kill -0 "$served_pid" 2>/dev/null; do
		sleep 0.01
	done
	rm -f "$BATS_TEST_TMPDIR/served.log"
	start_server "${served_url#http://}"
}

# Thousands of answers are checked, and jq 1.6 takes 30 ms to start. gojq is quick, but sorts the names of an object.
# (Where their order matters: command jq.)
quick_jq=$(command -v gojq || echo jq)
jq() {
	command "$quick_jq" "$@"
}

# On files: a lease is longer, and a claim creates the task that it names.
# shellcheck disable=SC2034 # for the tests
case ${PAWL_TEST_STORE-} in
files:*) lease=1h lease_s=3600 ;;
*) lease=15m lease_s=900 ;;
esac

claim_makes_tasks() {
	[ "$lease" = 1h ]
}

needs_sqlite() {
	[ -z "${PAWL_TEST_STORE-}" ] || skip "about .pawl/queue.db"
}

needs_local() {
	[[ ${PAWL_TEST_STORE-} != http* ]] || skip "not through a server: $1"
}

needs() {
	command -v "$1" >/dev/null || skip "needs $1"
}

needs_terminal() {
	needs script
	script -qec true /dev/null </dev/null >/dev/null 2>&1 || skip "needs a pseudo-terminal"
}

# config_hash [FOLDER]: the hash of its config, for `trust --sha256`
config_hash() {
	local sum
	sum=$(sha256sum "${1:-.}/.pawl/config")
	echo "${sum%% *}"
}

# trust_config: trusts the config of this folder, as a set-up script does
trust_config() {
	"$PAWL" trust -q --sha256 "$(config_hash)"
}

# at_terminal ANSWER ARG...: runs pawl on a terminal of its own, and answers its question. Leaves $output and $status
at_terminal() {
	local answer=$1
	shift
	needs python3
	status=0
	output=$(NO_COLOR=1 "$PAWL_SOURCE/test/kit/at-terminal" '[y/N]' "$answer" "$PAWL" "$@") || status=$?
}

# on_terminal COMMAND: the output as a terminal would get it
on_terminal() {
	script -qec "$1" /dev/null </dev/null
}

# call CODE ARG...: leaves the same as `run --separate-stderr`, in less time
# shellcheck disable=SC2034 # lines is for the tests
call() {
	local want=$1 errors=$BATS_TEST_TMPDIR/stderr.$BASHPID
	shift
	status=0
	output=$("$PAWL" "$@" 2>"$errors") || status=$?
	IFS=$'\n' read -d '' -r -a lines <<<"$output" || true
	read -d '' -r stderr <"$errors" || true
	printf '$ pawl'
	printf ' %.200q' "$@"
	printf '\n%.4000s\n%.2000s\nexit code %s, expected %s\n' "$output" "$stderr" "$status" "$want"
	[ "$status" -eq "$want" ]
}

# ask CODE ARG...: the same with --json; the object's shape is checked against the code
ask() {
	local want=$1
	shift
	call "$want" "$@" --json
	[ -z "$stderr" ]
	check_shape "$want"
}

check_shape() {
	local name=${code_names[$1]} rule
	case $1 in
	0 | 1) rule='.ok == true and .code == $name and (has("error") | not)' ;;
	10) rule='.ok == true and .code == $name and has("task") and .task == null' ;;
	30) rule='.error.applied | . == "no" or . == "unknown"' ;;
	*) rule='.error | has("applied") | not' ;;
	esac
	[ "$1" -lt 20 ] && [ "$1" -ne 2 ] || rule="($rule)"' and .ok == false and .error.code == $name
		and (.error.message | type == "string" and length > 0)
		and (.error | (has("hint") | not) or (.hint | type == "string" and length > 0))'
	"$quick_jq" -es --arg name "$name" "length == 1 and (.[0] | $rule)" <<<"$output" >/dev/null || {
		echo "this does not have the shape of $name"
		return 1
	}
}

# lines CODE ARG...
lines() {
	local want=$1
	shift
	call "$want" "$@" --porcelain
}

# is FILTER: the filter is true of the last answer
is() {
	"$quick_jq" -e "$@" <<<"$output" >/dev/null || {
		echo "not so: $*"
		return 1
	}
}

# get FILTER: a value from the last answer
get() {
	"$quick_jq" -r "$1" <<<"$output"
}

# exactly TEXT: the whole of stdout
exactly() {
	[ "$output" = "$1" ] || {
		echo "stdout should be: $1"
		return 1
	}
}

# matches REGEX: the whole of stdout
matches() {
	[[ $output =~ ^$1$ ]] || {
		echo "stdout should match: $1"
		return 1
	}
}

# same A B
same() {
	[ "$1" = "$2" ] || {
		printf 'not the same:\n%s\n%s\n' "$1" "$2"
		return 1
	}
}

# pawl ARG...: must succeed; discards the output
pawl() {
	"$PAWL" "$@" >/dev/null || return
	[ -z "${served_pid-}" ] || [ "$1" != config ] || set_beside_server "$@"
}

# new TITLE OPTION...: prints the id of a new task
new() {
	"$PAWL" create -q "$@"
}

# field ID FILTER: a value of a task
field() {
	"$PAWL" show "$1" --json | jq -r ".task$2"
}

# status_is ID STATUS
status_is() {
	same "$(field "$1" .status)" "$2"
}

# token_of ID OPTION...: claims, and prints the token
token_of() {
	"$PAWL" claim "$@" --json | jq -r .lock.token
}

# snapshot: all that can be read of the queue and the tokens, without values that time changes by
# itself
reader=${PAWL_TEST_READER:-$PAWL} reader_modules=${PAWL_TEST_READER:+${PAWL_TEST_READER%/*}} # `fresh` unsets the variable
[ -z "${PAWL_TEST_READER-}" ] || "$reader" version >/dev/null || exit 1 # two snapshots of nothing would be the same
snapshot() {
	{
		[ -z "$reader_modules" ] || export PAWL_MODULE_DIR=$reader_modules
		"$reader" list --json --limit 0
		"$reader" log --json --limit 0
		echo "$XDG_STATE_HOME"/pawl/*
	} | sed 's/"expires_in":[0-9.]*//g'
}

# unchanged CODE ARG...: a refusal that changes nothing
unchanged() {
	local before
	before=$(snapshot)
	call "$@"
	same "$before" "$(snapshot)"
}

# check_refused CODE ARG...: import ARG... and the same with --check refuse with the same code and text, and change nothing
check_refused() {
	local before check
	before=$(snapshot)
	call "$1" import "${@:2}" --check
	check="$output$stderr"
	call "$1" import "${@:2}"
	same "$check" "$output$stderr"
	same "$before" "$(snapshot)"
}

# short_leases: lets a test wait until a lease expires
short_leases() {
	pawl config set lease.min 0.1s
}

# soon COMMAND...: repeats it until it succeeds, for at most 20 s
soon() {
	local end=$((SECONDS + 20))
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || {
			echo "this did not come true: $*"
			return 1
		}
		sleep 0.05
	done
}

# lapsed ID: waits until nobody holds it
lapsed() {
	soon lock_is_free "$1"
}

lock_is_free() {
	local rc=0
	"$PAWL" lock check -q "$1" || rc=$?
	[ "$rc" -eq 1 ]
}

# store_uri: the URI of the queue's store
store_uri() {
	"$PAWL" init --json | jq -r .store
}

# faulty RULE: the store's URI with a fault in front, e.g. modify:1:lost
faulty() {
	local uri
	uri=$(store_uri)
	case $uri in
	*\?*) echo "fault+$uri&fault=$1" ;;
	*) echo "fault+$uri?fault=$1" ;;
	esac
}

# all_commands: the names of all commands, one on each line, from the table
all_commands() {
	"$PAWL" help | sed -z 's/ |\n */ | /g; s/\n *| / | /g' | sed -n 's/^  \([a-z]\{2,\}\)  *\(.*\)/\1 \2/p' | while read -r word rest; do
		if [[ $rest =~ ^[a-z]+( \| [a-z]+)+$ ]]; then
			tr -d ' ' <<<"$rest" | tr '|' '\n' | sed "s/^/$word /"
		else
			echo "$word"
		fi
	done
}

# shellcheck disable=SC2034 # for the tests
uuid='[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'
# shellcheck disable=SC2034
time='[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z'
