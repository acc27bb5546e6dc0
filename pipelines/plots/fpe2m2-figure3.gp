# fpe2m2-figure3.gp -- the plot of fpe2m2-figure3.sh
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set logscale y; set format y "10^{%T}"; set grid; set border 3
set tics nomirror; set xrange [0:0.5]; set xtics 0.1; set yrange [1e-6:1e-2]; set bmargin 8
set lmargin 9; set rmargin 2
array title[3] = ["4 bits", "5 bits", "6 bits"]
array formats[3] = ["e1m2 e2m1 e3m0", "e1m3 e2m2 e3m1 e4m0", "e1m4 e2m3 e3m2 e4m1 e5m0"]
array color[5] = ["#4477aa", "#cc3311", "#228833", "#ee8866", "#aa3377"]
also(f) = f[2:2] eq "1" ? " = int".(f[4:4] + 2) : ""
low = real(system("echo $low")); high = real(system("echo $high"))
set object 1 rectangle from low, graph 0 to high, graph 1 behind \
	 fillcolor rgb "#e4e4e4" fillstyle solid noborder
set arrow 1 from 0.12, graph 0 to 0.12, graph 1 nohead dashtype 3 lw 2 lc "#666666"
set arrow 2 from 0.28, graph 0 to 0.28, graph 1 nohead dashtype 3 lw 2 lc "#666666"
set label 1 "model" at (low + high) / 2, graph 0.97 center tc "#444444"
set label 2 "paper" at 0.2, graph 0.97 center tc "#444444"
set xlabel "σ of the weights of a channel, largest |w| = 1" noenhanced
set key outside bottom center horizontal maxrows 3 samplen 2 noenhanced
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 1180,540 font "sans,13" background "white"
	} else {
		set terminal pngcairo size 1180,540 font "sans,11"
	}
	set output part."figure3.".t
	set multiplot layout 1,3 title "Mean squared error of number formats on Gaussian weights, exact; ". \
		"dots: the layers of the model" noenhanced
	do for [p=1:3] {
		set title title[p]
		set ylabel p == 1 ? "mean squared error, in (largest |w|)²" : "" noenhanced
		plot for [i=1:words(formats[p])] "< awk '$1 == \"".word(formats[p], i)."\"' curve.tsv" \
			using 3:4 with lines lw 2 lc rgb color[i] \
			title word(formats[p], i).also(word(formats[p], i)), \
			"< awk '$1 == \"nf".(p + 3)."\"' curve.tsv" using 3:4 \
				with lines lw 2 dt 2 lc "#888888" title "nf".(p + 3), \
			for [i=1:words(formats[p])] "< awk '$2 == \"".word(formats[p], i)."\"' error.tsv" \
				using 3:4 with points pt 7 ps 0.4 lc rgb color[i] notitle
	}
	unset multiplot
}
