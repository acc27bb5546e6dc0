# fpe2m2-figure3.gp -- the plot of fpe2m2-figure3.sh; low, high: the limits of nine tenths of the model's channels
what = "Mean squared error of number formats on Gaussian weights, by the spread of the weights"
about = "lines: exact; points: layers of ".env("model").", shaded: nine tenths of its channels; ". \
	"dotted: the paper's range"
low = real(env("low")); high = real(env("high")); H = 500
array title[3] = ["4 bits", "5 bits", "6 bits"]
array formats[3] = ["e1m2 e2m1 e3m0", "e1m3 e2m2 e3m1 e4m0", "e1m4 e2m3 e3m2 e4m1 e5m0"]
also(f) = f[2:2] eq "1" ? " = int".(f[4:4] + 2) : ""
curve(f) = "< awk '$1 == \"".f."\"' curve.tsv"; layers(f) = "< awk '$2 == \"".f."\"' error.tsv"
set datafile nocolumnheaders; set datafile separator whitespace
set object 1 rectangle from low, graph 0 to high, graph 1 behind fillcolor rgb "#e4e4e4" fillstyle solid noborder
$paper << E
0.12 2e-7
0.12 1e-2

0.28 2e-7
0.28 1e-2
E
@begin
set multiplot layout 1,3
set logscale y; set xrange [0:0.5]; set xtics 0.1; set yrange [2e-7:1e-2]
set ytics ("10⁻⁶" 1e-6, "10⁻⁵" 1e-5, "10⁻⁴" 1e-4, "10⁻³" 1e-3, "10⁻²" 1e-2)
set xlabel "σ of a channel, largest |w| = 1" font "sans-serif,13"; set tmargin at screen down(86)
set key bottom right samplen 1.5 font "sans-serif,13"
do for [p=1:3] {
	set title title[p] offset 0,-0.6
	set lmargin at screen 0.085 + 0.312 * (p - 1); set rmargin at screen 0.355 + 0.312 * (p - 1)
	set bmargin at screen 0.12
	if (p > 1) { set ytics ("" 1e-6, "" 1e-5, "" 1e-4, "" 1e-3, "" 1e-2) }
	set ylabel (p == 1 ? "mean squared error, in (largest |w|)²" : "")
	plot $paper using (column(1)):(column(2)) with lines lc rgb "#444444" lw 1 dt 3 notitle, \
		for [i=1:words(formats[p])] curve(word(formats[p], i)) using 3:4 with lines lt i \
		title word(formats[p], i).also(word(formats[p], i)), \
		curve("nf".(p + 3)) using 3:4 with lines lc rgb "#777777" dt 2 title "nf".(p + 3), \
		for [i=1:words(formats[p])] layers(word(formats[p], i)) using 3:4 with points lt i pt 7 ps 0.35 notitle
	unset label; unset ylabel
}
unset multiplot
