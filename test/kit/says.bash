# shellcheck shell=bash
# Checks of $output and $stderr after a call, for test/cli and test/hostile.

# says TEXT...: stdout has each TEXT; complains: stderr has it
says() {
	local text
	for text; do
		[[ $output == *"$text"* ]] || {
			echo "stdout does not say: $text"
			return 1
		}
	done
}

complains() {
	local text
	for text; do
		[[ $stderr == *"$text"* ]] || {
			echo "stderr does not say: $text"
			return 1
		}
	done
}

# not COMMAND...: bats overlooks the failure of "! COMMAND"
not() {
	if "$@"; then
		echo "this should have failed: $*"
		return 1
	fi
}
