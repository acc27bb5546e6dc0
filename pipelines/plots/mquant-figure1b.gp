# mquant-figure1b.gp -- the plot of mquant-figure1b.sh
what = "Inputs of the language model's layers by modality"
about = env("model").", calibration set; bar: median to percentile 99 of |x|, line: to 99.99, point: largest"
models = system("awk -F '\\t' 'NR > 1 && !($1 in seen) { seen[$1]; printf \"%s \", $1 }' ".table)
about(m) = m eq "pre" ? "pre-norm encoder" : m eq "post" ? "post-norm encoder" : m
layer(any) = m ne word(models, 1) ? "" : "block ".strcol("block").", ".strcol("input")
of(m, w) = only('$1 == "'.m.'" && $4 == "'.w.'"'); n = words(models)
rows = int(system("awk -F '\\t' '$1 == \"".word(models, 1)."\" && $4 == \"text\"' ".table." | wc -l"))
H = 170 + 26 * rows
array name[2] = ["visual tokens", "text tokens"]
set style fill solid 0.5 noborder; y(w) = -column(0) - 0.36 * (w - 1.5)
stats table using (column("p50")) name "A" nooutput
stats table using (column("largest")) name "B" nooutput
@begin
@legend
set multiplot layout 1,n margins 0.21,0.98,64.0 / H,down(106) spacing 0.03,0; set key off
set logscale x; set xrange [0.7 * A_min:1.5 * B_max]; set xtics (0.01, 0.1, 1, 10, 100, 1000)
set yrange [-rows + 0.4:0.6]
set ytics scale 0; set border 1
set xlabel "|x|"
do for [m in models] {
	set title about(m) offset 0,-0.6
	plot for [w=1:2] of(m, word("visual text", w)) using "p50":(y(w)):"p50":"p99":(y(w) - 0.13):(y(w) + 0.13) \
		with boxxyerror lt w, \
		for [w=1:2] of(m, word("visual text", w)) using "p99":(y(w)):"p99":"p99.99" with xerrorbars lt w pt 0, \
		for [w=1:2] of(m, word("visual text", w)) using "largest":(y(w)) with points lt w, \
		of(m, "text") using (NaN):(-column(0)):ytic(layer(0)) with points
	@panel
}
unset multiplot
