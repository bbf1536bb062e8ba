# shellcheck shell=bash
# attack.bash FILE NAME STORE DIR: one attack of test/hostile/attacks, inside the sandbox that `run` made.
#
# The attacker's part is plain shell. Every command of the user under attack goes through victim or victim_runs, which
# trace the programs that it starts. An attack finds here:
#
#   $scratch     the only writable folder                 $store       sqlite, files or git
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
#   with_memory KIB COMMAND... runs COMMAND with at most KIB of memory (with sanitizers without a limit: they need more)
set -eEuo pipefail
trap 'echo "line $LINENO of ${BASH_SOURCE[0]##*/}: $BASH_COMMAND"' ERR

# shellcheck source=test/kit/says.bash
. "${BASH_SOURCE[0]%/*}/../kit/says.bash"

file=$1 name=$2 store=$3 scratch=$4
clone=$scratch/clone outside=$scratch/outside mark=$scratch/mark
traces=$scratch/traces
allowed=("$(realpath "$PAWL")" "$(realpath "$(command -v git)")")
git_core=$(realpath "$(git --exec-path)")

for variable in "${!PAWL_@}" "${!GIT_@}" "${!XDG_@}"; do
	[ "$variable" = PAWL_MODULE_DIR ] || unset "$variable"
done
export HOME=$scratch/home TMPDIR=$scratch/tmp USER=tester LOGNAME=tester TZ=UTC LC_ALL=C.UTF-8 TERM=dumb
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # LeakSanitizer cannot run under strace
unset CDPATH "${!CLAUDE@}" "${!CODEX_@}" "${!GEMINI_@}" AI_AGENT

canaries() {
	mkdir -p "$1/.ssh" "$1/documents" "$1/.config/git"
	echo "the key of $1" >"$1/.ssh/id_ed25519"
	echo "example.org ssh-ed25519 AAAA" >"$1/.ssh/known_hosts"
	echo 'alias ll=ls' >"$1/.bashrc"
	printf '[user]\n\tname = Tester\n\temail = tester@example.org\n' >"$1/.gitconfig"
	echo 'a letter' >"$1/documents/letter.txt"
	echo 'locked' >"$1/documents/Pipfile.lock"
	echo '*.o' >"$1/.config/git/ignore"
	find "$1" -exec touch -d '2020-02-02 UTC' {} +
}

# The state of the canaries, without pawl's own state and cache folders.
state() {
	local own=(-path "$HOME/.local" -o -path "$HOME/.cache")
	find "$HOME" "$outside" \( "${own[@]}" \) -prune -o ! -path "$HOME" -printf '%P %y %m %s %T@ %l\n' | sort
	find "$HOME" "$outside" \( "${own[@]}" \) -prune -o -type f -exec sha256sum {} + | sort
}

# The programs that were started. git runs its own server side through a shell.
started() {
	[ "$calls" -gt 0 ] || return 0
	cat "$traces"/* 2>/dev/null |
		grep -vE "^[0-9]+ +execve\\(\"/bin/sh\", \\[\"[/a-z]*sh\", \"-c\", \"git-(upload|receive)-pack '[^']*'\"" |
		sed -n 's/^[0-9]* *execve("\([^"]*\)".*) = 0$/\1/p' | sort -u
}

check_programs() {
	local program real
	while read -r program; do
		real=$(realpath "$program" 2>/dev/null || echo "$program")
		case $real in
		"$git_core"/*) continue ;;
		esac
		if [[ " ${allowed[*]} " != *" $real "* ]]; then
			echo "a program was started that is neither pawl nor git: $program"
			return 1
		fi
	done < <(started)
}

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

sanitized() {
	[ -n "$(nm -D "$PAWL" 2>/dev/null | sed -n '/__asan_/{p;q}')" ]
}

with_memory() {
	local most=$1
	shift
	(
		sanitized || ulimit -v "$most"
		"$@"
	)
}

uri() {
	case $store in
	sqlite) echo "sqlite:$clone/.pawl/queue.db" ;;
	files) echo "files:$clone/locks" ;;
	git) echo "git:$scratch/server.git" ;;
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
	timeout 60 strace -f -qq --seccomp-bpf -s 400 -e trace=execve -e signal=none \
		-o "$traces/$((++calls))" "$@" >"$scratch/stdout" 2>"$scratch/stderr" </dev/null || status=$?
	output=$(tr -d '\0' <"$scratch/stdout")
	stderr=$(tr -d '\0' <"$scratch/stderr")
	printf '$'
	printf ' %.200q' "$@"
	printf '\n%.4000s\n%.4000s\nexit code %s\n' "$output" "$stderr" "$status"
}
calls=0

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

mkdir -p "$HOME" "$outside" "$clone" "$TMPDIR" "$traces"
canaries "$HOME"
canaries "$outside"
cd "$clone"
git init -q
# shellcheck source=/dev/null
. "$file"
before=$(state)
"attack_$name"
check_programs
[ ! -e "$mark" ] || {
	echo "hostile programs ran: $(cat "$mark")"
	exit 1
}
diff <(printf '%s\n' "$before") <(state) || {
	echo 'the canaries changed'
	exit 1
}
