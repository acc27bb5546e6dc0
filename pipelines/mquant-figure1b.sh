#!/usr/bin/env bash
# mquant-figure1b.sh [MODEL [QUESTIONS [CALIBRATION]]] -- ranges of visual and text tokens in the language model
#
# For the inputs of every linear layer of the language model, over the calibration tokens, and for visual and text
# tokens separately: the median of |x|, the percentiles 99 and 99.99, and the maximum (the ranges of
# msq-calib --act-mode static-modality). Also the ratio of the two maxima. In the paper (Qwen-VL) visual tokens range
# from -20 to 10, and few text tokens exceed 0.5.
set -euo pipefail
# shellcheck source=pipelines/lib/vision.sh
. "$(dirname "$0")/lib/vision.sh"
vision mquant "$@"

for m in "${models[@]}"; do calibration "$m"; for p in 50 99 99.99; do
	step "msq-calib -q --act-format int8 --act-mode static-modality --layers '/model/layers/*' --clip $p" \
		"--tokens $m-calib.h5$limit $m.h5 --report $m-range-$p.report -o $m-range-$p.h5 && rm $m-range-$p.h5"
done; done
run_steps

{
	printf 'model\tblock\tinput\tmodality\tp50\tp99\tp99.99\tlargest\tlargest_visual_over_text\n'
	for m in "${models[@]}"; do
		awk -v model="$m" -f "$lib/report.awk" -f "$lib/mquant-figure1b.awk" \
			"$m-range-50.report" "$m-range-99.report" "$m-range-99.99.report"
	done
} >"$part/figure1b.tsv"
table figure1b
plot figure1b
