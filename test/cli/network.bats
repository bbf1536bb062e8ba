#!/usr/bin/env bats
# A queue behind a server, and a network that cuts, delays and repeats: nothing is lost, nothing is done twice. In each round
# every call is broken once. PAWL_TEST_ROUNDS is the number of rounds for each fault. test/race/server
# runs `pawl torture` through the same faults.
# shellcheck disable=SC2089,SC2090 # CUT_PROXY_MEANWHILE is a command for sh -c

load common
load remote

rounds=${PAWL_TEST_ROUNDS:-1}

# through FAULT: $PAWL_STORE is a proxy that breaks every second request
through() {
	setpriv --pdeathsig KILL "$PAWL_SOURCE/test/kit/cut-proxy" "${server#http://}" "$1" \
		>"$BATS_TEST_TMPDIR/proxy" 3>&- &
	ends_with_test $!
	disown
	soon test -s "$BATS_TEST_TMPDIR/proxy"
	export PAWL_STORE PAWL_SERVER_INSECURE=1 # the proxy has another address
	PAWL_STORE=http://$(cat "$BATS_TEST_TMPDIR/proxy")
}

# The caller made the call once, whatever the network did with it.
not_repeated() {
	is '.repeated | not'
}

# work N: creates, claims and completes N tasks
work() {
	local i
	for ((i = 0; i < $1; i++)); do
		ask 0 create "task $i"
		not_repeated
		ask 0 next --claim
		not_repeated
		ask 0 done "$(get .task.id)"
		not_repeated
	done
}

# each_once N: N tasks, each created, claimed and completed exactly once
each_once() {
	same "$(events | grep -xE 'created|claimed|done' | sort | uniq -c | tr -s ' \n' ' ')" " $1 claimed $1 created $1 done "
	same "$(beside_server list --all --limit 0 --json | jq -c '[.tasks[] | select(.status == "Done" and .fence == 1 and .attempts == 1)] | length')" "$1"
	same "$(find "$XDG_STATE_HOME/pawl" -name '*pending*' | wc -l)" 0
}

# network FAULT: nothing is lost, nothing is done twice
network() {
	export PAWL_SERVER_TOKEN=$admin
	through "$1"
	work "$rounds"
	each_once "$rounds"
}

@test "network: a connection that is closed at once" {
	network refuse
}

@test "network: a cut in the middle of the request" {
	network half
}

@test "network: a cut before the answer" {
	network unanswered
}

@test "network: a cut in the head of the answer" {
	network head
}

@test "network: a cut before the last byte of the answer" {
	network body
}

@test "network: a request that arrives after its repetition" {
	local i
	export PAWL_SERVER_TOKEN=$admin
	# a late request could take this one
	beside_server create spare -q >/dev/null
	through late
	work "$rounds"
	# the proxy passes the last request on 0.3 s later
	sleep 0.8
	same "$(events | sort | uniq -c | tr -s ' \n' ' ')" " $rounds claimed $((rounds + 1)) created $rounds done "
}

@test "network: a proxy that sends a request twice" {
	network twice
}

@test "network: answers that come late" {
	network slow
}

@test "network: a proxy that answers 502" {
	network 502
}

# taken_over FAULT [COMMAND...]: an operator reopens t1, another agent claims it, and the command runs, before the
# repetition of `done` comes
taken_over() {
	local hold=$BATS_TEST_TMPDIR/hold code=0 pid token
	export PAWL_SERVER_TOKEN=$admin PAWL_STORE=$server CUT_PROXY_MEANWHILE
	call 0 create one
	ask 0 claim t1 -a first
	token=$(get .lock.token) # the proxy has another address
	CUT_PROXY_MEANWHILE="[ ! -e '$hold.on' ] || touch '$hold'; while [ -e '$hold' ]; do sleep 0.02; done"
	through "$1"
	touch "$hold.on"
	"$PAWL" done t1 -a first --token "$token" --json >"$BATS_TEST_TMPDIR/out" 3>&- &
	pid=$!
	soon test -e "$hold"
	until events | grep -qx done; do # the command asks for more than this
		rm "$hold"
		soon test -e "$hold"
	done
	beside_server reopen t1 --reason again -q
	beside_server claim t1 -a other -q >/dev/null
	"${@:2}"
	rm "$hold"
	wait "$pid" || code=$?
	same "$code" 30
	output=$(cat "$BATS_TEST_TMPDIR/out")
	is '.error.applied == "unknown"'
	same "$(events | grep -xE 'claimed|done' | tr '\n' ' ')" "claimed done claimed "
	same "$(beside_server show t1 --json | jq -r .task.lock.holder)" other
}

