# shellcheck shell=bash
# Attacks through repositories: one inside a clone, and one on a hostile server.

# in_clone: the attacker commits q.git with a queue of one task, and a config that names it
in_clone() {
	git init -q --bare q.git
	"$PAWL" init -q --store "git:$clone/q.git"
	"$PAWL" create -q "a task" --store "git:$clone/q.git"
	rm -rf .pawl "$HOME/.local"
	mkdir .pawl sub
	echo "store = git:./q.git" >.pawl/config
}

# used [STORE]: the user reads and changes the queue, as its config names it and by hand
used() {
	victim any hook start
	victim any prime
	victim any list
	victim any create "another"
	victim any next --claim
	used_by_name "${@-git:$clone/q.git}"
}

# used_by_name URI...: the same, by hand only
used_by_name() {
	local uri
	for uri; do
		victim any list --store "$uri"
		victim any doctor --store "$uri"
		victim any create "one more" --store "$uri"
		victim any next --claim --store "$uri"
	done
}

hooks() {
	local name
	for name in pre-receive update post-receive post-update reference-transaction proc-receive push-to-checkout \
		pre-auto-gc fsmonitor-watchman; do
		planted "$1/$name" 'cat >/dev/null'
	done
}

# A queue in the clone brings hooks, and asks to be used through git's server side.
# stores: git
attack_hooks_of_a_path_remote() {
	in_clone
	hooks q.git/hooks
	for uri in "git:../q.git?transport=wire" "git:./q.git?transport=wire" "git:$clone/q.git?transport=wire" "git:file://$clone/q.git" \
		"git:file://$clone/q" "git:file://localhost$clone/q.git" "git:file://$scratch/%63lone/%71.git"; do
		echo "store = $uri" >.pawl/config
		used "$uri"
	done
	cd sub
	used "git:../q.git?transport=wire"
	not "$PAWL" show t99 --store "git:$clone/q.git?transport=wire"
	"$PAWL" show t1 --store "git:$clone/q.git?transport=wire"
}

# Git looks for NAME.git if there is no NAME.
# stores: git
attack_hooks_of_a_shorter_name() {
	in_clone
	hooks q.git/hooks
	for uri in "git:./q?transport=wire" "git:./q/?transport=wire" "git:$clone/q?transport=wire" "git:$clone/sub/../q?transport=wire" \
		"git:file://$clone/q/"; do
		echo "store = $uri" >.pawl/config
		used "$uri"
	done
}

# The same if the tree came without git: only .pawl says where it begins.
# stores: git
attack_hooks_in_a_tree_without_git() {
	in_clone
	rm -rf .git
	hooks q.git/hooks
	echo "store = git:./q.git?transport=wire" >.pawl/config
	used "git:$clone/q.git?transport=wire" "git:file://$clone/q.git"
}

# The user changes into the repository that came with the clone: its settings would name programs.
# stores: git
attack_settings_of_a_bare_repository() {
	need ssh
	allow ssh
	in_clone
	git config --global safe.bareRepository explicit
	touch -d '2020-02-02 UTC' "$HOME/.gitconfig"
	before=$(state "$scratch")
	planted "$scratch/evil" 'exit 1'
	hooks q.git/hooks
	for key in core.sshCommand core.gitProxy core.fsmonitor core.askPass core.pager credential.helper gpg.program \
		remote.origin.uploadpack remote.origin.receivepack uploadpack.packObjectsHook core.alternateRefsCommand \
		filter.x.smudge diff.x.textconv; do
		git config -f q.git/config "$key" "$scratch/evil"
	done
	git config -f q.git/config core.hooksPath "$clone/q.git/hooks"
	git config -f q.git/config remote.origin.url "ssh://nobody@localhost/x.git"
	git config -f q.git/config "url.ext::$scratch/evil .insteadOf" "https://forge.invalid/"
	cd q.git
	for uri in git:origin "git:ssh://nobody@localhost/x.git" git:git://localhost/x.git "git:https://forge.invalid/x" \
		"git:." "git:$clone/q.git?transport=wire"; do
		victim any list --store "$uri" --timeout 1s
		victim any create x --store "$uri" --timeout 1s
		quiet_about 'cannot use bare repository' # the clone's own is named, not discovered
	done
	victim 40 list --store git:origin
	complains "does not use its remote 'origin'"
}

