#!/usr/bin/env bash
# fpe2m2-table4.sh [MODEL [TEST [CALIBRATION]]] -- FPE2M2 table 4: the gain of INT4, E2M1, INT5, E2M2 from groups
# and GPTQ
#
# One scale per row; one scale per PTQ_GROUP (128) columns; GPTQ with one scale per row. E2Mx is paired with the same
# format with one scale per row, INT with E2Mx of the same width and method. paper: average accuracy over eight tasks of
# Qwen2.5-7B-Instruct.
# Standard errors are over windows. docs/results/fpe2m2.md explains the columns.
set -euo pipefail
# shellcheck source=pipelines/lib/fpe2m2.sh
. "$(dirname "$0")/lib/fpe2m2.sh"
draws=${PTQ_DRAWS:-1}
begin fpe2m2 "$@"
quantized {int4,e2m1,int5,e2m2}-{channel,group,gptq}
run_steps

tabulate table4 "$columns" row <<T
format	scales	@	$more	paper
int4	channel	@int4-channel	48.5
int4	group	@int4-group	69.4
int4	gptq	@int4-gptq	67.2
e2m1	channel	@e2m1-channel	69.5
e2m1	group	@e2m1-group	71.2
e2m1	gptq	@e2m1-gptq	70.6
int5	channel	@int5-channel	70.1
int5	group	@int5-group	71.4
int5	gptq	@int5-gptq	71.5
e2m2	channel	@e2m2-channel	72.9
e2m2	group	@e2m2-group	72.7
e2m2	gptq	@e2m2-gptq	72.2
T
say "the paper, unquantized: 72.7"
plot table4
