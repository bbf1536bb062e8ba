# Parts (k) and (l) of bench/run: a queue behind `pawl serve`, next to other servers that sync as often, and a command
# through a server next to the same command on its database.

server_counts=${PAWL_BENCH_CLIENTS:-1 8 20 64}

# server_start QUEUE: serves the folder $dir/QUEUE at $server_url, with limits that one address and one token do not reach
server_start() {
	local port log=$dir/$1.log
	shift
	port=$(free_port)
	(
		cd "$dir/served" && ulimit -n "$(ulimit -Hn)" && PAWL_SERVER_STATE=$dir/served/state PAWL_SERVE_MAX_CONNECTIONS=20000 \
			PAWL_SERVE_MAX_PER_ADDRESS=20000 PAWL_SERVE_CALLS_PER_SECOND=10000000 PAWL_SERVE_BURST=10000000 \
			PAWL_SERVE_MAX_WAITS=20000 PAWL_QUEUE=default exec "$pawl" serve --listen "127.0.0.1:$port" --log none "$@" 2>"$log"
	) &
	server_pid=$!
	servers+=("$server_pid")
	listening "$port" || return
	server_url=http://127.0.0.1:$port
}

server_stop() {
	kill "$server_pid" && wait "$server_pid" 2>/dev/null || :
}

# server_fill TASKS: a new queue, and a token for it in PAWL_SERVER_TOKEN
server_fill() {
	rm -rf "$dir/served"
	mkdir "$dir/served"
	(cd "$dir/served" && "$pawl" init -q --force && PAWL_QUEUE=empty "$pawl" init -q --force)
	"$bin/bench-crowd" pawl fill "$dir/served/.pawl/queue.db" "$1"
	PAWL_SERVER_TOKEN=$(cd "$dir/served" && PAWL_SERVER_STATE=$dir/served/state "$pawl" token create bench --role admin \
		--agent '*' -q)
	export PAWL_SERVER_TOKEN
}

# server_drain KIND PROCESSES: the figures of one drain
server_drain() {
	case $1 in
	server) "$bin/bench-crowd" pawl drain "$server_url" "$2" ;;
	chain) "$bin/bench-crowd" pawl chain "$server_url" "$2" ;;
	*) "$bin/bench-crowd" "$1" drain "${place[$1]}" "$2" ;;
	esac
}

# server_round WHO CLIENTS
server_round() {
	case $1 in
	server | chain) server_fill "$contest_tasks" && server_start served ;;
	*) group_fill "$1" "$contest_tasks" ;;
	esac
	server_drain "$1" "$2" >>"$dir/served.$1.$2"
	case $1 in
	server | chain) server_stop ;;
	esac
}

server_name() {
	case $1 in
	server) echo 'pawl serve' ;;
	chain) echo 'with claim-next' ;;
	*) echo "$1" ;;
	esac
}

server_table() {
	local n who file out=$build/server.txt
	: >"$out"
	contest_head clients
	for n in $server_counts; do
		for who in server chain redis beanstalkd; do
			file=$dir/served.$who.$n
			[ -s "$file" ] || continue
			contest_row "$n" "$(server_name $who)" "$(column 6 "$file")" "$file"
			# bench/plot halves calls to tasks
			echo "$who $n $(awk -v rate="$(column 6 "$file")" 'BEGIN { print 2 * rate }')" >>"$out"
		done
	done
}

# beside WHO OTHER N: the rate of tasks of WHO as a multiple of that of OTHER
beside() {
	ratio "$(column 6 "$dir/served.$1.$3")" "$(column 6 "$dir/served.$2.$3")"
}

resident() {
	awk '$1 == "VmRSS:" { print $2 }' "/proc/$server_pid/status"
}

# idle_stands FILE: the last bench/idle, which writes to FILE, has made its connections
idle_stands() {
	while [ ! -s "$1" ]; do
		kill -0 "${servers[-1]}" || return
		sleep 0.1
	done
}

