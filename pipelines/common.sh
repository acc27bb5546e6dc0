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
#   show FILE              a table with its columns aligned
#   each                   run the command lines on standard input: one after the other, or as
#                          $PTQ_EACH says (PTQ_EACH='parallel -j4', or a script that submits to Slurm)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ -x "$here/../bin/eval-ppl" ] && PATH=$here/../bin:$PATH
embedded=$here/../data/prose
name=$1 source=${2:-$embedded} test=${3:-} calib=${4:-}

key() { { echo "${PTQ_GROUP-} ${PTQ_LIMIT-} ${PTQ_TOKENS-}"; cat "$(command -v dpq-run)" "$(command -v hessian-accum)" "$(command -v eval-ppl)"; for f in "$@"; do
	if [ -d "$f" ]; then cat "$f/config.json" "$f"/*.safetensors; elif [ -f "$f" ]; then cat "$f"; fi; done; } | cksum | cut -d' ' -f1; }
work=${PTQ_RESULTS:-$PWD/results}/$name/$(key "$source" "$test" "$calib")
mkdir -p "$work"

say() { echo "$name: $*" >&2; }
once() { local out=$1; shift; [ -e "$out" ] || { "$@" -o "$out.part" && mv "$out.part" "$out"; }; }
show() { awk -F '\t' 'FNR == NR { for (i = 1; i <= NF; i++) if (length($i) > w[i]) w[i] = length($i); next }
	{ for (i = 1; i <= NF; i++) printf "%-*s%s", w[i] + 2, $i, i < NF ? "" : "\n" }' "$1" "$1"; }
each() { ${PTQ_EACH:-bash -euo pipefail}; }
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
