# mquant-table3.gp -- the plot of mquant-table3.sh
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set datafile missing "-"; set border 3; set tics nomirror; set grid y
set style fill solid 0.6
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 1150,480 font "sans,13" background "white"
	} else {
		set terminal pngcairo size 1150,480 font "sans,11"
	}
	set output part."table3.".t
	set multiplot layout 1,2 title "A prefill of Qwen2-VL-7B by the size of its picture: one block ". \
		"here, the whole model in the paper" noenhanced
	set key top left samplen 2; set xlabel "side of the picture, pixels"
	set ylabel "faster than 16 bits, %"; set xrange [180:1780]; set xtics 280
	set offsets 0, 0, graph 0.35, 0
	plot 0 lt -1 dt 2 notitle, \
		"< grep '\tw4a8-msq-aifs\t' table3.tsv" using 1:5 \
			with linespoints lt 1 lw 2 pt 7 title "W4A8, a scale a modality", \
		"" using 1:6 with linespoints lt 1 dt 3 pt 6 title "the paper's", \
		"< grep '\tw4a8-token\t' table3.tsv" using 1:5 \
			with linespoints lt 2 lw 2 pt 5 title "W4A8, a scale a token", \
		"< grep '\tw4\t' table3.tsv" using 1:5 \
			with linespoints lt 4 lw 2 pt 9 title "weights of 4 bits only", \
		"" using 1:6 with linespoints lt 4 dt 3 pt 8 title "the paper's (AWQ)"
	unset xrange; set xrange [-0.6:2.6]; set xtics autofreq; unset xlabel; set key top right
	set ylabel "weights of the language model, GiB"; set yrange [0:*]; set boxwidth 0.35
	plot "< grep -v w4a8-token bytes.tsv" \
		using ($0 - 0.18):2:xticlabels(strcol(1) eq "f16" ? "16 bits" : \
		strcol(1) eq "w4" ? "4 bits" : "W4A8") every ::1 with boxes lt 1 title "here", \
		"" using ($0 + 0.18):4 every ::1 \
			with boxes lt 3 title "the paper: all that is held, 1120 × 1120"
	unset multiplot; unset xrange; unset yrange; unset offsets
}
