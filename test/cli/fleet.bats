#!/usr/bin/env bats
# shellcheck disable=SC2016 # commands are written with their variables
# A fleet: six loops in six worktrees work through tasks with dependencies, while processes are killed and stopped at random.
#
#   FLEET_TASKS  number of tasks; default: 60
#   FLEET_SEED   which processes are killed and stopped, and when; default: the time

load common
load background

agents=6
tasks=${FLEET_TASKS:-60}

setup() {
	fresh
	git init -q . && git -c user.name=t -c user.email=t@example.invalid commit -q --allow-empty -m first
	queue
	short_leases
	pawl config set max_abandoned 0
}

# plan: blocks of 14 tasks and a gate. The gate depends on its block, each task on the gate before its block and perhaps on an
# earlier task of the block. While an agent works on a gate, the other loops have nothing to do.
plan() {
	local i gate=0 on block='' depends
	for ((i = 1; i <= tasks; i++)); do
		if ((i % 15 == 0)); then
			new gate --depends "$block" >/dev/null
			gate=$i block=''
			continue
		fi
		on=$((gate + RANDOM % (i - gate))) depends=()
		((on == 0)) || depends=(--depends "t$on")
		((gate == 0 || gate == on)) || depends+=(--depends "t$gate")
		new "task $i" "${depends[@]}" >/dev/null
		block=${block:+$block,}t$i
	done
}

# start: a loop in each worktree
start() {
	local i
	cat >agent.sh <<'END'
echo "$$ $PAWL_TASK" >>"$1/programs"
case $PAWL_TASK_TITLE in gate) sleep 0.4 ;; *) sleep 0.1 ;; esac
echo "$PAWL_TASK $PAWL_FENCE" >"$PAWL_TASK" && git add "$PAWL_TASK" && git -c user.name=a -c user.email=a@example.invalid commit -q -m "$PAWL_TASK"
END
	for ((i = 1; i <= agents; i++)); do
		git worktree add -q --detach "../tree$i"
		(cd "../tree$i" && exec "$PAWL" run --loop --wait --ttl 1s --grace 0.2s --on-failure release -- \
			sh "$work/agent.sh" "$work") >"out$i" 2>"err$i" 3>&- &
		loop[i]=$!
		echo $! >>pids
	done
}

running() {
	[ -n "${loop[$1]-}" ] && kill -0 "${loop[$1]}" 2>/dev/null
}

any_running() {
	local i
	for ((i = 1; i <= agents; i++)); do
		! running "$i" || return 0
	done
	return 1
}

# stop SECONDS LOOP: SIGSTOP and SIGCONT
stop() {
	kill -STOP "${loop[$2]}" 2>/dev/null || return 0
	sleep "$1"
	kill -CONT "${loop[$2]}" 2>/dev/null || true
}

# kill_program: kills a program that runs for a task. A loop does not take a task again that it released, so of each task at
# most two programs are killed.
kill_program() {
	local program task
	read -r program task < <(tail -n 1 programs)
	[ "$(grep -cx "$task" victims)" -lt 2 ] || return 0
	! kill -9 -- "-$program" 2>/dev/null || echo "$task" >>victims
}

# kill_loop LOOP: only once for all, so that five continue
kill_loop() {
	[ -n "${killed[*]-}" ] || { kill -9 "${loop[$1]}" 2>/dev/null && killed[$1]=1; }
}

# disturb STEP: kills or stops a process: first one of each kind, then at random
disturb() {
	local i=$((RANDOM % agents + 1)) pick=$((RANDOM % 4))
	! (($1 < 4)) || pick=$1
	running "$i" || return 0
	case $pick in
	0) stop 1.2 "$i" ;; # its lease expires
	1) kill_program ;;
	2) stop "0.$((RANDOM % 10))" "$i" ;;
	3) kill_loop "$i" ;;
	esac
}

# none_ended_early: a loop that ended left nothing open behind
none_ended_early() {
	local i left
	for ((i = 1; i <= agents; i++)); do
		! running "$i" && [ -z "${killed[i]-}" ] && [ -z "${over[i]-}" ] || continue
		over[i]=1
		left=$("$PAWL" list --status ready,in-progress -q --limit 0 | wc -l)
		[ "$left" -eq 0 ] || {
			echo "loop $i ended while $left tasks were open:" && tail -n 9 "err$i"
			return 1
		}
	done
}

# each_once: every task is done once, by the agent that got the last fence, and no fence was granted twice
each_once() {
	"$PAWL" log --limit 0 --json | jq -e --argjson n "$tasks" '
		[.events[] | select(.event == "done")] as $done
		| [.events[] | select(.event == "claimed")] as $claimed
		| ($claimed | map(.task + " " + (.fence | tostring))) as $granted
		| ($done | length) == $n
		and ($done | map(.task) | unique | length) == $n
		and ($granted | unique | length) == ($granted | length)
		and ($done | all(. as $d | [$claimed[] | select(.task == $d.task)] | max_by(.fence)
			| .fence == $d.fence and .agent == $d.agent))' >/dev/null
}

@test "fleet: every loop ends by itself when all is done, and each task is done once" {
	local seed=${FLEET_SEED:-$(($(date +%s) % 32768))} i rc end step=0
	local -a loop=() killed=() over=()
	echo "FLEET_SEED=$seed repeats this run"
	RANDOM=$seed
	plan
	: >victims
	start
	soon [ -s programs ]
	end=$((SECONDS + 60 + tasks))
	while any_running && [ "$SECONDS" -lt "$end" ]; do
		disturb $((step++))
		none_ended_early
		sleep "0.$((RANDOM % 3))"
	done
	for ((i = 1; i <= agents; i++)); do
		! running "$i" || {
			echo "loop $i continues:" && tail -n 5 "err$i" && "$PAWL" next --explain
			false
		}
		rc=0
		wait "${loop[i]}" || rc=$?
		[ -z "${killed[i]-}" ] || continue
		echo "loop $i: $rc" && tail -n 1 "err$i"
		case $rc in
		0 | 10 | 21 | 40 | 137) ;; # nothing was left; a lock was lost, also before its report; a program was killed
		*) false ;;
		esac
	done
	same "${#killed[@]}" 1
	"$PAWL" list --all --json --limit 0 | jq -e --argjson n "$tasks" '
		(.tasks | length) == $n and all(.tasks[]; .status == "Done")' >/dev/null
	each_once
}
