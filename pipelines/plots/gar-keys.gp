# gar-keys.gp -- the plot of gar-keys.sh
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set border 3; set tics nomirror; set xtics scale 0 noenhanced
set grid y; set xzeroaxis lt -1; set xrange [-0.6:8.6]
set linetype 1 lc "#4477aa" lw 2 pt 5; set linetype 2 lc "#cc6677" lw 2 pt 7; set bars 0.4
set lmargin 11; set bmargin 3
label(o) = o eq "max" ? "max\n(paper)" : o[strlen(o)-5:] eq "static" ? o[:strlen(o)-7].",\nstatic" : o
scheme(i) = word("W4A16 W4A8", i)
about(i) = scheme(i).(i == 1 ? " (GPTQ, 16-bit arithmetic)" : " (DPQ, FP8 arithmetic)")
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 820,640 font "sans,13" background "white"
	} else {
		set terminal pngcairo size 820,640 font "sans,11"
	}
	set output part."keys.".t
	set multiplot layout 2,1 title "4-bit weights quantized in different orders, against groups ranked ". \
		"by their largest diagonal (max)\nbars: one standard error, over layers and over windows" \
		noenhanced
	do for [p=0:1] {
		set ylabel p ? "change of KL from the\nunquantized model,\n1/1000 nat a token" : \
			"change of the\noutput error, %"
		if (p) { set key off } else { set key top left Left reverse }
		plot "< grep W4A16 keys.tsv" using 0:(0):xtic(label(strcol(2))) with dots lc bgnd notitle, \
			for [i=1:2] "< grep '^".scheme(i)."\t' keys.tsv" \
				using ($0 + 0.16 * (i - 1.5)):(p ? 1000 * $13 : $4):(p ? 1000 * $14 : $5) \
				with yerrorbars lt i title about(i)
	}
	unset multiplot
}
