# shellcheck shell=bash disable=SC2034,SC2154
# draws.sh -- repeats the steps of a comparison over draws
#
#   draws=${PTQ_DRAWS:-1}  in a script, before begin: its steps are made for draws 0, 1, ..., $draws - 1. A script
#                          without this line has one draw
#   draw_steps             for run_steps: makes the steps of all draws from those that were declared
#   files_of FILE          sets $files: FILE of every draw; $draws times the same if draws do not differ in it
#
# With one draw, nothing is changed. With more, a step is made for each draw if its command has `--tokens calib.h5`,
# `prompts.awk calib/questions.jsonl` or a rotation by a seed, or reads a file of such a step. Draw k is the same for
# all methods. The command of draw k has
#
#   --tokens calib.h5 --random-windows K   calibration on other windows of the text; PTQ_LIMIT sets their number
#   prompts.awk draw=K calib/questions.jsonl   other calibration questions
#   hadamard-rotate --seed N + 1000 K      other signs; dpq-run and fbq-run have the same option
#   dpq-run --damp 0.01 (1 + K/1000)       other codes of almost equal quality; not with --compensate none
#   fbq-run --seed K                       another start, if the command has no --seed
#
# and its files have .drawK before their extension, from draw 1 on. Test windows or questions are the same in all draws.
draws='' declared=()
declare -A drawn=()

step() {
	if [ "$draws" = 1 ]; then one_step "$@"
	else declared+=("$*"); fi
}
in_draw() {	# in_draw FILE K: sets $file, the name of FILE in this draw
	file=$1
	[ -n "${drawn[$1]-}" ] && [ "$2" != 0 ] || return 0
	if [[ $1 = ?*.* ]]; then file=${1%.*}.draw$2.${1##*.}
	else file=$1.draw$2; fi
}
files_of() {
	local k file
	files=()
	for ((k = 0; k < draws; k++)); do
		in_draw "$1" $k
		files+=("$file")
	done
}
# command_in_draw COMMAND K: sets $command
command_in_draw() {
	local rest=$1 k=$2 token tool='' last='' of='' file
	command=''
	while [[ $rest =~ ^([^A-Za-z0-9_.\/+,:@%-]*)([A-Za-z0-9_.\/+,:@%-]+)(.*)$ ]]; do
		command+=${BASH_REMATCH[1]} token=${BASH_REMATCH[2]}
		[[ ${BASH_REMATCH[1]} != *['|&']* ]] || tool=''
		rest=${BASH_REMATCH[3]}
		of=${rest%%['|&']*}	# the other arguments of the tool
		in_draw "$token" "$k"
		[ "$last $token" != 'prompts.awk calib/questions.jsonl' ] || command+="draw=$k "
		case "$last $tool" in
			--seed\ hadamard-rotate|--seed\ dpq-run|--seed\ fbq-run) file=$((token + 1000 * k)) ;;
		esac
		command+=$file
		[ -n "$tool" ] || tool=$token
		case "$k $last $token" in
			*' --tokens calib.h5') command+=" --random-windows $k" ;;
			0\ *) ;;
			*' dpq-run') [[ $of = *' --compensate none'* || $of = *' --damp '* ]] ||
				command+=$(printf ' --damp 0.%05d' $((1000 + k))) ;;
			*' fbq-run') [[ $of = *' --seed '* ]] || command+=" --seed $k" ;;
		esac
		last=$token
	done
	command+=$rest
}
draw_steps() {
	local i k command text open written removed errors word words again=yes outputs=() depends=() of
	[ "$draws" != 1 ] || return 0
	for i in "${!declared[@]}"; do
		bare "${declared[i]}"
		read -ra words <<<"$text"
		results_of "${words[@]}"
		outputs[i]=$written
	done
	while [ -n "$again" ]; do
		again=''
		for i in "${!declared[@]}"; do
			[ -z "${depends[i]-}" ] || continue
			of=''
			[[ ! ${declared[i]} =~ --tokens\ calib\.h5|prompts\.awk\ calib/questions\.jsonl ]] || of=yes
			[[ ! ${declared[i]} =~ (hadamard-rotate|dpq-run|fbq-run)\ [^\|\&]*--seed\  ]] || of=yes
			words "${declared[i]}"
			for word in "${words[@]}"; do of+=${drawn[$word]-}; done
			[ -n "$of" ] || continue
			again=yes depends[i]=yes
			for word in ${outputs[i]}; do drawn[$word]=yes; done
		done
	done
	for i in "${!declared[@]}"; do
		if [ -z "${depends[i]-}" ]; then one_step "${declared[i]}"
		else for ((k = 0; k < draws; k++)); do
			command_in_draw "${declared[i]}" $k
			one_step "$command"
		done; fi
	done
}
