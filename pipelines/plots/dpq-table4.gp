# dpq-table4.gp -- the plot of dpq-table4.sh
# part: the folder that it writes to, with a / at the end
set style data histogram; set style histogram errorbars gap 1 lw 1.5
set style fill solid 0.9 border lc "black"; set linetype 1 lc "#4477aa"; set linetype 2 lc "#cc6677"
set datafile separator "\t"; set grid y; set border 3; set tics nomirror; set yrange [*<0:0<*]
set offsets 0, 0, graph 0.2, 0; group = system("echo $group")
about(s) = s.(s eq "W4A8" ? " (DPQ, FP8 arithmetic)" : " (GPTQ, 16-bit arithmetic)")
of(s) = "< grep '^".s."\t' table4.tsv"
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 980,480 font "sans,13" background "white"
	} else {
		set terminal pngcairo size 980,480 font "sans,11"
	}
	set output part."table4.".t
	set multiplot layout 1,2 title "4-bit weights, groups of ".group. \
		", by the order of quantization (bars: one standard error over windows)\n". \
		"full: all columns by importance   gar: within and between groups   none: as they stand" \
		noenhanced
	set key top left Left reverse; set ylabel "KL from the unquantized model, nats a token"
	plot for [s in "W4A16 W4A8"] of(s) using 4:5:xtic(2) title about(s)
	set key off; set ylabel "rise of the nll, nats a token"
	plot for [s in "W4A16 W4A8"] of(s) using 8:9:xtic(2) title about(s)
	unset multiplot
}
