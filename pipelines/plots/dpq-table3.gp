# dpq-table3.gp -- the plot of dpq-table3.sh
what = "What a precision costs, by the order in which columns are quantized"
bars = "one standard error over windows"
rows = "scheme order"; panels = "kl nll_rise"
names = "full=full order;gar=group-aware order"
load "rows.gp"
