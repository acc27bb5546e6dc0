# questions.gp -- tables of right answers (lib/questions.sh: picture): divergence, right answers, the paper
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set border 1; set tics nomirror; set ytics scale 0 noenhanced
set grid x y; set bars 0.4; set key off
table = system("echo $table"); models = system("echo $models")
file(m) = "< awk -F '\\t' '$1 == \"".m."\"' ".table.".tsv"
rows = int(system("awk -F '\\t' 'NR == 2 { m = $1 } $1 == m' ".table.".tsv | wc -l"))
about(m) = m eq "pre" ? "pre-norm encoder" : m eq "post" ? "post-norm encoder" : m
step(i) = (i - 0.5 * (words(models) + 1)) * 0.24
array color[2] = ["#4477aa", "#cc6677"]
label(d) = (strcol(2) eq strcol(3) ? strcol(2) : "V ".strcol(2).", L ".strcol(3))."  ".strcol(4)
of(r, unit) = r > 5 * unit ? 10 * unit : r > 2 * unit ? 5 * unit : 2 * unit
ticks(r) = of(r, r > 0 ? 10 ** floor(log10(r)) : 1)
stats table.".tsv" every ::1 using 20 nooutput; papers = ticks((STATS_max - STATS_min) / 4)
stats table.".tsv" every ::1 using (100 * $11) nooutput
answers = ticks((STATS_max - STATS_min) / 4)
set yrange [-rows + 0.4:0.6]; set offsets graph 0.03, graph 0.03, 0, 0
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 1240,190 + 30 * rows font "sans,13" background "white"
	} else {
		set terminal pngcairo size 1240,190 + 30 * rows font "sans,11"
	}
	set output part.table.".".t
	set multiplot title system("echo \"$title\"")."\nV: encoder and projector, L: language model; ". \
		"bars: one standard error over questions, of right answers of the difference from ". \
		system("echo \"$base\"") noenhanced
	set tmargin 5; set bmargin 4; set format y "%s"
	set key at screen 0.02, screen 0.03 left bottom Left reverse horizontal
	set lmargin at screen 0.27; set rmargin at screen 0.50
	set xlabel "KL of the answers from 16 bits, nats a token" noenhanced; set logscale x
	set format x "10^{%T}"
	plot for [i=1:words(models)] file(word(models, i)) using ($15 > 0 ? $15 : NaN):(-$0 - step(i)):16 \
		with xerrorbars title about(word(models, i)) pt 7 ps 1.1 lw 2 lc rgb color[i], \
		file(word(models, 1)) using (NaN):(-$0):ytic(label(0)) notitle
	set key off; set format y ""; unset logscale x; set format x "%g"
	set lmargin at screen 0.53; set rmargin at screen 0.74; set xtics answers
	set xlabel "right answers, %" noenhanced
	plot for [i=1:words(models)] file(word(models, i)) using (100 * $11):(-$0 - step(i)):(100 * $14) \
		with xerrorbars pt 7 ps 1.1 lw 2 lc rgb color[i]
	set lmargin at screen 0.77; set rmargin at screen 0.97; set xtics papers
	set xlabel system("echo \"$paper\"") noenhanced
	plot for [i=1:words(models)] file(word(models, i)) using 20:(-$0 - step(i)) \
		with points pt 5 ps 1.1 lc rgb color[i]
	unset multiplot; unset ytics; set ytics scale 0 noenhanced; set xtics autofreq
}