# Links in the repository lead to the user's files, to be read, written or removed.
# stores: git
attack_links_in_the_repository() {
	in_clone
	mv q.git q.orig
	for name in pawl pawl/locks pawl/memo pawl/gate pawl/clock objects objects/17 objects/pack refs refs/pawl \
		refs/pawl/default refs/pawl/default/t refs/pawl/default/t/t1 packed-refs HEAD config logs; do
		rm -rf q.git
		cp -a q.orig q.git
		rm -rf "q.git/$name"
		mkdir -p "q.git/$(dirname "$name")"
		ln -s "$outside/.ssh" "q.git/$name"
		victim any list
		victim 40 create "another" --store "git:$clone/q.git"
		complains link
	done
	for name in pawl/gate pawl/clock pawl/locks/packed-refs packed-refs packed-refs.lock refs/pawl/default/base.lock config HEAD; do
		rm -rf q.git
		cp -a q.orig q.git
		rm -f "q.git/$name"
		ln -s "$outside/documents/letter.txt" "q.git/$name"
		used
	done
}

# The same in a repository outside, where another user of the group may have put them.
# stores: git
attack_links_in_a_shared_repository() {
	queue
	"$PAWL" create -q "a task"
	mv "$scratch/server.git" "$scratch/orig"
	for name in pawl pawl/locks pawl/memo refs/pawl refs/pawl/default refs/pawl/default/t; do
		rm -rf "$scratch/server.git"
		cp -a "$scratch/orig" "$scratch/server.git"
		rm -rf "$scratch/server.git/$name"
		ln -s "$outside/.ssh" "$scratch/server.git/$name"
		victim any list
		victim any create "another"
		victim any next --claim
		victim any doctor
	done
}

# Files among the locks are not pawl's, or name a lock elsewhere.
# stores: git
attack_names_among_the_locks() {
	in_clone
	local up=refs%2f..%2f..%2f..%2foutside%2fdocuments%2fPipfile
	echo mine >q.git/pawl/locks/notes.txt
	echo mine >q.git/pawl/locks/REFS
	mkdir q.git/pawl/locks/refs%2fpawl
	ln "$outside/documents/Pipfile.lock" "q.git/pawl/locks/$up"
	used
	[ -f q.git/pawl/locks/notes.txt ]
	[ -f q.git/pawl/locks/REFS ]
	rm "q.git/pawl/locks/$up" 2>/dev/null || true
}

# The repository borrows objects, refs or settings from places that only the user can read.
# stores: git
attack_repository_that_borrows() {
	in_clone
	git init -q --bare "$scratch/private.git"
	git -C "$scratch/private.git" fetch -q "$clone/q.git" 'refs/pawl/*:refs/pawl/*'
	cp -a q.git q.orig
	rm -rf q.git/objects/??
	echo "$scratch/private.git/objects" >q.git/objects/info/alternates
	victim 40 list --store "git:$clone/q.git"
	quiet_about 'a task'
	rm -rf q.git
	cp -a q.orig q.git
	rm -rf q.git/objects/?? q.git/refs/pawl
	echo "$scratch/private.git" >q.git/commondir
	victim 40 list --store "git:$clone/q.git"
	quiet_about 'a task'
	rm -rf q.git
	cp -a q.orig q.git
	mkfifo "$scratch/fifo"
	git config -f q.git/config include.path "$scratch/fifo"
	git config -f q.git/config includeIf.gitdir:/.path "$scratch/fifo"
	git config -f q.git/config core.worktree "$HOME"
	git config -f q.git/config core.logAllRefUpdates always
	victim 0 list --store "git:$clone/q.git"
	rm -rf .pawl
	victim 0 init --store "git:$clone/q.git#board?layout=branch"
	victim 0 create "another" --store "git:$clone/q.git#board?layout=branch"
	git config -f q.git/config extensions.objectFormat sha256
	victim 40 list --store "git:$clone/q.git"
}

