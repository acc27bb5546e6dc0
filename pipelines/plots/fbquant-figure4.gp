# fbquant-figure4.gp -- the plot of fbquant-figure4.sh
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set border 3; set tics nomirror; set grid
do for [i=1:6] { set linetype i lw 2 pt i ps 0.9 }
at(f, c, v) = sprintf("< awk -F '\t' '$1 == \"%s\" && $%d == %d' figure4.tsv", f, c, v)
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 1150,520 font "sans,13" background "white"
	} else {
		set terminal pngcairo size 1150,520 font "sans,11"
	}
	set output part."figure4.".t
	set multiplot layout 1,2 title "A packed layer of 4096 × 4096 with a branch of f16, weights from ". \
		"memory" noenhanced
	set key top left samplen 2; set xlabel "rank, one row of x"
	set ylabel "more than without a branch, %"
	unset logscale; set xrange [0:270]; set xtics 0,64; set yrange [*:*]
	plot at("uint4", 3, 1) using 2:9 with linespoints lt -1 dt 2 pt 12 title "multiplications", \
		at("uint4", 3, 1) using 2:10 with linespoints lt 1 title "time, 4 bits, unfused", \
		at("uint4", 3, 1) using 2:11 with linespoints lt 2 title "4 bits, fused", \
		at("uint3", 3, 1) using 2:10 with linespoints lt 3 title "3 bits, unfused", \
		at("uint3", 3, 1) using 2:11 with linespoints lt 4 title "3 bits, fused"
	set key top left; set xlabel "rows of x, rank 128, 4 bits"; set ylabel "milliseconds"
	set logscale xy; set xrange [0.8:320]; set xtics (1, 2, 4, 8, 16, 64, 256); set yrange [*:*]
	plot at("uint4", 2, 128) using 3:4 with linespoints lt -1 pt 12 title "f16", \
		at("uint4", 2, 128) using 3:5 with linespoints lt 5 title "4 bits, no branch", \
		at("uint4", 2, 128) using 3:6 with linespoints lt 1 title "unfused", \
		at("uint4", 2, 128) using 3:7 with linespoints lt 2 title "fused"
	unset multiplot
}
