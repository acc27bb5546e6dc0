# shellcheck shell=sh
# tap.sh -- sourced by every test: a scratch folder, the checks ok, no, warns, is, skip, and the plan at the end
#
# The tools are on PATH. $top is the project. $shared is the folder of trial data (real models and texts), or empty: a
# test that needs it skips these checks.
set -u
top=${top:-$(cd "$(dirname "$0")/.." && pwd)}
n=0 bad=0
tmp=$(mktemp -d) && cd "$tmp" || exit 1
trap 'rm -rf "$tmp"' EXIT
PATH=${PTQ_BIN:-$top/bin}:$top/tests/lib:$PATH
# py FUNCTION ARGUMENT...: calls a function of tests/lib/NAME.py for the test NAME.t, or of tests/lib/h5.py
PTQ_TEST=$(basename "${0%.*}") PTQ_TEST_PID=$$
export PTQ_TEST PTQ_TEST_PID
export LC_ALL=C
shared=${PTQ_SHARED:-$top/../shared}/data
[ -d "$shared" ] || shared=

# A failed check prints the reason on standard error, which prove shows. Some models of tests are made by hand and have
# no basis, and some are evaluated on their calibration tokens: these two warnings do not count.
unmade=': warning: .*: \(has no attribute basis: \|was calibrated on tokens \)'
# ok NAME COMMAND...: the command succeeds
ok() {
	n=$((n + 1)); what=$1; shift
	if "$@" >ok.out 2>ok.err; then echo "ok $n - $what"
	else bad=1; echo "not ok $n - $what"; { echo "# $what"; sed 's/^/# /' ok.out ok.err; } >&2; fi
}
# message_of FILE: sets $lines to the number of its lines that are neither warnings nor hints ("try '...'"), and $said
# to the last of them
message_of() {
	lines=0 said=
	while IFS= read -r line || [ -n "$line" ]; do
		case $line in '' | "try '"* | *': warning: '*) ;; *) lines=$((lines + 1)) said=$line ;; esac
	done <"$1"
}
# no NAME STATUS PATTERN COMMAND...: the command fails with this status and, apart from warnings, prints one line,
# which matches the pattern
no() {
	n=$((n + 1)); what=$1 status=$2 pattern=$3; shift 3
	"$@" >no.out 2>no.err </dev/null; got=$?
	message_of no.err
	if [ "$got" = "$status" ] && [ $lines = 1 ] && printf '%s\n' "$said" | grep -Eq -- "$pattern"; then
		echo "ok $n - $what"
	else
		bad=1; echo "not ok $n - $what"
		{
			echo "# $what: status $got, wanted $status; message, wanted one line like '$pattern':"
			sed 's/^/# /' no.err
		} >&2
	fi
}
# unnamed TOOL ARGUMENT...: the command fails with "expected one of A, B, ...". Prints the names that are not in --help
# or not in the page of the tool
unnamed() {
	names=$("$@" 2>&1 </dev/null | sed -n 's/.*expected one of //p' | tr -d ',')
	[ -n "$names" ] || echo "no names"
	for name in $names; do
		"$1" --help | grep -qw -e "$name" || echo "--help: $name"
		sed 's/\\-/-/g' "$top/docs/man/$1.1" | grep -qw -e "$name" || echo "page: $name"
	done
}
# warns NAME PATTERN COMMAND...: the command succeeds and prints one warning, which matches the pattern
warns() {
	n=$((n + 1)); what=$1 pattern=$2; shift 2
	"$@" >warns.out 2>warns.err </dev/null; got=$?
	if [ "$got" = 0 ] && [ "$(grep -v "$unmade" warns.err | grep -c ': warning: ')" -le 1 ] &&
		grep -Eq -- ": warning: .*$pattern" warns.err; then
		echo "ok $n - $what"
	else
		bad=1; echo "not ok $n - $what"
		{ echo "# $what: status $got, wanted one warning like '$pattern':"; sed 's/^/# /' warns.err; } >&2
	fi
}
# is NAME VALUE EXPECTED: the values are equal
is() {
	n=$((n + 1))
	if [ "$2" = "$3" ]; then
		echo "ok $n - $1"
	else
		bad=1
		echo "not ok $n - $1"
		printf '# %s:\n# is     %s\n# wanted %s\n' "$1" "$2" "$3" >&2
	fi
}
# without tests/lib: a module there that fails is no reason to skip
has_h5py() { /usr/bin/python3 -c 'import h5py' 2>/dev/null; }
# skip NAME WHY
skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }
done_testing() { echo "1..$n"; exit $bad; }
