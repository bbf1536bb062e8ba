# make install: the program, its man pages and completions, where they are looked for.

setup() {
	dest=$BATS_TEST_TMPDIR/dest
	meson install -C "$PAWL_BUILD" --no-rebuild --quiet --destdir "$dest"
}

# one NAME: exactly one file of that name below dest
one() {
	[ "$(find "$dest" -type f -path "*/$1" | wc -l)" -eq 1 ] || {
		find "$dest" -type f
		return 1
	}
}

@test "install puts everything in its place" {
	one bin/pawl
	one share/man/man1/pawl.1
	one share/man/man1/pawl-claim.1
	one share/bash-completion/completions/pawl
	one share/zsh/site-functions/_pawl
	one share/fish/vendor_completions.d/pawl.fish
	one include/pawl.h
	one libpawl.a
	one libpawl.so.0.2.0
	one pkgconfig/pawl.pc
	one lib/systemd/system/pawl.service
	one lib/systemd/system/pawl.socket
	one lib/sysusers.d/pawl.conf
	grep -qx 'ExecStart=/.*/bin/pawl serve' "$dest"/*/*/lib/systemd/system/pawl.service
	[ -z "$(find "$dest" -name 'pawl-gen*' -o -name '*demo*' -o -name '*.a' ! -name libpawl.a)" ]
}

@test "the installed program runs" {
	"$(find "$dest" -path '*/bin/pawl')" version | grep -q '^pawl '
}
