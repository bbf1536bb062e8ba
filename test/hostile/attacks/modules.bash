# shellcheck shell=bash disable=SC2154 # scratch, PAWL …: attack.bash
# Another local user puts a module where pawl looks for one, or could replace one.

# module FILE: a library that leaves a mark when it is loaded
module() {
	[ -e "$scratch/evil.so" ] || {
		printf '#include <stdio.h>\n#include <stdlib.h>\n__attribute__((constructor)) static void f(void) {\n\tfclose(fopen(getenv("MARK"), "w"));\n}\n' |
			cc -shared -fPIC -x c -o "$scratch/evil.so" -
	}
	cp "$scratch/evil.so" "$1"
}

# folder: two folders of the user's own, and a module in the inner one
folder() {
	chmod -R u+rwx "$scratch/a" 2>/dev/null || true
	rm -rf "$scratch/a"
	mkdir -p "$scratch/a/b"
	module "$scratch/a/b/pawl-store-evil.so"
}

# access_list FILE: user 12345 may write to it, by an access list; its mode shows that as the group's right
access_list() {
	python3 -c 'import os, struct, sys
os.setxattr(sys.argv[1], "system.posix_acl_access", struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in (
	(1, 6, 0xffffffff), (2, 6, 12345), (4, 4, 0xffffffff), (16, 6, 0xffffffff), (32, 4, 0xffffffff))))' "$1" ||
		chmod 0666 "$1" # this file system has none
}

# loads WHAT: the user opens the store with the module. The module must be loaded (yes) or not (no).
loads() {
	rm -f "$scratch/loaded"
	MARK=$scratch/loaded PAWL_MODULE_DIR=$scratch/a/b victim 40 list --store evil:x
	if [ "$1" = yes ]; then
		[ -e "$scratch/loaded" ]
	else
		[ ! -e "$scratch/loaded" ]
		complains 'another user can write to'
	fi
}

# Each row: who can do what, and whether a module is loaded then.
# stores: sqlite
attack_modules_of_others() {
	need python3
	local expected change root=$scratch/a
	chown 0:12345 "$outside" 2>/dev/null || {
		echo 'SKIP needs two users'
		exit 0
	}
	chown 0:0 "$outside"
	while read -r expected change; do
		folder
		echo "$change"
		(cd "$root" && eval "$change")
		loads "$expected"
	done <<-'END'
		yes true
		yes chmod 1777 .
		yes chmod 0700 . b
		yes chmod 0775 . b
		yes chmod 0111 .
		no chmod 1777 b
		no chmod 0777 b
		no chmod 0777 .
		no chmod 0757 .
		no chmod 3777 b
		no chmod 0666 b/pawl-store-evil.so
		no chmod 0646 b/pawl-store-evil.so
		no access_list b/pawl-store-evil.so
		no chown 12345 b/pawl-store-evil.so
		no chown 12345 b
		no chown 12345 .
		no chgrp 12345 b; chmod 0775 b
		no chgrp 12345 .; chmod 0775 .
		no chgrp 12345 b/pawl-store-evil.so; chmod 0664 b/pawl-store-evil.so
		no chmod 1777 .; chown 12345 b
		no chmod 1777 .; chown 12345 b/pawl-store-evil.so
		no mkdir c; mv b/*.so c; chmod 0777 c; ln -s ../c/pawl-store-evil.so b/pawl-store-evil.so
		no mv b c; chmod 1777 c; ln -s c b
	END
}

# A pipe or a folder in place of the module must not block the call.
# stores: sqlite
attack_modules_that_are_not_files() {
	for make in mkfifo mkdir; do
		folder
		rm "$scratch/a/b/pawl-store-evil.so"
		$make "$scratch/a/b/pawl-store-evil.so"
		PAWL_MODULE_DIR=$scratch/a/b victim 40 list --store evil:x
	done
	ln -sfn nowhere "$scratch/a/b/pawl-face-evil.so"
	PAWL_MODULE_DIR=$scratch/a/b victim 2 evil
}

# The user runs a copy of pawl in a folder of all users, where another one has put a module.
# stores: sqlite
attack_modules_beside_the_program() {
	folder
	cp "$PAWL" "$scratch/a/b/pawl"
	allowed+=("$scratch/a/b/pawl")
	unset PAWL_MODULE_DIR
	PAWL=$scratch/a/b/pawl MARK=$scratch/loaded victim 40 list --store evil:x
	[ -e "$scratch/loaded" ]
	chmod 1777 "$scratch/a/b"
	PAWL=$scratch/a/b/pawl MARK=$mark victim 40 list --store evil:x
	complains 'another user can write to'
}
