#!/usr/bin/env bats
# A server behind nginx, HAProxy and Caddy, with the configurations of doc/example. tools/soak-deployment fetches them.

load common
load serving

teardown() {
	local pid
	for pid in ${nginx-} ${proxy-} ${server-} ${follower-} ${waiter-}; do
		{ kill -9 "$pid" && wait "$pid"; } 2>/dev/null || true
	done
}

free_port() {
	python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# proxied: nginx in front of a server; $url is the address of nginx
proxied() {
	local port
	needs nginx
	needs openssl
	port=$(free_port)
	serve --behind-proxy --host-name queue.example.com
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=queue.example.com -addext 'subjectAltName=DNS:queue.example.com,IP:127.0.0.1' \
		-keyout key.pem -out cert.pem 2>/dev/null
	mkdir -p temp
	{
		echo "error_log $PWD/error.log; pid $PWD/nginx.pid; daemon off; master_process off; events {}"
		echo "http { access_log off;"
		for part in client_body proxy fastcgi uwsgi scgi; do
			echo "${part}_temp_path $PWD/temp/$part;"
		done
		sed "s,127.0.0.1:7295,${url#http://},; s,listen 443 ssl,listen 127.0.0.1:$port ssl,; s,/etc/ssl/queue.example.com,$PWD," \
			"$PAWL_SOURCE/doc/example/nginx.conf"
		echo "}"
	} >nginx.conf
	nginx -t -e "$PWD/error.log" -p "$PWD" -c "$PWD/nginx.conf"
	nginx -e "$PWD/error.log" -p "$PWD" -c "$PWD/nginx.conf" 3>&- &
	nginx=$!
	direct=$url url=https://queue.example.com:$port
	with=(--cacert "$PWD/cert.pem" --connect-to "queue.example.com:$port:127.0.0.1:$port")
	soon curl -s "${with[@]}" "$url/livez"
}

@test "nginx: calls, waiting calls and large bodies come through" {
	proxied
	api 200 create '{"title":"One"}' "${with[@]}"
	api 200 list '{}' "${with[@]}" -H "Origin: $url"
	api 403 list '{}' "${with[@]}" -H 'Origin: https://evil.example'
	api 403 list '{}' "${with[@]}" -H 'Host: evil.example'
	token=pawl_wrong api 401 list '{}' "${with[@]}"
	head -c 2000000 /dev/zero | tr '\0' a >big
	http 413 "${with[@]}" -H 'Content-Type: application/json' --data-binary @big "$url/v1/create"
	is '.ok == false' # from pawl, not from nginx
	api 200 next '{"claim":true}' "${with[@]}"
	curl -s -m 60 "${with[@]}" -H "Authorization: Bearer $token" -H 'Content-Type: application/json' -d '{"claim":true,"wait":50}' \
		"$url/v1/next" >got 3>&- &
	waiter=$!
	public=$url url=$direct
	soon waiters_are 1
	pawl create Two
	wait "$waiter"
	same "$(jq -r .task.id got)" t2
	url=$public
	printf "task %s $(printf '%0400d' 0)\n" {1..4000} >titles
	mkdir ../other
	(cd ../other && pawl init -q && pawl batch add --file "$OLDPWD/titles" && "$PAWL" export -o -) >large.json
	[ "$(stat -c %s large.json)" -gt 2000000 ]
	PAWL_SERVER_CA=$PWD/cert.pem PAWL_SERVER_TOKEN=$token "$PAWL" import large.json --skip --store "https://127.0.0.1:${url##*:}" >/dev/null
	ask 0 list --limit 1
	is '.total >= 4000'
}

@test "nginx: the stream is not buffered" {
	proxied
	: >stream
	curl -sN "${with[@]}" -H "Authorization: Bearer $token" "$url/v1/events" >stream 3>&- &
	follower=$!
	soon grep -q '^event: snapshot' stream
	pawl create One
	timeout 10 bash -c 'until grep -q "^event: event" stream; do sleep 0.05; done'
}

@test "nginx: failed logins count for each client" {
	proxied
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		token=pawl_wrong api 401 list '{}' "${with[@]}"
	done
	token=pawl_wrong api 429 list '{}' "${with[@]}"
	token=pawl_wrong api 429 list '{}' "${with[@]}" -H 'X-Forwarded-For: 10.1.2.3' # a client cannot choose its address
	token=pawl_other api 401 list '{}' "${with[@]}" --interface 127.0.0.5
	api 200 list '{}' "${with[@]}" --interface 127.0.0.5
	grep -q 'from="127.0.0.5"' "$BATS_TEST_TMPDIR/serve.log"
}

# in_front PROXY: HAProxy or Caddy in front of a server; $url is the address of the proxy
in_front() {
	local port
	needs "$1"
	needs openssl
	port=$(free_port)
	serve --behind-proxy --host-name queue.example.com
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=queue.example.com -addext 'subjectAltName=DNS:queue.example.com,IP:127.0.0.1' \
		-keyout key.pem -out cert.pem 2>/dev/null
	cat cert.pem key.pem >both.pem
	case $1 in
	haproxy)
		sed "s,127.0.0.1:7295,${url#http://},; s,bind :443,bind 127.0.0.1:$port,; s,/etc/ssl/queue.example.com,$PWD," \
			"$PAWL_SOURCE/doc/example/haproxy.cfg" >haproxy.cfg
		haproxy -db -f haproxy.cfg >proxy.log 2>&1 3>&- &
		;;
	caddy)
		{
			printf '{\n\tadmin off\n\tauto_https disable_redirects\n}\n'
			sed "s,127.0.0.1:7295,${url#http://},; s,^queue.example.com {,https://queue.example.com:$port {,; s,/etc/ssl/queue.example.com,$PWD,g" \
				"$PAWL_SOURCE/doc/example/Caddyfile"
		} >Caddyfile
		XDG_DATA_HOME=$PWD/data caddy run --adapter caddyfile --config Caddyfile >proxy.log 2>&1 3>&- &
		;;
	esac
	proxy=$!
	direct=$url url=https://queue.example.com:$port
	with=(--cacert "$PWD/cert.pem" --connect-to "queue.example.com:$port:127.0.0.1:$port")
	soon curl -s "${with[@]}" "$url/livez"
}

