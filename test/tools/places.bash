# shellcheck shell=bash
# Functions for the tests of tables and lists that end with a file and a symbol: | … | [FILE](LINK) | `SYMBOL` |
# or: - …: [FILE](LINK), `SYMBOL`
# $source is the tree.

# rows PAGE: "FILE SYMBOL" for each such row
rows() {
	sed -nE 's/^(\| .* \| |- .*: )\[((src|test)\/[^]]+)\]\((\.\.\/)?[^)]+\)( \||,) `([^`]+)`( \|)?$/\2 \6/p' "$1"
}

# found FILE SYMBOL: FILE defines SYMBOL; a call or a comment does not count
found() {
	case $1 in
	*.def | *.bats) grep -qw -- "$2" "$source/$1" ;;
	*.build) grep -qE "^$2 = " "$source/$1" ;;
	*) grep -qE "^(#define $2\b|struct $2 \{|[a-z].*[ *]$2(\(|\[|;| =))" "$source/$1" ;;
	esac
}

# lost PAGE: the rows that lead nowhere
lost() {
	local file symbol
	rows "$1" | while read -r file symbol; do
		found "$file" "$symbol" || echo "$file has no $symbol"
	done
}
