# mixed-bits.gp -- the plot of mixed-bits.sh
what = "Bits of each block or layer by plan-bits, or one format for all layers"
bars = "one standard error over windows"
array name[3] = ["one format for all layers", "a format for each block", "a format for each layer"]
of(i) = only('$2 == "'.word("all block layer", i).'"')." | sort -t '\t' -k 3,3g"
H = 460
@begin
@legend
set key off; set lmargin at screen 0.1; set rmargin at screen 0.98; set tmargin at screen down(92)
set logscale y; set format y "%g"; set xlabel "bits per weight, with scales and zero points"
set ylabel "KL divergence, 10⁻³ nats per token"
plot for [i=1:3] of(i) using "bits_a_weight":(1000 * column("kl")):(1000 * column("kl_se")) with yerrorlines lt i
