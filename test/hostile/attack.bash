# shellcheck shell=bash
# attack.bash FILE NAME STORE DIR: one attack of test/hostile/attacks, inside the sandbox that `run` made.
#
# The attacker's part is plain shell. Every command of the user under attack goes through victim or victim_runs, which
# note the programs that it starts (watch.c). An attack finds here:
#
#   $scratch     the only writable folder                 $store       sqlite, files, git or postgres
#   $clone       a git worktree (the current folder)     $outside     a folder of canaries beside it
#   $HOME        the user's home: canaries, and pawl's state folder
#
#   queue [ARG...]             pawl init of a queue on $store, by the user
#   victim CODE ARG...         pawl ARG...; CODE is the exit code that it must have, or a pattern (0|40), or any.
#                              Leaves $output, $stderr and $status
#   victim_runs COMMAND...     any other command of the user (a shell that completes, git)
#   allow PROGRAM...           programs that victim_runs may start besides pawl and git
#   planted FILE [WORDS]       makes FILE an executable script that leaves a mark when it is run
#   says, complains TEXT...    stdout, stderr has each TEXT;  quiet_about TEXT...: neither of them has it
#   not COMMAND...             it must fail
#   need PROGRAM               skips the attack if PROGRAM is missing
#   needs_little ARG...        pawl ARG... with at most 12 MiB;  needs_at_most KIB ARG...: with at most KIB
#   with_memory KIB COMMAND... runs COMMAND with at most KIB of memory (with sanitizers without a limit: they need more)
set -eEuo pipefail
trap 'echo "line $LINENO of ${BASH_SOURCE[0]##*/}: $BASH_COMMAND"' ERR

# shellcheck source=test/kit/says.bash
. "${BASH_SOURCE[0]%/*}/../kit/says.bash"
# shellcheck source=test/hostile/canaries.bash
. "${BASH_SOURCE[0]%/*}/canaries.bash"

file=$1 name=$2 store=$3 scratch=$4
clone=$scratch/clone outside=$scratch/outside mark=$scratch/mark started=$scratch/started
# shellcheck source=/dev/null # run made it, with: watch allowed git_core sanitized before pg_dir pg_port
. "${scratch%/*}/kit/setup"

for variable in "${!PAWL_@}" "${!GIT_@}" "${!XDG_@}"; do
	[[ $variable =~ ^PAWL_(MODULE_DIR|TEST_SAMPLE)$ ]] || unset "$variable"
done
export HOME=$scratch/home TMPDIR=$scratch/tmp USER=tester LOGNAME=tester TZ=UTC LC_ALL=C.UTF-8 TERM=dumb
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # LeakSanitizer cannot run in a traced process
unset CDPATH "${!CLAUDE@}" "${!CODEX_@}" "${!GEMINI_@}" AI_AGENT

# The programs that were started must be allowed. git runs its own server side through a shell.
check_programs() {
	local path program words
	while IFS=$'\t' read -r path program words; do
		if [[ $program == "$git_core"/* || " ${allowed[*]} " == *" $program "* ]]; then continue; fi
		if [[ $path == /bin/sh && $words =~ $git_server_side ]]; then continue; fi
		echo "a program was started that is neither pawl nor git: $path"
		return 1
	done <"$started"
}
git_server_side=$'^[/a-z]*sh\t-c\tgit-(upload|receive)-pack \'[^\']*\'(\t|$)'

allow() {
	local program
	for program; do
		allowed+=("$(realpath "$(command -v "$program")")")
	done
}

need() {
	command -v "$1" >/dev/null || {
		echo "SKIP needs $1"
		exit 0
	}
}

with_memory() {
	local most=$1
	shift
	(
		[ "$sanitized" ] || ulimit -v "$most"
		"$@"
	)
}

# Meson sets MALLOC_PERTURB_, which touches memory that pawl does not.
needs_at_most() {
	local peak most=$1
	shift
	env -u MALLOC_PERTURB_ PEAK="$scratch/peak" "$watch" 60 "$started" "$PAWL" "$@" >/dev/null 2>&1 || [ $? -le 100 ]
	peak=$(<"$scratch/peak")
	echo "$1: $peak KiB"
	[ "$sanitized" ] || [ "$peak" -lt "$most" ]
}

needs_little() {
	needs_at_most 12288 "$@"
}

uri() {
	case $store in
	sqlite) echo "sqlite:$clone/.pawl/queue.db" ;;
	files) echo "files:$clone/locks" ;;
	git) echo "git:$scratch/server.git" ;;
	postgres) echo "postgres://tester@/postgres?host=$pg_dir&port=$pg_port&schema=attack_${scratch##*/}" ;;
	*) echo "$store" ;;
	esac
}

queue() {
	if [ "$store" = git ] && [ ! -d "$scratch/server.git" ]; then
		git init -q --bare "$scratch/server.git"
	fi
	"$PAWL" init -q --store "$(uri)" "$@"
}

planted() {
	mkdir -p "$(dirname "$1")"
	printf '#!/bin/sh\necho %s >>%q\n%s\n' "$(basename "$1")" "$mark" "${2-}" >"$1"
	chmod +x "$1"
}

traced() {
	status=0
	"$watch" 60 "$started" "$@" >"$scratch/stdout" 2>"$scratch/stderr" </dev/null || status=$?
	{ # bash leaves out NUL bytes, with a warning
		output=$(<"$scratch/stdout")
		stderr=$(<"$scratch/stderr")
	} 2>/dev/null
	printf '$'
	printf ' %.200q' "$@"
	printf '\n%.4000s\n%.4000s\nexit code %s\n' "$output" "$stderr" "$status"
}

victim() {
	local want=$1
	shift
	traced "$PAWL" "$@"
	[ "$want" != any ] || want='0|1|2|10|20|21|30|40|41|44'
	[[ $status =~ ^($want)$ ]] || {
		echo "expected exit code $want"
		return 1
	}
}

victim_runs() {
	traced "$@"
}

quiet_about() {
	local text
	for text; do
		[[ $output$stderr != *"$text"* ]] || {
			printf 'this was printed: %q\n' "$text"
			return 1
		}
	done
}

cd "$clone"
: >"$started"
# shellcheck source=/dev/null
. "$file"
"attack_$name"
check_programs
[ ! -e "$mark" ] || {
	echo "hostile programs ran: $(cat "$mark")"
	exit 1
}
after=$(state "$scratch")
[ "$after" = "$before" ] || {
	diff <(printf '%s\n' "$before") <(printf '%s\n' "$after") || true
	echo 'the canaries changed'
	exit 1
}
