#!/usr/bin/env bats
# The store postgres: with servers that refuse: TLS, connections, rights.
load common
load postgres

teardown() {
	[ -z "${tls-}" ] || {
		sql 'ALTER SYSTEM RESET ssl'
		sql 'SELECT pg_reload_conf()'
	}
	[ -z "${crowd-}" ] || kill "$crowd" 2>/dev/null || :
	finish_proxy
}

# with_role: a role of its own that may use the queue
with_role() {
	sql "CREATE ROLE $role LOGIN; CREATE SCHEMA \"$schema\" AUTHORIZATION $role"
	mine=${uri/tester/$role}
}

# can_connect PARAMETER...: the server accepts this connection
can_connect() {
	"$pg_bin/psql" -X -w "host=127.0.0.1 port=$pg_port user=$role dbname=postgres $*" -c 'SELECT 1'
}

# certificate NAME: NAME.crt and NAME.key, in the folder of the server
certificate() {
	"$pg_run" sh -c "umask 077 && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
		-subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -keyout '$1.key' -out '$1.crt'" 2>/dev/null
	"$pg_run" cat "$1.crt" >"$work/${1##*/}.crt"
}

@test "postgres: TLS that the server requires, and a certificate that is not right" {
	needs openssl
	with_role
	certificate data/server
	certificate other
	sed -i "1i hostssl all $role 127.0.0.1/32 trust" "$pg_dir/data/pg_hba.conf"
	sed -i "2i hostnossl all $role 127.0.0.1/32 reject" "$pg_dir/data/pg_hba.conf"
	tls=on
	sql 'ALTER SYSTEM SET ssl=on'
	sql 'SELECT pg_reload_conf()'
	soon can_connect sslmode=require
	call 30 init --store "$mine&sslmode=disable"
	complains 127.0.0.1 "database postgres" "no encryption" sslmode
	[ ! -e .pawl ]
	call 30 init --store "$mine&sslmode=verify-full&sslrootcert=$work/other.crt"
	complains 127.0.0.1 "database postgres" certificate sslrootcert
	call 30 init --store "$mine&sslmode=verify-full&sslrootcert=$work/missing.crt"
	complains missing.crt
	[ ! -e .pawl ]
	same "$(sql "SELECT count(*) FROM pg_tables WHERE schemaname='$schema'")" 0
	call 0 init --store "$mine&sslmode=verify-full&sslrootcert=$work/server.crt"
	call 0 create x
}

# occupy: takes every connection that the server has for this role; ends when it is told to
occupy() {
	python3 - "$pg_port" "$role" "$work/occupied" <<'PY' &
import os, signal, socket, struct, sys
port, role, file = int(sys.argv[1]), sys.argv[2], sys.argv[3]
body = struct.pack("!I", 196608) + b"user\0" + role.encode() + b"\0database\0postgres\0\0"
sockets = []
for _ in range(400):
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(struct.pack("!I", len(body) + 4) + body)
    sockets.append(s)
held = [s for s in sockets if s.recv(1) == b"R"]  # b"E": refused
with open(file + ".new", "w") as f:
    f.write(str(len(held)))
os.rename(file + ".new", file)
signal.pause()
PY
	crowd=$!
	soon test -e "$work/occupied"
}

@test "postgres: a server whose connections are all taken" {
	with_role
	pawl init --store "$mine"
	new first
	occupy
	[ "$(cat "$work/occupied")" -ge 100 ]
	ask 30 create second
	is '.error.applied == "no"'
	[[ $output == *127.0.0.1* && $output == *"database postgres"* && $output == *max_connections* ]]
	ask 30 list
	call 30 init --store "$mine" --queue other
	kill "$crowd"
	soon "$PAWL" create second
	ask 0 list --all
	is '.tasks | map(.title) | sort == ["first", "second"]'
	call 40 list --queue other
}

@test "postgres: rights that are only half there: nothing is half-done" {
	start
	id=$(new first)
	sql "CREATE ROLE $role LOGIN; GRANT USAGE ON SCHEMA \"$schema\" TO $role; GRANT ALL ON ALL TABLES IN SCHEMA \"$schema\" TO $role; REVOKE INSERT ON \"$schema\".log FROM $role"
	ask 30 claim "$id" --store "${uri/tester/$role}"
	is '.error.applied == "no"'
	[[ $output == *"permission denied"* && $output == *127.0.0.1* ]]
	ask 30 create second --store "${uri/tester/$role}"
	same "$(sql "SELECT status,count(*) FROM \"$schema\".tasks GROUP BY 1")" 'Ready|1'
	call 0 doctor
}

@test "postgres: a database that takes no connections, and one that is gone" {
	sql "CREATE DATABASE gone_$$"
	pawl init --store "$base/gone_$$"
	sql "ALTER DATABASE gone_$$ ALLOW_CONNECTIONS false"
	call 30 list
	complains 127.0.0.1 "database gone_$$"
	sql "DROP DATABASE gone_$$ WITH (FORCE)"
	call 40 list
	complains 127.0.0.1 "gone_$$" createdb
}

@test "postgres: a server that speaks another protocol, or none" {
	python3 - "$work/ports" <<'PY' &
import os, socket, sys
a, b = socket.socket(), socket.socket()
for s in (a, b):
    s.bind(("127.0.0.1", 0))
    s.listen(8)
with open(sys.argv[1] + ".new", "w") as f:
    f.write("%d %d\n" % (a.getsockname()[1], b.getsockname()[1]))
os.rename(sys.argv[1] + ".new", sys.argv[1])
kept = []
while True:
    c = a.accept()[0]
    c.recv(8)
    c.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")
    c.close()
PY
	crowd=$!
	soon test -e "$work/ports"
	read -r http silent <"$work/ports"
	call 30 init --store "postgres://u@127.0.0.1:$http/db?sslmode=disable"
	complains "127.0.0.1:$http" "database db"
	call 30 init --store "postgres://u@127.0.0.1:$silent/db?sslmode=disable&connect_timeout=2"
	complains "127.0.0.1:$silent" "does not answer"
	[ ! -e .pawl ]
}

@test "postgres: several hosts without a port, or with one each, or with one for all" {
	start
	export PGPORT=$pg_port
	call 0 list --store "postgres://tester@127.0.0.3,127.0.0.1/postgres?schema=$schema"
	call 0 list --store "postgres://tester@127.0.0.1:1,127.0.0.1/postgres?schema=$schema"
	call 0 list --store "postgres://tester@127.0.0.1,127.0.0.3/postgres?schema=$schema"
	PGPORT=1 call 0 list --store "postgres://tester@127.0.0.3:1,127.0.0.1:$pg_port/postgres?schema=$schema"
	PGPORT=1 call 0 list --store "postgres://tester@/postgres?host=127.0.0.3,127.0.0.1&port=$pg_port&schema=$schema"
	PGPORT=1 call 30 list --store "postgres://tester@127.0.0.1,127.0.0.3/postgres?schema=$schema"
	complains "127.0.0.3:1"
}
