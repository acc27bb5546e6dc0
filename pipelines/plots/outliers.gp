# outliers.gp -- the plot of outliers.sh
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set border 3; set tics nomirror; set grid y
set xtics scale 0 rotate by -25 noenhanced; set bmargin 5; set key samplen 1
array way[4] = ["as it is", "SmoothQuant", "QuaRot", "QuaRot+RMS"]
array color[4] = ["#4477aa", "#ccbb44", "#cc6677", "#228833"]
rows(i) = "< awk -F '\\t' -v w='".way[i]."' '$1 == w' outliers.tsv"; at(n, i) = n + 0.14 * (i - 2.5)
set xrange [-0.5:*]; set offsets 0, 0.5, 0, 0
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 980,460 font "sans,13" background "white"
	} else {
		set terminal pngcairo size 980,460 font "sans,11"
	}
	set output part."outliers.".t
	set multiplot layout 1,2 title "Outliers of each kind of layer: geometric mean over layers (bars: ". \
		"up to the largest)" noenhanced
	set title "inputs: kurtosis, 3 for a Gaussian" noenhanced; set logscale y; set yrange [1:*]
	set key top right
	plot for [i=1:4] rows(i) using (at($0, i)):4:4:5 \
		with yerrorbars title way[i] lc rgb color[i] pt 7 lw 2, \
		rows(1) using 0:4:xtic(2) with points ps 0 notitle
	set title "weights: incoherence" noenhanced; unset logscale y; set yrange [0:*]; set key off
	plot for [i=1:4] rows(i) using (at($0, i)):6:6:7 with yerrorbars lc rgb color[i] pt 7 lw 2, \
		rows(1) using 0:6:xtic(2) with points ps 0
	unset multiplot
}
