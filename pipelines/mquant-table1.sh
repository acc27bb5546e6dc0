#!/usr/bin/env bash
# mquant-table1.sh [MODEL [QUESTIONS [CALIBRATION]]] -- MQuant table 1: what clipping visual or text tokens costs
#
# Inputs of the language model's linear layers in int8, a static scale for visual and one for text tokens of each layer: from the
# largest |x| of the calibration tokens (100 %), or for one of the two from a percentile (99.999: the paper's, 99.9, 99),
# beyond which it saturates. Weights and the encoder stay in 16 bits. The paper has int16, where clipping alone shows; in 8 bits what is
# not clipped is rounded more finely. acc_delta and kl_delta are against no clipping, paired, with standard errors
# over questions. PTQ_LIMIT: first tokens of the calibration set only.
set -euo pipefail
# shellcheck source=pipelines/mquant-common.sh
. "$(dirname "$0")/mquant-common.sh"
vision mquant "$@"

ways() { cat <<'W'
none	100	all
visual	99.999	visual
visual	99.9	visual
visual	99	visual
text	99.999	text
text	99.9	text
text	99	text
W
}
say "calibrating ranges"
for m in "${models[@]}"; do while read -r clipped percentile modality; do
	rounding "$m-$clipped-$percentile" "$m" --act-mode static-modality --layers '/model/layers/*' --clip "$percentile" --clip-modality "$modality"
done < <(ways); done
commands() {
	local m clipped percentile
	for m in "${models[@]}"; do while read -r clipped percentile _; do
		choose "$m-clip-$clipped-$percentile" "$m-clip-none-100" "$(weights "$m-$clipped-$percentile" - none none)"
	done < <(ways); done
}
say "measuring"
commands | in_turn

paper() { case $1 in none-100) echo 61.2;; visual-99.999) echo 18.92;; text-99.999) echo 60.09;; esac; }
{
	printf 'model\tvisual\tlanguage\tway\t%b\tpaper_textvqa\n' "$answered"
	for m in "${models[@]}"; do while read -r clipped percentile _; do
		printf '%s\t16\tW16A8\t%s, %s\t%s\t%s\n' "$m" "$clipped" "$percentile" "$(answers "$m-clip-$clipped-$percentile")" "$(paper "$clipped-$percentile")"
	done < <(ways); done
} >"$part/table1.tsv"
table table1
picture table1 "Language model's inputs in int8, static scales by modality: ranges of visual or text tokens clipped at a percentile" "no clipping" "paper: TextVQA, Qwen-VL, %"
