#!/usr/bin/env bash
# mquant-table3.sh -- MQuant tables 3 and 10, figure 6: time and memory of a prefill by the size of a picture
#
# One block of Qwen2-VL-7B's language model, of random numbers, a picture of so many pixels between 15 tokens of
# text: weights in f16, in 4 bits only (groups of 128), and in 4 bits with inputs rounded to int8 under a scale of
# each token, or of each modality with the visual tokens first. Times as in the paper, how much faster than 16
# bits, in %. Memory: bytes of 28 such blocks in their file, with embedding and head in 16 bits, and what a process
# with one block held. Times come from the measuring program of the source tree, build/tests/bench/modality
# (`make bench` builds it), or from PTQ_MODALITY. PTQ_RUNS: measurements of each (3); PTQ_THREADS: threads (all);
# with one, times are the thread's own.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
arguments 0 "$@"
modality=$(realpath -m -- "${PTQ_MODALITY:-$here/../build/tests/bench/modality}")
[ -f "$modality" ] && [ -x "$modality" ] || fail 1 "$modality: is not there: make bench builds it, or PTQ_MODALITY names it"
# Times are those of a machine, and of as many processors as it grants.
enter "$name" "$(uname -n; nproc; echo "${PTQ_THREADS:-}"; sha256sum <"$modality")"

say "measuring (minutes)"
keep block.tsv "$modality" -j "${PTQ_THREADS:-0}" -r "${PTQ_RUNS:-3}" block
keep memory.tsv "$modality" -j "${PTQ_THREADS:-0}" -r 1 memory
awk -F '\t' -v OFS='\t' '
	BEGIN {
		n = split("280 560 1120 1680", side, " ")
		split("-10.14 -13.70 -15.10 -17.39", w4, " "); split("16.82 19.48 24.48 18.23", w4a8, " ")
		for (i = 1; i <= n; i++) { paper[side[i], "w4"] = w4[i]; paper[side[i], "w4a8-msq-aifs"] = w4a8[i] }
		print "side", "visual", "what", "seconds", "faster_percent", "paper_percent", "faster_than_token_percent", "prepare_seconds"
	}
	FNR == NR { s[$1, $4] = $6; next }
	FNR > 1 { printf "%s\t%s\t%s\t%.4g\t%.1f\t%s\t%.1f\t%.3g\n", $1, $2, $4, $6, 100 * (s[$1, "f16"] / $6 - 1),
		($1, $4) in paper ? paper[$1, $4] : "-", 100 * (s[$1, "w4a8-token"] / $6 - 1), $5 }
' block.tsv block.tsv >"$part/table3.tsv"
table table3
awk -F '\t' -v OFS='\t' '	# GiB, as the paper has them: 1120 x 1120
	BEGIN { paper["f16"] = 16.58; paper["w4"] = 7.56; paper["w4a8-msq-aifs"] = 6.61; ends = 2 * 152064 * 3584 * 2
		print "what", "model_gib", "saved_percent", "paper_gib", "paper_percent", "block_stored_mib", "block_prepared_mib", "peak_mib" }
	NR > 1 {
		model = (28 * $2 + ends) / 2 ^ 30; if ($1 == "f16") all = model
		printf "%s\t%.4g\t%.1f\t%s\t%s\t%.0f\t%.0f\t%.0f\n", $1, model, 100 * (all / model - 1), ($1 in paper) ? paper[$1] : "-",
			($1 in paper) ? sprintf("%.1f", 100 * (paper["f16"] / paper[$1] - 1)) : "-", $2 / 2 ^ 20, $3 / 2 ^ 20, $4 / 2 ^ 20
	}' memory.tsv >"$part/bytes.tsv"
table bytes

plot table3 <<'G'
set datafile separator "\t"; set datafile missing "-"; set border 3; set tics nomirror; set grid y; set style fill solid 0.6
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 1150,480 font "sans,13" background "white" } else { set terminal pngcairo size 1150,480 font "sans,11" }
	set output part."table3.".t
	set multiplot layout 1,2 title "A prefill of Qwen2-VL-7B by the size of its picture: one block here, the whole model in the paper" noenhanced
	set key top left samplen 2; set xlabel "side of the picture, pixels"; set ylabel "faster than 16 bits, %"; set xrange [180:1780]; set xtics 280; set offsets 0, 0, graph 0.35, 0
	plot 0 lt -1 dt 2 notitle, \
		"< grep '\tw4a8-msq-aifs\t' table3.tsv" using 1:5 with linespoints lt 1 lw 2 pt 7 title "W4A8, a scale a modality", "" using 1:6 with linespoints lt 1 dt 3 pt 6 title "the paper's", \
		"< grep '\tw4a8-token\t' table3.tsv" using 1:5 with linespoints lt 2 lw 2 pt 5 title "W4A8, a scale a token", \
		"< grep '\tw4\t' table3.tsv" using 1:5 with linespoints lt 4 lw 2 pt 9 title "weights of 4 bits only", "" using 1:6 with linespoints lt 4 dt 3 pt 8 title "the paper's (AWQ)"
	unset xrange; set xrange [-0.6:2.6]; set xtics autofreq; unset xlabel; set key top right; set ylabel "weights of the language model, GiB"; set yrange [0:*]; set boxwidth 0.35
	plot "< grep -v w4a8-token bytes.tsv" using ($0 - 0.18):2:xticlabels(strcol(1) eq "f16" ? "16 bits" : strcol(1) eq "w4" ? "4 bits" : "W4A8") every ::1 with boxes lt 1 title "here", \
		"" using ($0 + 0.18):4 every ::1 with boxes lt 3 title "the paper: all that is held, 1120 × 1120"
	unset multiplot; unset xrange; unset yrange; unset offsets
}
G
say "the paper (RTX 6000 Ada): figure 6 without numbers, 20 % over a scale a token and 80 % over 16 bits"
