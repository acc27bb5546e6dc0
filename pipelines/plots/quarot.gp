# quarot.gp -- the plot of quarot.sh
# part: the folder that it writes to, with a / at the end
set style data histogram; set style histogram errorbars gap 1 lw 1.5
set style fill solid 0.9 border lc "black"; set datafile separator "\t"
set title "What 4-bit weights cost under rounded activations\nbars: one standard error over windows" noenhanced
set ylabel "KL from the 16-bit model, nats a token"; set logscale y; set grid y; set border 3
set tics nomirror; set key outside right top; set xtics noenhanced
array way[5] = ["RTN", "GPTQ", "SmoothQuant", "QuaRot", "QuaRot+RMS"]
array color[5] = ["#bbbbbb", "#4477aa", "#ccbb44", "#cc6677", "#228833"]
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 820,440 font "sans,14" background "white"
	} else {
		set terminal pngcairo size 820,440 font "sans,11"
	}
	set output part."quarot.".t
	plot for [i=1:5] "< awk -F '\\t' -v w='".way[i]."' '$2 == w' quarot.tsv" \
		using 4:5:xtic(1) title way[i] lc rgb color[i]
}
