#!/usr/bin/env bats
# batch, clear, backup, restore, migrate: many tasks, or a whole queue, at once.

load common

token=11111111-1111-4111-8111-111111111111

# all: every record and the log, without values that time changes by itself
all() {
	"$PAWL" list --json --limit 0 "$@" | jq -c '.tasks[] | del(.lock.expires_in)'
	"$PAWL" log --json --limit 0 "$@" | jq -c '.events[] | del(.cursor)'
}

# some: tasks in many states
some() {
	a=$(new A --description "$(printf 'long\n%.0s' {1..50})" --extra '{"k": [1, "é"]}')
	b=$(new B --depends "$a" --label x)
	c=$(new C --parent "$b")
	d=$(new D)
	pawl comment "$a" "a comment"
	pawl claim "$a" --token "$token" --ttl 1h
	pawl claim "$d" -a other
	pawl block "$d" -a other -r "no key" --unblock-action "find it"
	e=$(new E)
	pawl claim "$e"
	pawl release "$e"
	pawl remove "$e"
	pawl create F --request-id r1
}

# --- batch ------------------------------------------------------------------------------------------

@test "batch add: arguments, a file, standard input" {
	call 0 batch add "One" "Two" --label x --priority high
	exactly "created t1  One
created t2  Two
2 done"
	ask 0 batch add Three
	is '.results | length == 1 and .[0].id == "t3" and .[0].code == "SUCCESS" and .[0].title == "Three"'
	same "$(field t2 .priority)" 3
	same "$(field t2 '.labels[0]')" x
	printf '%s\n' "Four" "" '{"title": "Five", "depends": ["t1"], "label": ["p", "q"]}' >titles
	call 0 batch add --file titles -q
	same "$(field t5 '.depends[0]')" t1
	same "$(field t5 '.labels | length')" 2
	printf 'Six\nSeven\n' | "$PAWL" batch add -
	same "$(field t7 .title)" Seven
	lines 0 batch add Eight $'Nine\nlives'
	exactly 'ITEM: id=t8 title=Eight
ITEM: id=t9 title=Nine\x0alives'
	unchanged 2 batch add
	unchanged 30 batch add --file nosuch
}

@test "batch: all of them or none" {
	a=$(new A)
	b=$(new B)
	unchanged 44 batch update "$a" nosuch "$b" --priority 9
	complains "item 2 of 3" "nothing was changed"
	unchanged 44 batch add X --depends nosuch
	unchanged 44 batch remove "$a" nosuch
	ask 44 batch remove "$a" nosuch
	is '.results == [{"code": "NOT_FOUND", "id": "nosuch", "message": "there is no task nosuch"}]'
	printf '%s\n' '{"id": "t1", "priority": 5}' '{"id": "t2", "priority": "huge"}' >bad
	unchanged 2 batch update --file bad
	complains "bad:2:" priority
	printf '%s\n' '{"title": "X"}' '{"title": ' >bad
	unchanged 2 batch add --file bad
	complains "bad:2:"
	new X --id taken
	printf '%s\n' '{"title": "new"}' '{"title": "X", "id": "taken"}' >bad
	unchanged 20 batch add --file bad
	call 0 batch update "$a" "$b" --priority 9
	same "$(field "$b" .priority)" 9
	ask 0 batch update "$a" --title new
	lines 0 batch update "$a" --title newer
	call 0 batch remove "$a" "$b"
	lines 0 batch remove taken
	ask 0 list
	is '.total == 0'
	pawl log --json --limit 0
}

@test "batch --keep-going: each by itself, with its result" {
	a=$(new A)
	b=$(new B)
	pawl claim "$b" -a other
	ask 20 batch update "$a" "$b" --keep-going --priority 9
	is '[.results[].code] == ["SUCCESS", "CONFLICT"] and (.error.message | startswith("1 of 2 items failed"))'
	same "$(field "$a" .priority)" 9
	call 44 batch remove nosuch "$a" -k
	says nosuch NOT_FOUND "1 done"
	call 44 show "$a"
	call 0 batch update "$b" -a other --priority 4
}

