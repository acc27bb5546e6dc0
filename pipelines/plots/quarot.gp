# quarot.gp -- the plot of quarot.sh
what = "4-bit weights under rounded activations, with and without a rotation"
bars = "one standard error over windows"
rows = "scheme"; series = "way"; panels = "log:kl"
load "rows.gp"
