# mquant-table7.gp -- the plot of mquant-table7.sh
# part: the folder that it writes to, with a / at the end
set datafile separator "\t"; set datafile missing "-"; set border 3; set tics nomirror; set grid y
set style fill solid 0.6; set boxwidth 0.38; set key top left; set offsets 0.2, 0.2, graph 0.2, 0
label(w) = w eq "f16" ? "f16" : w eq "bf16" ? "bf16" : w eq "w4-packed" ? "4 bits,\npacked" : \
	w eq "w4a8-token" ? "a scale\na token" : w eq "w4a8-tensor" ? "a scale\na tensor" : \
	w eq "w4a8-msq" ? "a scale a\nmodality" : w eq "w4a8-msq-aifs" ? "visual\nfirst" : \
	w eq "w4a8-token-packed" ? "a token,\npacked" : "modality,\npacked"
do for [t in "svg png"] {
	if (t eq "svg") {
		set terminal svg size 1250,480 font "sans,12" background "white"
	} else {
		set terminal pngcairo size 1250,480 font "sans,10"
	}
	set output part."table7.".t
	set multiplot layout 1,2 title "Linear layers of Qwen2-VL-7B: times as fast as 16 bits" noenhanced
	set yrange [0:*]; set bmargin 4
	do for [stage in "prefill decode"] {
		set title stage eq "prefill" ? "prefill, 4096 visual tokens and 64 of text" : \
			"decoding, one row"
		plot "< grep '^".stage."\t' table7.tsv | grep -v '\tread\t'" \
			using ($0 - 0.19):5:xticlabels(label(strcol(2))) \
			with boxes lt 1 title "here, one block", \
			"" using ($0 + 0.19):6 with boxes lt 3 title "the paper (RTX 6000 Ada)"
	}
	unset multiplot; unset title
}
