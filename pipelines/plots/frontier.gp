# frontier.gp -- the plot of frontier.sh: KL by bits, and KL over that of GPTQ at as many bits
what = "What is best at B bits? KL divergence of each method by its bits per weight"
bars = "one standard error over windows"
keys = "rtn/none rtn/two-sided gptq/none gptq/two-sided k-best/none k-best/two-sided sequential/none ". \
	"qep/none qronos/none plan/none exmy/none nf/none dpq/none awq/none fbquant/none caldera/none eora/none e8p/two-sided ". \
	"trellis/two-sided blocks/none ggml-plain/none ggml-imatrix/none"
array name[22] = ["RTN", "RTN, rotated", "GPTQ", "GPTQ, rotated", "K-best", "K-best, rotated", "GPTQ, sequential", "QEP", "Qronos", \
	"GPTQ, bits by layer", "GPTQ in E2Mx", "GPTQ in NFx", "DPQ (inputs in FP8)", "AWQ", "FBQuant", "CALDERA", \
	"EoRA", "E8P, rotated", "trellis, rotated", "K-quants, IQ4_NL", "llama.cpp", "llama.cpp, imatrix"]
# colour, point and dash of each
hues = "8 8 1 1 6 6 2 2 2 7 3 3 3 4 4 4 4 5 2 5 7 7"
points = "5 4 7 6 9 8 4 9 5 11 13 12 2 5 4 7 6 13 7 2 4 5"
dashes = "1 2 1 2 1 2 2 3 1 1 1 2 3 1 2 1 2 1 1 3 3 3"
of(i) = only('$1"/"$2 == "'.word(keys, i).'"')." | { read -r l; echo \"$l\"; sort -t '\t' -k 4,4g; }"
has(i) = int(system("awk -F '\\t' '$1\"/\"$2 == \"".word(keys, i)."\"' ".table." | wc -l"))
shown = ""; do for [i=1:22] { if (has(i)) { shown = shown." ".i } }
do for [i=1:22] {
	set linetype i lc rgb color[int(word(hues, i))] pt int(word(points, i)) dt int(word(dashes, i)) lw 1.5
}
set linetype cycle 22
H = 900; ratio = '(column("kl_times_gptq"))'
@begin
set multiplot; set lmargin at screen 0.11; set ylabel offset 1.8;
set rmargin at screen 0.72; set logscale y; set format y "%g"
set key at screen 0.74, screen down(64) left top Left reverse
set bmargin at screen down(440); set ylabel "KL divergence, nats per token"; set xrange [1.8:8.6]
plot for [i in shown] of(int(i)) using "bits_a_weight":"kl":"kl_se" \
	with yerrorlines lt int(i) title name[int(i)]
@panel
set tmargin at screen down(480); set bmargin at screen down(H - 60); set xrange [1.8:6.6]; set yrange [0.3:8]
set xlabel "bits per weight, with scales, zero points and branches"
set ylabel "KL divergence over that of GPTQ at as many bits" offset 1; set ytics (0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 8)
plot for [i in shown] of(int(i)) using "bits_a_weight":@ratio with linespoints lt int(i)
unset multiplot
