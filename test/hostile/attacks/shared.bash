# shellcheck shell=bash
# Attacks by another process on shared files and time: the gate, the slots, the shared commit, the
# clock.

# the gate's file of $store
gate() {
	case $store in
	sqlite) echo .pawl/queue.db-gate ;;
	files) echo locks/.pawl/gate ;;
	git) echo "$scratch/server.git/pawl/gate" ;;
	esac
}

claimed() {
	queue
	victim 0 create one
	victim 0 next --claim
}

# A gate that is truncated to any length is created again, and no call fails.
# stores: sqlite files git
attack_gate_is_cut() {
	claimed
	local size
	for size in 0 1 239 241 255 300 4096; do
		truncate -s "$size" "$(gate)"
		victim 0 heartbeat t1
		victim 0 lock health
	done
	victim 0 done t1
	victim 0 doctor
}

# A process that has the queue open while its shared files are truncated continues.
# stores: sqlite files
attack_files_are_cut_in_use() {
	claimed
	allow sleep
	(
		for _ in 1 2 3 4 5 6 7 8; do
			truncate -s 0 "$(gate)"
			[ "$store" != sqlite ] || truncate -s 5000 .pawl/queue.db-slots
			sleep 0.05
		done
	) &
	victim 0 create two
	victim 0 run t2 -- sleep 0.4
	wait
	victim 0 heartbeat t1
	victim 0 show t2
	says Done
}

# Random bytes in the gate and the slots neither crash pawl nor are trusted.
# stores: sqlite
attack_garbage_in_shared_files() {
	claimed
	for _ in 1 2 3 4; do
		head -c 30000 /dev/urandom >"$(gate)"
		head -c 1100000 /dev/urandom >.pawl/queue.db-slots
		victim 0 heartbeat t1
		quiet_about $'\e'
	done
	victim 0 done t1
	victim 0 doctor
}

# The gate and the slots are links: their targets stay as they are.
# stores: sqlite
attack_links_instead_of_shared_files() {
	claimed
	local name
	for name in gate slots; do
		rm -f ".pawl/queue.db-$name"
		ln -s "$HOME/.ssh/id_ed25519" ".pawl/queue.db-$name"
		victim any heartbeat t1
		rm -f ".pawl/queue.db-$name"
	done
	rm -f .pawl/queue.db-gate
	mkfifo .pawl/queue.db-gate
	victim any heartbeat t1
	rm .pawl/queue.db-gate
	victim 0 heartbeat t1
}

# Processes that may write almost nothing call at the same time: no call of the user fails.
# stores: sqlite files
attack_others_with_small_limits() {
	claimed
	for _ in 1 2 3; do
		(
			ulimit -f 8
			until [ -e "$scratch/enough" ]; do
				"$PAWL" comment t1 other >/dev/null 2>&1 || :
			done
		) &
	done
	for _ in 1 2 3 4 5 6 7 8; do
		victim 0 heartbeat t1
	done
	touch "$scratch/enough"
	wait
	victim 0 doctor
}

# A container whose clock is a day ahead or behind does not take the task from its holder.
# stores: sqlite files git
attack_clock_of_another_time_namespace() {
	claimed
	unshare --time --boottime 100000 true 2>/dev/null || {
		echo 'SKIP needs the right to make a time namespace'
		exit 0
	}
	local offset
	for offset in 100000 -30; do
		! PAWL_AGENT=other unshare --time --boottime "$offset" "$PAWL" next --claim || return 1
		PAWL_AGENT=other unshare --time --boottime "$offset" "$PAWL" lock cleanup
		PAWL_AGENT=other unshare --time --boottime "$offset" "$PAWL" create "later $offset" --delay 1h
		victim 0 heartbeat t1
	done
	victim 0 done t1
}
