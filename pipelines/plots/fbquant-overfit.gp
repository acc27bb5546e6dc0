# fbquant-overfit.gp -- the plot of fbquant-overfit.sh
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set border 3; set tics nomirror; set grid; set key outside right top
set xlabel "tokens of the calibration"; set logscale x 2; set logscale y
array way[4] = ["lowrank", "eora", "caldera", "fbquant"]
array label[4] = ["SVD of the error", "EoRA", "CALDERA", "FBQuant"]
array color[4] = ["#bbbbbb", "#4477aa", "#228833", "#cc6677"]
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 900,460 font "sans,14" background "white"
	} else {
		set terminal pngcairo size 900,460 font "sans,11"
	}
	set output part."overfit.".t
	set title "Branches beside weights of 3 bits: error where they were fitted (dashed) and on the ". \
		"test set" noenhanced
	set ylabel "relative output error of a layer"
	plot for [i=1:4] "< awk -F '\\t' -v w='".way[i]."' '$2 == w' overfit.tsv" using 1:4 \
		with linespoints pt 7 lw 2 lc rgb color[i] title label[i], \
		for [i=1:4] "< awk -F '\\t' -v w='".way[i]."' '$2 == w' overfit.tsv" using 1:3 \
			with linespoints pt 6 dt 2 lc rgb color[i] notitle
}
