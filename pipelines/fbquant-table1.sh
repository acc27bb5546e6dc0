#!/usr/bin/env bash
# fbquant-table1.sh [MODEL [TEST [CALIBRATION]]] -- FBQuant table 1: methods that quantize weights to 4 and 3 bits in
# groups of 128
#
# RTN: rounding to nearest with the whole range (minmax), as in all methods with a branch. GPTQ: dpq-run with searched
# scales (mse), no column order. GPTQ-GAR: in group-aware order. AWQ: awq-scale, then RTN. OmniQuant: clipping learned
# by gradient (dpq-run --scale-search learned), without compensation. CALDERA, SVDQuant, FBQuant: with a branch of rank
# in/32 in f16. In addition to the paper's rows: LoftQ, EoRA and a plain SVD of the error. +EoRA: a branch for the error
# of GPTQ, in either column order; the GPTQ inside CALDERA has no order. A branch of this rank costs about one bit:
# GPTQ-32 and GPTQ-GAR-32 use groups of 32 for it instead. The results of 4 bits without a branch are above the rows of
# 3 bits. bits_a_weight counts codes, scales, zero points and branches. kl and nll_rise: KL divergence and rise of the
# NLL from the unquantized model. kl_delta and nll_delta: differences from FBQuant at the same bits. All are paired,
# with standard errors over windows. paper_ppl: Llama-2-7B on WikiText2, 5.12 unquantized. PTQ_GROUP: another group
# size.
set -euo pipefail
# shellcheck source=pipelines/lib/fbquant.sh
. "$(dirname "$0")/lib/fbquant.sh"
draws=${PTQ_DRAWS:-1}
begin fbquant "$@"
calibrate
for b in 4 3; do
	quantized $b RTN GPTQ{,-GAR,+EoRA,-GAR+EoRA,-32,-GAR-32} AWQ OmniQuant SVD LoftQ SVDQuant EoRA CALDERA FBQuant
done
run_steps

tabulate table1 "$columns" row <<'T'
bits	way	@	paper_ppl
4	RTN	@w4-RTN w4-FBQuant	5.27
4	GPTQ	@w4-GPTQ w4-FBQuant	5.27
4	GPTQ-GAR	@w4-GPTQ-GAR w4-FBQuant	
4	AWQ	@w4-AWQ w4-FBQuant	5.23
4	OmniQuant	@w4-OmniQuant w4-FBQuant	5.23
4	SVD	@w4-SVD w4-FBQuant	
4	LoftQ	@w4-LoftQ w4-FBQuant	
4	SVDQuant	@w4-SVDQuant w4-FBQuant	5.30
4	EoRA	@w4-EoRA w4-FBQuant	
4	CALDERA	@w4-CALDERA w4-FBQuant	5.26
4	GPTQ+EoRA	@w4-GPTQ+EoRA w4-FBQuant	
4	GPTQ-GAR+EoRA	@w4-GPTQ-GAR+EoRA w4-FBQuant	
4	GPTQ-32	@w4-GPTQ-32 w4-FBQuant	
4	GPTQ-GAR-32	@w4-GPTQ-GAR-32 w4-FBQuant	
4	FBQuant	@w4-FBQuant w4-FBQuant	5.18
3	RTN	@w3-RTN w3-FBQuant	6.08
3	GPTQ	@w3-GPTQ w3-FBQuant	5.96
3	GPTQ-GAR	@w3-GPTQ-GAR w3-FBQuant	
3	AWQ	@w3-AWQ w3-FBQuant	5.82
3	OmniQuant	@w3-OmniQuant w3-FBQuant	5.78
3	SVD	@w3-SVD w3-FBQuant	
3	LoftQ	@w3-LoftQ w3-FBQuant	
3	SVDQuant	@w3-SVDQuant w3-FBQuant	6.90
3	EoRA	@w3-EoRA w3-FBQuant	
3	CALDERA	@w3-CALDERA w3-FBQuant	5.84
3	GPTQ+EoRA	@w3-GPTQ+EoRA w3-FBQuant	
3	GPTQ-GAR+EoRA	@w3-GPTQ-GAR+EoRA w3-FBQuant	
3	GPTQ-32	@w3-GPTQ-32 w3-FBQuant	
3	GPTQ-GAR-32	@w3-GPTQ-GAR-32 w3-FBQuant	
3	FBQuant	@w3-FBQuant w3-FBQuant	5.59
T
plot table1
