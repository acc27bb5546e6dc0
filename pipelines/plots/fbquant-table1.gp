# fbquant-table1.gp -- the plot of fbquant-table1.sh
# part: the folder that it writes to, with a / at the end
set style data histogram; set style histogram errorbars gap 1 lw 1.5
set style fill solid 0.9 border lc "black"; set datafile separator "\t"
set ylabel "KL from the unquantized model, nats a token" noenhanced; set yrange [0:*]; set grid y
set border 3; set tics nomirror; unset key; set xtics rotate by -40 noenhanced
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 1100,480 font "sans,14" background "white"
	} else {
		set terminal pngcairo size 1100,480 font "sans,11"
	}
	set output part."table1.".t
	set multiplot layout 1,2 title "Weights of 4 and 3 bits, without a branch and with one; bars: one ". \
		"standard error over windows" noenhanced
	do for [b=3:4] {
		set title sprintf("%d bits", 7 - b)
		plot sprintf("< awk -F '\\t' '$1 == %d' table1.tsv", 7 - b) using 8:9:xtic(2) \
			lc rgb (b == 3 ? "#4477aa" : "#cc6677")
	}
	unset multiplot
}