@test "HAProxy, Caddy: a client cannot choose its address, and events come at once" {
	local name
	for name in haproxy caddy; do
		command -v "$name" >/dev/null || continue
		in_front "$name"
		for i in 1 2 3 4 5 6 7 8 9 10; do
			token=pawl_$i$name api 401 list '{}' "${with[@]}" -H "X-Forwarded-For: 10.1.2.$i"
		done
		token=pawl_x$name api 429 list '{}' "${with[@]}" -H 'X-Forwarded-For: 10.1.2.3'
		token=pawl_y$name api 401 list '{}' "${with[@]}" --interface 127.0.0.5 -H 'X-Forwarded-For: 127.0.0.1'
		api 200 list '{}' "${with[@]}" -H 'X-Forwarded-For: 10.1.2.3'
		grep -q 'from="127.0.0.5"' "$BATS_TEST_TMPDIR/serve.log"
		not grep -q 'from="10.1.2' "$BATS_TEST_TMPDIR/serve.log"
		stream "${with[@]}"
		soon grep -q '^event: snapshot' stream
		pawl create One
		soon grep -q '^event: event' stream
		{ kill -9 "$follower" "$proxy" "$server" && wait "$follower" "$proxy" "$server"; } 2>/dev/null || true
	done
	[ "${proxy-}" ] || skip 'needs haproxy or caddy'
}

@test "a proxy on a Unix socket does not make its clients admins" {
	listen=unix:$PWD/s serve --behind-proxy
	token='' http 401 --unix-socket s -H 'Content-Type: application/json' -d '{}' http://localhost/v1/list
	http 200 --unix-socket s -H 'Content-Type: application/json' -d '{}' http://localhost/v1/list
}
