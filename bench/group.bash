# Part (g) of bench/run: group commit, compared with the plain gate and with servers that sync as
# often.

group_counts='1 2 4 8 20 64'

# group_fill WHO TASKS: fills a queue that is new, or that an earlier round has drained
group_fill() {
	case $1 in
	pawl | alone) rm -f "$dir"/group.db* ;;
	esac
	"$bin/bench-crowd" "$1" fill "${place[$1]}" "$2"
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
	local n who rate name out=$build/group.txt
	: >"$out"
	contest_head processes
	for n in $group_counts; do
		for who in pawl alone redis beanstalkd; do
			[ -s "$dir/$who.$n" ] || continue
			rate=$(column 1 "$dir/$who.$n") name=$who # calls a second: two for each task
			[ $who != alone ] || name='plain gate'
			contest_row "$n" "$name" "$(ratio "$rate" 2)" "$dir/$who.$n"
			echo "$who $n $rate" >>"$out"
		done
	done
}

# against WHO N: pawl's rate as a multiple of WHO's
against() {
	ratio "$(column 1 "$dir/pawl.$2")" "$(column 1 "$dir/$1.$2")"
}

# group_round WHO PROCESSES
group_round() {
	group_fill "$1" "$contest_tasks"
	"$bin/bench-crowd" "$1" drain "${place[$1]}" "$2" >>"$dir/$1.$2"
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
	echo "(g) group commit: $contest_tasks tasks claimed and completed through the library, medians of $contest_rounds rounds"
	start_servers
	place[pawl]=$dir/group.db place[alone]=$dir/group.db
	contest processes "$group_counts" group_round pawl alone redis beanstalkd
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