# --- clear -------------------------------------------------------------------------------------------

@test "clear: asks, refuses while a task is held, keeps fences and the log" {
	a=$(new A)
	new B --depends "$a"
	pawl claim "$a"
	unchanged 2 clear
	complains --yes backup
	unchanged 40 clear --yes
	complains "$a is held" --force
	ask 40 clear --yes
	ask 0 clear --force
	is '.removed == 2'
	backup=$(jq -r .backup <<<"$output")
	call 0 restore "$backup" --force
	ask 0 list
	is '.total == 2'
	ask 0 clear --force --no-backup
	is '.removed == 2 and (has("backup") | not)'
	ask 0 list
	is '.total == 0'
	ask 0 log "$a"
	is '.events[-1].event == "removed"'
	new A --id "$a"
	ask 0 claim "$a"
	is '.lock.fence > 2'
	pawl done "$a"
	call 0 clear -y
	says "1 task removed" "backup: " "pawl restore FILE --force"
	lines 0 clear --yes
	same "$(new C)" t3
}

@test "clear: an id whose record could not be used never repeats a fence" {
	needs_sqlite
	a=$(new A)
	for _ in 1 2 3; do
		pawl claim "$a"
		pawl release "$a"
	done
	sqlite3 .pawl/queue.db "UPDATE record SET hot=x'00' WHERE id='$a'"
	call 0 clear --yes
	new A --id "$a"
	ask 0 claim "$a"
	is '.lock.fence > 3'
}

@test "clear: a terminal is asked" {
	needs_terminal
	new A
	on_terminal "echo n | $PAWL clear" >out || true
	on_terminal "$PAWL clear" >out || true
	ask 0 list
	is '.total == 1'
}

# --- backup, restore ---------------------------------------------------------------------------------

@test "backup: complete and consistent, and no other call waits" {
	some
	call 0 backup b.pawl
	says "5 tasks" b.pawl
	same "$(head -c 14 b.pawl | tr -d '\n')" "pawl backup 1"
	not grep -q "$token" b.pawl
	ask 0 backup
	[ -s "$(get .file)" ]
	is '.file | test("/backups/")'
	lines 0 backup c.pawl
	unchanged 30 backup no/such/folder/b.pawl
	unchanged 2 backup a b
}

@test "restore: the tasks without their locks; no fence goes back; the log continues" {
	some
	call 0 backup b.pawl
	pawl done "$a" --token "$token"
	pawl claim "$b"
	pawl remove "$c" --force
	late=$(new Late)
	before=$("$PAWL" log --json --limit 0 | jq '.events | length')
	unchanged 20 restore b.pawl
	complains "the queue is not empty" --force
	ask 0 restore b.pawl --force
	is '.tasks == 5'
	call 44 show "$late"
	ask 0 show "$a"
	is '.task | .status == "In Progress" and .lock == null and .fence > 1000000 and .description != null'
	is '[.comments[].text] == ["a comment"]'
	same "$(field "$c" .parent)" "$b"
	same "$(field "$b" .open_depends)" 1
	# no earlier holder holds anything, neither from before the restore nor from the backup
	unchanged 21 done "$a" --token "$token"
	ask 0 lock list
	is '.locks == []'
	ask 0 log --limit 0
	is ".events | length == $before + 1 and .[-1].event == \"restored\""
	# ids and fences continue from where they were
	[ "${late#t}" -lt "$(new Next | tr -d t)" ]
	new E --id "$e"
	ask 0 claim "$e"
	is '.lock.fence > 1000000'
}

