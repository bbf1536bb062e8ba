# Part (j) of bench/run: a claim on a git remote, compared with a script of git plumbing that locks on a branch.

git_agents=${PAWL_BENCH_AGENTS:-20}
git_tasks=${PAWL_BENCH_TASKS:-200}
git_rounds=${PAWL_BENCH_ROUNDS:-3}
git_seconds=30 # limit for a crowd: the script takes longer for all tasks

# git_place NAME CLONES TASKS script|URI-PREFIX: a folder with a remote, clones of it, and tasks in it
git_place() {
	local top=$dir/$1 i
	mkdir "$top"
	git init -q --bare "$top/q.git"
	for ((i = 1; i <= $2; i++)); do
		git init -q "$top/c$i"
		git -C "$top/c$i" remote add origin "file://$top/q.git"
	done
	if [ "$4" = script ]; then
		i=$(git -C "$top/q.git" hash-object -w --stdin <<<'a task')
		i=$(seq "$3" | awk -v blob="$i" '{ printf "100644 blob %s\tt%d.md\n", blob, $1 }' | git -C "$top/q.git" mktree)
		i=$(git -C "$top/q.git" commit-tree "$i" -m tasks)
		git -C "$top/q.git" update-ref refs/heads/locks "$i"
		return
	fi
	export PAWL_STORE=git:$4$top/q.git
	"$pawl" init -q
	seq "$3" | awk '{ printf "{\"id\": \"t%d\", \"title\": \"Task number %d\"}\n", $1, $1 }' >"$top/tasks.jsonl"
	"$pawl" import -q "$top/tasks.jsonl" >/dev/null
}

# git_count NAME COMMAND...: git processes and connections for one more claim
git_count() {
	local top=$dir/$1
	rm -rf "$top/trace"
	mkdir "$top/trace"
	(cd "$top/c1" && GIT_TRACE2_EVENT=$top/trace "${@:2}" >/dev/null)
	grep -h '"event":"start"' -r "$top/trace" | awk '
		/"argv":\[[^]]*receive-pack/ && !/"push"/ { receive++ }
		/"argv":\[[^]]*upload-pack/ && !/"fetch"/ { upload++ }
		END { printf "%d processes of git, %d connections", NR, receive + upload }'
}

# git_crowd NAME script|URI-PREFIX: "claims/s p50 gave_up twice" of one round, in a new place. The place stays: ext4 is
# slow to create files right after a removal.
git_crowd() {
	local how=script line
	[ "$2" = script ] || how=pawl
	git_place "$1" "$git_agents" "$git_tasks" "$2"
	line=$(cd "$dir/$1" && PAWL=$pawl "$OLDPWD/bench/git-drain" "$git_agents" $git_seconds $how)
	awk '{ printf "%.2f %d %d %d %d\n", $1 / $2, $3, $4, $5, $1 }' <<<"$line"
}

measure_j() {
	local claims=25 round how rows='' line PAWL_STORE
	local -A prefix=([script]=script [file]=file:// [path]='')
	export GIT_AUTHOR_NAME=b GIT_AUTHOR_EMAIL=b@b GIT_COMMITTER_NAME=b GIT_COMMITTER_EMAIL=b@b
	export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null

	echo "(j) a git remote: one claim, $claims rounds; $git_agents clones drain $git_tasks tasks, $git_rounds rounds of at most $git_seconds s"
	for how in script file path; do
		git_place "one-$how" 1 200 "${prefix[$how]}"
	done
	times=$("$bin/bench-spawn" $claims \
		@ script_on_a_branch "$dir/one-script" "$PWD/bench/git-claim" c1 \
		@ pawl,_git:file:// "$dir/one-file/c1" env "PAWL_STORE=git:file://$dir/one-file/q.git" "$pawl" next --claim -q \
		@ pawl,_git:PATH "$dir/one-path/c1" env "PAWL_STORE=git:$dir/one-path/q.git" "$pawl" next --claim -q)
	show_times
	note "script: $(git_count one-script "$PWD/bench/git-claim" .) for a claim"
	note "pawl, git:file://: $(git_count one-file env "PAWL_STORE=git:file://$dir/one-file/q.git" "$pawl" next --claim -q) for a claim"
	note "pawl, git:PATH: $(git_count one-path env "PAWL_STORE=git:$dir/one-path/q.git" "$pawl" next --claim -q) for a claim"
	for ((round = 1; round <= git_rounds; round++)); do
		for how in script file path; do
			rows+="$how $(git_crowd "crowd-$how-$round" "${prefix[$how]}")"$'\n'
		done
	done
	printf '    %-30s %10s %10s %9s %9s\n' "$git_agents clones" 'claims/s' p50 'gave up' twice
	for how in script file path; do
		line=$(awk -v how=$how '$1 == how { print $2 }' <<<"$rows" | median)
		printf '    %-30s %10s %7s ms %9s %9s\n' "$how" "$line" \
			"$(awk -v how=$how '$1 == how { print $3 }' <<<"$rows" | median)" \
			"$(awk -v how=$how '$1 == how { n += $4 } END { print n + 0 }' <<<"$rows")" \
			"$(awk -v how=$how '$1 == how { n += $5 } END { print n + 0 }' <<<"$rows")"
		printf -v "rate_$how" '%s' "$line"
	done
	for how in file path; do
		local label=pawl,_git:PATH rate=rate_$how
		[ $how = path ] || label=pawl,_git:file://
		verdict "(j) one claim, script : git:$how, p50" "$(ratio "$(p50 script_on_a_branch)" "$(p50 $label)")" '>=' 2 ×
		verdict "(j) $git_agents clones, claims/s of git:$how : of the script" "$(ratio "${!rate}" "$rate_script")" '>=' 15 ×
	done
}
