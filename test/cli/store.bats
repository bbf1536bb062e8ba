#!/usr/bin/env bats
# On every store: a missing queue, a failing store, a missing module, wrong settings.

load common

# with_arguments FUNCTION: for every command that needs a queue, with arguments that would work
with_arguments() {
	local name
	while read -r name; do
		case $name in
		serve) echo "serve --listen 127.0.0.1:0" ;;
		token* | login*) ;; # they do not open the store: see serve.bats and remote.bats
		init | config* | doctor | interactive | loadtest | mcp | torture | hook | setup | completion | help | trust | version | whoami) ;;
		run) ;; # the words after it would be the command's: see run.bats
		import | restore | migrate) ;; # they begin with the input that they read: see port.bats and data.bats
		emergency\ o* | emergency\ status | "lock typed" | "lock health")
			[ "$name" = "emergency on" ] && name+=" -r r"
			echo "$name"
			;;
		sync) echo "sync notion:0123456789abcdef0123456789abcdef" ;;
		export) echo "export --output out.json" ;;
		backup) echo "backup out" ;;
		clear) echo "clear --yes" ;;
		board | prime) echo "$name" ;;
		create) echo "create x" ;;
		find) echo "find x" ;;
		depend | undepend) echo "$name t1 t2" ;;
		comment) echo "comment t1 x" ;;
		update) echo "update t1 -p 3" ;;
		block) echo "block t1 -r r -u u" ;;
		review) echo "review t1 -s s" ;;
		escalate | fail | rework | reopen | cancel | "lock break") echo "$name t1 -r r" ;;
		next | list | status | log | audit | report | stats | queues | pause | resume | "lock list" | "lock cleanup" | "lock init" | id*) echo "$name" ;;
		*) echo "$name t1" ;;
		esac
	done < <(all_commands)
}

@test "outside a queue every command is MISCONFIGURED, with a hint" {
	needs_local "it unsets the server"
	mkdir "$BATS_TEST_TMPDIR/elsewhere"
	cd "$BATS_TEST_TMPDIR/elsewhere"
	while read -ra words; do
		call 40 "${words[@]}"
		complains "no queue here" "pawl init"
		ask 40 "${words[@]}"
	done < <(with_arguments)
	call 40 doctor
	same "$(ls -A)" ""
}

@test "a store that fails: every command is API_ERROR, nothing changed" {
	needs_local "it breaks or watches the store itself"
	new x
	new y
	uri=$(faulty any:1:fail)
	before=$(snapshot)
	while read -ra words; do
		call 30 "${words[@]}" --store "$uri:always" --token 11111111-1111-4111-8111-111111111111
		complains injected
		ask 30 "${words[@]}" --store "$uri:always" --token 11111111-1111-4111-8111-111111111111
		is '.error.applied == "no"'
	done < <(with_arguments)
	lines 30 list --store "$uri"
	[[ $output == "API_ERROR:"* ]]
	same "$before" "$(snapshot)"
}

@test "a store that is busy or full" {
	needs_local "it breaks or watches the store itself"
	new x
	for kind in busy full; do
		before=$(snapshot)
		ask 30 create y --store "$(faulty modify:1:$kind)"
		is '.error.applied == "no"'
		ask 30 claim t1 --store "$(faulty modify:1:$kind)"
		same "$before" "$(snapshot)"
	done
}

@test "a reply that is lost: applied unknown, in text as well" {
	needs_local "it breaks or watches the store itself"
	ask 30 create x --store "$(faulty modify:1:lost)"
	is '.error.applied == "unknown"'
	call 30 create x --store "$(faulty modify:1:lost)"
	complains "unknown"
}

@test "a store whose module is missing: the message says how to install it" {
	export PAWL_MODULE_DIR=$BATS_TEST_TMPDIR/nothing
	mkdir "$PAWL_MODULE_DIR"
	call 40 list --store git:/tmp/x
	complains "pawl-store-git.so, which is not installed in $PAWL_MODULE_DIR" "make install"
	ask 40 create x --store git:/tmp/x
	is '.error.hint | contains("make install") and contains("PAWL_MODULE_DIR")'
}

@test "stores that do not exist are not advertised" {
	needs_local "it makes queues or stores of its own"
	for uri in etcd://localhost redis://localhost; do
		call 40 list --store "$uri"
		complains "'${uri%%:*}' is not a store; the stores are sqlite:, mem:, files:, git:"
	done
}

