#!/usr/bin/env bash
# mquant-table7.sh -- MQuant tables 4 and 7: time of linear layers, scales by token, by tensor and by modality
#
# The linear layers of one block of Qwen2-VL-7B's language model, of random numbers. Prefill: 4096 visual tokens in
# three pictures, 64 of text around them; in W4A8 inputs become int8 under a scale of each token, of all, of each
# modality as tokens stand (MSQ), and with the visual tokens first (AIFS). Decoding: one row, weights from memory;
# packed: by the products of few columns, which leave words packed. How many times as fast as 16 bits, f16 or
# bf16, whichever is faster, beside the paper's times of all blocks. Times come from the measuring program of the
# source tree, build/tests/bench/modality (`make bench` builds it), or from PTQ_MODALITY. PTQ_RUNS: measurements
# of each (2; 15 times as many of decoding); PTQ_THREADS: threads (all); with one, times are the thread's own.
set -euo pipefail
# shellcheck source=pipelines/common.sh
. "$(dirname "$0")/common.sh"
arguments 0 "$@"
modality=$(realpath -m -- "${PTQ_MODALITY:-$here/../build/tests/bench/modality}") runs=${PTQ_RUNS:-2}
[ -f "$modality" ] && [ -x "$modality" ] || fail 1 "$modality: is not there: make bench builds it, or PTQ_MODALITY names it"
# Times are those of a machine, and of as many processors as it grants.
enter "$name" "$(uname -n; nproc; echo "${PTQ_THREADS:-}"; sha256sum <"$modality")"

say "measuring (minutes)"
keep layers.tsv "$modality" -j "${PTQ_THREADS:-0}" -r "$runs" layers
keep decode.tsv "$modality" -j "${PTQ_THREADS:-0}" -r "$((runs < 6 ? 15 * runs : 101))" decode
awk -F '\t' -v OFS='\t' '
	function number(v) { return v == "" ? "-" : sprintf("%.3g", v) }
	BEGIN {
		split("w4a8-token 1253 w4a8-tensor 1016 w4a8-msq 1085 w4a8-msq-aifs 1017", p, " "); for (i = 1; i in p; i += 2) ms["prefill", p[i]] = p[i + 1]
		split("w4a8-token 16.4 w4a8-msq 13.06 w4a8-msq-packed 8.2", p, " "); for (i = 1; i in p; i += 2) ms["decode", p[i]] = p[i + 1]
		whole["prefill"] = 1690; whole["decode"] = 17.5
		print "stage", "what", "product", "ms", "times_16_bit", "paper_times", "times_token", "paper_times_token", "input_percent", "gops_or_gb"
	}
	FNR == 1 { stage = FILENAME == "layers.tsv" ? "prefill" : "decode"; next }
	{ n++; of[n] = stage; what[n] = $1; product[n] = $2; prefill = stage == "prefill"; s[n] = prefill ? $5 : $4
		share[n] = prefill && $1 ~ /w4a8/ ? 100 * $4 / $5 : ""; rate[n] = 1e-9 * (prefill ? $6 / $5 : $3 / $4)
		if ($1 ~ /16$/ && (!(stage in base) || s[n] < base[stage])) base[stage] = s[n]
		if ($1 == "w4a8-token") token[stage] = s[n] }
	END { for (i = 1; i <= n; i++) {
		w = ms[of[i], what[i]]; read = what[i] == "read"
		print of[i], what[i], product[i], sprintf("%.4g", 1e3 * s[i]), read ? "-" : sprintf("%.3g", base[of[i]] / s[i]), number(w == "" ? "" : whole[of[i]] / w),
			read ? "-" : sprintf("%.4g", token[of[i]] / s[i]), number(w == "" ? "" : ms[of[i], "w4a8-token"] / w), number(share[i]), sprintf("%.4g", rate[i]) } }
' layers.tsv decode.tsv >"$part/table7.tsv"
table table7

plot table7 <<'G'
set datafile separator "\t"; set datafile missing "-"; set border 3; set tics nomirror; set grid y; set style fill solid 0.6; set boxwidth 0.38; set key top left; set offsets 0.2, 0.2, graph 0.2, 0
label(w) = w eq "f16" ? "f16" : w eq "bf16" ? "bf16" : w eq "w4-packed" ? "4 bits,\npacked" : w eq "w4a8-token" ? "a scale\na token" : w eq "w4a8-tensor" ? "a scale\na tensor" : \
	w eq "w4a8-msq" ? "a scale a\nmodality" : w eq "w4a8-msq-aifs" ? "visual\nfirst" : w eq "w4a8-token-packed" ? "a token,\npacked" : "modality,\npacked"
do for [t in "svg png"] {
	if (t eq "svg") { set terminal svg size 1250,480 font "sans,12" background "white" } else { set terminal pngcairo size 1250,480 font "sans,10" }
	set output part."table7.".t
	set multiplot layout 1,2 title "Linear layers of Qwen2-VL-7B: times as fast as 16 bits" noenhanced
	set yrange [0:*]; set bmargin 4
	do for [stage in "prefill decode"] {
		set title stage eq "prefill" ? "prefill, 4096 visual tokens and 64 of text" : "decoding, one row"
		plot "< grep '^".stage."\t' table7.tsv | grep -v '\tread\t'" using ($0 - 0.19):5:xticlabels(label(strcol(2))) with boxes lt 1 title "here, one block", \
			"" using ($0 + 0.19):6 with boxes lt 3 title "the paper (RTX 6000 Ada)"
	}
	unset multiplot; unset title
}
G
say "the paper, ms, prefill: BF16 1690, by token 1253, by modality 1085, visual first 1017; decoding: 17.5, 16.4, 13.06, packed 8.2"
