#!/usr/bin/env bash
# mquant-table9.sh -- MQuant table 9 and figure 1a: five vision-language models by their shapes
#
# Norms of the encoders, parameters and operations of encoder and language model, and visual tokens by the size of a
# square image. All follow from the configurations of the models (man page of roofline); nothing is measured. Table 9 is
# for one image of 448 pixels; operations of the language model are for 256 visual tokens, as in the paper, whose
# numbers are in the columns paper_.... Parameters in 10⁹, operations in 10¹².
set -euo pipefail
# shellcheck source=pipelines/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
arguments 0 "$@"
enter "$name" ''

step "roofline --table visual --image 448 >shapes.tsv"
step "roofline --table visual" \
	"--image 224,336,448,560,672,784,896,1008,1120,1232,1344,1456,1568,1680,1792,1904,2016 >tokens.tsv"
run_steps

awk -f "$lib/mquant-table9.awk" shapes.tsv >"$part/table9.tsv"
table table9
plot tokens
