# recipes.gp -- the plot of recipes.sh
what = "DPQ in W4A8: what one other choice changes from the default recipe"
bars = "one SE over layers, over windows"
rows = "choice"; panels = "error_percent kl_delta|nll_delta"
load "rows.gp"
