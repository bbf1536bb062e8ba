# shellcheck shell=bash
# The user's files that no attack may change, for run and attack.bash.

# canaries DIR: fills the home, or a folder beside the clone
canaries() {
	mkdir -p "$1/.ssh" "$1/documents" "$1/.config/git"
	echo "the key of ${1##*/}" >"$1/.ssh/id_ed25519"
	echo "example.org ssh-ed25519 AAAA" >"$1/.ssh/known_hosts"
	echo 'alias ll=ls' >"$1/.bashrc"
	printf '[user]\n\tname = Tester\n\temail = tester@example.org\n' >"$1/.gitconfig"
	echo 'a letter' >"$1/documents/letter.txt"
	echo 'locked' >"$1/documents/Pipfile.lock"
	echo '*.o' >"$1/.config/git/ignore"
	find "$1" -exec touch -d '2020-02-02 UTC' {} +
}

# state SCRATCH: what the canaries are, without pawl's own state and cache folders
state() (
	own=(-path home/.local -o -path home/.cache)
	cd "$1" || exit
	{
		find home outside \( "${own[@]}" \) -prune -o ! -path home -printf '%p %y %m %s %T@ %l\n'
		find home outside \( "${own[@]}" \) -prune -o -type f -exec sha256sum {} +
	} | sort
)