# A .git file names a folder of the clone.
# stores: git
attack_git_file_in_the_clone() {
	need ssh
	allow ssh
	git init -q evil
	mv evil/.git sub-evil
	rmdir evil
	mkdir evil
	mv sub-evil evil/repo
	planted "$scratch/evil" 'exit 1'
	git config -f evil/repo/config core.sshCommand "$scratch/evil"
	git config -f evil/repo/config core.gitProxy "$scratch/evil"
	git config -f evil/repo/config remote.origin.url "ssh://nobody@localhost/x.git"
	git config -f evil/repo/config core.hooksPath "$clone/evil"
	hooks evil/repo/hooks
	mkdir sub
	for to in ../evil/repo repo; do
		echo "gitdir: $to" >sub/.git
		[ "$to" = ../evil/repo ] || mv evil/repo sub/repo
		cd sub
		for uri in git:origin "git:ssh://nobody@localhost/x.git" git:git://localhost/x.git "git:$clone/sub" \
			"git:$clone/sub?transport=wire" "git:file://$clone/sub"; do
			victim any init --store "$uri" --timeout 1s
			victim any list --store "$uri" --timeout 1s
			victim any create x --store "$uri" --timeout 1s
			rm -rf .pawl
		done
		cd ..
	done
}

# The names of refs would put their files elsewhere.
# stores: git
attack_refs_that_lead_elsewhere() {
	in_clone
	local up hex
	hex=$(git -C q.git rev-parse refs/pawl/default/base)
	for up in ../../../../outside/documents/letter.txt .. .lock x.lock %2e%2e 'a b' '$(id>zz)'; do
		printf '%s refs/pawl/default/t/%s\n' "$hex" "$up"
		printf '%s refs/pawl/default/%s\n' "$hex" "$up"
	done >>q.git/packed-refs
	mkdir -p q.git/refs/pawl/default/t/folder
	for up in '$(id>zz)' 'a b' %2e%2e%2f%2e%2e x%; do
		echo "$hex" >"q.git/refs/pawl/default/t/$up"
		printf 'ref: refs/pawl/default/base\n' >"q.git/refs/pawl/default/t/s$up"
	done
	used
	rm -f q.git/refs/pawl/default/base
	used
	victim any init --store "git:$clone/q.git"
	used
	not test -e zz
}

# with_task ID FILTER [TREE]: puts a commit for a task, its JSON changed by the jq filter, at its ref of the server
with_task() {
	local r=$scratch/server.git commit
	commit=$(git -C "$r" cat-file commit refs/pawl/default/t/t1 | tail -n 1 |
		jq -c --arg id "$1" '.record.key = "task/" + $id | .record.index.id = $id | '"$2" |
		sed '1s/^/subject\n\n/' | git -C "$r" commit-tree "${3:-$(git -C "$r" rev-parse refs/pawl/default/t/t1^\{tree\})}")
	git -C "$r" update-ref "refs/pawl/default/t/$1" "$commit"
}

