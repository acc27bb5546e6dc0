# dpq-table4.gp -- the plot of dpq-table4.sh
what = "4-bit weights by the order in which columns are quantized"
bars = "one standard error over windows"
rows = "order"; series = "scheme"; panels = "kl nll_rise"
names = "full=full order;gar=group-aware (GAR);none=not reordered;". \
	"W4A16=W4A16 (GPTQ, 16-bit arithmetic);W4A8=W4A8 (DPQ, FP8 arithmetic)"
load "rows.gp"
