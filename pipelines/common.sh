# shellcheck shell=bash
# common.sh -- what every pipeline begins with
#
#   begin FOLDER [MODEL [TEST [CALIBRATION]]]   goes to $work: results/FOLDER/KEY, where model.h5 is the model
#   arguments, enter       what begin is made of, for a pipeline without a model
#   calibrate              makes calib.h5, test.h5, and the Hessians of calib.h5: hessian.h5
#   hessians FROM...       those of FROM.h5: FROM-hessian.h5
#   once FILE COMMAND...   run COMMAND -o FILE, which is whole or not there at all, unless FILE is there
#   keep FILE COMMAND...   run COMMAND >FILE unless FILE is there
#   measure RUN BASE OPTION...   the command that quantizes with these options and measures, unless it was run:
#                          RUN.layers, RUN.tsv against the model, and against BASE, which keeps its record;
#                          $from: another model than model.h5, with Hessians from-hessian.h5; $kv: --kv-format
#   compared RUN BASE      the numbers of $compared, tab-separated: output error, its change from BASE's in % and the
#                          standard error of that over layers; nll; its rise from the model's, KL from the model, and
#                          what they have more than BASE's, each with its standard error over windows
#   each                   run the command lines on standard input: one after the other, or, unless it is blank, by the
#                          command in $PTQ_EACH, which reads them and ends when all are done (PTQ_EACH='parallel -j4', or a
#                          script that submits to Slurm); a line says its run's name, and moves its results here:
#                          mv -f FILE... RUN.tsv .
#   table NAME             $part/NAME.tsv is whole: NAME.tsv, shown with its columns aligned
#   plot NAME              gnuplot's commands on standard input, which write NAME.svg and NAME.png where `part` says
#
# KEY stands for all that a result depends on, so that what is there need not be made again. What is not yet whole
# lies in $part, a folder that only this process has. A command line is text for any shell on any machine: the
# names in it are plain ones in $work, wherever the inputs lie.
shopt -s inherit_errexit
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
[ -x "$here/../bin/eval-ppl" ] && PATH=$here/../bin:$PATH
tools=(aifs-order awq-scale dpq-run eval-choice eval-ppl exmy-pack exmy-sweep fbq-run gar-order hadamard-rotate hessian-accum images-import ln2rms model-import msq-calib rms-suppress sample-tokens smooth-scale tensor-diff
	tensor-stats tokenize)
