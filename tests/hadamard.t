#!/bin/sh
# docs/hadamard.md has the table that the library says (make docs)
# shellcheck source=tests/tap.sh
. "${0%/*}/tap.sh"
"${PTQ_BUILD:-$top/build}/tests/hadamard" table >table
ok 'there are orders in it' grep -q '^| 300 |' table
is 'docs/hadamard.md: which matrix each order takes' "$(sed -n '/^| order/,$p' "$top/docs/hadamard.md")" "$(cat table)"
done_testing
