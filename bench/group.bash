# Part (g) of bench/run: group commit, compared with the plain gate and with servers that sync as
# often.

group_counts=(1 2 4 8 20 64)
group_tasks=${PAWL_BENCH_TASKS:-5000}
group_rounds=${PAWL_BENCH_ROUNDS:-5}
servers=()

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

stop_servers() {
	local pid
	for pid in "${servers[@]}"; do
		kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || :
	done
	servers=()
}

# listening PORT: a server listens there within five seconds
listening() {
	local tries=0
	until (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; do
		((++tries < 100)) || return 1
		sleep 0.05
	done
}

declare -A place=()
start_servers() {
	local port
	place=([pawl]=$dir/group.db [alone]=$dir/group.db)
	if command -v redis-server >/dev/null && pkg-config --exists hiredis; then
		port=$(free_port)
		mkdir "$dir/redis"
		redis-server --port "$port" --bind 127.0.0.1 --dir "$dir/redis" --appendonly yes \
			--appendfsync always --save '' >/dev/null &
		servers+=($!)
		listening "$port" && place[redis]=$port
	fi
	if command -v beanstalkd >/dev/null; then
		port=$(free_port)
		mkdir "$dir/beanstalkd"
		beanstalkd -l 127.0.0.1 -p "$port" -b "$dir/beanstalkd" -f0 &
		servers+=($!)
		listening "$port" && place[beanstalkd]=$port
	fi
}

# group_fill WHO TASKS: fills a queue that is new, or that an earlier round has drained
group_fill() {
	case $1 in
	pawl | alone) rm -f "$dir"/group.db* ;;
	esac
	"$bin/bench-crowd" "$1" fill "${place[$1]}" "$2"
}

# column N FILE: the median of column N
column() {
	cut -d ' ' -f "$1" "$2" | median
}

# syncs WHO PROCESSES: fdatasyncs for each call
syncs() {
	local tasks=1000
	group_fill "$1" $tasks
	strace -f -qq -e trace=fdatasync,fsync -o "$dir/syncs" \
		"$bin/bench-crowd" "$1" drain "${place[$1]}" "$2" >/dev/null
	awk -v calls=$((2 * tasks)) 'END { printf "%.3f", NR / calls }' <(grep -E '(fdatasync|fsync)\(' "$dir/syncs")
}

group_table() {
	local n who out=$build/group.txt
	: >"$out"
	printf '    %-10s %-12s %10s %10s %10s %10s\n' processes '' tasks/s p50 p99 longest
	for n in "${group_counts[@]}"; do
		for who in pawl alone redis beanstalkd; do
			[ -s "$dir/$who.$n" ] || continue
			awk -v n="$n" -v who="$who" -v rate="$(column 1 "$dir/$who.$n")" -v p50="$(column 3 "$dir/$who.$n")" \
				-v p99="$(column 4 "$dir/$who.$n")" -v most="$(cut -d ' ' -f 5 "$dir/$who.$n" | sort -g | tail -n 1)" \
				'BEGIN {
					name = who == "alone" ? "plain gate" : who
					printf "    %-10s %-12s %10.0f %7.2f ms %7.2f ms %7.2f ms\n", n, name, rate / 2, p50 / 1000,
						p99 / 1000, most / 1000
				}'
			echo "$who $n $(column 1 "$dir/$who.$n")" >>"$out"
		done
	done
}

# against WHO N: pawl's rate as a multiple of WHO's
against() {
	ratio "$(column 1 "$dir/pawl.$2")" "$(column 1 "$dir/$1.$2")"
}

group_rounds() {
	local round n who
	for ((round = 1; round <= group_rounds; round++)); do
		for n in "${group_counts[@]}"; do
			for who in pawl alone redis beanstalkd; do
				[ -n "${place[$who]-}" ] || continue
				[ -t 2 ] && printf '\r    round %s of %s: %s processes, %-10s ' "$round" "$group_rounds" "$n" "$who" >&2
				group_fill $who "$group_tasks"
				"$bin/bench-crowd" $who drain "${place[$who]}" "$n" >>"$dir/$who.$n"
			done
		done
	done
	[ -t 2 ] && printf '\r%60s\r' '' >&2
	return 0
}

low_load() {
	local round who
	for round in 1 2 3; do
		for who in pawl alone; do
			group_fill $who 500
			"$bin/bench-crowd" $who paced "${place[$who]}" 20 200 >>"$dir/$who.paced"
		done
	done
	for who in pawl alone; do
		note "20 processes, 200 calls a second together, $who: p50 $(column 3 "$dir/$who.paced") us," \
			"p99 $(column 4 "$dir/$who.paced") us"
	done
	verdict '(g) low load: p50, pawl : plain gate' \
		"$(ratio "$(column 3 "$dir/pawl.paced")" "$(column 3 "$dir/alone.paced")")" '<=' 1.1 ×
	verdict '(g) low load: p99, pawl : plain gate' \
		"$(ratio "$(column 4 "$dir/pawl.paced")" "$(column 4 "$dir/alone.paced")")" '<=' 1.1 ×
}

measure_g() {
	echo "(g) group commit: $group_tasks tasks claimed and completed through the library, medians of $group_rounds rounds"
	start_servers
	group_rounds
	group_table
	verdict '(g) 1 process, pawl : plain gate, tasks a second' "$(against alone 1)" '>=' 0.95 ×
	verdict '(g) 20 processes, pawl : plain gate' "$(against alone 20)" '>=' 4 ×
	verdict '(g) 64 processes, pawl : plain gate' "$(against alone 64)" '>=' 6 ×
	if [ -n "${place[redis]-}" ]; then
		verdict '(g) 20 processes, pawl : Redis, appendfsync always' "$(against redis 20)" '>=' 0.9 ×
		verdict '(g) 64 processes, pawl : Redis, appendfsync always' "$(against redis 64)" '>=' 0.9 ×
	else
		note 'redis-server or hiredis is missing: not compared'
	fi
	verdict '(g) 20 processes: fdatasyncs for each call' "$(syncs pawl 20)" '<=' 0.1 ''
	note "with the plain gate: $(syncs alone 20)"
	low_load
	stop_servers
	bench/plot "$build/group.txt" >"$build/group.svg"
	note "plot: $build/group.svg"
}
