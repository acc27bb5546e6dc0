# fp4.gp -- the plot of fp4.sh
what = "4-bit weights under small groups, with and without a Hadamard of the group's size (+H)"
bars = "one standard error over windows"
rows = "format"; series = "way"; panels = "kl output_error"
load "rows.gp"
