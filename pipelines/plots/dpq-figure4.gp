# dpq-figure4.gp -- the plot of dpq-figure4.sh
what = "Projected speed-up over W4A16 by the length of the prompt"
about = "computed by roofline, not measured; line at 1: W4A16; dotted line at 3: the paper's largest"
H = 760
model(i) = word("llama-2-70b qwen2-72b", i); on(k) = word("gaudi2 gaudi3", k); made(m) = word("128 512 2048", m)
label(i, k) = (i == 1 ? "Llama 2 70B" : "Qwen 2 72B")." on ".(k == 1 ? "Gaudi 2" : "Gaudi 3")
of(i, k, f, m) = only(sprintf('$1 == "%s" && $2 == "%s" && $3 == "%s" && $5 == %s', model(i), on(k), f, made(m)))
array name[3] = ["W8A8", "W4A8", "tokens generated: 128 (solid), 512 (dashed), 2048 (dotted)"]
set linetype 3 pt -1
@begin
@legend
set multiplot layout 2,2 margins 0.09,0.98,0.08,down(116) spacing 0.07,0.13
set logscale x 2; set xrange [110:38000]; set yrange [0:3.1]
set xtics ("128" 128, "512" 512, "2k" 2048, "8k" 8192, "32k" 32768)
do for [i=1:2] { do for [k=1:2] {
	set title label(i, k) offset 0,-0.6
	set xlabel "length of the prompt, tokens"
	set ylabel (k == 1 ? "times the rate of W4A16" : "")
	set key off
	plot 3 dt 3 lc rgb "#444444" notitle, 1 lc rgb "#444444" notitle, \
		for [f=1:2] for [m=1:3] of(i, k, word("W8A8 W4A8", f), m) using "prompt":"speedup" \
			with linespoints lt f dt m lw 1.5 notitle
	@panel
} }
unset multiplot
