# fpe2m2-tables.gp -- FPE2M2's tables 1, 3 and 4 (lib/fpe2m2.sh: picture): divergence, rise of the nll, the paper
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set border 1; set tics nomirror; set ytics scale 0 noenhanced
set grid x y; set key off; set bars 0.4
table = system("echo $table"); bits = int(system("echo $bits"))
rows = int(system("grep -c . $table.tsv")) - 1
eval "label(dummy) = ".system("echo \"$label\"")
positive = "column(bits + 7) > 0 ? column(bits + 7) : NaN"
file = table.".tsv"; set yrange [-rows + 0.4:0.6]
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 1180,150 + 34 * rows font "sans,13" background "white"
	} else {
		set terminal pngcairo size 1180,150 + 34 * rows font "sans,11"
	}
	set output part.table.".".t
	set multiplot title system("echo \"$title\"")."\nbars: one standard error over tokens" noenhanced
	set tmargin 4; set bmargin 4; set format y "%s"
	set lmargin at screen 0.13; set rmargin at screen 0.42
	set xlabel "KL divergence from the unquantized model, nats a token" noenhanced
	set logscale x; set format x "10^{%T}"
	plot file every ::1 using (@positive):(-$0):(column(bits + 8)):ytic(label(0)) \
		with xerrorbars pt 7 ps 1.2 lw 2 lc "#4477aa"
	set format y ""; unset logscale x; set format x "%g"
	set lmargin at screen 0.45; set rmargin at screen 0.70
	set xlabel "rise of the nll, 1/1000 nat a token" noenhanced
	plot file every ::1 using (1000 * column(bits + 5)):(-$0):(1000 * column(bits + 6)) \
		with xerrorbars pt 7 ps 1.2 lw 2 lc "#cc6677"
	set lmargin at screen 0.74; set rmargin at screen 0.97
	set xlabel system("echo \"$paper\"") noenhanced
	plot file every ::1 using (column(bits + 13)):(-$0) with points pt 5 ps 1.2 lc "#777777"
	unset multiplot; unset ytics; set ytics scale 0 noenhanced
}
