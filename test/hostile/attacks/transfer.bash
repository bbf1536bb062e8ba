# shellcheck shell=bash
# Attacks through files that a user imports, exports or restores.

# A folder to import contains links to a key: nothing of the key is read.
# stores: sqlite files git
# more: postgres
attack_import_of_a_folder_with_links() {
	queue
	mkdir -p tasks/sub
	printf -- '---\nid: t1\ntitle: good\n---\n' >tasks/t1.md
	printf -- '---\nid: t2\ntitle: below\n---\n' >tasks/sub/t2.md
	ln -s "$HOME/.ssh/id_ed25519" tasks/t3.md
	ln -s "$HOME/.ssh" tasks/keys
	ln -s "$HOME/.ssh/id_ed25519" tasks/sub/t4.md
	ln -s .. tasks/sub/again
	victim 0 import tasks
	says "2 tasks read" "tasks/t3.md: it is a link" "tasks/keys: it is a link" "sub/t4.md: it is a link"
	victim 0 list
	says good below
	victim 0 export -o "$scratch/all.json"
	not grep -q "the key" "$scratch/all.json"
}

# FIFOs, devices and sockets to import do not block the import.
# stores: sqlite
# more: files git postgres
attack_import_of_odd_files() {
	queue
	mkdir tasks
	mkfifo tasks/t1.md pipe.json pipe.pawl
	victim 0 import tasks
	says "t1.md: it is not a regular file"
	victim 30 import /dev/zero --format csv
	victim 30 import /dev/full --format jsonl
	victim 40 restore pipe.pawl --force
	victim 30 import tasks/t1.md --format md
	SECONDS=0
	victim 30 import pipe.json
	complains "no program writes"
	[ "$SECONDS" -lt 30 ]
}

# A folder that is deeper and wider than any that people make.
# stores: sqlite
# more: files git postgres
attack_import_of_a_deep_folder() {
	local dir=tasks i
	queue
	for i in $(seq 300); do dir=$dir/d; done
	mkdir -p "$dir"
	printf -- '---\nid: t9\ntitle: deep\n---\n' >"$dir/t9.md"
	printf -- '---\nid: t1\ntitle: good\n---\n' >tasks/t1.md
	printf -- '---\nid: .\n---\n' >tasks/.hidden.md
	mkdir tasks/.git
	printf 'no task' >tasks/.git/x.md
	victim 0 import tasks
	says "1 task read" "folders deep"
	quiet_about .git .hidden
}

# YAML that expands beyond its size: aliases, nesting, many values, a huge word.
# stores: sqlite
# more: files git postgres
attack_import_of_a_yaml_bomb() {
	local file
	queue
	{
		printf -- '---\ntitle: x\na: &a [x, x, x, x, x, x, x, x, x]\n'
		for i in b c d e f g h; do printf '%s: &%s [*a, *a, *a, *a, *a, *a]\n' "$i" "$i"; done
		printf -- '---\n'
	} >alias.md
	{
		printf -- '---\ntitle: x\nlabels: '
		head -c 3000000 /dev/zero | tr '\0' '['
		printf -- '\n---\n'
	} >deep.md
	{
		printf -- '---\ntitle: x\nlabels: ['
		seq -s , 2000000
		printf -- ']\n---\n'
	} >wide.md
	{
		printf -- '---\ntitle: '
		head -c 30000000 /dev/zero | tr '\0' 'x'
		printf -- '\n---\n'
	} >long.md
	printf -- '---\ntitle: !!python/object/apply:os.system ["touch %s"]\n---\n' "$mark" >tag.md
	for file in alias deep wide long tag; do
		with_memory 250000 "$PAWL" import $file.md >out 2>&1 && return 1
		not grep -qi "out of memory" out
		victim 40 import $file.md
		complains "$file.md:"
	done
	victim 0 list
}

# The files that export and backup would write are links that came with a clone.
# stores: sqlite files
# more: git postgres
attack_export_over_links() {
	queue
	victim 0 create x
	ln -s "$HOME/.bashrc" out.json
	ln -s "$HOME/.bashrc" out.csv
	ln -s "$HOME/nothing.jsonl" out.jsonl
	ln -s "$HOME/documents" tasks
	ln -s "$HOME/.bashrc" out.pawl
	victim 20 export -o out.json
	victim 20 export -o out.csv
	victim 20 export -o out.jsonl
	victim any export -o tasks
	victim any export -o tasks/
	victim 20 backup out.pawl
	victim 0 export -o out.json --force
	victim 0 backup out.pawl --force
	[ ! -L out.json ]
	[ ! -e "$HOME/nothing.jsonl" ]
}

# A folder to export into has links with the names of tasks.
# stores: sqlite files
# more: git postgres
attack_export_into_a_folder_of_links() {
	queue
	victim 0 create x
	mkdir tasks
	ln -s "$HOME/.bashrc" tasks/t1.md
	victim 20 export -o tasks
	victim 20 export -o tasks --force
	[ -L tasks/t1.md ]
}

# The folder of backups is a link to the user's home.
# stores: sqlite files
# more: git postgres
attack_folder_of_backups_is_a_link() {
	queue
	victim 0 create x
	mkdir -p .pawl
	rm -rf .pawl/backups
	ln -s "$HOME" .pawl/backups
	victim '30|40' backup
	complains backups
	victim any emergency on --reason x
	victim any emergency off
	[ -z "$(find "$HOME" -name '*.pawl')" ]
}

# A file that the user wrote is in the way.
# stores: sqlite
# more: files git postgres
attack_export_over_the_users_work() {
	local name
	queue
	victim 0 create x
	for name in notes.json notes.jsonl notes.csv; do
		echo 'my notes' >$name
		victim 20 export -o $name
		complains --force
		grep -qx 'my notes' $name
	done
	victim 20 backup notes.json
	grep -qx 'my notes' notes.json
	victim 0 export -o notes.json --force
	victim 0 export -o notes.json
	says "1 task exported"
}
