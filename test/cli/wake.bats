#!/usr/bin/env bats
# shellcheck disable=SC2016 # commands are written with their variables
# Commands that wait for a change, or for a time, learn of it at once: pawl run, log --follow, next --wait, pawl
# mcp.

load common
load background

# running ARG...: pawl run ARG..., with its command in the file `cmd`
running() {
	"$PAWL" run --ttl 1h --grace 1s "$@" -- sh -c 'echo $$ >>pids; echo $$ >cmd; exec sleep 30' >out 2>err 3>&- &
	pawl=$!
	echo "$pawl" >>pids
	soon [ -s cmd ]
}

# is_over CODE: pawl run ends with CODE, long before the next renewal is due
is_over() {
	local began=$SECONDS rc=0
	wait "$pawl" || rc=$?
	cat err
	same "$rc" "$1"
	[ "$((SECONDS - began))" -lt 8 ]
}

# reads: how often pawl run has read its task
reads() {
	grep -c '^pawl-calls: get ' err || true
}

@test "run: a lock that is broken is noticed at once" {
	new x
	running --next
	pawl lock break t1 -r r -a boss
	is_over 21
	grep -q "lock on t1" err
	not kill -0 "$(cat cmd)"
	same "$(field t1 .status)" "In Progress"
}

@test "run: so is one that somebody else has got since" {
	new x
	running t1
	pawl lock break t1 -r r -a boss
	pawl claim t1 -a other
	is_over 21
	same "$(field t1 .lock.holder)" other
}

@test "run: so is a task that was removed, cleared or restored" {
	new x
	new y
	new z
	pawl backup b
	running t1
	pawl remove t1 --force
	is_over 21
	rm cmd
	running t2
	pawl restore b --force
	is_over 21
	rm cmd
	running t3
	pawl clear --force
	is_over 21
}

@test "run: the command's own report about its task is not a lost lock" {
	new x
	"$PAWL" run t1 --ttl 1h -- sh -c '"$PAWL" done "$PAWL_TASK" -q; sleep 1; echo to the end' >out 2>err 3>&-
	same "$(cat out)" "to the end"
	status_is t1 Done
}

@test "run: with several jobs only the one that lost its lock ends" {
	new x
	new y
	"$PAWL" run --jobs 2 --ttl 1h --grace 1s -- sh -c 'echo $$ >>pids; echo $$ >"cmd.$PAWL_TASK"; exec sleep 30' \
		>out 2>err 3>&- &
	pawl=$!
	echo "$pawl" >>pids
	soon [ -s cmd.t1 ]
	soon [ -s cmd.t2 ]
	pawl lock break t2 -r r -a boss
	soon grep -q "lock on t2" err
	kill -0 "$(cat cmd.t1)"
	not kill -0 "$(cat cmd.t2)"
	same "$(field t1 .lock.live)" true
	kill "$(cat cmd.t1)"
	is_over 21
	status_is t1 Failed
}

@test "run: reads its task while others change the queue, but not at each change, and not while nothing happens" {
	needs_local "it breaks or watches the store itself"
	new x
	new y
	PAWL_STORE=$(faulty calls) running t1
	sleep 0.5 # its own claim woke it
	before=$(reads)
	began=$(date +%s%N)
	for i in {1..40}; do
		pawl comment t2 "$i"
	done
	sleep 0.5
	took=$((($(date +%s%N) - began) / 1000000))
	read=$(($(reads) - before))
	echo "$read reads in $took ms"
	[ "$read" -ge 1 ]
	[ "$read" -le "$((took / 200 + 2))" ]
	before=$(wc -l <err)
	sleep 1
	same "$(wc -l <err)" "$before"
	pawl lock break t1 -r r -a boss
	is_over 21
}

# following FILE ARG...: pawl log --follow ARG... into FILE, once it has begun
following() {
	local file=$1
	shift
	"$PAWL" log --follow --limit 50 "$@" >"$file" 2>&1 3>&- &
	echo $! >>pids
	disown $!
	soon [ -s "$file" ]
}

# expired FILE: the task, holder and fence of each expiry in it, one on each line
expired() {
	jq -r 'select(.event == "expired") | "\(.task) \(.agent) \(.fence)"' "$1"
}

