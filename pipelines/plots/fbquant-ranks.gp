# fbquant-ranks.gp -- the plot of fbquant-ranks.sh
what = "Weights of 3 bits with branches of growing rank, and GPTQ without a branch"
bars = "one standard error over windows"
array name[5] = ["SVD", "EoRA", "FBQuant", "FBQuant, branch in int8", "GPTQ, bits-group"]
of(i) = only(sprintf('$1 ~ /^(%s)$/', word("lowrank eora fbquant fbquant-int8 gptq.*", i)))
groups(any) = strcol("way")[6:]; beside = 'left offset 0.8,0.3 font "sans-serif,12"'
stats table using (1000 * column("output_error")) name "A" nooutput
stats table using (1000 * column("kl")) name "B" nooutput
@begin
@legend
set multiplot layout 1,2 margins 0.1,0.98,0.14,down(92) spacing 0.1,0; set key off
set logscale y; set xlabel "bits per weight, branch included"; set offsets graph 0.04, graph 0.04, 0, 0
set ylabel "output error, 10⁻³"
set yrange [0.75 * A_min:1.4 * A_max]; set ytics (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
plot for [i=1:3] of(i) using "bits_a_weight":(1000 * column("output_error")) with linespoints lt i, \
	for [i=4:5] of(i) using "bits_a_weight":(1000 * column("output_error")) with points lt i, \
	of(5) using "bits_a_weight":(1000 * column("output_error")):(groups(0)) with labels @beside
@panel
set ylabel "KL divergence, 10⁻³ nats per token"; set yrange [0.75 * B_min:1.4 * B_max]
plot for [i=1:3] of(i) using "bits_a_weight":(1000 * column("kl")):(1000 * column("kl_se")) with yerrorlines lt i, \
	for [i=4:5] of(i) using "bits_a_weight":(1000 * column("kl")):(1000 * column("kl_se")) with yerrorbars lt i, \
	of(5) using "bits_a_weight":(1000 * column("kl")):(groups(0)) with labels @beside
unset multiplot
