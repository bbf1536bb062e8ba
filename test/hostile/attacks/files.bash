# shellcheck shell=bash
# Attacks on the folder of a files: queue: foreign files, links and special files in it.

# look: every file of the folder $clone/locks that pawl did not make
look() {
	(
		cd locks || exit
		find . -path ./.pawl -prune -o ! -type d ! -name 'mine*' -printf '%p %y %i %s %T@ %l\n' | sort
		find . -path ./.pawl -prune -o -type f ! -name 'mine*' -exec sha256sum {} + | sort
	)
}

# everything: a day's commands of a user, on tasks with the given names and on `mine`
everything() {
	local id
	for id; do
		victim any claim "$id" --description x
		victim any create "$id" --id "$id"
		victim any show "$id"
		victim any done "$id"
		victim any release "$id"
		victim any archive "$id"
		victim any remove "$id" --force
	done
	victim 0 claim mine --description x
	victim 0 heartbeat mine
	victim 0 done mine
	victim 0 archive
	victim 0 lock cleanup
	victim 0 list
	victim any doctor
	victim 0 backup "$scratch/saved.pawl"
	victim 0 clear --yes
	victim 0 restore "$scratch/saved.pawl" --force
	victim 0 migrate "files:$clone/locks" "sqlite:$scratch/moved.db"
	rm -f "$scratch"/saved.pawl "$scratch"/moved.db*
}

# Lock files of package managers are not locks, and no command changes them.
# stores: files
attack_locks_of_package_managers() {
	queue
	echo '{"_meta": {"hash": {"sha256": "x"}}, "default": {}, "develop": {}}' >locks/Pipfile.lock
	echo '{"nodes": {"root": {}}, "root": "root", "version": 7}' >locks/flake.lock
	printf 'version = 3\n\n[[package]]\nname = "agent"\n' >locks/Cargo.lock
	printf '# yarn lockfile v1\n\na@1:\n  version "1"\n' >locks/yarn.lock
	echo ',me,host,01.01.2026 10:00;' >'locks/.~lock.x.ods#'
	local before
	before=$(look)
	victim 0 list
	quiet_about Pipfile flake Cargo yarn
	victim 40 claim Cargo
	complains Cargo.lock
	everything Pipfile flake Cargo yarn
	[ "$(look)" = "$before" ]
}

