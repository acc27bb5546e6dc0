# dpq-table2.gp -- the plot of dpq-table2.sh
# part: the folder that it writes to, with a / at the end
set style data boxes; set boxwidth 0.6; set style fill solid 0.8 border lc "black"
set datafile separator "\t"
set yrange [0:*]; set xrange [-0.6:10.6]; set grid y; set border 3; set tics nomirror; set key off
set xtics rotate by -35 noenhanced; set rmargin 17; set bmargin 8; set bars 0.6
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 1240,520 font "sans,13" background "white"
	} else {
		set terminal pngcairo size 1240,520 font "sans,11"
	}
	set output part."table2.".t
	set multiplot layout 1,2 title "4-bit weights by method (bars: one standard error over windows)" \
		noenhanced
	set ylabel "output error tr(E H Eᵀ)/tr(W H Wᵀ)" noenhanced
	plot "table2.tsv" using 0:3:xtic(sprintf("%s %s", strcol(1), strcol(2))) every ::1 lc "#4477aa"
	set ylabel "KL from the unquantized model, nats a token" noenhanced
	plot "table2.tsv" using 0:4:5:xtic(sprintf("%s %s", strcol(1), strcol(2))) every ::1 \
		with boxerrorbars lc "#cc6677"
	unset multiplot
}