# Connections that do nothing must not slow the others down.
server_burdened() {
	local slow=${PAWL_BENCH_SLOW:-1000} parked=${PAWL_BENCH_PARKED:-5000} before after figures idle=()
	server_fill "$contest_tasks"
	server_start served
	curl -fs -o /dev/null -H "Authorization: Bearer $PAWL_SERVER_TOKEN" -H 'Content-Type: application/json' -d '{}' \
		"$server_url/v1/next?queue=empty" || :
	before=$(resident)
	mkfifo "$dir/burden" "$dir/burden2"
	bench/idle "$server_url" 0 "$parked" empty <"$dir/burden" >"$dir/burden.out" &
	servers+=($!) idle+=($!)
	exec 9>"$dir/burden"
	idle_stands "$dir/burden.out" || return
	sleep 1 # the server still reads the last of them
	after=$(resident)
	bench/idle "$server_url" "$slow" 0 <"$dir/burden2" >"$dir/burden2.out" &
	servers+=($!) idle+=($!)
	exec 8>"$dir/burden2"
	idle_stands "$dir/burden2.out" || return
	figures=$(server_drain server 20)
	exec 9>&- 8>&-
	if ! wait "${idle[0]}" || ! wait "${idle[1]}"; then
		note "not measured: the server has closed a parked connection"
		return
	fi
	server_stop
	rm -f "$dir/burden" "$dir/burden2"
	verdict "(k) memory for each of $parked parked connections" \
		"$(awk -v a="$after" -v b="$before" -v n="$parked" 'BEGIN { printf "%.1f", (a - b) / n }')" '<=' 8 KiB
	note "20 clients beside $slow slow and $parked parked connections: $(awk '{ printf "%.0f tasks/s, p50 %.2f ms", $6, $3 / 1000 }' <<<"$figures")"
	verdict "(k) p99 beside $slow slow and $parked parked connections" \
		"$(awk '{ printf "%.1f", $4 / 1000 }' <<<"$figures")" '<=' 50 ms
}

measure_k() {
	local n
	echo "(k) a server: $contest_tasks tasks claimed and completed through the library, medians of $contest_rounds rounds"
	start_servers
	place[server]=served place[chain]=served
	contest clients "$server_counts" server_round server chain redis beanstalkd
	server_table
	if [ -n "${place[redis]-}" ]; then
		for n in 20 64; do
			[ -s "$dir/served.redis.$n" ] || continue
			verdict "(k) $n clients, done --claim-next : Redis, appendfsync always" "$(beside chain redis $n)" '>=' 1 ×
			verdict "(k) $n clients, separate calls : Redis, appendfsync always" "$(beside server redis $n)" '>=' 0.8 ×
		done
	else
		note 'redis-server or hiredis is missing: not compared'
	fi
	server_burdened
	stop_servers
	bench/plot "$build/server.txt" clients >"$build/server.svg"
	note "plot: $build/server.svg"
}

measure_l() {
	local rounds=${PAWL_BENCH_CLAIMS:-200} plain secure

	echo "(l) one durable claim, each in a process of its own, through a server on this machine: $rounds rounds"
	server_fill 3000
	server_start served
	plain=$server_url
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$dir/key.pem" -out "$dir/cert.pem" \
		-days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 2>/dev/null
	server_start tls --tls-cert "$dir/cert.pem" --tls-key "$dir/key.pem"
	secure=${server_url/http:/https:}
	queue l 1000
	# for all three: `env` in front of one would be a process more
	times=$(PAWL_SERVER_CA=$dir/cert.pem "$bin/bench-spawn" "$rounds" \
		@ pawl_claim "$dir/l" "$pawl" claim 'b{n}' \
		@ the_same_through_a_server "$dir" "$pawl" claim --store "$plain" 'b1{n}' \
		@ the_same_with_TLS "$dir" "$pawl" claim --store "$secure" 'b2{n}')
	show_times
	stop_servers
	verdict '(l) through a server : local, p50' "$(ratio "$(p50 the_same_through_a_server)" "$(p50 pawl_claim)")" '<=' 1.5 ×
	verdict '(l) through a server with TLS : local, p50' "$(ratio "$(p50 the_same_with_TLS)" "$(p50 pawl_claim)")" '<=' 2.5 ×
}
