# A contest of pawl with servers that sync as often: parts (g) and (k) of bench/run share it. $place says where each contender
# is; a contender without a place does not take part.

contest_tasks=${PAWL_BENCH_TASKS:-5000}
contest_rounds=${PAWL_BENCH_ROUNDS:-5}
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
	place=()
	if command -v redis-server >/dev/null && pkg-config --exists hiredis; then
		port=$(free_port)
		rm -rf "$dir/redis" && mkdir "$dir/redis" # another part may have left its tasks
		redis-server --port "$port" --bind 127.0.0.1 --dir "$dir/redis" --appendonly yes \
			--appendfsync always --save '' >/dev/null &
		servers+=($!)
		listening "$port" && place[redis]=$port
	fi
	if command -v beanstalkd >/dev/null; then
		port=$(free_port)
		rm -rf "$dir/beanstalkd" && mkdir "$dir/beanstalkd"
		beanstalkd -l 127.0.0.1 -p "$port" -b "$dir/beanstalkd" -f0 &
		servers+=($!)
		listening "$port" && place[beanstalkd]=$port
	fi
}

# contest CALLERS COUNTS ROUND WHO...: ROUND WHO N for each WHO and each number N of COUNTS ("1 8 20"), in turn and several
# times; CALLERS names them for the display: "processes"
contest() {
	local callers=$1 counts=$2 one=$3 round n who
	shift 3
	for ((round = 1; round <= contest_rounds; round++)); do
		for n in $counts; do
			for who; do
				[ -n "${place[$who]-}" ] || continue
				[ -t 2 ] && printf '\r    round %s of %s: %s %s, %-10s ' "$round" "$contest_rounds" "$n" "$callers" "$who" >&2
				"$one" "$who" "$n"
			done
		done
	done
	[ -t 2 ] && printf '\r%60s\r' '' >&2
	return 0
}

# column N FILE: the median of column N
column() {
	cut -d ' ' -f "$1" "$2" | median
}

# contest_head CALLERS; contest_row N NAME TASKS-A-SECOND FILE: a table of what bench-crowd has measured
contest_head() {
	printf '    %-10s %-16s %10s %10s %10s %10s\n' "$1" '' tasks/s p50 p99 longest
}

contest_row() {
	awk -v n="$1" -v who="$2" -v rate="$3" -v p50="$(column 3 "$4")" -v p99="$(column 4 "$4")" \
		-v most="$(cut -d ' ' -f 5 "$4" | sort -g | tail -n 1)" 'BEGIN {
			printf "    %-10s %-16s %10.0f %7.2f ms %7.2f ms %7.2f ms\n", n, who, rate, p50 / 1000, p99 / 1000, most / 1000
		}'
}
