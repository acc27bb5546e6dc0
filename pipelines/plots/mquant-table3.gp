# mquant-table3.gp -- the plot of mquant-table3.sh
what = "A prefill of Qwen2-VL-7B by the size of its image, and the memory of its weights"
about = about."; one block here, the whole model in the paper (RTX 6000 Ada)"
array name[5] = ["W4A8, scale per modality", "W4A8, scale per token", "4-bit weights", "paper: W4A8", "paper: 4 bits"]
set linetype 4 lc rgb color[1] pt 6; set linetype 5 lc rgb color[3] pt 8
of(w) = only('$3 == "'.w.'"')
@begin
@legend
set multiplot; set key off; set lmargin at screen 0.09; set rmargin at screen 0.5; set bmargin at screen 0.17
set tmargin at screen down(96)
set xlabel "side of the image, pixels"; set ylabel "faster than 16 bits, %"; set xrange [180:1780]
set xtics (280, 560, 1120, 1680)
plot 0 lc rgb "#444444" lw 1, of("w4a8-msq-aifs") using "side":"faster_percent" with linespoints lt 1, \
	"" using "side":"paper_percent" with linespoints lt 4 dt 2, \
	of("w4a8-token") using "side":"faster_percent" with linespoints lt 2, \
	of("w4") using "side":"faster_percent" with linespoints lt 3, \
	"" using "side":"paper_percent" with linespoints lt 5 dt 2
@panel
set border 1; set ytics scale 0; set ylabel ""; set yrange [-2.6:0.6]; set xrange [0:18]; set xtics 5
set style fill solid 0.6 noborder
set ytics ("16 bits" 0, "4 bits" -1, "W4A8" -2)
bytes = "< awk -F '\\t' '$1 != \"w4a8-token\"' bytes.tsv"
do for [i=1:2] {
	set lmargin at screen (i == 1 ? 0.61 : 0.82); set rmargin at screen (i == 1 ? 0.79 : 0.98)
	set xlabel (i == 1 ? "here: weights of the\nlanguage model, GiB" : "paper: all that\nis held, GiB") \
		font "sans-serif,13"
	plot bytes using 0:(-column(0)):(0):(column(i == 1 ? "model_gib" : "paper_gib")):(-column(0) - 0.25): \
		(-column(0) + 0.25) with boxxyerror lt (i == 1 ? 1 : 8)
	set format y ""
	set ytics ("" 0, "" -1, "" -2)
}
unset multiplot
