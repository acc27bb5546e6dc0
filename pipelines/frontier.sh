#!/usr/bin/env bash
# frontier.sh [MODEL [TEST [CALIBRATION]]] -- what is best at B bits? Methods at 2 to 8 bits per weight, in one plot
#
# Methods read the same Hessians; the sequential ones and the packages make their own. Weights are in groups of
# PTQ_GROUP (64) with scales in f16; in row 2-rows of gptq, of about 2 bits, a row is a group; e8p and trellis have one
# scale per layer, llama.cpp its blocks. Scales are searched by output error (`hessian`) with GPTQ and what is built on
# it, by squared error (`mse`) with round-to-nearest. fbquant has none: its bound on the error of a weight is for full
# ranges. GPTQ has the group-aware order, but not within caldera: fbq-run has none.
#
#   rtn       round to nearest, uint2 to uint6, uint8        awq      awq-scale, then rtn
#   gptq      dpq-run, uint2 to uint6, uint8                 fbquant  branch of rank in/32 by FBQuant, uint2 to uint4
#   exmy      GPTQ in E2M0 to E2M3                           caldera  the same branch by CALDERA
#   nf        GPTQ in NF2 to NF6                             eora     the same branch by EoRA, for the error of gptq
#   k-best    GPTQ, 4 paths and 1 turn of scales             e8p      E8P, 2 to 4 bits, BlockLDLQ
#   dpq       GPTQ for FP8: weights and inputs are FP8, too  trellis  1MAD, 2 to 4 bits, BlockLDLQ
#   sequential, qep, qronos    GPTQ, QEP, Qronos with the inputs that quantized layers give, uint2 to uint4
#   plan                       gptq, bits of each layer by plan-bits: as many as those of gptq at 3, 4 and 5 bits
#   format-plan                the same; plan-bits chooses among the formats of gptq, nf and exmy
#   qep-plan                   qep in the formats of format-plan
#   ggml-plain, ggml-imatrix   block types of llama.cpp, made by its library; imatrix: importance diag H
#   llm-compressor, gptqmodel  their GPTQ, imported: uintB with a static column order; intB by the defaults of GPTQModel
#
# Columns. rotation: two-sided if each layer is rotated on both sides (--layer-rotation). Inputs of dpq then have a
# scale for each token, not a static one. Row 2-rows, 8 bits, rtn from 5 on, and models of others have no rotation.
# kl_delta, nll_delta: paired differences from gptq without rotation whose codes have as many bits, with standard errors
# over windows. kl_times_gptq: KL over that of gptq without rotation at as many bits per weight (lib/frontier.awk).
# seconds, MiB: processor time and peak memory of the tool that quantizes, with its calibration in sequential methods
# and in packages, and the import of modules in packages; awq-scale, plan-bits and the GPTQ before eora do not count.
# bits_a_weight: of codes, scales, zero points, signs and branches.
#
# PEERS: a Python with h5py, and llama-cpp-python for llama.cpp, or torch, transformers, compressed_tensors and
# llmcompressor for llm-compressor. GPTQMODEL (PEERS): a Python with h5py, torch, transformers, optimum and gptqmodel.
# Without a package its rows are missing. The folder of results keeps 28 quantized models for each draw, from which
# others are made, and those of the packages.
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
# shellcheck source=pipelines/lib/packages.sh
. "$lib/packages.sh"
draws=${PTQ_DRAWS:-1}
begin "$name" "$@"
group=${PTQ_GROUP:-64}
given='--hessian hessian.h5'
gptq="dpq-run --scale-search hessian" rtn='dpq-run --compensate none --scale-search mse'
weights="--group $group --scale-dtype f16"
seq="dpq-run --scale-search hessian --sequential --tokens calib.h5 $window$limit"

