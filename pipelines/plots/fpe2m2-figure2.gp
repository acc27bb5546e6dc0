# fpe2m2-figure2.gp -- the plot of fpe2m2-figure2.sh
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set border 3; set tics nomirror; set grid; set bars 0.4; set logscale y
set format y "10^{%T}"; set xrange [2.9:*]
group = system("echo $group"); how(k) = word("channel group gptq", k)
name(k) = k == 1 ? "a scale a row" : k == 2 ? "groups of ".group : "GPTQ, a scale a row"
of(f, k) = "< awk -F '\t' '$1 == \"".f."\" && $2 == \"".how(k)."\"' figure2.tsv | sort -t '\t' -k 4,4g"
array point[3] = [7, 5, 9]; color(f) = f eq "INT" ? "#4477aa" : "#cc3311"; low = 1e-5
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 1100,560 font "sans,13" background "white"
	} else {
		set terminal pngcairo size 1100,560 font "sans,11"
	}
	set output part."figure2.".t
	set multiplot layout 1,2 title "What quantization of the weights costs, against the bits of a ". \
		"weight (bars: one standard error over tokens)" noenhanced
	set xlabel "bits a weight, with 32-bit scales" noenhanced
	set key bottom left Left reverse samplen 3 noenhanced
	set ylabel "KL divergence from the unquantized model, nats a token" noenhanced
	plot for [f in "INT E2Mx"] for [k=1:3] of(f, k) using 4:11 \
		with linespoints dt k pt point[k] lw 2 lc rgb color(f) title f.", ".name(k), \
		for [f in "INT E2Mx"] for [k=1:3] of(f, k) using 4:11:12 \
			with yerrorbars pt point[k] lc rgb color(f) notitle
	set ylabel "rise of the nll, nats a token (where it is above 0)" noenhanced
	set yrange [low:*]; set key off
	plot for [f in "INT E2Mx"] for [k=1:3] of(f, k) using 4:($9 > 0 ? $9 : NaN) \
		with linespoints dt k pt point[k] lw 2 lc rgb color(f), \
		for [f in "INT E2Mx"] for [k=1:3] \
			of(f, k) using 4:($9 > 0 ? $9 : NaN):($9 - $10 > low ? $9 - $10 : low):($9 + $10) \
			with yerrorbars pt point[k] lc rgb color(f)
	unset multiplot; set yrange [*:*]
}
