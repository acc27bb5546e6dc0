# fp4.gp -- the plot of fp4.sh
# part: the folder that it writes to, with a / at the end
set style data histogram; set style histogram errorbars gap 1 lw 1.5
set style fill solid 0.9 border lc "black"; set datafile separator "\t"
set title "What 4-bit weights under small groups cost (+H: behind Hadamards of the group's size)\n". \
	"bars: one standard error over windows" noenhanced
set ylabel "KL from the unquantized model, nats a token"; set yrange [0:*]; set grid y; set border 3
set tics nomirror; set key outside right top; set xtics noenhanced
array way[4] = ["RTN", "GPTQ", "RTN+H", "GPTQ+H"]
array color[4] = ["#bbbbbb", "#4477aa", "#ccbb44", "#cc6677"]
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 820,440 font "sans,14" background "white"
	} else {
		set terminal pngcairo size 820,440 font "sans,11"
	}
	set output part."fp4.".t
	plot for [i=1:4] "< awk -F '\\t' -v w='".way[i]."' '$2 == w' fp4.tsv" \
		using 5:6:xtic(1) title way[i] noenhanced lc rgb color[i]
}
