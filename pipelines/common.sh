# shellcheck shell=bash
# common.sh NAME [MODEL [TEST [CALIBRATION]]] -- what every pipeline begins with
#
# MODEL is a Hugging Face folder or a model file (default: the embedded model);
# TEST and CALIBRATION are token files or plain texts (default: sampled from
# the model itself). Sets $model, $test, $calib, $work. Results live in
# results/NAME/KEY, where KEY stands for the inputs and the tools: what is there
# was made from the same inputs and is not made again.
#
#   once FILE COMMAND...   run COMMAND -o FILE unless FILE is there
#   keep FILE COMMAND...   run COMMAND >FILE unless FILE is there
#   show FILE              a table with its columns aligned
#   measure RUN BASE OPTION...   the command that quantizes with these options and measures, unless it was run:
#                          RUN.layers, RUN.tsv, paired by token with BASE, which keeps its record
#   compared RUN BASE      output error, its change from BASE's in % and the standard error of that over layers;
#                          nll, its rise from reference.tsv, its change from BASE's and the standard error over tokens
#   each                   run the command lines on standard input: one after the other, or as
#                          $PTQ_EACH says (PTQ_EACH='parallel -j4', or a script that submits to Slurm)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ -x "$here/../bin/eval-ppl" ] && PATH=$here/../bin:$PATH
embedded=$here/../data/prose
window=(--ctx 256 --convention bos)	# of every evaluation
name=$1 source=${2:-$embedded} test=${3:-} calib=${4:-}

key() { { echo "${PTQ_GROUP-} ${PTQ_LIMIT-} ${PTQ_TOKENS-}"; for t in dpq-run gar-order hessian-accum eval-ppl exmy-sweep tensor-stats tensor-diff; do cat "$(command -v $t)"; done; for f in "$@"; do
	if [ -d "$f" ]; then cat "$f/config.json" "$f"/*.safetensors; elif [ -f "$f" ]; then cat "$f"; fi; done; } | cksum | cut -d' ' -f1; }
work=${PTQ_RESULTS:-$PWD/results}/$name/$(key "$source" "$test" "$calib")
mkdir -p "$work"

say() { echo "$name: $*" >&2; }
once() { local out=$1; shift; [ -e "$out" ] || { "$@" -o "$out.part" && mv "$out.part" "$out"; }; }
keep() { local out=$1; shift; [ -e "$out" ] || { "$@" >"$out.part" && mv "$out.part" "$out"; }; }
show() { awk -F '\t' 'FNR == NR { for (i = 1; i <= NF; i++) if (length($i) > w[i]) w[i] = length($i); next }
	{ for (i = 1; i <= NF; i++) printf "%-*s%s", w[i] + 2, $i, i < NF ? "" : "\n" }' "$1" "$1"; }
each() { ${PTQ_EACH:-bash -euo pipefail}; }
measure() {
	local run=$1 record="--paired $2.h5"
	[ "$run" = "$2" ] && record="-o $2.h5"
	shift 2
	[ -e "$run.tsv" ] || echo "dpq-run --hessian hessian.h5 $* $model 2>$run.layers |" \
		"eval-ppl --tokens test.h5 ${window[*]} $record >$run.part && mv $run.part $run.tsv"
}
compared() { paste "$1.layers" "$2.layers" | cat - reference.tsv <(sed 's/^/run /' "$1.tsv") | awk -v OFS='\t' -F '\t' '
	/^\// && $2 > 0 { d = log($2 / $8); n++; sum += d; squares += d * d } { v[$1] = $2 }
	END { m = sum / n; se = n > 1 ? sqrt((squares / n - m * m) / (n - 1)) : 0
		print v["geometric mean"], 100 * (exp(m) - 1), 100 * exp(m) * se, v["run nll"], v["run nll"] - v["nll"],
			v["run paired_delta"] + 0, v["run paired_delta_se"] + 0 }'; }
tokens() {	# tokens OUT IN SEED: a token file from a token file, a text, or the model
	if [ -z "$2" ]; then once "$1" sample-tokens --tokens "${PTQ_TOKENS:-32640}" --ctx 256 --seed "$3" "$model"
	elif [ "$(head -c 4 "$2" | tail -c 3)" = HDF ]; then ln -sf "$(realpath "$2")" "$1"
	else once "$1" tokenize --model "$model" "$2"; fi
}

model=$source
if [ -d "$source" ]; then model=$work/model.h5; once "$model" model-import "$source"; fi
tokens "$work/calib.h5" "$calib" 1; calib=$work/calib.h5
tokens "$work/test.h5" "$test" 2; test=$work/test.h5
export PATH name work model calib test
