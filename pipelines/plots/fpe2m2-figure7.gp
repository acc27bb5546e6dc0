# fpe2m2-figure7.gp -- the plot of fpe2m2-figure7.sh; RATE, PEAK: 10⁹ bytes and operations per second of the machine
what = "A packed matrix of 11008 × 4096 times a few columns, weights from memory"
rate = real(env("RATE")); peak = real(env("PEAK"))
about = about."; ".sprintf("dashed: fp16, and the limits of the machine, ". \
	"%.1f GB/s and %.0f · 10⁹ operations per second", rate, peak)
H = 720
stats table using (column("times_fp16")) name "A" nooutput
stats table using (column("gflops")) name "B" nooutput
array kind[3] = ["5 bits", "4 bits", "16 and 32 bits"]
array formats[3] = ["e2m2 e2m2-int16 e2m2-half int5 nf5", "e2m1 int4", "f16 bf16 f32 sgemm"]
name(f) = f eq "e2m2-int16" ? "e2m2, int16 inputs" : f eq "e2m2-half" ? "e2m2, paper's" : f eq "f16" ? "fp16" : \
	f eq "sgemm" ? "f32, sgemm" : f
of(f) = only('$1 == "'.f.'"')
@begin
set multiplot layout 2,3 margins 0.1,0.98,0.09,down(92) spacing 0.04,0.12
set key top right font "sans-serif,12" samplen 1.5
do for [p=1:3] {
	set title kind[p] offset 0,-0.6; set xlabel "columns (sequences at once)" font "sans-serif,13"
	set xrange [0:17]; set xtics 4; set yrange [0:1.25 * A_max]
	if (p == 1) { set ylabel "times as fast as fp16" } else { set ylabel ""; set format y "" }
	plot 1 lc rgb "#444444" dt 2 notitle, \
		for [i=1:words(formats[p])] of(word(formats[p], i)) using "columns":"times_fp16" \
			with linespoints lt i lw 1.5 title name(word(formats[p], i))
	unset label
}
set format y "%g"; set key bottom right; set title ""
set logscale xy; set xrange [0.4:100]; set xtics (1, 3, 10, 30)
set yrange [0.7 * B_min:2.5 * (B_max > peak ? B_max : peak)]
do for [p=1:3] {
	set xlabel "operations per byte of weights"
	if (p == 1) { set ylabel "10⁹ operations per second" } else { set ylabel ""; set format y "" }
	plot rate * x < peak ? rate * x : peak lc rgb "#444444" dt 2 notitle, \
		for [i=1:words(formats[p])] of(word(formats[p], i)) using "flops_a_byte":"gflops" \
			with linespoints lt i lw 1.5 title name(word(formats[p], i))
}
unset multiplot