@test "network: the task was taken over before done came again: API_ERROR, applied unknown" {
	taken_over unanswered
}

@test "network: the same, with a proxy that sends the request twice" {
	taken_over twice
}

start_again() {
	kill -9 "$served_pid"
	soon not kill -0 "$served_pid"
	start_server "${server#http://}"
}

@test "network: the same, with a server that has forgotten the first request" {
	taken_over unanswered start_again
}

@test "network: done --claim-next gives the same task again after a lost answer" {
	export PAWL_SERVER_TOKEN=$admin PAWL_STORE=$server
	call 0 batch add one two three
	ask 0 claim t1
	token=$(get .lock.token)
	through unanswered
	ask 0 done t1 --token "$token" --claim-next
	is '.next.task.id == "t2" and (.repeated | not)'
	ask 0 done t2
	same "$(events | grep -xE 'claimed|done' | tr '\n' ' ')" "claimed done claimed done "
}

@test "network: a released task that another agent has taken: the repetition is recognised" {
	export PAWL_SERVER_TOKEN=$admin PAWL_STORE=$server CUT_PROXY_MEANWHILE
	call 0 create one
	ask 0 claim t1 -a first
	token=$(get .lock.token) # the proxy has another address
	CUT_PROXY_MEANWHILE="cd '$served_home' && unset PAWL_STORE PAWL_SERVER_TOKEN && '$PAWL' claim t1 -a other >&2 || :"
	through unanswered
	ask 0 release t1 -a first --token "$token"
	not_repeated
	same "$(events | grep -xE 'claimed|released' | tr '\n' ' ')" "claimed released claimed "
}

@test "network: batches, plans and comments are made once" {
	export PAWL_SERVER_TOKEN=$admin
	through unanswered
	ask 0 batch add one two three
	call 0 comment t1 "a remark"
	call 0 update t2 --title other
	call 0 depend t3 t1
	call 0 cancel t2 --reason "not needed"
	same "$(events | sort | uniq -c | tr -s ' \n' ' ')" " 1 canceled 1 comment 3 created 1 depends 1 updated "
}

@test "network: a server that does not come back: API_ERROR, and whether the change was made" {
	export PAWL_SERVER_TOKEN=$admin PAWL_STORE=$server
	kill -STOP "$served_pid"
	ask 30 create x --timeout 5s
	is '.error.applied == "no"' # it gave no proof, so nothing was sent
	PAWL_SERVER_INSECURE=1 ask 30 create x --timeout 5s
	is '.error.applied == "unknown"'
	kill -9 "$served_pid"
	soon not kill -0 "$served_pid"
	ask 30 create x --timeout 0.5s
	is '.error.applied == "no" and (.error.message | contains("'"$server"'"))'
	call 30 list --timeout 0
	complains "pawl serve"
}

@test "network: kill -9 of the server under load: each task is done exactly once" {
	local i pids=() kills=$((rounds + 1)) n
	n=$((kills * 5))
	export PAWL_SERVER_TOKEN=$admin PAWL_STORE=$server
	for ((i = 0; i < n; i++)); do
		echo "task $i"
	done | beside_server batch add --file - -q >/dev/null
	for i in 1 2 3; do
		while "$PAWL" next --claim --json -a "w$i" --timeout 20s >"got.$i" && id=$(jq -r .task.id "got.$i") &&
			"$PAWL" done "$id" -q -a "w$i" --timeout 20s >/dev/null; do
			:
		done 2>"errors.$i" 3>&- &
		pids+=($!)
	done
	for ((i = 0; i < kills; i++)); do
		sleep 0.2
		start_again
	done
	wait "${pids[@]}" || true
	cat errors.*
	for i in 1 2 3; do
		output=$(cat "got.$i")
		is '.code == "NO_TASKS"'
	done
	each_once "$n"
}
