# mquant-figure1b.gp -- the plot of mquant-figure1b.sh
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set border 3; set tics nomirror; set grid y; set logscale y
set xtics scale 0 rotate by -60 noenhanced; set bars 0.6
models = system("echo $models"); n = words(models)
about(m) = m eq "pre" ? "pre-norm encoder" : m eq "post" ? "post-norm encoder" : m
of(m, w) = "< awk -F '\\t' '$1 == \"".m."\" && $4 == \"".w."\"' figure1b.tsv"
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 620 * n,480 font "sans,13" background "white"
	} else {
		set terminal pngcairo size 620 * n,480 font "sans,11"
	}
	set output part."figure1b.".t
	set multiplot layout 1,n title "Inputs of the language model's layers, visual and text tokens\n". \
		"box: median to percentile 99, whisker: percentile 99.99, point: largest" noenhanced
	set style fill solid 0.5; set boxwidth 0.3; set ylabel "|x|"
	set key top left Left reverse horizontal; set xrange [-0.7:15.7]; set yrange [0.05:200]
	do for [m in models] {
		set title about(m) noenhanced
		plot of(m, "visual") using ($0 - 0.18):5:5:7:6:xtic(stringcolumn(2)." ".stringcolumn(3)) \
			with candlesticks notitle lc rgb "#4477aa", \
			"" using ($0 - 0.18):8 with points pt 7 ps 0.9 lc rgb "#4477aa" title "visual", \
			of(m, "text") using ($0 + 0.18):5:5:7:6 with candlesticks notitle lc rgb "#cc6677", \
			"" using ($0 + 0.18):8 with points pt 7 ps 0.9 lc rgb "#cc6677" title "text"
		unset ylabel
	}
	unset multiplot
}