@test "restore: into an empty queue; with its whole log" {
	some
	log=$("$PAWL" log --json --limit 0 | jq -c '.events[] | del(.cursor)')
	call 0 backup "$BATS_TEST_TMPDIR/b.pawl"
	work=$BATS_TEST_TMPDIR/fresh
	mkdir "$work"
	cd "$work" || return
	BATS_TEST_TMPDIR=$work queue
	lines 0 restore ../b.pawl
	same "$("$PAWL" log --json --limit 0 | jq -c '.events[1:-1][] | del(.cursor)')" "$log"
	# an earlier call, repeated by its request id, is recognised
	ask 0 create F --request-id r1
	is '.repeated == true'
	call 0 claim "$a"
}

@test "restore: refuses a cut, damaged, newer or foreign file" {
	some
	pawl backup b.pawl
	size=$(stat -c %s b.pawl)
	for n in 0 5 13 14 20 100 $((size / 2)) $((size - 33)) $((size - 1)); do
		head -c "$n" b.pawl >cut.pawl
		unchanged 40 restore cut.pawl --force
	done
	head -c $((size - 40)) b.pawl >cut.pawl
	call 40 restore cut.pawl --force
	complains "cut.pawl" "truncated"
	{ head -c $((size / 2)) b.pawl && printf X && tail -c +$((size / 2 + 2)) b.pawl; } >bad.pawl
	unchanged 40 restore bad.pawl --force
	{ cat b.pawl && echo; } >bad.pawl
	unchanged 40 restore bad.pawl --force
	sed '1s/1/2/' b.pawl >newer.pawl
	unchanged 40 restore newer.pawl --force
	complains "newer pawl"
	echo text >no.pawl
	unchanged 40 restore no.pawl --force
	complains "is not a backup of pawl"
	unchanged 30 restore nosuch.pawl --force
	unchanged 2 restore
	unchanged 2 restore a b
}

# --- migrate ------------------------------------------------------------------------------------------

# elsewhere SCHEME: another store
elsewhere() {
	case $1 in
	sqlite) echo "sqlite:$BATS_TEST_TMPDIR/elsewhere.db" ;;
	files) echo "files:$BATS_TEST_TMPDIR/elsewhere" ;;
	esac
}

@test "migrate: to any store and back, nothing lost, holders keep their locks" {
	some
	from=$(store_uri)
	before=$(all)
	for kind in sqlite files; do
		to=$(elsewhere "$kind")
		ask 0 migrate "$from" "$to"
		is '.tasks == 5 and .existed == false'
		same "$before" "$(all --store "$to")"
		# again: everything is there already
		ask 0 migrate "$from" "$to"
		is '.existed == true'
		# and on from there
		call 0 migrate "$to" "sqlite:$BATS_TEST_TMPDIR/back-$kind.db"
		same "$before" "$(all --store "sqlite:$BATS_TEST_TMPDIR/back-$kind.db")"
	done
	same "$before" "$(all)"
	call 0 heartbeat "$a" --store "$to" --token "$token"
	call 0 done "$a" --store "$to" --token "$token"
	call 0 unblock "$d" --store "$to"
	ask 0 claim "$d" --store "$to"
	is '.lock.fence == 2'
	ask 0 create F --request-id r1 --store "$to"
	is '.repeated == true'
	new E --id "$e" --store "$to"
	ask 0 claim "$e" --store "$to"
	is '.lock.fence == 2'
	same "$(new Next --store "$to")" t7
}

@test "migrate: refuses a target in use, the same store twice, and a missing source" {
	some
	from=$(store_uri)
	to=$(elsewhere sqlite)
	pawl init --store "$to" --queue other || true
	mkdir ../other && (cd ../other && "$PAWL" init -q --store "$to" && new X)
	call 20 migrate "$from" "$to"
	complains "is not empty"
	ask 20 migrate "$from" "$to"
	call 2 migrate "$from" "$from"
	call 40 migrate sqlite:nosuch.db "sqlite:$BATS_TEST_TMPDIR/y.db"
	unchanged 2 migrate "$from"
	lines 0 migrate "$from" "sqlite:$BATS_TEST_TMPDIR/z.db"
}