@test "invalid URIs; a password is not shown" {
	for uri in nonsense: sqlit:x foo://bar /a/path x "" ":" sqlite: "sqlite:?queue=x"; do
		run --separate-stderr "$PAWL" list --store "$uri"
		echo "$uri: $status $stderr"
		[ "$status" -eq 40 ] || [ "$status" -eq 2 ]
		[ -n "$stderr" ]
	done
	call 40 list --store sqlit:x
	complains "did you mean sqlite:"
	PAWL_MODULE_DIR=$work call 40 list --store "postgres://me:geheim@localhost/x"
	[[ $output$stderr != *geheim* ]]
	call 40 list --store "fault+$(store_uri)?fault=nonsense"
}

@test ".pawl is a file" {
	cd "$BATS_TEST_TMPDIR"
	mkdir f
	cd f
	echo mine >.pawl
	call 40 list
	complains ".pawl is not a folder"
	call 40 init
	call 40 create x
	same "$(cat .pawl)" mine
	same "$(ls -A)" .pawl
}

@test "a setting that is wrong: file and line" {
	printf '# mine\n\nlease = soon\n' >>.pawl/config
	line=$(grep -n soon .pawl/config | cut -d: -f1)
	sum=$(sha256sum <.pawl/config)
	for args in list "create x" "next --claim" status "config list"; do
		read -ra words <<<"$args"
		call 40 "${words[@]}"
		complains ".pawl/config:$line" lease soon
	done
	ask 40 list
	call 40 doctor
	says bad ".pawl/config:$line"
	same "$sum" "$(sha256sum <.pawl/config)"
	call 0 config set lease 20m
	trust_config
	call 0 list
}

@test "an unknown setting, with the nearest name" {
	echo "leese = 5m" >>.pawl/config
	call 40 list
	complains leese "did you mean lease"
}

@test "a line that is not a setting" {
	echo "what is this" >>.pawl/config
	line=$(wc -l <.pawl/config)
	call 40 list
	complains ".pawl/config:$line"
}

@test "the same in one's own settings and in the environment" {
	mkdir -p "$XDG_CONFIG_HOME/pawl"
	echo "max_abandoned = -1" >"$XDG_CONFIG_HOME/pawl/config"
	call 40 list
	complains "$XDG_CONFIG_HOME/pawl/config:1"
	rm "$XDG_CONFIG_HOME/pawl/config"
	PAWL_LEASE=never call 40 list
	complains PAWL_LEASE never
	PAWL_COLOR=purple call 40 list
	PAWL_FORMAT=xml call 40 list
}

@test "a config that is a folder, or may not be read" {
	rm -f .pawl/config.bak
	mv .pawl/config keep
	mkdir .pawl/config
	call 40 list
	complains ".pawl/config"
	rmdir .pawl/config
	mv keep .pawl/config
	[ "$(id -u)" -eq 0 ] || {
		chmod 000 .pawl/config
		call 40 list
		complains ".pawl/config"
	}
}

@test "state that cannot be kept: a claim says so before it takes anything" {
	new x
	mkdir -p "$HOME"
	: >"$HOME/file"
	before=$(snapshot)
	PAWL_STORE=$(store_uri)
	export PAWL_STORE # no trust to be remembered
	XDG_STATE_HOME=$HOME/file call 30 claim t1
	complains XDG_STATE_HOME
	XDG_STATE_HOME=$HOME/file ask 30 next --claim
	is '.error.applied == "no"'
	ln -s /tmp "$HOME/link"
	mkdir "$HOME/s"
	ln -s /tmp "$HOME/s/pawl"
	XDG_STATE_HOME=$HOME/s call 30 claim t1
	complains link
	same "$before" "$(snapshot)"
	XDG_STATE_HOME=$HOME/file ask 0 claim t1 --token 11111111-1111-4111-8111-111111111111
	is '.warnings | length == 1'
}

@test "queues: the names of all queues of the store" {
	needs_local "it makes queues or stores of its own"
	ask 0 queues
	is '.queues == [{"name": "default", "current": true}]'
	new x
	pawl init --queue two
	"$PAWL" create -q --queue two y
	call 0 queues
	exactly "* default
  two"
	call 0 queues -q
	exactly "default
two"
	PAWL_QUEUE=two ask 0 queues
	is '.queues == [{"name": "default", "current": false}, {"name": "two", "current": true}]'
	lines 0 queues
}
