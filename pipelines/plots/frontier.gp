# frontier.gp -- the plot of frontier.sh: KL by bits, and KL over that of GPTQ at as many bits
what = "What is best at B bits? KL divergence of each method by its bits per weight"
bars = "one standard error over windows"
# method and rotation in the table; name, colour, point and dash in the plot
array line[23] = ["rtn/none;RTN;8;5;1", "rtn/two-sided;RTN, rotated;8;4;2", "gptq/none;GPTQ;1;7;1", \
	"gptq/two-sided;GPTQ, rotated;1;6;2", "k-best/none;K-best;6;9;1", "k-best/two-sided;K-best, rotated;6;8;2", \
	"sequential/none;GPTQ, sequential;2;4;2", "qep/none;QEP;2;9;3", "qronos/none;Qronos;2;5;1", \
	"plan/none;GPTQ, bits by layer;7;11;1", "exmy/none;GPTQ in E2Mx;3;13;1", "nf/none;GPTQ in NFx;3;12;2", \
	"dpq/none;DPQ (inputs in FP8);3;2;3", "awq/none;AWQ;4;5;1", "fbquant/none;FBQuant;4;4;2", \
	"caldera/none;CALDERA;4;7;1", "eora/none;EoRA;4;6;2", "e8p/two-sided;E8P, rotated;5;13;1", \
	"trellis/two-sided;trellis, rotated;2;7;1", "ggml-plain/none;llama.cpp;7;4;3", \
	"ggml-imatrix/none;llama.cpp, imatrix;7;5;3", "llm-compressor/none;llm-compressor;1;8;3", \
	"gptqmodel/none;GPTQModel;8;9;3"]
field(i, k) = system("printf %s '".line[i]."' | cut -d ';' -f ".k)
rows(i) = only('$1"/"$2 == "'.field(i, 1).'"')
of(i) = rows(i)." | { read -r l; echo \"$l\"; sort -t '\t' -k 4,4g; }"
shown = ""; apart = ""; array name[|line|]
do for [i=1:|line|] {
	set linetype i lc rgb color[int(field(i, 3))] pt int(field(i, 4)) dt int(field(i, 5)) lw 1.5
	name[i] = field(i, 2)
	if (int(system(rows(i)[2:]." | wc -l")) > 1) {
		if (strstrt(line[i], "ggml") == 1) { apart = apart." ".i } else { shown = shown." ".i }
	}
}
set linetype cycle |line|
H = 900; ratio = '(column("kl_times_gptq"))'
@begin
N = 0; do for [i in shown.apart] {
	N = N + 1; set label 10 + N name[int(i)] at screen 0.745, screen down(56 + 21 * N) left font "sans-serif,13" \
		point lt int(i) ps 0.9 offset 1,-0.2
}
if (!strlen(apart)) { apart = word(shown, 1) }	# a loop over no words would run once
set multiplot; set lmargin at screen 0.11; set rmargin at screen 0.72; set logscale y; set format y "%g"
set key off
set bmargin at screen down(440); set ylabel "KL divergence, nats per token" offset 1.8; set xrange [1.8:8.6]
plot for [i in shown] of(int(i)) using "bits_a_weight":"kl":"kl_se" with yerrorlines lt int(i), \
	for [i in apart] of(int(i)) using "bits_a_weight":"kl":"kl_se" with yerrorbars lt int(i)
@panel
set tmargin at screen down(480); set bmargin at screen down(H - 60); set xrange [1.8:6.6]; set yrange [0.15:10]
set xlabel "bits per weight, with scales, zero points and branches"
set ylabel "KL divergence over that of GPTQ at as many bits" offset 1
set ytics (0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10)
plot for [i in shown] of(int(i)) using "bits_a_weight":@ratio with linespoints lt int(i), \
	for [i in apart] of(int(i)) using "bits_a_weight":@ratio with points lt int(i)
unset multiplot
