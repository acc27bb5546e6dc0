#!/bin/sh
# hadamard.t -- docs/hadamard.md has the table that the library prints (make docs)
# shellcheck source=tests/tap.sh
. "${0%/*}/tap.sh"
"${PTQ_BUILD:-$top/build}/tests/hadamard" table >table
ok 'the table has orders' grep -q '^| 300 |' table
is 'docs/hadamard.md: the matrix of each order' "$(sed -n '/^| order/,$p' "$top/docs/hadamard.md")" "$(cat table)"
done_testing
