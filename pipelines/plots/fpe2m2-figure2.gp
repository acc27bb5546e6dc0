# fpe2m2-figure2.gp -- the plot of fpe2m2-figure2.sh
what = "Quantization of weights by their bits: integers (INT) and floats with 2 bits of exponent (E2Mx)"
bars = "one standard error over windows"
array name[6] = ["INT by row", "INT by group", "INT, GPTQ", "E2Mx by row", "E2Mx by group", "E2Mx, GPTQ"]
how(i) = word("channel group gptq", (i - 1) % 3 + 1)
of(i) = only(sprintf('$1 == "%s" && $2 == "%s"', i < 4 ? "INT" : "E2Mx", how(i)))
do for [i=1:6] { set linetype i lc rgb color[1 + (i > 3)] pt point[1 + (i - 1) % 3] lw 1.5 }
H = 520
@begin
@legend
set multiplot layout 1,1 margins 0.12,0.98,0.12,down(92); set key off
set logscale y; set format y "%g"; set xlabel "bits per weight, with 32-bit scales"; set xrange [2.9:*]
stats table using "kl" nooutput
unit = STATS_max < 0.1 ? 1000 : 1
set ylabel "KL divergence, ".(unit > 1 ? "10⁻³ " : "")."nats per token"
plot for [i=1:6] of(i) using "bits":(unit * column("kl")):(unit * column("kl_se")) with yerrorlines lt i
unset multiplot
