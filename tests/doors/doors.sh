# shellcheck shell=sh
# doors.sh -- sourced by tests of exchange with other programs, in both directions: tap.sh, and peer
#
# PEERS is a Python that has the packages (default: python3). Only `make check-doors` runs these tests.
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tap.sh
. "$top/tests/tap.sh"
PEERS=${PEERS:-python3}
# peer FUNCTION ARGUMENT...: as py (tests/tap.sh), with that Python
peer() { "$PEERS" -B "$top/tests/lib/py" "$@"; }
# need_peers MODULE...: skips the test if one of them is missing
need_peers() {
	for m; do
		"$PEERS" -c "import $m" >/dev/null 2>&1 || { skip "$PTQ_TEST" "no $m in $PEERS"; done_testing; }
	done
}
# near NAME A B BOUND: |A - B| <= BOUND
near() {
	is "$1: $2 and $3 within $4" "$(awk "BEGIN { d = $2 - ($3); print (d < 0 ? -d : d) <= $4 ? \"near\" : d }")" near
}
