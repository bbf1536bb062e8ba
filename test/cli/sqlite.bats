#!/usr/bin/env bats
# The file .pawl/queue.db is damaged: MISCONFIGURED with that reason, the file unchanged to the byte, no
# new file beside it. A place that is read-only, full or gone: API_ERROR, nothing half-written.

load common

setup() {
	needs_sqlite
	fresh
}

db=.pawl/queue.db

# settle: moves everything into the one file
settle() {
	sqlite3 "$db" 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
	rm -f "$db"-*
}

everything() {
	(cd .pawl && find . -type f -exec sha256sum {} + | sort -k2; find . | sort)
}

# left_alone TEXT: each kind of command says TEXT and touches nothing
left_alone() {
	local before args
	before=$(everything)
	for args in "list" "create x" "next --claim" "claim t1" "log" "status" "init" "doctor"; do
		read -ra words <<<"$args"
		call 40 "${words[@]}"
		[[ $stderr$output == *"$1"* ]] || {
			echo "it does not say: $1"
			return 1
		}
		same "$before" "$(everything)"
	done
	ask 40 list
	same "$before" "$(everything)"
}

# as_nobody COMMAND...: without the rights of root
as_nobody() {
	[ "$(id -u)" -eq 0 ] || skip "needs root to become somebody else"
	setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nonexistent USER=nobody "$@"
}

# nobody CODE ARG...
nobody() {
	local want=$1
	shift
	run --separate-stderr as_nobody "$program" "$@"
	printf '$ nobody: pawl %s\n%s\n%s\nexit code %s, expected %s\n' "$*" "$output" "$stderr" "$status" "$want"
	[ "$status" -eq "$want" ]
}

# for_nobody: a program that the user nobody can run, and folders that it can enter
for_nobody() {
	[ "$(id -u)" -eq 0 ] || skip "needs root to become somebody else"
	needs setpriv
	program=$BATS_TEST_TMPDIR/pawl
	cp "$PAWL" "$program"
	chmod 755 "$program"
	local dir=$work
	while [ "$dir" != / ]; do
		setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$dir" || chmod o+x "$dir"
		dir=$(dirname "$dir")
	done
}

@test "a text file" {
	mkdir .pawl
	echo "This is not a database, and long enough not to be taken for an empty one." >"$db"
	left_alone "is not a SQLite database"
}

@test "a picture, an empty-looking file of zeros" {
	mkdir .pawl
	head -c 8192 /dev/zero >"$db"
	left_alone "is not a SQLite database"
}

@test "another program's database" {
	needs sqlite3
	mkdir .pawl
	sqlite3 "$db" 'CREATE TABLE mine(a); INSERT INTO mine VALUES(1)'
	left_alone "another program"
}

@test "another program's database in WAL mode" {
	needs sqlite3
	mkdir .pawl
	sqlite3 "$db" 'PRAGMA journal_mode=WAL; CREATE TABLE mine(a); PRAGMA application_id=7' >/dev/null
	left_alone "another program"
}

@test "a newer schema" {
	needs sqlite3
	queue
	settle
	sqlite3 "$db" 'PRAGMA user_version=9999'
	left_alone "9999"
	complains "newer" || says newer
}

@test "an older schema: the message says how to bring the tasks over" {
	needs sqlite3
	queue
	settle
	sqlite3 "$db" 'PRAGMA user_version=2'
	left_alone "older pawl (0.1)"
	call 40 list
	complains "pawl export -o tasks.json" "pawl init" "pawl import tasks.json"
}

@test "cut off at its end" {
	needs sqlite3
	queue
	for i in 1 2 3 4 5; do new "task $i" -d "$(head -c 20000 /dev/zero | tr '\0' x)"; done
	settle
	truncate -s $(($(stat -c %s "$db") / 2 / 4096 * 4096)) "$db"
	left_alone "damaged"
}

@test "cut off within its header" {
	queue
	truncate -s 300 "$db"
	rm -f "$db"-*
	left_alone "damaged"
}

@test "a header that makes no sense" {
	needs sqlite3
	queue
	settle
	printf '\xff\xff\xff\xff\xff\xff\xff\xff' | dd of="$db" bs=1 seek=16 conv=notrunc status=none
	left_alone "damaged"
}

@test "damaged in the middle: said so, and nothing made worse" {
	needs sqlite3
	queue
	for i in $(seq 20); do new "task $i" -d "$(head -c 3000 /dev/zero | tr '\0' x)"; done
	settle
	pages=$(($(stat -c %s "$db") / 4096))
	for page in $(seq 2 $((pages - 1))); do
		head -c 4096 /dev/urandom | dd of="$db" bs=4096 seek="$page" conv=notrunc status=none
	done
	sum=$(sha256sum <"$db")
	call 40 list
	complains "damaged"
	call 40 doctor
	says bad
	call 40 create x
	same "$sum" "$(sha256sum <"$db")"
}

@test "empty: a queue that was never laid out" {
	mkdir .pawl
	: >"$db"
	call 40 list
	complains "pawl init"
	call 0 init
	call 0 create x
}

@test "a folder, a device or a pipe in its place" {
	mkdir -p "$db"
	call 40 list || call 30 list
	rmdir "$db"
	mkfifo "$db"
	run --separate-stderr timeout 10 "$PAWL" list
	[ "$status" -eq 40 ] || [ "$status" -eq 30 ]
	[ -p "$db" ]
}

