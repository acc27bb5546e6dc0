#!/usr/bin/env bash
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
# succeeds; then this file is called ID.done. ID.log has the line, and all that it prints. After the line, ID.done has
# name, size, time and inode of the files that the line names: of inputs from its start, of results (after -o, --output,
# --report and >) from its end. A line is done if these are the same now. Without them it runs again: they are not known
# if the line has quotes, patterns, variables, ~ or a backslash, names a folder, or has no such result.
#
# ID.log is locked while a process of the line runs. If the runner was killed and its lines still run, the next runner
# waits for them, and then decides whether they are done.
set -euo pipefail
each=$(dirname "$(realpath -- "${BASH_SOURCE[0]}")") by=each/${0##*/} todo=() stop=: ended=0
declare -A at=()
say() { local line="$by: $*"; echo "${line//[[:cntrl:]]/?}" >&2; }
fail() { say "${@:2}"; exit "$1"; }

# names LINE: sets $inputs and $outputs, the files that the line names. Status 1 if they are not known, or if no result
# is a file: there are patterns, quotes, variables or folders, or another form of -o
names() {
	local line=$1 word words name named=() last=''
	inputs=() outputs=()
	[[ $line != *[\'\"\`\\\$*?['{'~]* ]] || return 1
	# names, > and < become words; 2>&1, ; & | and parentheses become blanks
	line=${line//>&[0-9]/ } line=${line//[;&|()]/ } line=${line//>>/>} line=${line//>/ > } line=${line//</ < }
	line=${line//--output=/-o } line=${line//--report=/-o }
	read -ra words <<<"$line"
	for word in "${words[@]}"; do
		case $last in -o|--output|--report|'>')
			[ ! -d "$word" ] || return 1
			[[ $word = /dev/* ]] || outputs+=("$word")
			last=''
			continue ;;
		esac
		last=$word name=${word%%=*}
		case $word in
			-o|--output|--report) ;;
			-o*|-[!-]*o*) return 1 ;;
			--?*) [[ --output != "$name"* && --report != "$name"* ]] || return 1 ;;
		esac
		for name in "$word" "${word#*=}" "${word:2}"; do
			[ ! -d "$name" ] || return 1
			[ ! -f "$name" ] || named+=("$name")
		done
	done
	for name in "${named[@]}"; do [[ " ${outputs[*]} " = *" $name "* ]] || inputs+=("$name"); done
	[ ${#outputs[@]} != 0 ] || return 1
}
state() { stat -Lc '%n %s %.Y %i' -- "$@" 2>/dev/null; }	# state FILE...: status 1 if one is absent
is_done() {	# is_done ID LINE
	local inputs outputs now had=''
	[ -e "$logs/$1.done" ] && names "$2" && now=$(state "${inputs[@]}" "${outputs[@]}") || return 1
	{ read -r && IFS= read -rd '' had; } <"$logs/$1.done" || true
	[ "$now" = "${had%$'\n'}" ]
}
last_line() { tail -n +2 "$1" | tail -n 1 | tr -d '\0'; }	# last_line LOG: of what its line printed
reason() {	# reason STATUS: of a line that failed; nothing if its last message has it
	local last
	last=$(last_line "$file.log")
	[[ ! $last =~ ^bash:\ line\ [0-9]+:\ +[0-9]+\ Killed ]] || set -- 137
	case $1 in
		137) echo 'killed by signal 9 (out of memory?)' ;;
		129|1[345]?) echo "killed by signal $(($1 - 128))" ;;
		*) [ -n "$last" ] || echo "status $1" ;;
	esac
}
run_line() {	# run_line ID
	local line file=$logs/$1 status processors inputs outputs before=''
	exec 9>>"$file.log"
	flock 9 2>/dev/null || true	# where files cannot be locked, both run: tools rename whole files
	IFS= read -r line 2>/dev/null <"$file.todo" || IFS= read -r line <"$file.done"
	if is_done "$1" "$line"; then rm -f "$file.todo"; return; fi
	printf '%s\n' "$line" >"$file.log"	# reserves a block, in which a message fits when the disk is full
	processors=${SLURM_CPUS_ON_NODE:-$(nproc)}
	export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$(((processors + PTQ_JOBS - 1) / PTQ_JOBS))}
	unset "${!SLURM_ARRAY_TASK_@}" SLURM_PROCID SLURM_NTASKS	# --shard auto would take the number of the line
	set +e
	names "$line" && [ ${#inputs[@]} != 0 ] && before=$(state "${inputs[@]}")$'\n'	# they may change while it runs
	{	# without the messages of this shell about a line that is killed
		bash -euo pipefail -c "$line" 2>&1 </dev/null 8>&- | tee -a "$file.log" >&8 2>&8
		status=${PIPESTATUS[0]}
	} 8>&2 2>/dev/null
	if [ "$status" = 0 ]; then
		[ ${#outputs[@]} = 0 ] || printf '%s' "$before$(state "${outputs[@]}")" 2>/dev/null >>"$file.todo"
		touch "$file.todo" && mv -f "$file.todo" "$file.done"
	else reason "$status" | tee -a "$file.log" >&2; fi
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
	# wait also returns when the process is stopped, to be continued later
	while ended=0; wait $process || ended=$?; kill -0 $process 2>/dev/null; do sleep 0.1; done
}
report() {
	local id line last shard file status=0 started=''
	: "$logs"/*	# a listing brings files of other machines up to date (NFS)
	for id in "${todo[@]}"; do [[ $logs/$id.log -ot $logs/$id.todo && ! -e $logs/$id.done ]] || started=yes; done
	[ $ended = 0 ] || [ -n "$started" ] || fail 1 "${needs-xargs} failed with status $ended; no line started"
	for id in "${todo[@]}"; do
		file=$logs/$id
		[ ! -e "$file.done" ] || continue
		status=1 line=$(head -n 1 "$file.todo") shard=''
		[[ ! $line =~ --shard[\ =]([0-9]+/[0-9]+) ]] || shard=" (shard ${BASH_REMATCH[1]})"
		if [ "$file.log" -ot "$file.todo" ]; then last='it did not start'
		else last=$(last_line "$file.log"); fi
		[ -s "$file.log" ] || [ ! -e "$file.log" ] || last='its log cannot be written: is the disk full?'
		last=${last:-no status: was its job killed, or its machine lost?}
		say "line ${at[$id]}$shard failed: $last; log: $file.log"
	done
	exit $status
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	logs=$1
	shift
	if [ $# != 1 ]; then
		i=${SLURM_ARRAY_TASK_ID-}
		[[ $i =~ ^[0-9]{1,9}$ ]] && [ "$i" -lt $# ] ||
			fail 2 "SLURM_ARRAY_TASK_ID: '$i' is not the number of a line, 0 to $(($# - 1))"
		shift "$i"
	fi
	run_line "$1"
	exit
fi
case ${1-} in
	'') ;;
	-h|--help) sed -n '2,${/^#/!q; s/^# \{0,1\}//p}' "$0"; exit ;;
	*) fail 2 "$1: no such option; --help shows how it is used" ;;
esac
case ${PTQ_JOBS=4} in
	*[!0-9]*|0*|''|????????*) fail 2 "PTQ_JOBS: '$PTQ_JOBS' is not a number above 0 with at most 7 digits" ;;
esac
export PTQ_JOBS
for program in flock sha256sum "${needs-bash}"; do
	command -v "$program" >/dev/null || fail 1 "$program: is not installed"
done
[ ! -t 0 ] || fail 2 'expected command lines on standard input; --help shows how it is used'
logs=${PTQ_LOGS:-each-logs}
mkdir -p -- "$logs" 2>/dev/null && logs=$(realpath -- "$logs") && [ -w "$logs" ] || fail 1 "$logs: cannot be written"
read_lines
[ ${#todo[@]} != 0 ] || exit 0
[ "$PTQ_JOBS" -le ${#todo[@]} ] || PTQ_JOBS=${#todo[@]}	# so that few lines share all processors
