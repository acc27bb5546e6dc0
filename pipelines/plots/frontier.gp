# frontier.gp -- the plot of frontier.sh: KL by bits, and KL over that of GPTQ at as many bits
what = "What is best at B bits? KL divergence of each method by its bits per weight"
bars = "one standard error over windows"
# method; name, colour and point, which is filled. For rotated layers it is the point before that one, its hollow form
array method[22] = ["rtn;RTN;8;5", "gptq;GPTQ;1;7", "k-best;K-best;6;9", "sequential;GPTQ, sequential;2;5", \
	"qep;QEP;2;9", "qronos;Qronos;2;13", "plan;GPTQ, bits by layer;7;11", \
	"format-plan;GPTQ, format by layer;7;15", "qep-plan;QEP, format by layer;2;11", \
	"exmy;GPTQ in E2Mx;3;13", "nf;GPTQ in NFx;3;11", "dpq;DPQ (inputs in FP8);3;5", "awq;AWQ;4;5", \
	"fbquant;FBQuant;4;11", "caldera;CALDERA;4;7", "eora;EoRA;4;9", "e8p;E8P;5;13", "trellis;trellis;5;7", \
	"ggml-plain;llama.cpp;7;5", "ggml-imatrix;llama.cpp, imatrix;7;7", "llm-compressor;llm-compressor;1;9", \
	"gptqmodel;GPTQModel;8;9"]
M = |method|
field(i, k) = system("printf %s '".method[i]."' | cut -d ';' -f ".k)
rows(i, r) = only('$1"/"$2 == "'.field(i, 1)."/".r.'"')
of(s) = rows((s > M ? s - M : s), (s > M ? "two-sided" : "none"))." | { read -r l; echo \"$l\"; sort -t '\t' -k 4,4g; }"
# series 1 to M: without rotations; M + 1 to 2 M: with them
shown = ""; apart = ""
do for [s=1:2 * M] {
	i = s > M ? s - M : s
	set linetype s lc rgb color[int(field(i, 3))] pt int(field(i, 4)) - (s > M) dt 1 + (s > M) lw 1.5 ps 0.8
	if (int(system(of(s)[2:]." | wc -l")) > 1) {
		if (strstrt(method[i], "ggml") == 1) { apart = apart." ".s } else { shown = shown." ".s }
	}
}
set linetype cycle 2 * M
H = 900; ratio = '(column("kl_times_gptq"))'
@begin
N = 0; do for [i=1:M] {
	if (strstrt(shown.apart." ", " ".i." ") || strstrt(shown." ", " ".(i + M)." ")) {
		N = N + 1
		set label 10 + N field(i, 2) at screen 0.76, screen down(56 + 21 * N) left font "sans-serif,13" \
			point lt i offset 1,-0.2
		if (strstrt(shown." ", " ".(i + M)." ")) {
			set label 40 + N "" at screen 0.745, screen down(56 + 21 * N) point lt i + M offset 1,-0.2
		}
	}
}
rotated = 0; do for [s in shown] { rotated = rotated || int(s) > M }
if (rotated) {
	set label 80 "filled: not rotated\nhollow, dashed: layers\nrotated on both sides" \
		at screen 0.75, screen down(90 + 21 * N) left font "sans-serif,13"
}
if (!strlen(apart)) { apart = word(shown, 1) }	# a loop over no words would run once
set multiplot; set lmargin at screen 0.11; set rmargin at screen 0.72; set logscale y; set format y "%g"
set key off
set bmargin at screen down(380); set ylabel "KL divergence, nats per token" offset 1.8; set xrange [1.8:8.6]
plot for [s in shown] of(int(s)) using "bits_a_weight":"kl":"kl_se" with yerrorlines lt int(s), \
	for [s in apart] of(int(s)) using "bits_a_weight":"kl":"kl_se" with yerrorbars lt int(s)
@panel
set tmargin at screen down(420); set bmargin at screen down(H - 60); set yrange [0.15:10]
set xlabel "bits per weight, with scales, zero points and branches"
set ylabel "KL over that of GPTQ at as many bits (above 10: not shown)" offset 1
set ytics (0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10)
plot for [s in shown] of(int(s)) using "bits_a_weight":@ratio with linespoints lt int(s), \
	for [s in apart] of(int(s)) using "bits_a_weight":@ratio with points lt int(s)
unset multiplot
