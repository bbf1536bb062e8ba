#!/usr/bin/env bats
# The counter of ids: the command, and a branch of its own that other programs use as well. PAWL_GIT_CLAIMS is the
# number of processes that claim at once (default 20).

load common

setup() {
	n=${PAWL_GIT_CLAIMS-20}
	fresh
	bare_repository code
	git clone -q "$remote" clone 2>/dev/null
	cd clone || return
	export PAWL_STORE=git:origin#aitask-ids
}

task() {
	mkdir -p "aitasks/$(dirname "$1")"
	printf -- '---\nstatus: Ready\n---\n\nText.\n' >"aitasks/$1.md"
}

next_id() {
	git -C "$remote" show aitask-ids:next_id.txt
}

# other [NUMBER]: another program sets the counter, or takes a number from it and prints it
other() {
	local tip now blob
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		git fetch -q origin +refs/heads/aitask-ids:refs/other/ids 2>/dev/null || true
		tip=$(git rev-parse -q --verify refs/other/ids) || true
		now=${1-$(git show "$tip:next_id.txt")}
		blob=$(echo "$((now + ($# == 0)))" | git hash-object -w --stdin)
		tip=$(printf '100644 blob %s\tnext_id.txt\n' "$blob" | git mktree |
			xargs -I{} git commit-tree {} ${tip:+-p "$tip"} -m "id $now for $$ $BASHPID")
		if git push -q origin "$tip:refs/heads/aitask-ids" 2>/dev/null; then
			[ $# -gt 0 ] || echo "t$now"
			return
		fi
		sleep "0.0$((RANDOM % 9 + 1))"
	done
	return 1
}

@test "ids: the counter begins after the tasks that are there" {
	call 40 id peek
	complains "pawl id init"
	task t7_x
	task t41/t41_3_child
	task archived/t102_old
	task archived/other
	call 0 id init
	exactly t103
	same "$(next_id)" 103
	call 0 id peek
	exactly t103
	call 0 id claim
	exactly t103
	same "$(next_id)" 104
	same "$(git -C "$remote" ls-tree --name-only aitask-ids)" next_id.txt
	task t104_by_hand
	ask 0 id claim
	is '.id == "t105"'
	call 0 id init --from 50
	exactly t106
	call 0 id peek
	exactly t106
	ask 0 id init --from 200
	is '.id == "t200"'
	call 0 id claim
	exactly t200
	same "$(git status --porcelain --untracked-files=no)" ""
}

@test "ids: a counter that another program made" {
	other 12
	call 0 id peek
	exactly t12
	call 0 id claim
	exactly t12
	same "$(other)" t13
	call 0 id claim --store "git:file://$remote#aitask-ids"
	exactly t14
	call 0 id init
	exactly t15
	call 40 create x
	complains aitask-ids
	echo '{"id": "t99", "title": "T"}' >../new.jsonl
	check_refused 40 ../new.jsonl
	complains aitask-ids
	call 44 lock acquire 1
	same "$(next_id)" 15
}

@test "ids: a counter that is not a number is reported, and stays" {
	other 12
	tip=$(printf 'twelve\n' | git -C "$remote" hash-object -w --stdin)
	tip=$(printf '100644 blob %s\tnext_id.txt\n' "$tip" | git -C "$remote" mktree)
	git -C "$remote" update-ref refs/heads/aitask-ids "$(git -C "$remote" commit-tree "$tip" -m x)"
	call 40 id claim
	complains "next_id.txt: 'twelve' is not a number"
	call 40 id peek
	call 40 id init --from 5
	same "$(next_id)" twelve
}

@test "ids: clones that count at once, and another program, never get the same" {
	call 0 id init
	git -C "$remote" branch -q main "$(git -C "$remote" rev-parse aitask-ids)"
	for i in 1 2 3; do git clone -q "$remote" "$work/c$i" 2>/dev/null; done
	for i in $(seq "$n"); do
		case $((i % 4)) in
		0) (cd "$work/c1" && "$PAWL" id claim --timeout 60s >>"$work/ids") & ;;
		1) (cd "$work/c2" && "$PAWL" id claim --timeout 60s --store "git:file://$remote#aitask-ids" >>"$work/ids") & ;;
		2) (cd "$work/c3" && "$PAWL" id claim --timeout 60s --store "git:file://$remote#aitask-ids" >>"$work/ids") & ;;
		*) (other >>"$work/ids") & ;;
		esac
	done
	wait
	same "$(sort -u "$work/ids" | wc -l)" "$(wc -l <"$work/ids")"
	same "$(wc -l <"$work/ids")" "$(($(next_id) - 1))"
	[ "$(wc -l <"$work/ids")" -ge $((n * 3 / 4)) ]
}

@test "ids: id init on other stores" {
	cd "$work"
	unset PAWL_STORE
	call 40 id init
	call 0 init
	lines 0 id init
	exactly "SUCCESS: id=t1"
	call 0 create x --id t8
	call 0 id init
	exactly t9
	call 0 create y
	says t9
	call 0 id init --from 3
	exactly t10
	call 2 id init --from 0
	call 2 id init --from many
}
