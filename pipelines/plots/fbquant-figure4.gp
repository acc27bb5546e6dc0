# fbquant-figure4.gp -- the plot of fbquant-figure4.sh: points, because single times differ as much as neighbours
what = "A packed layer of 4096 × 4096 with a low-rank branch in f16"
about = about."; medians of one run, two runs differ by up to 10 %"
array name[5] = ["4 bits, unfused", "4 bits, fused", "3 bits, unfused", "3 bits, fused", "multiplications (line)"]
at(f, condition) = only(sprintf('$1 == "%s" && %s', f, condition)); ratio(c) = column(c) / column("f16_ms")
set linetype 5 pt 0 lc rgb "#444444"
@begin
@legend
set multiplot layout 1,2 margins 0.09,0.98,0.14,down(92) spacing 0.11,0; set key off
set xlabel "rank, one row of x"; set ylabel "more than without a branch, %"
set xrange [0:280]; set xtics 64; set xzeroaxis lc rgb "#444444"; set pointsize 1
plot at("uint4", "$3 == 1") using "rank":"macs_percent" with lines lt 5, \
	for [f=0:1] for [w=0:1] at(word("uint4 uint3", f + 1), "$3 == 1") \
		using (column("rank") + 3 * (2 * f + w - 1.5)):(column(word("unfused_percent fused_percent", w + 1))) \
		with points lt 1 + 2 * f + w ps 0.9
@panel
set xlabel "rows of x, rank 128"; set ylabel "time over that of fp16"
set logscale x 2; set xrange [0.8:330]; set xtics (1, 2, 4, 8, 16, 64, 256); set yrange [0:*]
plot 1 lc rgb "#444444" lw 1, \
	for [f=0:1] for [w=0:1] at(word("uint4 uint3", f + 1), "$2 == 128") \
		using (column("rows") * 1.05 ** (2 * f + w - 1.5)):(ratio(word("unfused_ms fused_ms", w + 1))) \
		with points lt 1 + 2 * f + w ps 0.9
unset multiplot
