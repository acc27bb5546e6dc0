# fpe2m2-figure7.gp -- the plot of fpe2m2-figure7.sh
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set border 3; set tics nomirror; set grid
rate = real(system("echo $RATE")); peak = real(system("echo $PEAK"))
formats = "e2m2 e2m2-int16 e2m2-half int5 nf5 e2m1 int4 bf16 f32 sgemm"
name(f) = f eq "e2m2-int16" ? "E2M2, 16-bit activations" : \
	f eq "e2m2-half" ? "E2M2, the paper's conversion" : f eq "sgemm" ? "float, sgemm" : f
do for [i=1:10] { set linetype i lw 2 pt i ps 0.8 }
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 1150,520 font "sans,13" background "white"
	} else {
		set terminal pngcairo size 1150,520 font "sans,11"
	}
	set output part."figure7.".t
	set multiplot layout 1,2 title "A packed matrix of 11008 × 4096 times a few columns, weights from ". \
		"memory" noenhanced
	set key top right samplen 2; set xlabel "columns (sequences decoded together)"
	set ylabel "times as fast as fp16 in the same run"
	unset logscale; set xrange [0:17]; set yrange [0:4.5]; set xtics 1,3
	plot 1 lt -1 dt 2 title "fp16", \
		for [i=1:10] "< grep '^".word(formats, i)."\t' figure7.tsv" using 2:4 \
			with linespoints lt i title name(word(formats, i)) noenhanced
	set key bottom right; set xlabel "operations a byte of weights"
	set ylabel "10⁹ operations a second"
	set logscale xy; set xrange [0.4:60]; set yrange [10:1000]; set xtics autofreq
	plot rate * x < peak ? rate * x : peak lt -1 dt 2 \
		title sprintf("memory: %.1f GB/s; fp32: %.0f · 10⁹/s", rate, peak), \
		"< grep '^f16\t' figure7.tsv" using 6:5 with linespoints lt -1 pt 12 title "fp16", \
		for [i=1:10] "< grep '^".word(formats, i)."\t' figure7.tsv" using 6:5 \
			with linespoints lt i notitle
	unset multiplot
}