@test "log --follow: a lease that expires is shown at once, once to each reader" {
	new x
	new y
	following one --json
	following two --json
	following text
	following other t2 --json
	pawl claim t1 -a al --ttl 1s
	before=$(snapshot)
	soon grep -q '"expired"' one
	soon grep -q '"expired"' two
	following late --json # a lease that expired before is not reported
	sleep 1.5
	same "$(expired one)" "t1 al 1"
	same "$(expired two)" "t1 al 1"
	same "$(expired other)$(expired late)" ""
	grep -q 't1  expired  held by al  fence 1' text
	# at the time of expiry, and without a cursor: the log does not have it
	at=$(jq -r 'select(.event == "expired").at' one)
	same "$at" "$(field t1 .lock.expires_at)"
	jq -es 'map(select(.event == "expired")) == [{"at": $at, "event": "expired", "task": "t1", "agent": "al", "fence": 1}]' \
		--arg at "$at" one
	# nothing changed but what follows from the time
	timeless='s/"(held|position)":[a-z0-9]*,//g; s/"can":\[[^]]*\]//g; s/"live":[a-z]*(,"abandoned":true)?//g'
	same "$(snapshot | sed -E "$timeless")" "$(sed -E "$timeless" <<<"$before")"
	ask 0 log
	is '[.events[] | select(.event == "expired")] == []'
	same "$(field t1 .abandoned)" 0
	# the next claim counts the abandonment, once
	pawl claim t1 -a bo
	soon grep -q '"fence":2' one
	same "$(field t1 .abandoned)" 1
	same "$(expired one)" "t1 al 1"
	same "$(jq -r 'select(.task == "t1").event' one | tr '\n' ' ')" "created claimed expired abandoned claimed "
}

@test "log --follow: a renewed or released lock does not expire; manual locks and those of the whole queue do" {
	new x
	new y
	new z
	following one --json
	pawl claim t1 -a al --ttl 1s
	pawl claim t2 -a al --ttl 1s
	pawl heartbeat t1 -a al --ttl 1h
	pawl release t2 -a al
	pawl lock acquire t3 -a bo --ttl 1.2s
	pawl lock acquire @batch -a cy --ttl 1.3s
	soon eval 'expired one | grep -q @batch'
	same "$(expired one)" "t3 bo 1"$'\n'"@batch cy 1"
}

@test "log --follow: one task, and the lease that expires after others were taken" {
	new x
	new y
	pawl claim t1 -a al --ttl 2s # before any command follows
	following one t1 --json
	following all --json
	pawl claim t2 -a bo --ttl 1s
	soon eval 'expired one | grep -q .'
	soon eval '[ "$(expired all | wc -l)" -eq 2 ]'
	same "$(expired one)" "t1 al 1"
	same "$(expired all)" "t2 bo 1"$'\n'"t1 al 1"
}

# lateness FILE: how long after the lease had expired the last line was written, in ms
lateness() {
	jq -rn --arg at "$(tail -n 1 "$1" | jq -r .at)" --arg seen "$(date -u -r "$1" +%Y-%m-%dT%H:%M:%S.%3NZ)" \
		'def ms: (.[0:19] + "Z" | fromdate) * 1000 + (.[20:23] | tonumber); ($seen | ms) - ($at | ms)'
}

@test "log --follow: does not wait for its next look when a lease expires" {
	local i late
	new long
	pawl claim t1 -a bo --ttl 1h
	following one --json
	# without a wake-up it looks every second, first a second after the claim; a busy machine gets several attempts
	for i in 2 3 4 5 6; do
		new "x$i"
		pawl claim "t$i" -a al --ttl 0.3s
		soon eval "expired one | grep -q '^t$i '"
		late=$(lateness one)
		echo "$late ms late"
		[ "$late" -ge 300 ] || return 0
	done
	return 1
}

@test "next --wait: returns when the time comes before which a task is not offered" {
	new x --delay 1s
	began=$SECONDS
	call 0 next --claim --wait 20s -q
	exactly t1
	[ "$((SECONDS - began))" -lt 10 ]
}

@test "mcp: a subscriber learns of an expired lease" {
	new x
	pawl claim t1 -a al --ttl 2s
	coproc SERVER { exec "$PAWL" mcp 2>complaints 3>&-; }
	echo "$SERVER_PID" >>pids
	printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
		'{"jsonrpc":"2.0","method":"notifications/initialized"}' \
		'{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"pawl://tasks/t1"}}' >&"${SERVER[1]}"
	IFS= read -r -t 20 -u "${SERVER[0]}" line
	IFS= read -r -t 20 -u "${SERVER[0]}" line
	jq -e '.id == 2 and .result == {}' <<<"$line"
	IFS= read -r -t 20 -u "${SERVER[0]}" line
	jq -e '.method == "notifications/resources/updated" and .params.uri == "pawl://tasks/t1"' <<<"$line"
	lock_is_free t1
	not read -r -t 1 -u "${SERVER[0]}" line
	disown "$SERVER_PID"
}
