# shellcheck shell=bash disable=SC2034
# lines.sh -- what local, parallel and slurm share: which lines are to run, the run of one line, the message at the end
#
#   . lines.sh             reads command lines from standard input, and sets todo, the ids of those that are not done.
#                          Ends with status 0 if all are done
#   lines.sh LOGS ID...    as a program: runs the line ID. A task of a Slurm array gets all IDs, and runs one
#   await COMMAND...       runs the command, and ends it with all that it started on INT, TERM and HUP
#   report                 the end: status 1 and a message for each line of todo that is not done, or status 0
#
# ID is the digest of a line and of the folder in which it runs. In the folder LOGS, ID.todo has the line until it
# succeeds; then this file is called ID.done. ID.log has the line, and all that it prints. A line is done if ID.done
# exists, the files after -o, --report and > exist, and no file that the line names is newer than ID.done. Quotes and
# variables are not expanded: a result whose name has them counts as absent, and the line runs again.
#
# ID.log is locked while a process of the line runs. If the runner was killed and its lines still run, the next runner
# waits for them, and what they finish is done.
set -euo pipefail
each=$(dirname "$(realpath -- "${BASH_SOURCE[0]}")") by=each/${0##*/} todo=() stop=:
declare -A at=()
say() { local line="$by: $*"; echo "${line//[[:cntrl:]]/?}" >&2; }
fail() { say "${@:2}"; exit "$1"; }

is_done() {	# is_done ID LINE
	local stamp=$logs/$1.done line=$2 last='' word words
	[ -e "$stamp" ] || return 1
	# names and > become words; 2>&1, ; & | and parentheses become blanks
	line=${line//>&[0-9]/ } line=${line//--output=/-o } line=${line//--report=/-o }
	line=${line//[;&|()]/ } line=${line//>>/>} line=${line//>/ > }
	read -ra words <<<"$line"
	for word in "${words[@]}"; do
		case $last in -o|--output|--report|'>') [ -e "$word" ] || return 1 ;; esac
		[[ ! -f $word || ! $word -nt $stamp ]] || return 1
		last=$word
	done
}
run_line() {	# run_line ID
	local line file=$logs/$1 status processors
	exec 9>>"$file.log"
	flock 9 2>/dev/null || true	# where files cannot be locked, both run: tools rename whole files
	IFS= read -r line 2>/dev/null <"$file.todo" || IFS= read -r line <"$file.done"
	if is_done "$1" "$line"; then rm -f "$file.todo"; return; fi
	printf '%s\n' "$line" >"$file.log"	# reserves a block, in which a message fits when the disk is full
	processors=${SLURM_CPUS_ON_NODE:-$(nproc)}
	export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$(((processors + PTQ_JOBS - 1) / PTQ_JOBS))}
	unset "${!SLURM_ARRAY_TASK_@}" SLURM_PROCID SLURM_NTASKS	# --shard auto would take the number of the line
	set +e
	bash -euo pipefail -c "$line" 2>&1 </dev/null | tee -a "$file.log" >&2
	status=${PIPESTATUS[0]}
	[ "$status" = 0 ] && touch "$file.todo" && mv -f "$file.todo" "$file.done"
	exit "$status"
}
read_lines() {
	local line id n=0
	while IFS= read -r line || [ -n "$line" ]; do
		[[ $line = *[![:space:]]* ]] || continue
		n=$((n + 1)) id=$(printf '%s\n' "$PWD" "$line" | sha256sum) id=${id:0:16}
		[ -z "${at[$id]-}" ] || continue
		at[$id]=$n
		! is_done "$id" "$line" || continue
		rm -f "$logs/$id.done"
		printf '%s\n' "$line" 2>/dev/null >"$logs/$id.todo" || fail 1 "$logs: cannot be written"
		todo+=("$id")
	done
	[ $n != 0 ] || fail 2 'no command line on standard input; --help shows how it is used'
}
await() {
	local process
	set -m
	"$@" &
	process=$!
	# shellcheck disable=SC2064
	trap "trap '' INT TERM HUP; kill -- -$process; $stop; exit 143" INT TERM HUP
	wait $process || true
}
report() {
	local id line last shard file status=0
	: "$logs"/*	# a listing brings files of other machines up to date (NFS)
	for id in "${todo[@]}"; do
		file=$logs/$id
		[ ! -e "$file.done" ] || continue
		status=1 line=$(<"$file.todo") shard=''
		[[ ! $line =~ --shard[\ =]([0-9]+/[0-9]+) ]] || shard=" (shard ${BASH_REMATCH[1]})"
		if [ "$file.log" -nt "$file.todo" ]; then last=$(tail -n +2 "$file.log" | tail -n 1)
		else last='it did not start'; fi
		[ -s "$file.log" ] || [ ! -e "$file.log" ] || last='its log cannot be written: is the disk full?'
		say "line ${at[$id]}$shard failed: ${last:-without a message}; log: $file.log"
	done
	exit $status
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	logs=$1
	shift
	[ $# = 1 ] || shift "$SLURM_ARRAY_TASK_ID"
	run_line "$1"
	exit
fi
case ${1-} in
	'') ;;
	-h|--help) sed -n '2,${/^#/!q; s/^# \{0,1\}//p}' "$0"; exit ;;
	*) fail 2 "$1: no such option; --help shows how it is used" ;;
esac
case ${PTQ_JOBS=4} in *[!0-9]*|0*|'') fail 2 "PTQ_JOBS: '$PTQ_JOBS' is not a number above 0" ;; esac
export PTQ_JOBS
for program in flock sha256sum "${needs-bash}"; do
	command -v "$program" >/dev/null || fail 1 "$program: is not installed"
done
[ ! -t 0 ] || fail 2 'expected command lines on standard input; --help shows how it is used'
logs=${PTQ_LOGS:-each-logs}
mkdir -p -- "$logs" 2>/dev/null && logs=$(realpath -- "$logs") && [ -w "$logs" ] || fail 1 "$logs: cannot be written"
read_lines
[ ${#todo[@]} != 0 ] || exit 0
