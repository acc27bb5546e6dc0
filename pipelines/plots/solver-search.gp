# solver-search.gp -- the plot of solver-search.sh
what = "3 bits: what a search of codes and scales changes from GPTQ"
bars = "one SE over layers, over windows"
rows = "method"; panels = "error_percent kl_delta|nll_delta"
load "rows.gp"
