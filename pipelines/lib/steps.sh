# shellcheck shell=bash disable=SC2154
# steps.sh -- commands whose results are kept, each under a key of its own
#
#   step COMMAND           a command line that makes files in the folder of results: the files after -o and --report and
#                          the targets of redirections, except those that it removes. It is text for any shell on any
#                          machine. Names of its results are plain. Each has blanks around it, or follows its >:
#                          -o a.h5, >a.tsv
#   alone COMMAND          a step that measures time: no other step runs at the same time
#   run_steps              makes the missing results. In each round it runs all steps whose inputs exist: one after the
#                          other, or by the command in $PTQ_EACH, which reads their lines and ends when all are done
#                          (a runner of pipelines/each, or PTQ_EACH='parallel -j4'). --dry-run and --status end here
#   once FILE COMMAND...   runs COMMAND -o FILE unless FILE is made: at once, in this shell, with names of any form
#   keep FILE COMMAND...   runs COMMAND >FILE unless FILE is made
#   link FILE TARGET       makes FILE a link to TARGET, an input
#
# A step is made if its files exist and its key equals that of the run that made them. The key is the command line, with
# the digests of the tools in it and of the files that it reads. A step whose key changed is made again. A tool that
# changed and makes the same file as before changes no key of a later step. Keys are in .steps, with the digests of
# files (.steps/digests). .steps/PIPELINE.commands has the steps of the last complete run in their order: results, a
# tab, the command.
declare -A digests=() states=() maker=() unmade=()
lines=() results=() shown=() failing=() singly=() made=0 all=0 commands=''

