#!/usr/bin/env bash
# mquant-table4.sh [MODEL [QUESTIONS [CALIBRATION]]] -- MQuant table 4: activation scales per token, per tensor and
# per modality
#
# MQuant's model (converted, rotated, columns split) with int4 weights of one scale per row by GPTQ. Inputs of the
# language model's linear layers are int8, with one scale per token (dynamic), one static scale per layer (static), one
# static scale per modality (MSQ), or the last with the visual tokens of every question first (MSQ+AIFS). Encoder and
# projector have static scales per layer in all of these rows. AWQ: only the language model, int4 in groups of PTQ_GROUP
# (128), activations in 16 bits. acc_delta and kl_delta are differences from MSQ, paired, with standard errors over
# questions. The last lines state whether MSQ gave the same answer to every question with and without AIFS, as it must.
# Times are measured by mquant-table3.sh and mquant-table7.sh.
set -euo pipefail
# shellcheck source=pipelines/lib/vision.sh
. "$(dirname "$0")/lib/vision.sh"
draws=${PTQ_DRAWS:-1}
vision mquant "$@"
group=${PTQ_GROUP:-128}

for m in "${models[@]}"; do
	variants "$m"
	awq_scaled "$m" int4 "$group"
	rounding "$m-split-static" "$m-split" --act-mode static-tensor
	step "msq-calib -q --act-format int8 --act-mode dynamic-token --layers '/model/layers/*' $m-split-static.h5" \
		"-o $m-split-token.h5"
	base=$m-W4A8-W4A8-MQuant
	weights="dpq-run -q --storage int4 --group channel --reorder none --hessian $m-rotated-hessian.h5"
	choose "$base" "$(quantized MQuant "$m" int4 int4)"
	choose "$m-16" "cat $m.h5"
	choose "$m-16-W4A16-AWQ" "$(awq "$m" int4 "$group")"
	choose "$m-token" "$weights $m-split-token.h5"
	choose "$m-static" "$weights $m-split-static.h5"
	choose "$m-aifs" "$weights $m-split-msq.h5" --aifs --paired "$base.record"
done
run_steps

rows() {
	printf 'model\tvisual\tlanguage\tway\t@\tpaper_textvqa\n'
	for m in "${models[@]}"; do cat <<T; done
$m	16	16	unquantized	@$m-16 $m-W4A8-W4A8-MQuant	84.43
$m	16	W4A16	AWQ, groups	@$m-16-W4A16-AWQ $m-W4A8-W4A8-MQuant	83.93
$m	W4A8	W4A8	token, dynamic	@$m-token $m-W4A8-W4A8-MQuant	84.32
$m	W4A8	W4A8	tensor, static	@$m-static $m-W4A8-W4A8-MQuant	40.20
$m	W4A8	W4A8	MSQ	@$m-W4A8-W4A8-MQuant $m-W4A8-W4A8-MQuant	84.32
$m	W4A8	W4A8	MSQ+AIFS	@$m-aifs $m-W4A8-W4A8-MQuant	84.32
T
}
rows | tabulate table4 "$answer_columns" answers
plot table4
where=''
[ "$draws" = 1 ] || where=' in each draw'
for m in "${models[@]}"; do
	awk -v same="$(over_draws "$m-aifs.tsv" all paired_same)" 'BEGIN { exit same != 1 }' ||
		fail 1 "$m: visual tokens first: another answer to some question, expected the same to all"
	all="all $(cell "$m-aifs.tsv" questions all) questions$where"
	say "$m: MSQ with visual tokens first: the same answer to $all"
done
