# fpe2m2-figure9.gp -- the plot of fpe2m2-figure9.sh
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set border 3; set tics nomirror; set grid y; set yrange [0:0.5]
set ytics 0.1; set style fill solid noborder
kinds = system("awk -F '\t' 'NR > 1 && $1 != \"all\" && !($3 in seen) { seen[$3]; printf \"%s \", $3 }' ". \
	"figure9.tsv")
blocks = int(system("awk -F '\t' 'NR > 1 && $2 > m { m = $2 } END { print m + 0 }' figure9.tsv"))
share = system("awk -F '\t' '$1 == \"all\" { printf \"%.1f\", $11 }' figure9.tsv")
of(k) = "< awk -F '\t' '$3 == \"".word(kinds, k)."\"' figure9.tsv"
across = words(kinds) < 4 ? words(kinds) : 4; down = (words(kinds) + across) / across
set xrange [-0.4:blocks + 0.4]; step = blocks < 12 ? 1 : blocks < 40 ? 5 : 10
set xtics 0,step nomirror; set ytics nomirror
set arrow 1 from graph 0, first 0.12 to graph 1, first 0.12 nohead front dt 3 lw 2 lc "#666666"
set arrow 2 from graph 0, first 0.28 to graph 1, first 0.28 nohead front dt 3 lw 2 lc "#666666"
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 1180,640 font "sans,13" background "white"
	} else {
		set terminal pngcairo size 1180,640 font "sans,11"
	}
	set output part."figure9.".t
	set multiplot layout down,across \
		title "σ of the weights of an output channel (largest |w| = 1) over the blocks of the ". \
		"model; ".share." % of all channels within 0.12 to 0.28 (paper: 97 %)" noenhanced
	set key off; set xlabel "block"
	do for [k=1:words(kinds)] {
		set title word(kinds, k) noenhanced
		set ylabel k % across == 1 || across == 1 ? "σ" : ""
		plot of(k) using 2:6:10 with filledcurves lc "#cfdeee" notitle, \
			"" using 2:7:9 with filledcurves lc "#8fb3d9" notitle, \
			"" using 2:8 with linespoints pt 7 ps 0.6 lw 2 lc "#22558a" notitle, \
			"" using 2:12 with lines dt 2 lw 2 lc "#cc3311" notitle
	}
	unset arrow; set key center center Left reverse samplen 3 spacing 1.4; unset border
	unset tics; unset grid; unset xlabel; unset ylabel; set title " "
	plot NaN with filledcurves lc "#cfdeee" title "5 to 95 % of the channels", \
		NaN with filledcurves lc "#8fb3d9" title "25 to 75 %", \
		NaN with linespoints pt 7 ps 0.6 lw 2 lc "#22558a" title "median", \
		NaN with lines dt 2 lw 2 lc "#cc3311" title "as many normal weights", \
		NaN with lines dt 3 lw 2 lc "#666666" title "0.12 and 0.28 (paper)"
	unset multiplot; set border 3; set tics nomirror; set ytics 0.1; set xtics 0,step
	set grid y
	set arrow 1 from graph 0, first 0.12 to graph 1, first 0.12 nohead front dt 3 lw 2 lc "#666666"
	set arrow 2 from graph 0, first 0.28 to graph 1, first 0.28 nohead front dt 3 lw 2 lc "#666666"
}
