# shellcheck shell=bash
# Attacks on a client by its server, or by a program between them. The stand-in and its tables are in answers.py and
# database.py.

here=${BASH_SOURCE[0]%/*}/..

# Bad answers to every command: none ends with a signal, runs or writes what the server says, or reaches the terminal.
# stores: http unix
attack_bad_answers() {
	need python3
	mkdir "$scratch/tmp/trials"
	python3 "$here/answers.py" "$PAWL" "$scratch/tmp/trials" "$store"
}

# Bad rows, errors and notices of a database, also while the client connects.
# stores: postgres
attack_bad_database() {
	need python3
	mkdir "$scratch/tmp/trials"
	python3 "$here/database.py" "$PAWL" "$scratch/tmp/trials"
}
