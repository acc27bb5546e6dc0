# gar-keys.gp -- the plot of gar-keys.sh
what = "4-bit weights by column order: change from groups ranked by their largest diagonal"
bars = "one SE over layers, over windows"
rows = "order"; series = "scheme"; panels = "error_percent kl_delta|nll_delta"
names = "top10=GAR, top10;mean=GAR, mean;median=GAR, median;". \
	"max-static=max, static;none=not reordered (none);full=by diagonal (full);". \
	"full-static=full, static;W4A16=W4A16 (GPTQ, 16-bit arithmetic);W4A8=W4A8 (DPQ, FP8 arithmetic)"
load "rows.gp"
