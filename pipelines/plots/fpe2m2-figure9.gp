# fpe2m2-figure9.gp -- the plot of fpe2m2-figure9.sh
what = "Spread of the weights of an output channel, σ (largest |w| = 1), by block and kind of layer"
share = system("awk -F '\\t' '$1 == \"all\" { printf \"%.1f\", $11 }' ".table)
about = env("model")."; ".share." % of all channels are within the paper's 0.12 to 0.28 (dotted; there 97 %)"
kinds = system("awk -F '\\t' 'NR > 1 && $1 != \"all\" && !($3 in seen) { seen[$3]; printf \"%s \", $3 }' ".table)
blocks = int(system("awk -F '\\t' 'NR > 1 && $2 > m { m = $2 } END { print m + 0 }' ".table))
across = words(kinds) < 4 ? words(kinds) : 4; lines = (words(kinds) + across - 1) / across; H = 110 + 240 * lines
of(k) = only('$3 == "'.word(kinds, k).'"')
array name[4] = ["5 to 95 % of the channels", "25 to 75 %", "median", "– – as many normal weights"]
set linetype 1 lc rgb "#cfe3f2" pt 5; set linetype 2 lc rgb "#8fbfe0" pt 5
set linetype 3 lc rgb color[1] pt 7; set linetype 4 lc rgb color[2] pt 0 dt 2
set style fill solid noborder
@begin
@legend
set label 14 nopoint tc rgb color[2] offset 1,0
set multiplot layout lines,across margins 0.08,0.98,56.0 / H,down(108) spacing 0.035,84.0 / H
set key off; set xrange [-0.4:blocks + 0.4]; set xtics 0,(blocks < 9 ? 2 : blocks < 40 ? 5 : 10)
set yrange [0:0.5]; set ytics 0.1
set xlabel "block" offset 0,0.5
do for [k=1:words(kinds)] {
	set title word(kinds, k) offset 0,-0.6
	first = k % across == 1 || across == 1
	set ylabel (first ? "σ" : ""); set format y (first ? "%g" : "")
	plot of(k) using "block":"p5":"p95" with filledcurves lt 1, \
		"" using "block":"p25":"p75" with filledcurves lt 2, \
		"" using "block":"median" with linespoints lt 3 lw 1.5, "" using "block":"gaussian" with lines lt 4, \
		for [i=1:2] (i == 1 ? 0.12 : 0.28) with lines lc rgb "#444444" lw 1 dt 3
	@panel
}
unset multiplot