listed=()
run() {	# run METHOD ROTATION BITS COMMAND
	local run=$1-$2-$3 base=gptq-none-${3%-rows} keep=''
	case $1-$3 in gptq-[2-6]|nf-?|exmy-?) keep=yes ;; esac	# later steps read it
	measure_file "$run" "$4 -v 2>$run.usage"
	listed+=("$1	$2	$3	@$run $base")
}
calibrate
for b in 2 3 4; do step "awq-scale -q --storage uint$b --group $group $given model.h5 -o awq$b.h5"; done
run gptq none 2-rows "$gptq --storage uint2 --scale-dtype f16 --group channel $given model.h5"
for r in none two-sided; do
	signs='' fp8='--compute e4m3fn'
	[ $r = none ] || signs=' --seed 1' fp8+=' --act-mode dynamic-token'
	rotate="--layer-rotation $r$signs"
	for b in 2 3 4 5 6; do
		run gptq $r $b "$gptq $rotate --storage uint$b $weights $given model.h5"
		run nf $r $b "$gptq $rotate --storage nf$b $weights $given model.h5"
		[ $b = 2 ] || run exmy $r $b "$gptq $rotate --storage e2m$((b - 3)) $weights $given model.h5"
	done
	for b in 2 3 4; do
		common="$rotate --storage uint$b $weights"
		run rtn $r $b "$rtn $common model.h5"
		run awq $r $b "$rtn $common awq$b.h5"
		run k-best $r $b "$gptq $common --paths 4 --turns 1 $given model.h5"
		run sequential $r $b "$seq $common model.h5"
		run qep $r $b "$seq $common --qep 0.5 model.h5"
		run qronos $r $b "$seq $common --solver qronos model.h5"
		run dpq $r $b "$gptq $common $fp8 $given model.h5"
		run fbquant $r $b "fbq-run $common $given model.h5"
		run caldera $r $b "fbq-run $common --method caldera --scale-search hessian $given model.h5"
		run eora $r $b "fbq-run --method eora $given --reference model.h5 gptq-$r-$b.h5"
		run e8p $r $b "dpq-run $rotate --storage e8p${b#2} $given model.h5"	# e8p, e8p3, e8p4
		run trellis $r $b "dpq-run $rotate --storage 1mad$b $given model.h5"
	done
	integers=$(printf " gptq-$r-%s.h5" 3 2 4 5 6) floats=$(printf " exmy-$r-%s.h5" 3 4 5 6)
	floats+=$(printf " nf-$r-%s.h5" 2 3 4 5 6)
	# KL are measured of the first candidate; those of others follow
	step "plan-bits -q --reference model.h5 --tokens calib.h5 $window --limit 2K --by layer $given" \
		"--target-bits 64 -o costs-$r.h5$integers$floats >all-$r.plan"
	for b in 3 4 5; do for m in plan format-plan; do
		[ $m = plan ] && from=$integers || from=$integers$floats
		step "plan-bits -q --reference model.h5 --costs costs-$r.h5 --by layer --target-bits" \
			"\$(tail -n 1 gptq-$r-$b.stats | awk '{ print \$7 + 1e-5 }')$from >$m-$r-$b.plan"
		run $m $r $b "$gptq$signs $weights --plan $m-$r-$b.plan $given model.h5"
	done; done
	for b in 3 4 5; do
		run qep-plan $r $b "$seq$signs $weights --qep 0.5 --plan format-plan-$r-$b.plan model.h5"
	done
done
run gptq none 8 "$gptq --storage uint8 $weights $given model.h5"
for b in 5 6 8; do run rtn none $b "$rtn --storage uint$b $weights model.h5"; done

theirs() {	# theirs METHOD CODE [COMMAND]: a model that others made. The one that COMMAND makes is removed
	local run=$1-$2 base=gptq-none-${2//[!0-9]/} force=''
	[ -n "${3-}" ] || force='--force-basis '	# at 2 bits weights are too far for model-import --basis
	step "${3:+$3 -o $run.h5 >$run.stats 2>$run.usage &&}" \
		"tensor-diff --reference model.h5 $given $force$run.h5 | cut -f 1,7 >$run.report &&" \
		"$(evaluated "$run")${3:+ && rm $run.h5}"
	[ -n "${3-}" ] || step "tensor-stats -q $run.h5 >$run.stats"
	listed+=("$1	none	$2	@$run $base")
}
find_packages
if [ -z "$(lacks PEERS h5py llama_cpp)" ]; then
	link ggml.py "$lib/ggml.py"
	# llama.cpp's program has IQ2 types with an imatrix only
	for type in q2_K q3_K q4_K q5_K q6_K iq3_xxs iq3_s iq4_xs iq4_nl; do
		theirs ggml-plain $type "\"\$PEERS\" -B ggml.py $type model.h5 - gptq-none-4.h5"
	done
	for type in q2_K q3_K q4_K q5_K q6_K iq2_xxs iq2_xs iq2_s iq3_xxs iq3_s iq4_xs iq4_nl; do
		theirs ggml-imatrix $type "\"\$PEERS\" -B ggml.py $type model.h5 hessian.h5 gptq-none-4.h5"
	done
fi
[ -n "$missing" ] || for b in 2 3 4 8; do
	packaged llm-compressor-uint$b llmcompressor gptq-static uint$b "${PTQ_LIMIT:-0}" '' float16
	theirs llm-compressor uint$b
done
[ -n "$missing_gptq" ] || for b in 2 3 4 8; do
	packaged gptqmodel-int$b gptqmodel gptq int$b "${PTQ_LIMIT:-0}"
	theirs gptqmodel int$b
done
run_steps

row() {	# row COLUMNS RUN BASE: with processor seconds and memory
	local files bits
	bits=$(bits_of "$2")
	comparison "$1" "$2" "$3" "$bits" | tr -d '\n'
	files_of "$2.usage"
	awk '/peak memory/ { mib = $4 > mib ? $4 : mib; s += $6; n++ }
		END { printf "\t%.1f\t%.0f\n", s / (n ? n : 1), mib }' "${files[@]}"
}
{ printf 'method\trotation\tcode\t@\tseconds\tMiB\n' && printf '%s\n' "${listed[@]}"; } |
	tabulate frontier "bits_a_weight output_error ${compared#* * * }" row >/dev/null
awk -f "$lib/frontier.awk" frontier.tsv frontier.tsv >"$part/frontier.tsv"
table frontier
plot frontier