@test "queue.db is a link" {
	needs sqlite3
	queue
	pawl create x
	settle
	mv "$db" elsewhere.db
	ln -s ../elsewhere.db "$db"
	run --separate-stderr "$PAWL" create y
	# Either refused, or followed with its side files next to the real file: never two queues.
	if [ "$status" -eq 0 ]; then
		call 0 list --store sqlite:elsewhere.db -q
		says t2
		[ ! -e "$db-gate" ]
		[ ! -e "$db-wal" ]
	else
		[ "$status" -eq 40 ]
		complains link
	fi
}

@test "a dangling link" {
	queue
	rm -f "$db"*
	ln -s "$BATS_TEST_TMPDIR/nowhere/x.db" "$db"
	run --separate-stderr "$PAWL" create y
	[ "$status" -eq 40 ] || [ "$status" -eq 30 ]
	[ -n "$stderr" ]
	[ ! -e "$BATS_TEST_TMPDIR/nowhere" ]
}

@test "removed under a queue: no new one by accident" {
	queue
	pawl create x
	rm -f "$db"*
	call 40 create y
	complains "pawl init"
	[ ! -e "$db" ]
	call 40 list
	call 40 next --claim
	[ ! -e "$db" ]
}

@test "the folder of --store is not there" {
	call 30 list --store "sqlite:$work/nowhere/q.db" || call 40 list --store "sqlite:$work/nowhere/q.db"
	call 30 create x --store "sqlite:$work/nowhere/q.db"
	ask 30 create x --store "sqlite:$work/nowhere/q.db"
	is '.error.applied == "no"'
	[ ! -e nowhere ]
}

@test "the current folder was deleted" {
	mkdir gone
	cd gone
	rmdir "$work/gone"
	call 30 list
	complains "does not exist"
	call 30 init
}

@test "a read-only folder: reads work, writing is API_ERROR" {
	for_nobody
	queue
	pawl create x
	pawl create y
	chmod -R a-w,a+rX .pawl
	before=$(everything)
	nobody 0 list -q
	exactly "t1
t2"
	for args in "create z" "comment t1 z" "cancel t1 -r r" "lock break t1 -r r"; do
		read -ra words <<<"$args"
		nobody 30 "${words[@]}"
		[[ $stderr == *".pawl"* ]]
		same "$before" "$(everything)"
	done
	nobody 30 create z --json
	is '.error.code == "API_ERROR" and .error.applied == "no"'
	chmod -R u+w .pawl
	call 0 list -q
	exactly "t1
t2"
}

@test "init in a read-only folder" {
	for_nobody
	mkdir ro
	chmod 555 ro
	nobody 30 init -C "$work/ro"
	nobody 30 init -C "$work/ro" --json
	is '.error.applied == "no"'
	same "$(ls -A ro)" ""
}

@test "a queue that may not be read" {
	for_nobody
	queue
	chmod 700 .pawl
	run --separate-stderr as_nobody "$program" list
	[ "$status" -eq 30 ] || [ "$status" -eq 40 ]
	[[ $stderr == *[Pp]ermission* ]]
}

@test "a full disk: API_ERROR, nothing half-written, and it works afterwards" {
	[ "$(id -u)" -eq 0 ] || skip "needs root to mount"
	needs unshare
	unshare -m true 2>/dev/null || skip "needs the right to mount"
	mkdir disk
	cat >full <<'END'
set -e
mount -t tmpfs -o size=2m none disk
cd disk
"$PAWL" init -q
"$PAWL" create -q one
head -c 200000 /dev/zero | tr '\0' x >text
n=0
while "$PAWL" create -q big -d - <text >/dev/null 2>err; do n=$((n + 1)); [ $n -lt 100 ]; done
rc=0
"$PAWL" create big -d - --json <text >../answer || rc=$?
echo "code $rc $(jq -r '.error.code + " " + .error.applied' ../answer)"
"$PAWL" list --json --limit 0 | jq ".total - $n"
rm text
fallocate -l 1 x 2>/dev/null || true
mount -o remount,size=8m none .
"$PAWL" create -q after
"$PAWL" doctor -q
cd ..
umount disk
END
	run unshare -m bash full
	echo "$output"
	[ "$status" -eq 0 ]
	[ "${lines[1]}" = "code 30 API_ERROR no" ]
	[ "${lines[2]}" = 1 ]
}

@test "a file size limit: API_ERROR, not a signal" {
	queue
	pawl create one
	head -c 200000 /dev/zero | tr '\0' x >text
	run --separate-stderr bash -c 'ulimit -f 300; "$PAWL" create big -d - <text >/dev/null && "$PAWL" create big -d - <text'
	echo "$status $stderr"
	[ "$status" -eq 30 ]
	call 0 create after
	call 0 doctor
}

@test "a process killed in the middle of many writes leaves a sound queue" {
	queue
	(while "$PAWL" create x -q >>made 2>/dev/null; do :; done) 3>&- &
	loop=$!
	for _ in 1 2 3 4 5; do
		sleep 0.05
		pkill -9 -P "$loop" 2>/dev/null || true
	done
	kill -9 "$loop" 2>/dev/null || true
	wait "$loop" 2>/dev/null || true
	call 0 doctor
	while read -r id; do
		[ -z "$id" ] || "$PAWL" show "$id" >/dev/null
	done <made
}

@test "a writer in the way: API_ERROR after the timeout, that names it; reads work" {
	queue
	pawl create x
	exec 8<>"$db-gate"
	flock 8
	before=$SECONDS
	call 30 create y --timeout 0.3s
	[ $((SECONDS - before)) -lt 10 ]
	complains "$db"
	ask 30 create y --timeout 0
	is '.error.applied == "no"'
	call 0 list -q
	exactly t1
	exec 8>&-
	call 0 create y -q
	exactly t2
}

@test "modes: the database follows the umask" {
	umask 077
	queue
	same "$(stat -c %a "$db")" 600
}
