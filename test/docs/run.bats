#!/usr/bin/env bats
# The runner of the pages: it must fail where a page is wrong.

load ../cli/common

setup() {
	fresh
	docs=$PAWL_SOURCE/test/docs/run
}

# page CODE: runs the page on standard input, which must end with that code
page() {
	local want=$1
	shift
	cat >page.md
	rc=0
	output=$("$docs" "$@" page.md) || rc=$?
	echo "$output"
	[ "$rc" -eq "$want" ]
}

@test "docs: a page that is right" {
	PAWL_AGENT=eve PAWL_STORE=files:/nowhere page 0 <<'END'
<!-- setup: pawl init -q -->
<!-- setup:
pawl create -q one
-->
```console
$ pawl claim t1
claimed t1  one
fence       1
expires     in 14m 1s  (2001-01-01T01:01:01.001Z)
token       11111111-1111-1111-1111-111111111111
…
$ pawl show t1
…
lock        you@laptop, fence 1, expires …
…
$ cd / && x=1
$ echo "$PWD $x $HOME" \
>     end
/ 1 /home/you end
bob$ echo "$PWD $x"
/home/you 
$ sh -c 'exit 3'
$ echo $?
3
```

<!-- exit: 44 -->
```console
bob$ pawl show t9 2>/dev/null
```

<!-- not run: it would fail -->
```console
$ false
```

```sh
false
```

```console
no command
```

<!-- setup: cd -->
<!-- file: script -->
```sh
echo $1 $RANDOM
```

<!-- varies: \d+ -->
```console
$ bash script word
word 123
$ echo one; sleep 100
one
^C
```

<!-- run -->
```sh
pawl done t1
```
END
	says "ok 1 - " "10 commands"
}

@test "docs: another output" {
	page 1 <<<$'```console\n$ echo one; echo two\none\n2\n```'
	says "not ok 1" 'line 2: $ echo one; echo two' "-2" "+two"
}

@test "docs: more output than the page has, and less" {
	page 1 <<<$'```console\n$ echo one; echo two\none\n```'
	page 1 <<<$'```console\n$ echo one\none\ntwo\n```'
	page 1 <<<$'```console\n$ echo one >&2\n```'
	page 1 <<<$'```console\n$ echo\n```\n```console\n$ true\nx\n```'
}

@test "docs: another exit code" {
	page 1 <<<$'```console\n$ false\n```'
	says "exit code 1, expected 0"
	page 1 <<<$'```console\n$ false\n$ echo $?\n2\n```'
	page 1 <<<$'<!-- exit: 2 -->\n```console\n$ false\n```'
	says "exit code 1, expected 2"
	page 1 <<<$'<!-- exit: 2 -->\n```console\n$ true\n```'
}

@test "docs: a duration, a word and a number are compared" {
	page 1 <<<$'```console\n$ echo in 15m\nin 1h\n```'
	page 1 <<<$'```console\n$ echo t1 Done\nt1 Failed\n```'
	page 1 <<<$'```console\n$ echo fence 1\nfence 2\n```'
	page 1 <<<$'```console\n$ echo one two\none … three\n```'
}

@test "docs: a set-up or a script that fails" {
	page 1 <<<$'<!-- setup: false -->\n```console\n$ true\n```'
	page 1 <<<$'<!-- run -->\n```sh\nfalse\ntrue\n```'
}

@test "docs: a page that shows nothing, or is not whole" {
	page 1 <<<"words"
	says "shows no command"
	page 1 <<<$'```console\n$ true'
	says "does not end"
	page 1 <<<$'<!-- not run: -->\n```console\n$ true\n```'
	says "say why"
	page 1 <<<$'<!-- exit: 1 -->\nwords\n```console\n$ false\n```'
	says "right above its block"
	page 1 <<<$'```console\n$ true\n```\n<!-- exit: 1 -->'
	says "has no block"
}

@test "docs: a shell that ends" {
	page 1 <<<$'```console\n$ exit 0\n$ true\n```'
	says "the shell has ended"
}

@test "docs: --write puts the real output into the page, and leaves the rest" {
	page 1 --write <<<$'# Title\n\n```console\n$ echo in 14m\nin 13m 59s\n$ echo two; echo three\n2\n```\n\nEnd.'
	diff page.md - <<<$'# Title\n\n```console\n$ echo in 14m\nin 13m 59s\n$ echo two; echo three\ntwo\nthree\n```\n\nEnd.'
	"$docs" page.md
}

# pages: each page of doc/, from there
pages() {
	(cd "$PAWL_SOURCE/doc" && find . -name '*.md' -printf '%P\n' | sort)
}

@test "docs: each page says whom it is for, in the first line under its title" {
	[ "$(pages | wc -l)" -ge 30 ]
	for name in $(pages); do
		[[ $(sed -n 1p "$PAWL_SOURCE/doc/$name") == "# "* && $(sed -n 3p "$PAWL_SOURCE/doc/$name") == "For "* ]] || {
			echo "$name: line 1 must be the title, and line 3 begin with: For people who"
			return 1
		}
	done
}

@test "docs: the index lists each page, and that of the guides each guide" {
	[ "$(pages | wc -l)" -ge 30 ]
	for name in $(pages | grep -vx 'README.md'); do
		index=README.md link=$name
		case $name in
		guides/README.md) ;;
		guides/*) index=guides/README.md link=${name#guides/} ;;
		esac
		grep -qF "($link" "$PAWL_SOURCE/doc/$index" || {
			echo "doc/$index does not list $link"
			return 1
		}
	done
}

@test "docs: --without leaves out a page by its name" {
	page 1 <<'END'
```console
$ false
```
END
	page 0 --without page.md <<'END'
```console
$ false
```
END
	[[ $output == "1..0"* ]]
}
