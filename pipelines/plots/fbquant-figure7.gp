# fbquant-figure7.gp -- the plot of fbquant-figure7.sh
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set border 3; set tics nomirror; set grid y; unset key; set bmargin 4
set offsets 0, 0, graph 0.1, 0
set style fill solid 0.6; set boxwidth 0.7; set yrange [0:*]
set ylabel "tokens a second, linear layers only"
label(f, w) = f eq "f16" ? "fp16" : (f eq "uint4" ? "4 bits" : "3 bits").(w eq "packed" ? "" : \
	w eq "fused" ? "\nfused" : "\nunfused")
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 900,480 font "sans,13" background "white"
	} else {
		set terminal pngcairo size 900,480 font "sans,11"
	}
	set output part."figure7.".t
	set title "Linear layers of Llama-2-7B, one row of x, branch of rank 128 in f16" noenhanced
	plot "figure7.tsv" using 0:3:xticlabels(label(strcol(1), strcol(2))) every ::1 with boxes lt 1, \
		"" using 0:3:(sprintf("%.3g", $3)) every ::1 with labels offset 0,0.7
}
