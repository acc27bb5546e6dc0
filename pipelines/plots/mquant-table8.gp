# mquant-table8.gp -- the plot of mquant-table8.sh
what = "W4A4KV4 after a rotation: what rotation magnitude suppression (RMS) changes"
bars = "one standard error over windows; mean: over rotations"
rows = "rotation"; panels = "kl_delta@way=RMS nll_delta@way=RMS"
names = "1=rotation 1;2=rotation 2;3=rotation 3;4=rotation 4;5=rotation 5;all=mean of rotations;RMS="
load "rows.gp"
