# shellcheck shell=bash
# Attacks on a client by its server, or by a program between them. The stand-in and its tables are in answers.py and
# database.py.

standins=${BASH_SOURCE[0]%/*}/..

# Bad answers to every command: none ends with a signal, runs or writes what the server says, or reaches the terminal. A coding
# agent gets the words of a server only in quotes.
# stores: http unix
attack_bad_answers() {
	need python3
	mkdir "$scratch/tmp/trials"
	python3 "$standins/answers.py" "$PAWL" "$scratch/tmp/trials" "$store"
}

# Bad rows, errors and notices of a database, also while the client connects.
# stores: postgres
attack_bad_database() {
	need python3
	mkdir "$scratch/tmp/trials"
	python3 "$standins/database.py" "$PAWL" "$scratch/tmp/trials"
}

# A server claims the id of another queue. It neither gets the tokens that are saved for that queue, nor replaces or removes
# them: not those of a task, of a lock of the whole queue, or of a claim whose answer was lost.
# stores: http unix
attack_id_of_another_queue() {
	local keys=$HOME/.local/state/pawl here=sqlite:$clone/.pawl/queue.db url id words n=0
	need python3
	"$PAWL" init -q
	"$PAWL" batch add -q one two three >"$scratch/added"
	victim 0 claim t1
	victim 0 lock acquire @batch
	victim 30 claim t2 --store "fault+$here?fault=modify:1:lost"
	id=$(sed -n 's/^queue_id=//p' "$keys"/*.token | sort -u)
	[ "${#id}" = 36 ] && [ "$(sed -n 's/^token=//p' "$keys"/*.{token,pending} | tee "$scratch/tokens" | wc -l)" = 3 ]
	(cd "$keys" && sha256sum -- *.token *.pending) >"$scratch/saved"
	python3 "$standins/answers.py" "$PAWL" "$scratch/tmp/evil" "$store" "$id" &
	until [ -s "$scratch/tmp/evil/url" ]; do sleep 0.02; done
	url=$(<"$scratch/tmp/evil/url")
	export PAWL_SERVER_INSECURE=1
	echo '[{"id":"t9","title":"new"}]' >x.json
	while read -r words; do
		# shellcheck disable=SC2086
		victim any $words --store "$url" --timeout 1s
		not grep -qaF -f "$scratch/tokens" "$scratch/tmp/evil/heard"
		(cd "$keys" && sha256sum --quiet -c "$scratch/saved")
		n=$((n + 1))
	done <<-'END'
		next
		heartbeat t1
		claim t1 --resume 1
		claim t2
		claim t1
		done t1
		review t1
		release t1
		guard t1
		lock status t1
		lock release @batch
		batch add x
		import x.json
		next --claim
		done t2 --claim-next
		hook beat
		hook end
		prime
		whoami
		clear --yes
		doctor --fix
	END
	[ "$n" = 21 ]
	victim any done t1 --token "$(head -n 1 "$scratch/tokens")" --store "$url"
	grep -qaF -f "$scratch/tokens" "$scratch/tmp/evil/heard" # the caller named that token
	victim 0 heartbeat t1
	victim 0 lock release @batch
}
