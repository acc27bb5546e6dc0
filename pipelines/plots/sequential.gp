# sequential.gp -- the plot of sequential.sh
# part: the folder that it writes to, with a / at the end
set style data histogram; set style histogram errorbars gap 1 lw 1.5
set style fill solid 0.9 border lc "black"; set linetype 1 lc "#4477aa"; set linetype 2 lc "#cc6677"
set ylabel "KL from the unquantized model,\nnats a token"; set yrange [0:*]; set grid y
set border 3; set tics nomirror; set lmargin 12
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 820,440 font "sans,13" background "white"
	} else {
		set terminal pngcairo size 820,440 font "sans,11"
	}
	set output part."sequential.".t
	set multiplot layout 1,2 title "Calibrated on the unquantized model, and behind quantized layers\n". \
		"bars: one standard error over windows" noenhanced
	do for [s in "W4A16 W4A8"] {
		set title s
		plot for [c in "one-shot sequential"] "< grep '^".s."\t.*".c."' sequential.tsv" \
			using 10:11:xtic(2) title c
	}
	unset multiplot
}
