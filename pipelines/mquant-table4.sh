#!/usr/bin/env bash
# mquant-table4.sh [MODEL [QUESTIONS [CALIBRATION]]] -- MQuant table 4: scales of inputs by token, by tensor and by
# modality
#
# MQuant's model (converted, rotated, channels split off) with int4 weights of one scale a row by GPTQ; inputs of the
# language model's linear layers in int8, under a scale of each token (dynamic), one static scale a layer (static),
# one static scale for visual and one for text tokens (MSQ), and the same with the visual tokens of every question
# first (MSQ+AIFS); those of encoder and projector under static scales of a layer in each of these. AWQ: the language
# model alone, int4 in groups of PTQ_GROUP (128), inputs in 16 bits. acc_delta and kl_delta are against MSQ, paired,
# with standard errors over questions; the last lines say whether MSQ with and without AIFS gave the same answer to
# every question, which it must. Times are measured by mquant-table3.sh and mquant-table7.sh. PTQ_LIMIT: first tokens
# of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/lib/questions.sh
. "$(dirname "$0")/lib/questions.sh"
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
	choose "$base" "$base" "$(quantized MQuant "$m" int4 int4)"
	choose "$m-16" "$base" "cat $m.h5"
	choose "$m-16-W4A16-AWQ" "$base" "$(awq "$m" int4 "$group")"
	choose "$m-token" "$base" "$weights $m-split-token.h5"
	choose "$m-static" "$base" "$weights $m-split-static.h5"
	choose "$m-aifs" "$base" "$weights $m-split-msq.h5" --aifs
done
run_steps

rows() {
	printf 'model\tvisual\tlanguage\tway\t@\tpaper_textvqa\n'
	for m in "${models[@]}"; do cat <<T; done
$m	16	16	unquantized	@$m-16	84.43
$m	16	W4A16	AWQ, groups	@$m-16-W4A16-AWQ	83.93
$m	W4A8	W4A8	token, dynamic	@$m-token	84.32
$m	W4A8	W4A8	tensor, static	@$m-static	40.20
$m	W4A8	W4A8	MSQ	@$m-W4A8-W4A8-MQuant	84.32
$m	W4A8	W4A8	MSQ+AIFS	@$m-aifs	84.32
T
}
rows | tabulate table4 "$answered" answers
plot table4
for m in "${models[@]}"; do
	awk -v same="$(cell "$m-aifs.tsv" paired_same all)" 'BEGIN { exit same != 1 }' ||
		fail 1 "$m: visual tokens first: another answer to some question, expected the same to all"
	say "$m: MSQ with visual tokens first: the same answer to all $(cell "$m-aifs.tsv" questions all) questions"
done
