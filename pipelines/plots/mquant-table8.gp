# mquant-table8.gp -- the plot of mquant-table8.sh
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set border 3; set tics nomirror; set grid y
set xtics scale 0 noenhanced; set key outside bottom center horizontal; set bars 0.6
set title "Rotation with and without suppression, W4A4KV4\nbars: one standard error over windows, paired; ". \
	"'all': over rotations" noenhanced
set ylabel "what suppression changes, 1/1000 nat a token"; set xzeroaxis lt -1; set xrange [-0.5:*]
set offsets 0, 0.5, 0, 0; set xlabel "rotation"
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 640,440 font "sans,13" background "white"
	} else {
		set terminal pngcairo size 640,440 font "sans,11"
	}
	set output part."table8.".t
	plot "< awk -F '\\t' '$1 == \"RMS\"' table8.tsv" using ($0 - 0.05):(1000 * $11):(1000 * $12):xtic(2) \
		with yerrorbars title "KL from 16 bits" pt 7 lw 2 lc "#4477aa", \
		"" using ($0 + 0.05):(1000 * $9):(1000 * $10) with yerrorbars title "nll" pt 5 lw 2 lc "#cc6677"
}
