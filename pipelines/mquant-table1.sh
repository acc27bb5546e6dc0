#!/usr/bin/env bash
# mquant-table1.sh [MODEL [QUESTIONS [CALIBRATION]]] -- MQuant table 1: the cost of clipping visual or text tokens
#
# Inputs of the language model's linear layers in int8, with one static scale for visual and one for text tokens of
# each layer. The scale comes from the largest |x| of the calibration tokens (100 %), or for one of the two modalities
# from a percentile (99.999, the paper's; 99.9; 99), above which inputs saturate. Weights and the encoder stay in 16
# bits. The paper has int16, which shows the clipping alone. In 8 bits a smaller range also rounds the unclipped inputs
# more finely. acc_delta and kl_delta are differences from no clipping, paired, with standard errors over questions.
set -euo pipefail
# shellcheck source=pipelines/lib/vision.sh
. "$(dirname "$0")/lib/vision.sh"
draws=${PTQ_DRAWS:-1}
vision mquant "$@"

ways='none-100-all visual-99.999-visual visual-99.9-visual visual-99-visual
	text-99.999-text text-99.9-text text-99-text'
for m in "${models[@]}"; do calibration "$m"; for way in $ways; do
	IFS=- read -r clipped percentile modality <<<"$way"
	clip="--clip $percentile"
	[ "$modality" = all ] || clip+=" --clip-modality $modality"
	rounding "$m-$clipped-$percentile" "$m" --act-mode static-modality --layers "'/model/layers/*'" "$clip"
	choose "$m-clip-$clipped-$percentile" "cat $m-$clipped-$percentile.h5"
done; done
run_steps

rows() {
	printf 'model\tvisual\tlanguage\tway\t@\tpaper_textvqa\n'
	for m in "${models[@]}"; do cat <<T; done
$m	16	W16A8	none, 100	@$m-clip-none-100 $m-clip-none-100	61.2
$m	16	W16A8	visual, 99.999	@$m-clip-visual-99.999 $m-clip-none-100	18.92
$m	16	W16A8	visual, 99.9	@$m-clip-visual-99.9 $m-clip-none-100	
$m	16	W16A8	visual, 99	@$m-clip-visual-99 $m-clip-none-100	
$m	16	W16A8	text, 99.999	@$m-clip-text-99.999 $m-clip-none-100	60.09
$m	16	W16A8	text, 99.9	@$m-clip-text-99.9 $m-clip-none-100	
$m	16	W16A8	text, 99	@$m-clip-text-99 $m-clip-none-100	
T
}
rows | tabulate table1 "$answer_columns" answers
plot table1
