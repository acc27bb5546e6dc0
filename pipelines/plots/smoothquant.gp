# smoothquant.gp -- the plot of smoothquant.sh
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set border 3; set tics nomirror; set grid y
set xtics scale 0 noenhanced; set logscale y; set key outside right top
set title "8-bit weights under rounded activations, by how much of the outliers the weights take\n". \
	"bars: one standard error over windows" noenhanced
set ylabel "KL from the model in 16 bits, nats a token"; set xlabel "α of smooth-scale"
set xrange [-0.5:4.5]
rows(i) = "< awk -F '\\t' -v w='".input[i]."' '$1 == w' smoothquant.tsv"
array input[4] = ["A8-token", "A8-static", "A8-99.99", "A4-token"]
array color[4] = ["#4477aa", "#cc6677", "#ccbb44", "#228833"]
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 820,440 font "sans,14" background "white"
	} else {
		set terminal pngcairo size 820,440 font "sans,11"
	}
	set output part."smoothquant.".t
	plot for [i=1:4] rows(i) using 0:3:4:xtic(2) \
		with yerrorlines title input[i] noenhanced lc rgb color[i] pt 7 lw 2
}
