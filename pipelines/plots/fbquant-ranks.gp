# fbquant-ranks.gp -- the plot of fbquant-ranks.sh
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set border 3; set tics nomirror; set grid; set key top right
set xlabel "bits a weight, branch included"; set logscale y
array way[3] = ["lowrank", "eora", "fbquant"]
array label[3] = ["SVD of the error", "EoRA", "FBQuant"]
array color[3] = ["#bbbbbb", "#4477aa", "#cc6677"]
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 1100,460 font "sans,14" background "white"
	} else {
		set terminal pngcairo size 1100,460 font "sans,11"
	}
	set output part."ranks.".t
	set multiplot layout 1,2 title "Weights of 3 bits in groups of 128 with branches of rank 1, 2, 4, ". \
		"... 32" noenhanced
	do for [c in "4 8"] {
		set ylabel (c eq "4" ? "relative output error of a layer" : \
			"KL from the unquantized model, nats a token")
		plot for [i=1:3] "< awk -F '\\t' -v w='".way[i]."' '$1 == w' ranks.tsv" using 3:int(c) \
			with linespoints pt 7 lw 2 lc rgb color[i] title label[i], \
			"< grep ^fbquant-int8 ranks.tsv" using 3:int(c) \
				with points pt 8 ps 1.3 lc rgb "#cc6677" \
				title "FBQuant, the highest rank in int8", \
			"< grep ^gptq ranks.tsv" using 3:int(c):(substr(strcol(1), 6, 12)) \
				with labels point pt 5 lc rgb "#228833" left offset 0.6,0.3 title "GPTQ, bits-group"
	}
	unset multiplot
}
