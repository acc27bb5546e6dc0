# recipes.gp -- the plot of recipes.sh
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set border 1; set tics nomirror; set ytics scale 0 noenhanced
set grid x y; set key off
set bars 0.4; set yrange [-12.6:0.6]; set arrow 1 from 0, graph 0 to 0, graph 1 nohead lt -1
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 980,520 font "sans,13" background "white"
	} else {
		set terminal pngcairo size 980,520 font "sans,11"
	}
	set output part."recipes.".t
	set multiplot layout 1,2 title "Dual precision quantization: what a choice changes from the recipe ". \
		"late (bars: one standard error, over layers and over windows)" noenhanced
	set lmargin at screen 0.26; set rmargin at screen 0.60
	set xlabel "change of the output error, %" noenhanced
	plot "recipes.tsv" every ::1 using 4:(-$0):5:ytic(strcol(2)) \
		with xerrorbars pt 7 ps 1.2 lw 2 lc "#4477aa"
	set lmargin at screen 0.66; set rmargin at screen 0.97
	set xlabel "change of KL from the unquantized model, 1/1000 nat" noenhanced; set format y ""
	plot "recipes.tsv" every ::1 using (1000 * $13):(-$0):(1000 * $14) \
		with xerrorbars pt 7 ps 1.2 lw 2 lc "#cc6677"
	unset multiplot; set format y; unset ytics; set ytics scale 0 noenhanced
}
