#!/bin/sh
# usage.t -- memory and time of a run: a line in the file that PTQ_LOG names
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

export PTQ_LOG="$tmp/log"
ok "a tool runs" exmy-sweep -q -o sweep.h5
ok "another tool runs, with --help" tensor-stats -h
ok "a tool runs again" exmy-sweep -q -o sweep.h5
is "one line for each run that did its work" "$(cut -f 1 log)" "exmy-sweep
exmy-sweep"
ok "a line has memory, seconds and processor seconds" \
	awk -F '\t' 'NF != 4 || $2 < 1 || $2 > 1000 || $3 < 0 || $3 > 600 || $4 < 0 { exit 1 }' log
no "a run that fails" 1 'cannot open' tensor-stats nothing.h5
is "... adds no line" "$(wc -l <log)" 2
PTQ_LOG=$tmp/none/log
warns "a log that cannot be written" 'PTQ_LOG.*No such file' exmy-sweep --tsv
done_testing
