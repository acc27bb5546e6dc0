# dpq-table2.gp -- the plot of dpq-table2.sh
what = "4-bit weights by method"
bars = "one standard error over windows"
rows = "scheme method"; panels = "output_error kl|nll_rise"
names = "GPTQ, none=GPTQ, not reordered;GPTQ, gar=GPTQ, GAR;GPTQ, full=GPTQ, full order;". \
	"GPTQ naive, gar=naive GPTQ, GAR;DPQ, none=DPQ, not reordered;DPQ, gar=DPQ, GAR;DPQ, full=DPQ, full order;". \
	"W4A8=W4A8, FP8;W4A8i=W4A8, int8;W4A8KV4i=W4A8KV4, int8;DPQ, gar, SmoothAttention=DPQ, GAR, SmoothAttention;". \
	"DPQ, gar, integer scales=DPQ, GAR, integer scales;". \
	"DPQ, gar, paper=DPQ, GAR, recipe paper;DPQ, gar, inc (240)=DPQ, GAR, recipe inc"
load "rows.gp"
