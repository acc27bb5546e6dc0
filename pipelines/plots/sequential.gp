# sequential.gp -- the plot of sequential.sh
what = "Hessians of the unquantized model (one-shot) and after quantized layers (sequential)"
bars = "one standard error over windows"
rows = "order"; series = "calibration"; panels = "kl@scheme=W4A16 kl@scheme=W4A8"
names = "full=full order;gar=group-aware (GAR);none=not reordered"
load "rows.gp"
