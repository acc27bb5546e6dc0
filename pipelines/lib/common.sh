# shellcheck shell=bash
# common.sh -- the start of every pipeline: its options, its inputs, its folder of results
#
#   begin FOLDER [MODEL [TEST [CALIBRATION]]]   goes to $work: results/FOLDER/KEY, where model.h5 is the model
#   arguments MOST ARGUMENT..., enter FOLDER SUMS   the two parts of begin, for a pipeline without a model
#   fact NAME              a fact of the model from tensor-info; nothing if the model is not imported yet
#   rotatable              true unless a fact says that hadamard-rotate refuses the model: norms after its residual
#                          branches, or a rotation
#   texts                  calib.h5, test.h5, and reference.h5: model.h5 on test.h5, for eval-ppl --reference
#   calibrate              texts, and hessian.h5: the Hessians of calib.h5
#   hessians FROM...       the Hessians of FROM.h5: FROM-hessian.h5
#   measure RUN COMMAND [OPTION...]   evaluates the model that COMMAND, a dpq-run, prints: RUN.tsv, RUN.record, and
#                          RUN.report of COMMAND. OPTIONs are eval-ppl's, and with PTQ_QUESTIONS eval-choice's
#   measure_file RUN COMMAND [ALSO]   the same for COMMAND -o RUN.h5; also RUN.stats, the table of tensor-stats.
#                          ALSO: another command that reads RUN.h5, which is removed at the end without keep=yes
#   measured RUN [ALSO]    prints the commands of measure_file for RUN.h5, without that of the report
#   evaluated RUN [OPTION...]   prints the commands that evaluate RUN.h5: RUN.tsv: NLL and divergence from model.h5;
#                          RUN.record: those of each target; with PTQ_QUESTIONS RUN.choice: accuracies, and RUN.answers
#   judge RUN [OPTION...], answered RUN [OPTION...]   print these two commands; judge for a model on standard input
#   program VARIABLE NAME...   the first of these measuring programs of the source tree, unless the variable names it
#
# Steps, their keys, --dry-run and --status are in steps.sh, draws in draws.sh, tables and plots in tables.sh;
# docs/pipelines.md has an example.
#
# KEY is a digest of the inputs and the settings. Unfinished files are in $part, a folder of this process only. It is
# locked while this process or one that it started runs; folders of other processes that are not locked are removed.
shopt -s inherit_errexit
{ read -rd '' lib; read -rd '' script; } < <(realpath -z -- "${BASH_SOURCE[0]}" "$0")
lib=${lib%/*} here=${lib%/lib}
[ -x "$here/../bin/eval-ppl" ] && PATH=$here/../bin:$PATH
tools=(aifs-order awq-scale dpq-run eval-choice eval-compare eval-generate eval-ppl exmy-pack exmy-sweep fbq-run
	gar-order hadamard-rotate hessian-accum images-import ln2rms model-export model-import msq-calib plan-bits
	qep-correct questions-import rms-suppress roofline sample-tokens smooth-scale tensor-diff tensor-info
	tensor-join tensor-stats tokenize)
# The variables that change results.
settings=(OPENBLAS_CORETYPE PTQ_CPU PTQ_CTX PTQ_GROUP PTQ_LIMIT PTQ_RANKS PTQ_RUNS PTQ_TOKENS
	${PTQ_SHARDS:+PTQ_SHARDS})	# only where it is set: KEY of other pipelines stays
window="--ctx ${PTQ_CTX:-256} --convention bos"	# for every evaluation
limit=${PTQ_LIMIT:+ --limit $PTQ_LIMIT}	# for every calibration
name=${0##*/} name=${name%.sh} model='' questions='' asked='' mode=make operands=() paired=''
read -ra runner <<<"${PTQ_EACH-}"
[ ${#runner[@]} != 0 ] || runner=(bash -euo pipefail)

say() { local line="$name: $*"; echo "${line//[[:cntrl:]]/?}" >&2; }
fail() { say "${@:2}"; exit "$1"; }
# shellcheck source=pipelines/lib/steps.sh
. "$lib/steps.sh"
# shellcheck source=pipelines/lib/draws.sh
. "$lib/draws.sh"
# shellcheck source=pipelines/lib/tables.sh
. "$lib/tables.sh"

about_inputs() { cat <<'H'

MODEL: a Hugging Face folder, a GGUF file or a model file; without it the embedded model.
TEST, CALIBRATION: token files or plain texts; without them, or '', PTQ_TOKENS (32640) ids
sampled from the model. Windows have PTQ_CTX (256) tokens. PTQ_LIMIT: only the first tokens of the calibration set.
Results are kept in PTQ_RESULTS (results), in one folder for each combination of these.
H
}
about_draws() { cat <<'H'

PTQ_DRAWS (1): repeats all that depends on calibration windows, signs of rotations or damping, with others of these,
the same for all methods. Standard errors are then over draws and windows, and the table says which differences are
separated.
PTQ_QUESTIONS: questions for eval-choice, without images, as JSON lines. Their accuracies become columns of the table.
H
}
about_options() { cat <<'H'

--dry-run: print the commands, those of what is done after '# done:'. --status: print what is done. Neither writes.
H
}
# arguments MOST ARGUMENT...: sets $mode and $operands; prints --help; reports errors that do not depend on the inputs'
# contents
arguments() {
	local i
	for i in "${@:2}"; do case $i in
		-) fail 2 "$i: expected a file that can be read more than once" ;;
		-h|--help)
			sed -n '2,${/^#/!q; s/^# \{0,1\}//p}' "$0"
			[ "$1" = 0 ] || about_inputs
			[ -z "$draws" ] || about_draws
			about_options
			exit ;;
		--dry-run|--status) mode=${i#--} ;;
		-*) fail 2 "$i: no such option; --help shows how it is used" ;;
		*) operands+=("$i") ;;
	esac; done
	[ -z "$draws" ] || questions=${PTQ_QUESTIONS-}
	draws=${draws:-1} asked=${questions:+acc acc_se acc_delta acc_delta_se}
	asked+=${questions:+ acc_norm acc_norm_se acc_norm_delta acc_norm_delta_se}
	[ ${#operands[@]} -le "$1" ] || fail 2 "${operands[-1]}: one argument too many; --help shows how it is used"
	for i in PTQ_CTX PTQ_DRAWS PTQ_GROUP PTQ_LIMIT PTQ_RUNS PTQ_SHARDS PTQ_TOKENS; do case $i=${!i-} in
		"$i="|PTQ_GROUP=channel|PTQ_GROUP=tensor) ;;
		*=*[!0-9]*|*=0*) fail 2 "$i: '${!i}' is not a number above 0" ;;
		PTQ_DRAWS=???*) fail 2 "$i: '${!i}' is more than 99" ;;
		PTQ_RUNS=?????*|PTQ_SHARDS=?????*) fail 2 "$i: '${!i}' is more than 9999" ;;
	esac; done
	for i in "${tools[@]}" gnuplot flock "${runner[0]}"; do
		command -v "$i" >/dev/null || fail 1 "$i: is not installed"
	done
}
readable() {	# readable FILE...
	local f
	for f; do
		[ -e "$f" ] || fail 1 "$f: no such file"
		[ ! -d "$f" ] || fail 1 "$f: is a folder, expected a file"
		[ -f "$f" ] || fail 1 "$f: is not a file that can be read more than once"
		{ : <"$f"; } 2>/dev/null || fail 1 "$f: cannot be read"
	done
}
begins() { local LC_ALL=C bytes=''; IFS= read -rN 4 bytes <"$1" || true; [ "$bytes" = "$2" ]; }	# begins FILE BYTES
is_hdf5() { begins "$1" $'\211HDF'; }
is_gguf() { begins "$1" GGUF; }
sums() {	# sums ROLE FILE|FOLDER|'': identifies the contents of this input, wherever it is stored
	local LC_ALL=C
	echo "$1:"
	if [ -d "$2" ]; then (cd "$2" && sha256sum -- *.json *.safetensors)
	elif [ -n "$2" ]; then sha256sum <"$2"; fi
}
enter() {	# enter FOLDER SUMS: goes to results/FOLDER/KEY
	local LC_ALL=C key s
	if [ "$draws" != 1 ]; then settings+=(PTQ_DRAWS)
	elif [ "${PTQ_DRAWS:-1}" != 1 ]; then say 'PTQ_DRAWS has no effect here: one draw'; fi
	[ -n "$questions" ] || [ -z "${PTQ_QUESTIONS-}" ] || say 'PTQ_QUESTIONS has no effect here'
	key=$({
		echo "$2"
		for s in "${settings[@]}"; do printf '%s=%s\0' "$s" "${!s-}"; done
	} | sha256sum)
	work=${PTQ_RESULTS:-results}/$1/${key:0:16}
	[[ $work = /* ]] || work=$PWD/$work
	[[ ${runner[0]} != */* ]] || runner[0]=$(realpath -- "${runner[0]}")
	[ $mode = make ] || { look "$work"; return; }
	mkdir -p "$work/.steps"
	[ -z "${PTQ_LOG-}" ] || PTQ_LOG=$(realpath -m -- "$PTQ_LOG")
	cd "$work" || exit
	claim
	trap leave EXIT
	logged=0
	[ ! -f "${PTQ_LOG-}" ] || logged=$(wc -l <"$PTQ_LOG")	# lines of other runs
	export PATH name work PTQ_LOG=${PTQ_LOG:-$work/usage.tsv}
}
# claim: makes $part, one process at a time. Where files cannot be locked, folders that others left are not removed
claim() {
	local old all held
	exec {all}<.steps
	flock "$all" 2>/dev/null || true
	for old in part.??????; do
		[ ! -d "$old" ] || flock -n "$old" rm -rf "$old" 2>/dev/null || true
	done
	part=$(mktemp -d part.XXXXXX 2>/dev/null) || fail 1 "$work: cannot be written"
	exec {held}<"$part"
	flock "$held" 2>/dev/null || true
	exec {all}<&-
}
begin() {
	local folder=$1 f
	arguments 3 "${@:2}"
	model=${operands[0]:-$here/../data/prose} test=${operands[1]-} calib=${operands[2]-}
	if [ -d "$model" ]; then
		readable "$model"/config.json "$model"/*.json "$model"/*.safetensors
	else
		readable "$model"
		is_hdf5 "$model" || is_gguf "$model" ||
			fail 1 "$model: is neither HDF5 nor GGUF, expected a model or a Hugging Face folder"
	fi
	for f in "$test" "$calib" "$questions"; do [ -z "$f" ] || readable "$f"; done
	model=$(realpath -- "$model") test=${test:+$(realpath -- "$test")} calib=${calib:+$(realpath -- "$calib")}
	questions=${questions:+$(realpath -- "$questions")}
	model_state=$(state) model_sum=$(sums model "$model")
	f=$(sums test "$test"; sums calibration "$calib"; [ -z "$questions" ] || sums questions "$questions")
	enter "$folder" "$model_sum $f"
	if [ -d "$model" ] || is_gguf "$model"; then once model.h5 model-import "$model"
	else link model.h5 "$model"; fi
	[ -z "$questions" ] || { link questions.jsonl "$questions" && step "$(answered model)"; }
}
state() { stat -c '%i %s %y' "$model"; }
children() {	# children PROCESS: adds its child processes, and their child processes, to $ids
	local id started=''
	{ read -r started <"/proc/$1/task/$1/children"; } 2>/dev/null || true
	for id in $started; do ids+=("$id") && children "$id"; done
}
# leave: ends the processes that still run, by SIGTERM and after 5 seconds by SIGKILL. If the model file was replaced
# during the run, the results do not match KEY and are removed
leave() {
	local ids=() i id alive
	children $$
	if [ ${#ids[@]} != 0 ]; then
		kill "${ids[@]}" 2>/dev/null || true
		ids=("${ids[@]/#//proc/}")
		for ((i = 0; i < 100; i++)); do
			alive=$(grep -ls '^State:.[^XZ]' "${ids[@]/%//status}") || true
			[ -n "$alive" ] || break
			[ $i -lt 50 ] || for id in $alive; do kill -9 "${id//[^0-9]/}" 2>/dev/null || true; done
			sleep 0.1
		done
	fi
	rm -rf "$part"
	if [ -f "$model" ] && [ "$(state)" != "$model_state" ] && [ "$(sums model "$model")" != "$model_sum" ]; then
		rm -rf "$work"
		fail 1 "$model: was replaced while it was used: the results are removed"
	fi
}

fact() {
	local facts
	facts=$(PTQ_LOG='' tensor-info "$model" 2>&1 || PTQ_LOG='' tensor-info model.h5 2>&1) || facts=''
	awk -v name="$1" '$1 == name { print $2 }' <<<"$facts"
}
rotatable() { [ "$(fact norms_after_branches)" != yes ] && [ -z "$(fact rotated)" ]; }
tokens() {	# tokens OUT IN SEED: a token file from a token file, a text, or the model
	if [ -z "$2" ]; then
		step "sample-tokens --length ${PTQ_TOKENS:-32640} --ctx ${PTQ_CTX:-256} --seed $3 model.h5 -o $1"
	elif is_hdf5 "$2"; then keep "$1" cat "$2"
	else once "$1" tokenize --model model.h5 "$2"; fi
}
texts() {
	tokens calib.h5 "$calib" 1
	tokens test.h5 "$test" 2
	step "eval-ppl --tokens test.h5 $window --as-reference model.h5 -o reference.h5 >reference.tsv"
}
calibrate() {
	texts
	step "hessian-accum --tokens calib.h5 $window$limit model.h5 -o hessian.h5"
}
hessians() { local m; for m; do step "hessian-accum --tokens calib.h5 $window$limit $m.h5 -o $m-hessian.h5"; done; }
answered() { echo "eval-choice -q --questions questions.jsonl${2:+ ${*:2}} $1.h5 -o $1.answers >$1.choice"; }
judge() {
	local options="${2:+ ${*:2}} --reference reference.h5${paired:+ --paired $paired.record}"
	echo "eval-ppl --tokens test.h5 $window$options -o $1.record"
}
evaluated() { echo "$(judge "$@") $1.h5 >$1.tsv${asked:+ && $(answered "$@")}"; }
may_be_run() { case $1 in
	model|reference|hessian|order|calib|test) fail 1 "$1: a run has the name of a file that runs read" ;;
esac; }
measure() {
	local paired=''
	if [[ ${3:--} != -* ]]; then	# version 1.0: RUN BASE COMMAND; RUN.tsv has differences
		[ "$1" = "$2" ] || paired=$2
		set -- "$1" "${@:3}"
	fi
	may_be_run "$1"
	if [ -z "$asked" ]; then step "$2 -q --report $1.report | $(judge "$1" "${@:3}") >$1.tsv"
	else step "$2 -q --report $1.report -o $1.h5 && $(evaluated "$1" "${@:3}") && rm $1.h5"; fi
}
measure_file() {
	may_be_run "$1"
	step "$2 -q --report $1.report -o $1.h5 && $(measured "$1" "${3-}")"
}
measured() {
	local end=" && rm $1.h5"
	[ -z "${keep-}" ] || end=''
	echo "tensor-stats -q $1.h5 >$1.stats &&${2:+ $2 &&} $(evaluated "$1")$end"
}
program() {
	local first file
	first=$(realpath -m -- "${!1:-$here/../build/tests/bench/$2}")
	for file in "${first##*/}" "${@:3}"; do
		file=${first%/*}/$file
		[ -f "$file" ] && [ -x "$file" ] || fail 1 "$file: is not there: make bench builds it, or $1 names it"
	done
	echo "$first"
}
machine() { uname -n; nproc; }	# times depend on the machine, and on the number of processors that it grants
