#!/usr/bin/env bash
# fpe2m2-table1.sh [MODEL [TEST [CALIBRATION]]] -- FPE2M2 table 1: INT4, INT5, NF5 and E2M2 with one scale per row
#
# Rounded to nearest. The paper has accuracies; here they are NLL and KL divergence from the unquantized model.
# paper_mean: mean over the paper's seven models of their averages over eight tasks. paper_7b: the average of
# Qwen2.5-7B.
# Standard errors are over windows, and draws if there are several. docs/results/fpe2m2.md explains the columns.
set -euo pipefail
# shellcheck source=pipelines/lib/fpe2m2.sh
. "$(dirname "$0")/lib/fpe2m2.sh"
draws=${PTQ_DRAWS:-1}
begin fpe2m2 "$@"
quantized int4-channel int5-channel nf5-channel e2m2-channel
run_steps

# paper_mean: mean of the averages of Qwen2.5 3B, 7B, 14B, 72B, LLaMA3 8B, DPSK-DS-Qwen 14B, DPSK-DS-Llama 8B
tabulate table1 "$columns" row <<T
format	@	$more	paper_mean	paper_7b
int4	@int4-channel	51.29	48.5
int5	@int5-channel	64.87	70.1
nf5	@nf5-channel	66.79	72.5
e2m2	@e2m2-channel	67.04	72.9
T
peaks
say "the paper, unquantized: 67.11 and 72.7"
say "table: $work/table1.tsv"