# Stamp files of a build have the names of finished tasks.
# stores: files
attack_stamps_of_a_build() {
	queue
	mkdir locks/archive
	: >locks/build.done
	echo 1 >locks/test.failed
	printf '[Unit]\nDescription=x\n' >locks/deploy.task
	echo x >locks/archive/lint.done
	touch -d '1 hour ago' locks/* locks/archive/*
	local before
	before=$(look)
	everything build test deploy
	[ "$(look)" = "$before" ]
}

# A program overwrites one of pawl's files in place: from then on the file is the program's.
# stores: files
attack_file_written_over() {
	local id
	queue
	for id in a b c d; do "$PAWL" claim -q $id --description x >/dev/null; done
	"$PAWL" done -q c
	"$PAWL" release -q d
	echo 'version = 3' >locks/a.lock
	echo 'version = 3' >locks/b.lock
	echo 'version = 3' >locks/c.done
	echo 'version = 3' >locks/d.task
	touch -d '1 hour ago' locks/[abcd].*
	local before
	before=$(look)
	victim any done a
	victim any release b
	victim any reopen c --reason x
	victim any claim d
	victim any archive
	victim any clear --yes
	victim any remove a --force
	rm -f locks/a.task locks/b.task locks/a.done
	for id in a.lock b.lock c.done d.task; do
		grep -qx 'version = 3' locks/$id
	done
	grep -q a.lock <<<"$before"
}

# Discarding a queue leaves foreign files.
# stores: files
attack_end_of_a_queue() {
	local below=locks/.pawl/queues/torture-1
	queue
	"$PAWL" init -q --queue torture-1
	"$PAWL" claim -q t1 --description x --queue torture-1 >/dev/null
	"$PAWL" claim -q t2 --description x --queue torture-1 >/dev/null
	echo 'version = 3' >$below/t1.lock
	echo '{"nodes": {}}' >$below/flake.lock
	ln -s "$HOME/.ssh/id_ed25519" $below/t3.lock
	victim 0 torture --remove torture-1
	[ "$(cd $below && echo *)" = "flake.lock t1.lock t3.lock" ]
	grep -qx 'version = 3' $below/t1.lock
}

# Links in the place of locks and tasks lead to a key: it is neither shown nor changed.
# stores: files
attack_links_to_a_key() {
	local end before
	queue
	mkdir locks/archive
	for end in lock task done failed; do
		ln -s "$HOME/.ssh/id_ed25519" "locks/x$end.$end"
		ln -s "$HOME/.ssh/id_ed25519" "locks/archive/y$end.$end"
	done
	before=$(look)
	everything xlock xtask xdone xfailed ylock ytask ydone yfailed
	quiet_about "the key"
	victim any export -o "$scratch/all.json"
	not grep -q "the key" "$scratch/all.json"
	[ "$(look | grep ' l ')" = "$(grep ' l ' <<<"$before")" ]
}

# The state folder is a link to a folder of the user.
# stores: files
attack_state_folder_is_a_link() {
	mkdir locks
	ln -s "$HOME/documents" locks/.pawl
	victim 40 list --store files:locks
	victim 40 create x --store files:locks
	victim 40 init --store "files:$clone/locks"
	complains link
	rm locks/.pawl
	mkdir locks/.pawl
	ln -s "$HOME/documents" locks/.pawl/queues
	victim any init --store "files:$clone/locks" --queue other
	victim any list --store "files:$clone/locks" --queue other
}

# Each file in .pawl is a link to a file of the user.
# stores: files
attack_state_files_are_links() {
	local name
	for name in state gate log new.0 state.new log.new; do
		rm -rf locks .pawl
		queue
		victim 0 create x
		rm -f "locks/.pawl/$name"
		ln -s "$HOME/.bashrc" "locks/.pawl/$name"
		victim any create y
		victim any next --claim
		victim any log
		victim any list
		quiet_about "alias ll"
		victim any doctor
		victim any init --store "files:$clone/locks"
	done
}

# The log is a link when the journal becomes a snapshot.
# stores: files
attack_log_is_a_link_at_a_snapshot() {
	local i
	queue
	ln -s "$HOME/.bashrc" locks/.pawl/log
	head -c 90000 /dev/zero | tr '\0' x >text
	for i in 1 2 3 4; do
		victim any create "mine $i" --description @text
		victim any update "t$i" --description "$(cat text)"
	done
	victim 0 list
	[ -L locks/.pawl/log ]
}

# The archive is a link to a folder of the user.
# stores: files
attack_archive_is_a_link() {
	queue
	"$PAWL" claim -q t1 --description x >/dev/null
	"$PAWL" done -q t1
	ln -s "$HOME/documents" locks/archive
	victim any archive
	victim 0 list
	victim any doctor
	victim any remove t1 --force
}

# FIFOs, sockets, folders and devices in the place of files do not block any command.
# stores: files
attack_odd_files() {
	local end before
	queue
	for end in lock task done failed; do
		mkfifo "locks/f$end.$end"
		mkdir "locks/d$end.$end"
		ln -s /dev/zero "locks/z$end.$end"
	done
	before=$(look)
	SECONDS=0
	victim 0 list
	victim 40 claim flock
	victim 40 claim dtask
	everything ffailed ddone zlock
	[ "$SECONDS" -lt 30 ]
	[ "$(look)" = "$before" ]
}

# FIFOs in .pawl do not block any command.
# stores: files
attack_fifos_in_the_state_folder() {
	local name
	for name in state gate log new.0 state.new log.new; do
		rm -rf locks .pawl
		queue
		victim 0 create x
		rm -f "locks/.pawl/$name"
		mkfifo "locks/.pawl/$name"
		SECONDS=0
		victim any claim t1
		victim any list
		victim any log
		[ "$SECONDS" -lt 10 ]
	done
}

# A backup program keeps hard links of the whole folder: they do not change.
# stores: files
attack_hard_links_of_the_folder() {
	local before i
	queue
	for i in 1 2 3; do victim 0 create "x$i"; done
	victim 0 claim t1
	cp -al locks "$scratch/kept"
	before=$(find "$scratch/kept" -type f ! -name gate -exec sha256sum {} + | sort)
	victim 0 done t1
	victim 0 claim t2
	victim 0 heartbeat t2
	victim 0 create y
	[ "$(find "$scratch/kept" -type f ! -name gate -exec sha256sum {} + | sort)" = "$before" ]
	victim 0 list
	says y
}

# A file with the form of a lock but millions of values does not use up memory.
# stores: files
attack_lock_of_many_values() {
	queue
	{
		printf '{"agent": "a", "x": ['
		seq -s , 700000
		printf ']}'
	} >locks/big.lock
	{
		printf '{"agent": "a", "x": '
		head -c 3000000 /dev/zero | tr '\0' '['
	} >locks/deep.lock
	for command in "list" "next" "claim big" "show deep" "doctor"; do
		# shellcheck disable=SC2086 # words
		with_memory 120000 "$PAWL" $command >out 2>&1 || [ $? -lt 128 ]
		not grep -qi "memory" out
	done
	victim 40 claim big
	victim 40 claim deep
}

# A script's lock with hostile text: control characters in a name, impossible dates.
# stores: files
attack_lock_with_a_hostile_text() {
	queue
	printf '{"agent": "a\\u001b[2J\\nb", "expires_at": "9999-99-99", "claimed_at": -1}' >locks/a.lock
	printf '{"task_id": "../../x", "agent": "a", "pawl": {"store": "x", "task": {"status": "Ready", "id": "../../x"}}}' >locks/b.lock
	printf '{"agent": "a", "pawl": {"store": 1, "commit": [], "task": [1]}}' >locks/c.lock
	victim 0 list
	quiet_about $'\e[2J'
	victim 0 show a
	quiet_about $'\e[2J'
	victim any show b
	victim any claim b
	victim any lock break b --reason x
	victim 0 list
	[ ! -e "$scratch/x" ]
}