settings=(OPENBLAS_CORETYPE PTQ_CPU PTQ_CTX PTQ_GROUP PTQ_LIMIT PTQ_RANKS PTQ_RUNS PTQ_TOKENS)	# those that change results
window=(--ctx "${PTQ_CTX:-256}" --convention bos)	# of every evaluation
sets=(--tokens calib.h5 "${window[@]}" ${PTQ_LIMIT:+--limit "$PTQ_LIMIT"})	# of every calibration
name=${0##*/} name=${name%.sh} model=
read -ra runner <<<"${PTQ_EACH-}"
[ ${#runner[@]} != 0 ] || runner=(bash -euo pipefail)

say() { local line="$name: $*"; echo "${line//[[:cntrl:]]/?}" >&2; }
fail() { say "${@:2}"; exit "$1"; }
about_inputs() { cat <<'H'

MODEL: a Hugging Face folder, a GGUF file or a model file; without it the embedded model.
TEST, CALIBRATION: token files or plain texts; without them, or '', PTQ_TOKENS (32640) ids
sampled from the model. Windows have PTQ_CTX (256) tokens. Results are kept in PTQ_RESULTS (results), in one folder for each combination of these.
H
}
arguments() {	# arguments MOST ARGUMENT...: --help, and everything that is wrong whatever the inputs hold
	local i
	for i in "${@:2}"; do case $i in
		-) fail 2 "$i: expected a file that can be read more than once" ;;
		-h|--help) sed -n '2,${/^#/!q; s/^# \{0,1\}//p}' "$0"; [ "$1" = 0 ] || about_inputs; exit ;;
		-*) fail 2 "$i: no such option; --help shows how it is used" ;;
	esac; done
	[ $# -le $(($1 + 1)) ] || fail 2 "${*: -1}: one argument too many; --help shows how it is used"
	for i in PTQ_CTX PTQ_GROUP PTQ_LIMIT PTQ_RUNS PTQ_TOKENS; do case $i=${!i-} in
		"$i="|PTQ_GROUP=channel|PTQ_GROUP=tensor) ;;
		*=*[!0-9]*|*=0*) fail 2 "$i: '${!i}' is not a number above 0" ;;
	esac; done
	for i in "${tools[@]}" gnuplot "${runner[0]}"; do command -v "$i" >/dev/null || fail 1 "$i: is not installed"; done
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
is_hdf5() { head -c 4 "$1" | cmp -s - <(printf '\211HDF'); }
is_gguf() { head -c 4 "$1" | cmp -s - <(printf GGUF); }
sums() {	# sums ROLE FILE|FOLDER|'': what this input is; where it lies does not matter
	local LC_ALL=C
	echo "$1:"
	if [ -d "$2" ]; then (cd "$2" && sha256sum -- *.json *.safetensors)
	elif [ -n "$2" ]; then sha256sum <"$2"; fi
}
enter() {	# enter FOLDER SUMS: goes to results/FOLDER/KEY; scripts that share a folder are called FOLDER...sh
	local LC_ALL=C key
	key=$({
		echo "$2"
		for s in "${settings[@]}"; do printf '%s=%s\0' "$s" "${!s-}"; done
		type -P "${tools[@]}" | xargs -d '\n' cat | sha256sum
		cd "$here" && sha256sum common.sh "$1"*.sh
	} | sha256sum | cut -c 1-16)
	work=${PTQ_RESULTS:-results}/$1/$key
	[[ $work = /* ]] || work=$PWD/$work
	[[ ${runner[0]} != */* ]] || runner[0]=$(realpath -- "${runner[0]}")
	mkdir -p "$work"
	cd "$work" || exit
	part=$(mktemp -d part.XXXXXX)
	trap leave EXIT
	export PATH name work PTQ_LOG=${PTQ_LOG:-$work/usage.tsv}
}
begin() {
	local folder=$1 f
	shift
	arguments 3 "$@"
	model=${1:-$here/../data/prose} test=${2:-} calib=${3:-}
	if [ -d "$model" ]; then readable "$model"/config.json "$model"/*.json "$model"/*.safetensors
	else readable "$model"; is_hdf5 "$model" || is_gguf "$model" || fail 1 "$model: is neither HDF5 nor GGUF, expected a model or a Hugging Face folder"; fi
	for f in "$test" "$calib"; do [ -z "$f" ] || readable "$f"; done
	model=$(realpath -- "$model") test=${test:+$(realpath -- "$test")} calib=${calib:+$(realpath -- "$calib")}
	model_state=$(state) model_sum=$(sums model "$model")
	f=$(sums test "$test"; sums calibration "$calib")
	enter "$folder" "$model_sum $f"
	if [ -d "$model" ] || is_gguf "$model"; then once model.h5 model-import "$model"
	else	# always anew: an older link may point at a place where another model lies by now
		ln -s "$model" "$part/model.h5"
		mv -f "$part/model.h5" .
	fi
}
state() { stat -c '%i %s %y' "$model"; }
leave() {	# a model file that was replaced while it was used: nothing here is what KEY says
	rm -rf "$part"
	if [ -f "$model" ] && [ "$(state)" != "$model_state" ] && [ "$(sums model "$model")" != "$model_sum" ]; then
		rm -rf "$work"
		fail 1 "$model: was replaced while it was used: the results are removed"
	fi
}

once() { local out=$1; shift; [ -e "$out" ] || "$@" -o "$out"; }
keep() { local out=$1; shift; [ -e "$out" ] || { "$@" >"$part/$out" && mv -f "$part/$out" "$out"; }; }
tokens() {	# tokens OUT IN SEED: a token file from a token file, a text, or the model
	if [ -z "$2" ]; then once "$1" sample-tokens --length "${PTQ_TOKENS:-32640}" --ctx "${PTQ_CTX:-256}" --seed "$3" model.h5
	elif is_hdf5 "$2"; then keep "$1" cat "$2"
	else once "$1" tokenize --model model.h5 "$2"; fi
}
calibrate() {
	say "calibrating"
	tokens calib.h5 "$calib" 1
	tokens test.h5 "$test" 2
	once hessian.h5 hessian-accum "${sets[@]}" model.h5
}
hessians() { local m; for m; do once "$m-hessian.h5" hessian-accum "${sets[@]}" "$m.h5"; done; }
# shellcheck disable=SC2034
compared='output_error\terror_percent\terror_percent_se\tnll\tnll_rise\tnll_rise_se\tnll_delta\tnll_delta_se\tkl\tkl_se\tkl_delta\tkl_delta_se'
measure() {
	local run=$1 record="--paired $2.h5" source=${from:-model} hessian=hessian.h5
	[ "$source" = model ] || hessian=$source-hessian.h5
	[ "$run" = "$2" ] && record="-o $2.h5"
	shift 2
	[[ " $* " = *" --sequential "* ]] || set -- --hessian $hessian "$@"
	[ -e "$run.tsv" ] || echo "dpq-run $* $source.h5 2>$part/$run.layers |" \
		"eval-ppl --tokens test.h5 ${window[*]}${kv:+ --kv-format $kv} --reference model.h5 $record >$part/$run.tsv &&" \
		"mv -f $part/$run.layers $part/$run.tsv . || { grep ^dpq-run: $part/$run.layers >&2; exit 1; }"
}
each() {
	local line lines='' result results=() missing=''
	while IFS= read -r line; do
		[[ $line =~ ' mv -f '([^ ]+ )*([^ ]+)' . ' ]] || fail 1 "a command line without results: $line"
		result=${BASH_REMATCH[2]##*/}
		results+=("$result")
		lines+="echo '$name: ${result%.*}' >&2; $line"$'\n'
	done
	[ -n "$lines" ] || return 0
	"${runner[@]}" <<<"${lines%$'\n'}"
	for result in "${results[@]}"; do [ -e "$result" ] || missing+=", ${result%.*}"; done
	[ -z "$missing" ] || fail 1 "'${runner[*]}' ended with status 0 before all was done; missing: ${missing#, }." \
		"PTQ_EACH must run every line that it reads; a second run makes only what is missing"
}
layers() { grep -v '^dpq-run: ' "$1.layers"; }	# without what it says beside them
compared() { paste <(layers "$1") <(layers "$2") | awk -v OFS='\t' -F '\t' -v run="$1.tsv" '
	FILENAME == run { v[$1] = $2; next }
	/^\// && $2 > 0 { d = log($2 / $8); n++; sum += d; squares += d * d } $1 == "all" { error = $2 }
	END { m = sum / n; se = n > 1 ? sqrt((squares / n - m * m) / (n - 1)) : 0
		print error, 100 * (exp(m) - 1), 100 * exp(m) * se, v["nll"], v["reference_nll_delta"], v["reference_nll_delta_se_windows"] + 0,
			v["paired_nll_delta"] + 0, v["paired_nll_delta_se_windows"] + 0, v["kl"] + 0, v["kl_se_windows"] + 0,
			v["paired_kl_delta"] + 0, v["paired_kl_delta_se_windows"] + 0 }' - "$1.tsv"; }
peaks() {	# what each tool took at most, of all runs that PTQ_LOG has
	[ ! -s "$PTQ_LOG" ] || say "peak memory, MiB: $(awk -F '\t' '$2 > m[$1] { m[$1] = $2 } END { for (t in m) print t, m[t] }' "$PTQ_LOG" | sort | paste -sd ,)"
}
table() {
	mv -f "$part/$1.tsv" .
	awk -F '\t' 'FNR == NR { for (i = 1; i <= NF; i++) if (length($i) > w[i]) w[i] = length($i); next }
	{ for (i = 1; i <= NF; i++) printf "%-*s%s", w[i] + 2, $i, i < NF ? "" : "\n" }' "$1.tsv" "$1.tsv"
}
plot() {
	{ echo "part = '$part/'"; cat; } | gnuplot
	mv -f "$part/$1.svg" "$part/$1.png" .
	peaks
	say "table: $work/$1.tsv  plot: $work/$1.svg, $work/$1.png"
}