# digest FILE...: sets digests[FILE]. A digest is computed once for each state of a file: inode, size, times
digest() {
	local file state sum changed=()
	if [ ${#states[@]} = 0 ] && [ -f .steps/digests ]; then
		while read -r sum state && IFS= read -r file; do
			[ -z "$file" ] || states[$file]=$state digests[$file]=$sum
		done <.steps/digests
	fi
	while IFS= read -rd '' file && IFS= read -rd '' state; do
		[ "${states[$file]-}" != "$state" ] || continue
		changed+=("$file") states[$file]=$state
		digests[$file]=''	# until it is computed: the file may vanish before
	done < <(stat -L --printf '%n\0%i %s %y %z\0' -- "$@")
	[ ${#changed[@]} != 0 ] || return 0
	while IFS= read -rd '' sum; do digests[${sum:66}]=${sum%% *}; done < <(sha256sum -z -- "${changed[@]}")
	[ $mode = make ] || return 0
	for file in "${!states[@]}"; do
		[[ $file = *$'\n'* || -z ${digests[$file]-} ]] ||
			printf '%s %s\n%s\n' "${digests[$file]}" "${states[$file]}" "$file"
	done >"$part/digests"
	mv -f "$part/digests" .steps
}
words() { read -ra words <<<"${1//[^A-Za-z0-9_.\/+,:@%-]/ }"; }	# names in a command line
# inputs_of COMMAND RESULT...: adds tools and files that COMMAND reads to $names, and their paths to $paths
inputs_of() {
	local word words
	words "${1//$'\n'/ }"
	for word in "${words[@]}"; do
		if [[ $word != */* && " ${tools[*]} " = *" $word "* ]]; then
			hash "$word" || fail 1 "$word: is not installed"
			paths+=("${BASH_CMDS[$word]}")
		elif [[ " ${*:2} " != *" $word "* && -f $word && -r $word ]]; then paths+=("$word")
		else continue; fi
		names+=("$word")
	done
}
# key_of COMMAND RESULT...: sets $key from the digests of its inputs. Files that are absent have no line in it
key_of() {
	local i names=() paths=()
	inputs_of "$@"
	key=$1
	for i in "${!names[@]}"; do key+=$'\n'"${names[i]} ${digests[${paths[i]}]-}"; done
}
kept_key() {	# kept_key RESULT: sets $kept, the key of the run that made it
	kept=''
	[ ! -e ".steps/$1.key" ] || IFS= read -rd '' kept <".steps/$1.key" || kept=${kept%$'\n'}
}
is_made() {	# is_made COMMAND RESULT...: and sets $key
	local file words kept
	words "${1//$'\n'/ }"
	for file in "${words[@]}"; do [ -z "${unmade[$file]-}" ] || [[ " ${*:2} " = *" $file "* ]] || return 1; done
	key_of "$@"
	for file in "${@:2}"; do [ -e "$file" ] || return 1; done
	kept_key "${*: -1}"
	[ "$kept" = "$key" ]
}

look() {	# look FOLDER: changes to FOLDER; if it does not exist, to an empty folder, which is removed at the end
	local folder=$1 tool
	hash eval-ppl && tool=${BASH_CMDS[eval-ppl]}
	# shellcheck disable=SC2016
	[ $mode != dry-run ] ||
		printf 'set -euo pipefail\nPATH=%q:$PATH\nmkdir -p %q && cd %q || exit\n' "${tool%/*}" "$1" "$1"
	if [ ! -d "$1" ]; then
		part=$(mktemp -d) folder=$part
		trap 'rm -rf "$part"' EXIT
	fi
	cd "$folder" || exit
}
# list_step MADE RESULTS COMMAND: prints a step for --dry-run or --status; keeps it for .steps/PIPELINE.commands
list_step() {
	local end='' last=${2##* }
	[[ $3 != *'&&'* ]] || end=' || exit'	# bash -e continues after a command before && that fails
	all=$((all + 1))
	[ -z "$1" ] || made=$((made + 1))
	case $mode$1 in
		make*) commands+=$2$'\t'$3$'\n' ;;
		status) printf 'to do\t%s\n' "$last" ;;
		status*) printf 'done\t%s\n' "$last" ;;
		*) echo "${1:+# done: }$3$end" ;;
	esac
}
# now FILE HOW COMMAND...: `once` and `keep`. In the key a program is its digest. An input is a slash: the name of the
# folder of results is a digest of the inputs
now() {
	local out=$1 how=$2 text='' word have='' began command names=() paths=()
	shift 2
	for word; do case $word in
		*/*) if [[ $text = '' ]]; then digest "$word"; text+=${digests[$word]}; else text+=' /'; fi ;;
		*) text+=" $word" ;;
	esac; done
	inputs_of "$text" "$out"
	[ ${#paths[@]} = 0 ] || digest "${paths[@]}"
	! is_made "$text $how$out" "$out" || have=yes
	printf -v command '%q ' "$@"
	list_step "$have" "$out" "$command$how$out"
	if [ $mode != make ]; then
		[ -n "$have" ] || unmade[$out]=now
	elif [ -z "$have" ]; then
		say "${out%.*}"
		began=$SECONDS
		if [ "$how" = '>' ]; then "$@" >"$part/$out"; else "$@" -o "$part/$out"; fi
		say "${out%.*}: $((SECONDS - began)) s"
		rm -f ".steps/$out.key"
		mv -f "$part/$out" .
		printf '%s\n' "$key" >"$part/key" && mv -f "$part/key" ".steps/$out.key"
	fi
}
once() { now "$1" '-o ' "${@:2}"; }
keep() { now "$1" '>' "${@:2}"; }
link() {	# makes the link in each run: the target of an older link may have moved
	local command
	command=$(printf 'ln -sf %q %q' "$2" "$1")
	case $mode in
		make) ln -s "$2" "$part/$1" && mv -f "$part/$1" . && commands+=$1$'\t'$command$'\n' ;;
		dry-run) echo "$command" ;;
	esac
}

plain='^[A-Za-z0-9_][A-Za-z0-9_.+,:@%-]*$'
quoted="^([^'\"\\\\]*)(\\\\.|'[^']*'|\"([^\"\\\\]|\\\\.)*\")(.*)\$"
refuse() {	# refuse WORD EXPECTED
	local word=${1//$'\1'/<}
	fail 1 "step: '${word//$'\2'/>}': expected $2"
}
# bare COMMAND: sets $text, the command on one line, with control characters in place of quoted < and >, and $open, the
# unquoted part
bare() {
	local rest=$1 word next
	text='' open=''
	while [[ $rest =~ $quoted ]]; do
		word=${BASH_REMATCH[2]} rest=${BASH_REMATCH[4]} open+="${BASH_REMATCH[1]}''"
		next=${rest:0:1}
		[[ $word != *[$'\t\n']* && $word${next:- } != *'  '* ]] ||
			refuse "$word" 'single blanks between quoted words: tabs, newlines and further blanks are lost'
		word=${word//</$'\1'}
		text+=${BASH_REMATCH[1]}${word//>/$'\2'}
	done
	[[ $rest != *[\'\"]* ]] || refuse "$rest" 'another quote'
	text+=$rest open+=$rest
	text=${text//$'\n'/ } open=${open//$'\n'/ }
}
joined() {	# joined WORD...: refuses ; and &, which ignore an error of the command before them
	local word rest
	for word; do
		rest=${word//&&/} rest=${rest//[<>|]&/} rest=${rest//&>/}
		[[ $rest != *[\;\&]* ]] || refuse "$word" 'commands joined by &&, so that one that fails ends the step'
	done
}
result() {	# result WORD NAME
	[[ $2 =~ $plain ]] || refuse "$1" 'the plain name of a result with blanks around it, as in >a.tsv or -o a.h5'
	written+="$2 "
}
# results_of WORD...: sets $written, the files that a command makes, $removed, and $errors, the targets of 2>
results_of() {
	local word last='' file removes=''
	written=' ' removed='' errors=''
	for word; do
		case $word in
			tee) refuse tee 'no tee: its files would be no results' ;;
			-o?*|--output=*|--report=*) refuse "$word" "a blank before the file's name" ;;
			-[qvj0-9]*o|--o|--ou|--out|--outp|--outpu|--rep|--repo|--repor)
				refuse "$word" '-o, --output or --report as a word of its own' ;;
		esac
		if [[ $last = -o || $last = --output || $last = --report ]]; then result "$word" "$word"
		elif [[ $word = *'>'* && ! $word =~ ^[0-9]?'>'('&'[0-9]|/dev/[a-z]+)$ ]]; then
			file=${word#[12]} file=${file#>}
			result "$word" "$file"
			[[ $word != '2>'* ]] || errors+=" $file"
		fi
		case $word in
			rm) removes=yes ;;
			*['&|;)}']*) removes='' ;;
			*) [ -z "$removes" ] || removed+=" $word " ;;
		esac
		last=$word
	done
}
# one_step COMMAND: `step` in one draw (draws.sh). The line that runs makes its files in $part, and moves them here with
# its key when all are complete
one_step() {
	local word out file line='' text open i=${#lines[@]} words written removed errors
	bare "$*"
	read -ra words <<<"$open"
	joined "${words[@]}"
	read -ra words <<<"$text"
	results_of "${words[@]}"
	for word in "${words[@]}"; do
		file=$word
		[[ ! $word =~ ^[012]?[\<\>] ]] || file=${word#"${BASH_REMATCH[0]}"}
		if [[ $written = *" $file "* ]]; then word=${word%"$file"}@PART@/$file
		else for file in ${word//[^A-Za-z0-9_.\/+,:@%-]/ }; do
			[[ $written != *" $file "* ]] || refuse "$word" "'$file' with blanks around it"
		done; fi
		line+=" $word"
	done
	line=${line//$'\1'/<} line=${line//$'\2'/>}
	text=${words[*]} text=${text//$'\1'/<} text=${text//$'\2'/>}
	results[i]=
	for out in $written; do [[ $removed = *" $out "* ]] || results[i]+="${results[i]:+ }$out"; done
	[ -n "${results[i]}" ] || fail 1 "a step without a result: $*"
	for out in ${results[i]}; do
		[ -n "${maker[$out]-}" ] || continue
		[ "${shown[maker[$out]]}" = "$text" ] || fail 1 "$out: two steps make it"
		unset 'results[i]'
		return
	done
	for out in ${results[i]}; do maker[$out]=$i unmade[$out]=$i; done
	shown[i]=$text lines[i]="{ ${line# }; }" failing[i]='exit 1'
	for file in $errors; do failing[i]="cat @PART@/$file >&2; ${failing[i]}"; done
}
alone() {
	local i=${#lines[@]}
	one_step "$@"
	[ ${#lines[@]} = "$i" ] || singly[i]=yes
}

waits() {	# waits STEP: it reads a file that another step has not yet made
	local word words
	words "${shown[$1]}"
	for word in "${words[@]}"; do
		[ -z "${unmade[$word]-}" ] || [ "${unmade[$word]}" = "$1" ] || [ "${unmade[$word]}" = now ] || return 0
	done
	return 1
}
command_of() {	# command_of STEP: sets $line, the line that makes the step with the key $key
	local out files='' last=${results[$1]##* } of=${name//[^A-Za-z0-9_. -]/?}
	for out in ${results[$1]}; do files+="$part/$out "; done
	printf '%s\n' "$key" >"$part/$last.key"
	# a runner may run a line twice: the key stays in $part
	line="${lines[$1]} && rm -f .steps/$last.key && mv -f $files. && cp $part/$last.key $part/$last.made"
	line+=" && mv -f $part/$last.made .steps/$last.key || { ${failing[$1]}; }"
	line="echo '$of: ${last%.*}' >&2; ptq_began=\$(date +%s); ${line//@PART@/$part}"
	line+="; echo \"$of: ${last%.*}: \$((\$(date +%s) - ptq_began)) s\" >&2"
}
# shellcheck disable=SC2086
step_is_made() { is_made "${shown[$1]}${singly[$1]:+ on $(machine)}" ${results[$1]}; }
digest_inputs() {	# digest_inputs STEP...: digests of all tools and files that the steps read
	local i names=() paths=()
	# shellcheck disable=SC2086
	for i; do inputs_of "${shown[i]}" ${results[i]}; done
	[ ${#paths[@]} = 0 ] || digest "${paths[@]}"
}
make_steps() {	# make_steps STEP...: makes those that are not made
	local i line text='' todo=() keys=() kept missing='' by=("${runner[@]}") who waited=0 status=0
	digest_inputs "$@"
	for i; do
		step_is_made "$i" && continue
		todo+=("$i") keys[i]=$key
		command_of "$i"
		text+=$line$'\n'
	done
	[ -n "$text" ] || return 0
	[ -z "${singly[$1]-}" ] || by=(bash -euo pipefail)
	[ "${by[*]}" = 'bash -euo pipefail' ] && who='a step' || who="'${by[*]}'"
	"${by[@]}" <<<"${text%$'\n'}" || status=$?
	: * .steps/*	# a listing brings files that other machines made up to date (NFS)
	for i in "${todo[@]}"; do
		line=${results[i]##* }
		kept_key "$line"
		# another run of this pipeline may just replace a key: two seconds in all
		while [ $status = 0 ] && [ "$kept" != "${keys[i]}" ] && [ $((waited += 1)) -le 20 ]; do
			sleep 0.1
			kept_key "$line"
		done
		[ "$kept" = "${keys[i]}" ] || missing+=", $line"
	done
	missing=${missing:+; missing: ${missing#, }}
	[ $status = 0 ] || fail 1 "$who ended with status $status$missing"
	[ -z "$missing" ] || fail 1 "$who ended with status 0 before all was done$missing." \
		"PTQ_EACH must run every line that it reads; a second run makes only what is missing"
}
list_steps() {
	local i out have
	digest_inputs "$@"
	for i; do
		have=
		! step_is_made "$i" || have=yes
		list_step "$have" "${results[i]}" "${shown[i]}"
		for out in ${results[i]}; do
			unset "unmade[$out]"
			[ -n "$have" ] || unmade[$out]=now
		done
	done
}
run_steps() {
	local i out pending ready rest single
	draw_steps
	pending=("${!lines[@]}")
	while [ ${#pending[@]} != 0 ]; do
		ready=() rest=() single=''
		for i in "${pending[@]}"; do
			if waits "$i"; then rest+=("$i")
			elif [ -z "${singly[i]-}" ]; then ready+=("$i")
			elif [ -z "$single" ]; then single=$i
			else rest+=("$i"); fi
		done
		if [ ${#ready[@]} != 0 ]; then rest+=(${single:+"$single"})
		else ready=(${single:+"$single"}); fi
		[ ${#ready[@]} != 0 ] || fail 1 "steps that wait for each other: ${shown[pending[0]]}"
		if [ $mode = make ]; then
			make_steps "${ready[@]}"
			for i in "${ready[@]}"; do
				list_step yes "${results[i]}" "${shown[i]}"
				for out in ${results[i]}; do unset "unmade[$out]"; done
			done
		else list_steps "${ready[@]}"; fi
		pending=(${rest[@]+"${rest[@]}"})
	done
	if [ $mode = make ]; then
		printf %s "$commands" >"$part/commands"
		mv -f "$part/commands" ".steps/$name.commands"
		return
	fi
	[ $mode != status ] || say "$made of $all steps are done: $work"
	exit 0
}