# with_tasks FILTER...: the same with each FILTER for the tasks w1, w2 and so on
with_tasks() {
	local r=$scratch/server.git filters='' n=0 tree line
	for line; do
		n=$((n + 1))
		filters+="${filters:+, }(.record.key = \"task/w$n\" | .record.index.id = \"w$n\" | $line)"
	done
	tree=$(git -C "$r" rev-parse refs/pawl/default/t/t1^\{tree\})
	n=0
	git -C "$r" cat-file commit refs/pawl/default/t/t1 | tail -n 1 | jq -ac "$filters" | while read -r line; do
		n=$((n + 1))
		printf 'commit refs/pawl/default/t/w%d\ncommitter m <m@example.org> 1 +0000\n' $n
		printf 'data %d\nsubject\n\n%s\n\nM 040000 %s ""\n' $((${#line} + 10)) "$line" "$tree"
	done | git -C "$r" fast-import --quiet
	[ "$(git -C "$r" for-each-ref refs/pawl/default/t/w\* | wc -l)" -eq $# ]
}

# text_tree: a tree with a task's text of 70 MB, which is small when packed
text_tree() {
	local r=$scratch/server.git
	{
		printf '{"description":"'
		head -c 70000000 /dev/zero | tr '\0' a
		printf '"}'
	} | git -C "$r" -c core.compression=1 hash-object -w --stdin |
		sed 's/.*/100644 blob &\ttask.json/' | git -C "$r" mktree
}

# in_little_memory CODE ARG...: victim with 260 MB of address space, if pawl can start with that
in_little_memory() {
	local had
	had=$(ulimit -Sv)
	if (ulimit -Sv 260000 && "$PAWL" version) >/dev/null 2>&1; then ulimit -Sv 260000; fi
	victim "$@"
	ulimit -Sv "$had"
}

# A person who can write to the server offers objects that are small to send and large to read.
# stores: git
attack_objects_of_absurd_size() {
	need jq
	queue
	"$PAWL" create -q "a task"
	with_task bomb . "$(text_tree)"
	with_task long '.record.index.labels = ["x" * 17500000]'
	rm -rf "$scratch/server.git/pawl/memo"
	in_little_memory 0 show t1
	in_little_memory 40 show bomb
	in_little_memory 0 create "another"
	in_little_memory 40 show long
	needs_at_most 42000 show long
	in_little_memory 40 doctor
}

# Records have JSON of every wrong kind.
# stores: git
attack_records_of_the_wrong_kind() {
	need jq
	queue
	"$PAWL" create -q "a task"
	local r=$scratch/server.git
	with_tasks '.record = []' '.record = 1' '.record.index = "x"' '.record.index.status = 99' '.record.index.status = -1' \
		'.record.index.status = 1e300' '.record.key = "task/t1"' '.record.key = {hex: "zz"}' '.record.key = null' \
		'.moves = {a: 1}' '.moves = [{ref: "../../x", old: "0", new: "0"}]' '.moves = [{ref: "base"}]' '.log = 7' \
		'.log = [1, {}, []]' '.stamp = "x"' '.stamp = 9223372036854775807' '.stamp = -1' '.lead = []' '.clock = {}' \
		'.record.task = []' '.record.task = {status: {}}' '.record.rev = -9223372036854775808' \
		'.record.index.eligible_at = 9223372036854775807' '.record.index.labels = {}' '.record.index.labels = [[[]]]' \
		'.pawl = 99' '.record.hot = {hex: "ff"}'
	{
		printf 'subject\n\n'
		head -c 200000 /dev/zero | tr '\0' '['
	} | git -C "$r" commit-tree "$(git -C "$r" rev-parse refs/pawl/default/t/t1^\{tree\})" >hex
	git -C "$r" update-ref refs/pawl/default/t/deep "$(cat hex)"
	git -C "$r" update-ref refs/pawl/default/t/blob "$(git -C "$r" hash-object -w "$PWD/hex")"
	for uri in "git:$r" "git:file://$r"; do
		victim any list --store "$uri"
		victim 0 show t1 --store "$uri"
		victim 40 show deep --store "$uri"
		victim 0 comment t1 "a word" --store "$uri"
		victim any next --claim --store "$uri"
		victim any log --store "$uri"
		victim 40 doctor --store "$uri"
	done
}

# The user has added the repository in the clone as a remote.
# stores: git
attack_remote_of_the_clone() {
	in_clone
	hooks q.git/hooks
	git config core.hooksPath "$clone/q.git/hooks"
	used
	for url in ./q.git q.git "$clone/q.git" "file://$clone/q.git"; do
		git config remote.queue.url "$url"
		used_by_name git:queue "git:queue?transport=wire"
		git config remote.queue.pushurl "$url"
		used_by_name git:queue "git:queue?transport=wire"
		git config --unset remote.queue.pushurl
	done
}

# Branches of it are used, with the files that those layouts keep.
# stores: git
attack_branches_of_a_path_remote() {
	in_clone
	hooks q.git/hooks
	rm -rf .pawl
	local uri
	for uri in "git:$clone/q.git#board?transport=wire" "git:$clone/q.git#aitask-locks?transport=wire" "git:file://$clone/q.git#aitask-ids"; do
		victim any init --store "$uri"
		victim any lock init --store "$uri"
		victim any id init --store "$uri"
		victim any lock acquire 7 --store "$uri"
		victim any id claim --store "$uri"
		victim any create x --store "$uri"
		rm -rf .pawl
	done
	git -C q.git rev-parse -q --verify refs/heads/board
	git -C q.git rev-parse -q --verify refs/heads/aitask-locks
	mv q.git q.orig
	for name in refs/heads refs/pawl-kept refs/pawl-kept/heads logs logs/refs worktrees; do
		rm -rf q.git
		cp -a q.orig q.git
		rm -rf "q.git/$name"
		mkdir -p "q.git/$(dirname "$name")"
		ln -s "$outside/.ssh" "q.git/$name"
		git config -f q.git/config core.logAllRefUpdates always
		victim any create x --store "git:$clone/q.git#board"
		victim any lock acquire 8 --store "git:$clone/q.git#aitask-locks"
	done
}

# cut_each: each object of q.orig once truncated, once empty. The calls end and change nothing outside.
cut_each() {
	local object size
	while read -r object; do
		size=$(stat -c %s "q.orig/$object")
		for left in $((size - 1)) $((size / 2)) 0; do
			rm -rf q.git
			cp -a q.orig q.git
			chmod u+w "q.git/$object"
			truncate -s "$left" "q.git/$object"
			victim any list
			victim any doctor
		done
		victim any create "another" --timeout 1s
	done < <(cd q.orig && find objects -type f)
}

# libgit2 1.5 loops forever on a truncated object.
# stores: git
attack_truncated_objects() {
	in_clone
	mv q.git q.orig
	cut_each
	git -C q.orig gc -q
	rm -rf q.orig/pawl
	cut_each
}

# make_spoil: spoil KIND FILE...: replaces loose objects by some that no git writes
make_spoil() {
	cat >"$scratch/spoil" <<-'END'
		import os, sys, zlib
		kind = sys.argv[1]
		for path in sys.argv[2:]:
		    whole = zlib.decompress(open(path, "rb").read())
		    head, body = whole.split(b"\0", 1)
		    name, size = head.split(b" ")
		    sized = lambda text: zlib.compress(name + b" " + text + b"\0" + body)
		    made = {
		        "header too small": lambda: sized(b"1"),
		        "header of 0": lambda: sized(b"0"),
		        "header too large": lambda: sized(b"%d" % (len(body) + 1)),
		        "header of 60 MB": lambda: sized(b"60000000"),
		        "header of 2^63": lambda: sized(b"9223372036854775808"),
		        "negative header": lambda: sized(b"-1"),
		        "header with a sign": lambda: sized(b"+" + size),
		        "header in hex": lambda: sized(b"0x10"),
		        "no size": lambda: zlib.compress(name + b" \0" + body),
		        "no type": lambda: zlib.compress(size + b"\0" + body),
		        "unknown type": lambda: zlib.compress(b"x" * 40 + b" " + size + b"\0" + body),
		        "type of a delta": lambda: zlib.compress(b"OFS_DELTA " + size + b"\0" + body),
		        "no end of the header": lambda: zlib.compress(b"tree 1" + b"1" * 4000),
		        "bomb": lambda: zlib.compress(head + b"\0" + body + bytes(70_000_000), 1),
		        "bomb with its size": lambda: zlib.compress(name + b" 70000000\0" + bytes(70_000_000), 1),
		        "garbage at the end": lambda: zlib.compress(whole) + b"garbage",
		        "wrong checksum": lambda: zlib.compress(whole)[:-1] + b"\xff",
		        "two streams": lambda: zlib.compress(whole) * 2,
		        "a preset dictionary": lambda: zlib.compressobj(zdict=b"tree commit blob").compress(whole),
		        "not zlib": lambda: bytes([0x2F]) + whole,
		        "an old form": lambda: bytes([0xB0 | len(body) & 15, 0x7F]) + zlib.compress(body)[:-6],
		        "text": lambda: b"x",
		    }[kind]()
		    os.unlink(path)
		    open(path, "wb").write(made)
	END
}

# Objects that no git writes. libgit2 1.5 writes past its buffer if one is longer than its header says.
# stores: git
attack_spoiled_objects() {
	need python3
	in_clone
	mv q.git q.orig
	make_spoil
	local kind objects
	mapfile -t objects < <(cd q.orig && find objects -path '*/??/*' -type f)
	for kind in "header too small" "header of 0" "header too large" "header of 60 MB" "header of 2^63" "negative header" \
		"header with a sign" "header in hex" "no size" "no type" "unknown type" "type of a delta" "no end of the header" \
		bomb "bomb with its size" "garbage at the end" "wrong checksum" "two streams" "a preset dictionary" "not zlib" \
		"an old form" text; do
		rm -rf q.git
		cp -a q.orig q.git
		python3 "$scratch/spoil" "$kind" "${objects[@]/#/q.git/}"
		echo "$kind"
		with_memory 400000 victim 40 list
		with_memory 400000 victim any doctor
	done
}
