# scale-search.gp -- the plot of scale-search.sh
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set border 1; set tics nomirror; set ytics scale 0 noenhanced
set grid x y; set key off
set bars 0.4; set yrange [-23.6:0.6]; set arrow 1 from 0, graph 0 to 0, graph 1 nohead lt -1
row(a, b, c) = a." ".b." ".c
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 980,640 font "sans,13" background "white"
	} else {
		set terminal pngcairo size 980,640 font "sans,11"
	}
	set output part."scale-search.".t
	set multiplot layout 1,2 title "Scales of groups: what a search changes from mse (bars: one ". \
		"standard error, over layers and over windows)" noenhanced
	set lmargin at screen 0.20; set rmargin at screen 0.58
	set xlabel "change of the output error, %" noenhanced
	plot "scale-search.tsv" every ::1 using 5:(-$0):6:ytic(row(strcol(1), strcol(2), strcol(3))) \
		with xerrorbars pt 7 ps 1 lw 2 lc "#4477aa"
	set lmargin at screen 0.62; set rmargin at screen 0.97
	set xlabel "change of KL, 1/1000 nat" noenhanced; set format y ""
	plot "scale-search.tsv" every ::1 using (1000 * $14):(-$0):(1000 * $15) \
		with xerrorbars pt 7 ps 1 lw 2 lc "#cc6677"
	unset multiplot; set format y; unset ytics; set ytics scale 0 noenhanced
}
