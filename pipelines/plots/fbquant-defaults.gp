# fbquant-defaults.gp -- the plot of fbquant-defaults.sh
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set border 3; set tics nomirror; set grid; set key outside right top
set logscale xy
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 1100,440 font "sans,14" background "white"
	} else {
		set terminal pngcairo size 1100,440 font "sans,11"
	}
	set output part."defaults.".t
	set multiplot layout 1,2 title "FBQuant's loss on its calibration (dashed) and held out" noenhanced
	do for [b in "3 4"] {
		set title b." bits"; set xlabel "learning rate"
		set ylabel "relative output error of a layer"
		plot for [i=1:4] "< awk -F '\\t' -v b=".b." -v s=".word("100 200 400 800", i). \
			" '$1 == b && $2 == s && $4 == \"usual\"' defaults.tsv" using 3:6 \
			with linespoints pt 7 lw 2 lc i title word("100 200 400 800", i)." steps", \
			for [i=1:4] "< awk -F '\\t' -v b=".b." -v s=".word("100 200 400 800", i). \
				" '$1 == b && $2 == s && $4 == \"usual\"' defaults.tsv" using 3:5 \
				with linespoints pt 6 dt 2 lc i notitle
	}
	unset multiplot
}
