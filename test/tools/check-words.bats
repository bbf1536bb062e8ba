#!/usr/bin/env bats
# tools/check-words notices a phrase, an overlong sentence and a dead link, and nothing else.

setup() {
	source=${PAWL_SOURCE:-$(cd "$BATS_TEST_DIRNAME/../.." && pwd)}
	tree=$BATS_TEST_TMPDIR/tree
	mkdir -p "$tree"/{doc/guides,src/cmd,build}
	printf '# pawl\n\nRead [the contract](doc/contract.md#the-lease-of-a-task).\n' >"$tree/README.md"
	printf '# Contract\n\n## The lease of a `task`\n\nThere is no queue.\n' >"$tree/doc/contract.md"
	printf '/* whoever reads this */\nstatic const char *s = "a lock is "\n\t"not live";\n' >"$tree/src/cmd/x.c"
	program 'echo "  claim  take a task"'
}

# program LINE: a build/pawl whose help does that
program() {
	printf '#!/bin/sh\n%s\n' "$1" >"$tree/build/pawl"
	chmod +x "$tree/build/pawl"
}

# words STATUS [TEXT...]: checks the tree; the output has one line for each TEXT, with that text in it
words() {
	local want=$1
	shift
	PAWL_ROOT=$tree run "$source/tools/check-words"
	echo "$output"
	[ "$status" -eq "$want" ]
	[ "${#lines[@]}" -eq $# ]
	for text; do [[ $output == *"$text"* ]]; done
}

# sentence N: a sentence of N words
sentence() {
	printf 'word %.0s' $(seq "$1") | sed 's/ $/.\n/'
}

@test "words: a tree without faults" {
	words 0
}

@test "words: a planted phrase in a page, a message and the help" {
	printf '\nThe agent whoever\nit is.\n' >>"$tree/doc/contract.md"
	words 1 "doc/contract.md:7: 'whoever'"
	printf 'const char *t = "x" /* y */ "at most so"\n\t" many tasks";\n' >>"$tree/src/cmd/x.c"
	words 1 "doc/contract.md:7:" "src/cmd/x.c:4: 'so many'"
	program 'case $2 in claim) echo "take what"; echo "  is no queue";; *) echo "  claim  take a task" ;; esac'
	words 1 "doc/contract.md:7:" "src/cmd/x.c:4:" "pawl help claim: 'is no queue'"
}

@test "words: each phrase of the list, and its neighbours that are fine" {
	for text in "Whoever comes" "that which is" "at most so many" "wait so long" "this is no queue" "of no use" \
		"look whether" "try whether" "the lease runs out" "the lease ran out" "a read of one time"; do
		printf '# T\n\n%s.\n' "$text" >"$tree/doc/contract.md"
		printf '# pawl\n' >"$tree/README.md"
		words 1 "doc/contract.md:3:"
	done
	printf '# T\n\nThere is no queue, it is no longer here, so long as it runs out of memory.\n' >"$tree/doc/contract.md"
	words 0
}

@test "words: each habit, in a page, a message and a comment of src" {
	for text in "agents go on" "it went on" "it changed meanwhile" "doctor looks at the store" "a folder of yours" \
		"hooks of your side" "the answer got lost" "read it anew" "it is gone for good" "a path counts from here" \
		"the caller has to come again" "the timeout is over"; do
		printf '# T\n\n%s.\n' "$text" >"$tree/doc/contract.md"
		printf '# pawl\n' >"$tree/README.md"
		printf '/* a\n * b %s */\nstatic const char *s = "x %s";\n' "${text/ /$'\n * '}" "$text" >"$tree/src/cmd/x.c"
		words 1 "doc/contract.md:3:" "src/cmd/x.c:" "src/cmd/x.c:4:"
	done
}

@test "words: an overlong sentence in doc/ and README, not in a block" {
	sentence 40 >"$tree/doc/guides/one.md"
	words 0
	sentence 41 >"$tree/doc/guides/one.md"
	words 1 "doc/guides/one.md:1: a sentence of 41 words"
	printf '```\n%s\n```\n\n    %s\n' "$(sentence 41)" "$(sentence 41)" >"$tree/doc/guides/one.md"
	words 0
	printf -- '- %s\n  %s\n- x\n' "$(sentence 20 | tr -d .)" "$(sentence 21)" >>"$tree/README.md"
	words 1 "README.md:4: a sentence of 41 words"
	printf '| a | %s | %s |\n' "$(sentence 30)" "$(sentence 30)" >"$tree/README.md"
	words 0
}

@test "words: a dead link to a file and to a heading" {
	printf '\n[a](contract.md) [b](guides/none.md)\n' >>"$tree/doc/contract.md"
	words 1 "doc/contract.md:7: guides/none.md: there is no doc/guides/none.md"
	printf '[a](../README.md#pawl) [b](contract.md#the-fence)\n[c](#contract) [d](https://example.com/none) `[e](none)`\n' >"$tree/doc/guides/one.md"
	mv "$tree/doc/guides/one.md" "$tree/doc/one.md"
	printf '# Contract\n\n## The lease of a `task`\n' >"$tree/doc/contract.md"
	words 1 "doc/one.md:1: contract.md#the-fence: doc/contract.md has no heading #the-fence" "doc/one.md:2: #contract:"
	printf '[a](../../etc/passwd)\n<img src="doc/none.svg">\n' >"$tree/doc/one.md"
	words 1 "leads out of the tree" "there is no doc/doc/none.svg"
}

@test "words: a quotation is marked, with a reason" {
	printf '<!-- words: the old text -->\n| so many | %s |\n| whoever | x |\n\nThe end.\n' "$(sentence 41)" >"$tree/doc/one.md"
	words 0
	printf 'whoever\n' >>"$tree/doc/one.md"
	words 1 "doc/one.md:6: 'whoever'"
	printf '<!-- words: -->\nso many\n' >"$tree/doc/one.md"
	words 1 "doc/one.md:1: say why"
}

@test "words: help that fails, and a build that is not there" {
	program 'case $2 in claim) exit 3;; *) echo "  claim  take a task" ;; esac'
	words 1 "pawl help claim: exit code 3"
	program 'true'
	words 1 "lists no command"
	PAWL_ROOT=$tree run "$source/tools/check-words" "$tree/nowhere"
	[ "$status" -eq 1 ]
	[[ $output == *"build first" ]]
}
