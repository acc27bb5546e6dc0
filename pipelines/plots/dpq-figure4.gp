# dpq-figure4.gp -- the plot of dpq-figure4.sh
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set border 3; set tics nomirror; set grid; set logscale x 2
set xrange [110:38000]; set yrange [0:3.1]
set xtics ("128" 128, "512" 512, "2k" 2048, "8k" 8192, "32k" 32768)
model(i) = word("llama-2-70b qwen2-72b", i); on(k) = word("gaudi2 gaudi3", k)
format(f) = word("W8A8 W4A8", f); color(f) = f == 1 ? "#4477aa" : "#cc3311"
of(i, k, f, m) = "< awk -F '\t' '$1 == \"".model(i)."\" && $2 == \"".on(k)."\" && $3 == \"".format(f). \
	"\" && $5 == ".m."' figure4.tsv"
label(i, k) = (i == 1 ? "Llama 2 70B" : "Qwen 2 72B")." on ".(k == 1 ? "Gaudi 2" : "Gaudi 3")
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 1060,760 font "sans,13" background "white"
	} else {
		set terminal pngcairo size 1060,760 font "sans,11"
	}
	set output part."figure4.".t
	set multiplot layout 2,2 title "Projected speed-up over W4A16, and the paper's largest (dotted: 3 ". \
		"over W4A16)\n" noenhanced
	do for [i=1:2] { do for [k=1:2] {
		set title label(i, k) noenhanced
		if (i == 2) { set xlabel "prompt, tokens" } else { unset xlabel }
		if (k == 1) { set ylabel "times the rate of W4A16" } else { unset ylabel }
		if (i == 1 && k == 2) {
			set key top left Left reverse samplen 3 maxrows 4 width -2
		} else {
			set key off
		}
		plot 3 dt 3 lc "#777777" notitle, 1 lc "#228833" lw 2 title "W4A16", \
			for [f=1:2] for [m=1:3] of(i, k, f, word("128 512 2048", m)) using 4:12 \
				with linespoints dt m pt 4 + 2 * f + (f == 2) ps 0.7 lw 2 lc rgb color(f) \
				title format(f).", ".word("128 512 2048", m)." generated"
	} }
	unset multiplot
}
