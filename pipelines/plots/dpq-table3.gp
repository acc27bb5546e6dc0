# dpq-table3.gp -- the plot of dpq-table3.sh
# part: the folder that it writes to, with a / at the end
set style data histogram; set style histogram errorbars gap 1 lw 1.5
set style fill solid 0.9 border lc "black"; set linetype 1 lc "#4477aa"; set linetype 2 lc "#cc6677"
set title "What a precision costs, by the order of quantization\n". \
	"bars: one standard error over windows, paired with the 16-bit model" noenhanced
set ylabel "nats a token"; set yrange [*<0:0<*]; set key top left Left reverse; set grid y
set border 3; set tics nomirror; set datafile separator "\t"
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 760,480 font "sans,14" background "white"
	} else {
		set terminal pngcairo size 760,480 font "sans,11"
	}
	set output part."table3.".t
	plot "table3.tsv" using 5:6:xtic(strcol(2) eq "-" ? strcol(1) : strcol(1).", ".strcol(2)) every ::2 \
		title "rise of the nll", \
		"" using 9:10 every ::2 title "divergence from the 16-bit model"
}
