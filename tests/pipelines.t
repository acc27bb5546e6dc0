#!/bin/sh
# pipelines.t -- pipelines: each runs to its end on a small model and makes its table; tests/steps.t tests their parts
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# relative names from here, in a folder whose name has special characters of the shell
# shellcheck disable=SC2016
odd=$(printf 'it\047s "an" odd\n$HOME; `echo` & \\ *')
mkdir "$odd"
cd "$odd" || exit 1
cp "$top/tests/ref/llama-gqa.h5" 'my model.h5'
py make
export PTQ_RESULTS='my results' PTQ_GROUP=16
run() { ok "$@"; grep 'without effect' ok.err >>"$tmp/effects"; }	# a pipeline
at() { find 'my results' -name "$1"; }
cell() {
	awk -F '\t' -v row="$2" -v name="$3" \
		'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } $1 == row { print $c; exit }' "$1"
}
rows() { awk -F '\t' 'NR == 1 { n = NF } NF != n { bad = 1 } END { print NR - 1, bad ? "ragged" : "even" }' "$1"; }
for p in fpe2m2-figure3 fpe2m2-figure9 fpe2m2-table1 fpe2m2-table3 fpe2m2-table4 fpe2m2-figure2; do
	each=
	[ $p = fpe2m2-figure2 ] && each='xargs -P 2 -d \n -n 1 sh -c'	# one line per shell, two shells at a time
	run "$p" env PTQ_EACH="$each" "$top/pipelines/$p.sh" 'my model.h5' 'test it.h5' 'calibrate it.h5'
	t=$(at "${p#fpe2m2-}.tsv")
	case $p in
		*table[13]) ok '... has its table' test -s "$t" ;;	# four rows, which need no plot
		*) ok '... has its table, and its plot' test -s "$t" -a -s "${t%.tsv}.svg" ;;
	esac
	is '... all rows have all columns' "$(rows "$t" | cut -d' ' -f2)" even
done
is 'all results are in one folder' "$(find 'my results' -mindepth 2 -maxdepth 2 | wc -l)" 1
ok '... with each input under its name' \
	sh -c 'cmp "my model.h5" "$1" && cmp "test it.h5" "$2" && cmp "calibrate it.h5" "$3"' sh \
	"$(at model.h5)" "$(at test.h5)" "$(at calib.h5)"
is 'E1M3 is int5' "$(cell "$(at table3.tsv)" e1m3 kl)" "$(cell "$(at table1.tsv)" int5 kl)"
is 'E2M2 has 6 bits with a scale for 32 columns, 5.5 with 16-bit scales' \
	"$(cell "$(at table1.tsv)" e2m2 bits | cut -c1-3) $(cell "$(at table1.tsv)" e2m2 bits_16_bit_scales |
	cut -c1-3)" '5.9 5.4'
is 'E2M2 is its own base' "$(for c in against kl_delta kl_delta_se; do cell "$(at table1.tsv)" e2m2 $c; done | xargs)" \
	'e2m2-channel 0 0'
is 'INT5 is compared with E2M2, by windows' \
	"$(cell "$(at table1.tsv)" int5 against) $(cell "$(at table1.tsv)" int5 kl_delta_se)" \
	"e2m2-channel $(eval-compare "$(at int5-channel.record)" "$(at e2m2-channel.record)" |
		awk '$1 == "kl_delta" { print $3 }')"
is 'E2M1 is the best format up to 0.384' "$(cell "$(at figure3.tsv)" 4 best_to)" 0.384118
is '36 runs' "$(rows "$(at figure2.tsv)")" '36 even'
run dpq-table4 "$top/pipelines/dpq-table4.sh" 'my model.h5' 'test it.h5' 'calibrate it.h5'
t=$(at table4.tsv | grep /dpq/)
ok '... has its table, and its plot' test -s "$t" -a -s "${t%.tsv}.svg"
is '... one row per scheme and order' "$(rows "$t")" '6 even'
is '... the base has no difference from itself' \
	"$(awk -F '\t' '$2 == "gar" { print $6, $7, $10, $11 }' "$t" | sort -u)" '0 0 0 0'
ok '... other rows have differences and errors' \
	awk -F '\t' 'NR > 1 && $2 == "none" && !($4 > 0 && $5 > 0 && $7 > 0 && $9 > 0 && $11 > 0) { exit 1 }' "$t"
run dpq-figure4 "$top/pipelines/dpq-figure4.sh"
t=$(at figure4.tsv)
ok '... has its table, and its plot' test -s "$t" -a -s "${t%.tsv}.svg"
is '... equal to docs/results/dpq-figure4.tsv' "$(cat "$t")" "$(cat "$top/docs/results/dpq-figure4.tsv")"
# figure 7 measures for a minute: here programs print known times instead
mkdir programs
cat >programs/products <<'SH'
#!/bin/sh
printf 'format\tcolumns\tseconds\tbytes\tflops\n'
for m in 1 2 16; do
	printf 'read\t%s\t0.002\t80000000\t0\nf16\t%s\t0.004\t80000000\t%s00000000\n' $m $m $m
	for f in e2m2 e2m2-int16 e2m2-half int5 nf5 e2m1 int4 bf16 f32 sgemm; do
		printf '%s\t%s\t0.002\t26000000\t%s00000000\n' $f $m $m
	done
done
SH
printf '#!/bin/sh\nprintf "peak-f32\\tours\\t400\\n"\n' >programs/kernels
chmod +x programs/products programs/kernels
run fpe2m2-figure7 env PTQ_PRODUCTS=programs/products "$top/pipelines/fpe2m2-figure7.sh"
t=$(at figure7.tsv)
ok '... has its table, and its plot' test -s "$t" -a -s "${t%.tsv}.svg"
is '... 33 rows' "$(rows "$t")" '33 even'
is '... speed relative to fp16, operations per second and per byte' \
	"$(cell "$t" e2m2 times_fp16) $(cell "$t" e2m2 gflops) $(cell "$t" e2m2 flops_a_byte)" '2 50 3.846'
run '... measured with other settings' env PTQ_RUNS=2 PTQ_PRODUCTS=programs/products "$top/pipelines/fpe2m2-figure7.sh"
is '... which does not replace the first result' "$(at figure7.tsv | wc -l)" 2
cat >programs/branches <<'SH'
#!/bin/sh
printf 'out\tin\trank\trows\tformat\twhat\tseconds\tmacs\n'
line() {
	printf '%s\t%s\t%s\t%s\t%s\tf16\t0.004\t1000\n' "$@"
	printf '%s\t%s\t%s\t%s\t%s\tpacked\t0.001\t1000\n' "$@"
	printf '%s\t%s\t%s\t%s\t%s\tunfused\t0.004\t1062.5\n' "$@"
	printf '%s\t%s\t%s\t%s\t%s\tfused\t0.0012\t1062.5\n%s\t%s\t%s\t%s\t%s\tread\t0.0002\t0\n' "$@" "$@"; }
for f in uint4 uint3; do case "$*" in
	*layer) for r in 64 128; do line 4096 4096 $r 1 $f; done; line 4096 4096 128 16 $f ;;
	*model) line 4096 4096 128 1 $f; line 11008 4096 128 1 $f; line 4096 11008 128 1 $f ;;
esac; done
SH
chmod +x programs/branches
for p in fbquant-figure4 fbquant-figure7; do
	run $p env PTQ_BRANCHES=programs/branches "$top/pipelines/$p.sh"
	t=$(find "my results/$p" -name "${p#*-}.tsv")
	ok '... has its table, and its plot' test -s "$t" -a -s "${t%.tsv}.svg"
	is '... all rows have all columns' "$(rows "$t")" "$([ $p = fbquant-figure4 ] && echo 6 || echo 7) even"
done
is '... 7 layers of 32 blocks of 1.2 ms each, 3.33 times fp16; the paper'"'"'s rate' \
	"$(awk -F '\t' '$1 == "uint4" && $2 == "fused" { print $3, $4, $5 }' "$t")" '3.72 3.33 61'
is '... operations and time relative to the packed layer' \
	"$(awk -F '\t' '$2 == 128 && $3 == 16 { print $9, $10, $11, $12; exit }' "$(find 'my results/fbquant-figure4' \
	-name figure4.tsv)")" '6.25 300 20 1'
cat >programs/modality <<'SH'
#!/bin/sh
case "$*" in
*layers) echo what product rows input_seconds seconds operations
	for w in 'f16 rows 4160 0 5' 'bf16 rows 4160 0 4' 'w4a8-token rows 4160 0.2 2.5' \
		'w4a8-tensor rows 4160 0.1 2' 'w4a8-msq rows 4160 0.1 2' 'w4a8-msq-aifs rows 4160 0.1 2'; do
		echo "$w 8000000000"
	done ;;
*decode) echo what product bytes seconds
	printf '%s\n' 'read rows 1 0.1' 'f16 rows 2 0.1' 'bf16 rows 2 0.2' 'w4-packed rows 1 0.04' \
		'w4a8-token rows 1 0.1' 'w4a8-msq rows 1 0.08' 'w4a8-token-packed rows 1 0.05' \
		'w4a8-msq-packed rows 1 0.025' ;;
*block) echo side visual rows what prepare_seconds seconds
	for s in '280 100 115' '560 400 415' '1120 1600 1615' '1680 3600 3615'; do
		for w in 'f16 0.1 4' 'w4 0.1 5' 'w4a8-token 0.1 2.5' 'w4a8-msq-aifs 0.1 2'; do echo "$s $w"; done
	done ;;
*memory) echo what stored prepared peak
	printf '%s\n' 'f16 466092032 932184064 1600000000' 'w4 125626368 932184064 1300000000' \
		'w4a8-token 116721664 466290688 900000000' 'w4a8-msq-aifs 116721664 466290688 900000000' ;;
esac | tr ' ' '\t'
SH
chmod +x programs/modality
for p in mquant-table3 mquant-table7; do
	run $p env PTQ_MODALITY=programs/modality "$top/pipelines/$p.sh"
	t=$(find "my results/$p" -name "${p#*-}.tsv")
	ok '... has its table, and its plot' test -s "$t" -a -s "${t%.tsv}.svg"
	is '... all rows have all columns' "$(rows "$t")" "$([ $p = mquant-table3 ] && echo 16 || echo 14) even"
done
is '... speed relative to the faster 16-bit format and to one scale per token; the share of inputs' \
	"$(awk -F '\t' '$1 == "prefill" && /aifs/ { print $5, $6, $7, $8, $9 }' "$t")" '2 1.66 1.25 1.23 5'
is '... and with one row; reading has no speed' \
	"$(awk -F '\t' '$1 == "decode" && $2 ~ /read|msq-packed/ { print $5, $6 }' "$t" | paste -sd' ')" '- - 4 2.13'
t=$(find 'my results/mquant-table3' -name table3.tsv)
is '... speedup in % over 16 bits and over one scale per token' \
	"$(awk -F '\t' '$1 == 1120 && $3 ~ /w4$|aifs/ { print $5, $6, $7 }' "$t" | paste -sd' ')" \
	'-20.0 -15.10 -50.0 100.0 24.48 25.0'
is '... memory: a third of 14.2 GiB is left' \
	"$(cell "$(at bytes.tsv)" f16 model_gib) $(cell "$(at bytes.tsv)" w4a8-msq-aifs model_gib) $(cell "$(at \
	bytes.tsv)" w4a8-msq-aifs paper_percent)" '14.18 5.074 150.8'
no 'a measuring program that does not exist' 1 '^mquant-table7: .*nosuch: is not there: make bench builds it' \
	env PTQ_MODALITY=nosuch "$top/pipelines/mquant-table7.sh"
touch stamp; sleep 0.1
run 'a second run' "$top/pipelines/fpe2m2-table1.sh" 'my model.h5' 'test it.h5' 'calibrate it.h5'
is '... quantizes nothing' "$(find 'my results' -name '*channel.*' -newer stamp)" ''

run dpq-table3 "$top/pipelines/dpq-table3.sh" 'my model.h5' 'test it.h5' 'calibrate it.h5'
t=$(at table3.tsv | grep dpq)
ok '... has its table, and its plot' test -s "$t" -a -s "${t%.tsv}.svg"
is '... 16 bits and five more rows, the base without a difference' \
	"$(rows "$t") $(awk -F '\t' '$1 == "W4A8" && $2 == "gar" { print $7, $8, $11, $12 }' "$t")" '6 even 0 0 0 0'
run dpq-table2 "$top/pipelines/dpq-table2.sh" 'my model.h5' 'test it.h5' 'calibrate it.h5'
is '... one run for each row of the three tables' "$(find 'my results/dpq' -name '*.record' | wc -l) $(rows "$(
	find 'my results/dpq' -name table2.tsv)")" '20 19 even'
ok '... norms after the residual branches' env PTQ_RESULTS=after PTQ_TOKENS=600 \
	"$top/pipelines/dpq-table2.sh" "$top/tests/ref/gemma3.h5"
is '... and norms of keys: no row of QServe, none of 4-bit keys' "$(wc -l <"$(echo after/dpq/*/table2.tsv)") $(
	grep -Ec 'QServe|KV4' after/dpq/*/table2.tsv)" '16 0'
hadamard-rotate -q --seed 1 'my model.h5' -o rotated.h5
run '... a rotated model' env PTQ_RESULTS=rotated PTQ_TOKENS=600 "$top/pipelines/dpq-table2.sh" rotated.h5
is '... is not rotated again for QServe' "$(wc -l <"$(echo rotated/dpq/*/table2.tsv)") $(
	grep -c QServe rotated/dpq/*/table2.tsv) $(grep -c hadamard rotated/dpq/*/.steps/dpq-table2.commands)" '20 2 0'
model-export -q --to hf 'my model.h5' -o folder 2>/dev/null
is '... a folder that is not imported yet may have one' \
	"$(PTQ_RESULTS=folders PTQ_TOKENS=600 "$top/pipelines/dpq-table2.sh" --dry-run folder 2>/dev/null |
	grep -c -- -QServe)" 2
run mquant-table9 "$top/pipelines/mquant-table9.sh"
t=$(at table9.tsv)
is '... five models, next to the numbers of the paper' "$(rows "$t") $(cell "$t" qwen2-vl-7b paper_visual_operations)" \
	'5 even 1.31'
ok '... and the plot of tokens' test -s "${t%table9.tsv}tokens.svg"
run input-error "$top/pipelines/input-error.sh" 'my model.h5' 'test it.h5' 'calibrate it.h5'
t=$(at input-error.tsv)
is '... three methods by two calibrations, in five formats' "$(rows "$t")" '30 even'
run quarot "$top/pipelines/quarot.sh" 'my model.h5' 'test it.h5' 'calibrate it.h5'
t=$(at quarot.tsv)
ok '... has its table, and its plot' test -s "$t" -a -s "${t%.tsv}.svg"
is '... five methods in each scheme' "$(rows "$t")" '20 even'
ok '... rounded keys change the result' awk \
	-F '\t' \
	'{ kl[$1 $2] = $4 } END { exit !(kl["W4A4KV4QuaRot"] > 0 && kl["W4A4KV4QuaRot"] != kl["W4A4QuaRot"]) }' "$t"
run outliers "$top/pipelines/outliers.sh" 'my model.h5' '' 'calibrate it.h5'
t=$(at outliers.tsv)
ok '... has its table, and its plot' test -s "$t" -a -s "${t%.tsv}.svg"
is '... four methods for seven kinds of layers, which are all layers' \
	"$(rows "$t") $(awk -F '\t' 'NR > 1 { n += $3 } END { print n }' "$t")" \
	"28 even $((4 * 7 * $(h5ls 'my model.h5/model/layers' | wc -l)))"
ok '... all values are at least 1' awk -F '\t' 'NR > 1 { for (i = 4; i <= 7; i++) if (!($i >= 1)) exit 1 }' "$t"
c=$(at channels.tsv)
ok '... the channels of one weight, in three ways, and their plot' \
	sh -c 'test -s "${1%.tsv}.svg" && awk -F "\t" "NR > 1 { l[\$2]; n[\$1]++ } END { for (i in l) k++
		m = n[\"model\"]; exit !(k == 1 && m > 1 && m == n[\"rotated\"] && m == n[\"split\"]) }" "$1"' \
	x "$c"
ok '... and the difference of each --check' \
	awk -F '\t' 'NR > 1 && !($2 > 0 && $2 < 1e-3) { exit 1 } END { exit NR != 4 }' "$(at check.tsv)"
run mquant-table8 env PTQ_DRAWS=2 "$top/pipelines/mquant-table8.sh" 'my model.h5' 'test it.h5' 'calibrate it.h5'
t=$(at table8.tsv)
is '... QuaRot, and QuaRot with suppression' "$(rows "$t")" '2 even'
is '... in two rotations' "$(for q in quarot.h5 quarot.draw1.h5; do sha256sum <"${t%/*}/$q"; done | sort -u | wc -l)" 2
ok '... whose difference has a verdict' sh -c 'case $1 in yes|no) ;; *) exit 1 ;; esac' sh \
	"$(cell "$t" RMS kl_delta_separated)"
run mquant-weights "$top/pipelines/mquant-weights.sh" 'my model.h5' 'test it.h5' 'calibrate it.h5'
t=$(at weights.tsv)
is '... three methods at two widths, compared with GPTQ' \
	"$(rows "$t") $(awk -F '\t' '$2 == "GPTQ" { print $5, $6 }' "$t" | sort -u)" '6 even 0 0'
ok '... 4 bits are worse than 8, and no method equals another' awk -F '\t' \
	'NR > 1 { k[$1 $2] = $3; n[$3]++ } END { for (m in n) d++; exit !(d == 6 && k["W8A16GPTQ"] < k["W4A16GPTQ"] &&
		k["W8A16AWQ"] < k["W4A16AWQ"] && k["W8A16MQuant"] < k["W4A16MQuant"]) }' "$t"
is '... norms after the residual branches: no MQuant' "$(PTQ_RESULTS=after PTQ_TOKENS=600 \
	"$top/pipelines/mquant-weights.sh" "$top/tests/ref/gemma3.h5" >/dev/null 2>&1
	cut -f 2 after/mquant-weights/*/weights.tsv | sort -u | paste -sd ' ')" 'AWQ GPTQ way'
run frontier env PEERS=/nonexistent PTQ_CTX=64 PTQ_TOKENS=640 PTQ_RESULTS=all "$top/pipelines/frontier.sh" 'my model.h5'
t=$(find all -name frontier.tsv)
ok '... has its table, and its plot' test -s "$t" -a -s "${t%.tsv}.svg"
is '... one row for each run' "$(rows "$t")" '123 even'
is '... no plan has more bits than GPTQ' "$(awk -F '\t' '
	NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	$1 == "gptq" { bits[$2, $3] = $at["bits_a_weight"] }
	$1 ~ /plan$/ { rows++; over += $at["bits_a_weight"] > bits[$2, $3] + 2e-5 }
	END { print rows, over + 0 }' "$t")" '18 0'
run fbquant-figure2 "$top/pipelines/fbquant-figure2.sh" 'my model.h5' 'test it.h5' 'calibrate it.h5'
t=$(at figure2.tsv | grep fbquant)
ok '... has its table, and its plot' test -s "$t" -a -s "${t%.tsv}.svg"
is '... RTN and three categories, at two widths' "$(rows "$t") $(awk -F '\t' '$8 > 0' "$t" | wc -l)" '10 even 11'
is '... compared with RTN' "$(awk -F '\t' '$2 == "RTN" { print $12, $13 }' "$t" | sort -u)" '0 0'
run fbquant-table1 "$top/pipelines/fbquant-table1.sh" 'my model.h5' 'test it.h5' 'calibrate it.h5'
t=$(at table1.tsv | grep fbquant)
ok '... has its table, and its plot' test -s "$t" -a -s "${t%.tsv}.svg"
is '... fifteen methods at two widths, compared with FBQuant' \
	"$(rows "$t") $(awk -F '\t' '$2 == "FBQuant" { print $12, $13 }' "$t" | sort -u)" '30 even 0 0'
ok '... bits include branches' awk -F '\t' \
	'{ b[$1 $2] = $3 }
	END { exit !(b["3FBQuant"] > b["3RTN"] + 0.4 &&
		b["3FBQuant"] == b["3EoRA"] && b["4RTN"] > b["3RTN"] + 1) }' "$t"
run fbquant-ranks env PTQ_RANKS='1 4' "$top/pipelines/fbquant-ranks.sh" 'my model.h5' 'test it.h5' 'calibrate it.h5'
t=$(at ranks.tsv)
ok '... has its table, and its plot' test -s "$t" -a -s "${t%.tsv}.svg"
is '... three methods at two ranks, int8, four of GPTQ' "$(rows "$t")" '11 even'
ok '... a larger rank has less error' awk \
	-F '\t' \
	'{ e[$1 $2] = $4 }
	END { exit !(e["fbquant4"] < e["fbquant1"] && e["eora4"] < e["eora1"] && e["lowrank4"] > 0) }' "$t"
no 'fp4 with a width that blocks do not divide' 1 'mlp/down_proj: .*44.*32|44.*16' bash \
	-c \
	'set -o pipefail
	"$1" "my model.h5" "test it.h5" "calibrate it.h5" 2>&1 >/dev/null | { grep ^hadamard-rotate >&2; }' \
	x "$top/pipelines/fp4.sh"
py more_inputs
run fp4 "$top/pipelines/fp4.sh" 'wide model.h5' 'test it.h5' 'calibrate it.h5'
t=$(at fp4.tsv)
ok '... has its table, and its plot' test -s "$t" -a -s "${t%.tsv}.svg"
is '... four formats with four methods, compared with those without a Hadamard matrix' \
	"$(rows "$t") $(awk -F '\t' '$2 == "GPTQ" || $2 == "RTN" { print $7, $8 }' "$t" | sort -u)" '16 even 0 0'
is '... and their bits' "$(cell "$t" MXFP4 bits) $(cell "$t" E2M1 bits) $(cell "$t" int4 bits)" '4.25 4.5 4.5'
run smoothquant "$top/pipelines/smoothquant.sh" 'my model.h5' 'test it.h5' 'calibrate it.h5'
t=$(at smoothquant.tsv)
ok '... has its table, and its plot' test -s "$t" -a -s "${t%.tsv}.svg"
is '... four ways to round activations at five strengths' \
	"$(rows "$t") $(awk -F '\t' '$2 == "0.5" { print $5, $6 }' "$t" | sort -u)" '20 even 0 0'
ok '... clipped scales change the result' \
	awk -F '\t' '{ kl[$1 $2] = $3 } END { exit kl["A8-static0.5"] == kl["A8-99.990.5"] }' "$t"
run scale-search env PTQ_GROUP=16 "$top/pipelines/scale-search.sh" 'my model.h5' 'test it.h5' 'calibrate it.h5'
t=$(at scale-search.tsv)
is '... twelve searches, with and without compensation' "$(rows "$t")" '24 even'
ok '... and its plot' test -s "${t%.tsv}.svg"
run 'peers without other packages' env PEERS=/usr/bin/false "$top/pipelines/peers.sh" 'my model.h5' 'test it.h5' \
	'calibrate it.h5'
t=$(at peers.tsv)
is '... our rows alone, each its own base except the defaults' \
	"$(rows "$t") $(awk -F '\t' '$12 == 0 { n++ } END { print n }' "$t")" '10 even 9'
run sequential env PTQ_RUNS=1 "$top/pipelines/sequential.sh" 'my model.h5' 'test it.h5' 'calibrate it.h5'
t=$(at sequential.tsv)
ok '... has its table, and its plot' test -s "$t" -a -s "${t%.tsv}.svg"
is '... two kinds of calibration for six methods' \
	"$(rows "$t") $(cut -f3 "$t" | sort | uniq -c | xargs)" '12 even 1 calibration 6 one-shot 6 sequential'
is '... and the times of both' "$(rows "$(at seconds.tsv)")" '2 even'

# --- vision-language models: two small ones whose tokens are bytes; questions with one image, two images and none ---
export OMP_NUM_THREADS=1 PTQ_EACH='xargs -P 2 -d \n -n 1 sh -c'
mkdir -p "$tmp/eyes/data/vlm/shots"
ln -s "$top/bin" "$tmp/eyes/bin"
cp -r "$top/pipelines" "$tmp/eyes"
ln -s "$tmp/eyes" eyes
py vision_model "$top/tests/ref/vision"
v=eyes/data/vlm
prompts() { LC_ALL=C awk -v what="$1" -f "$top/pipelines/prompts.awk" ${2:+"draw=$2"} $v/questions.jsonl; }
for draw in '' 0 1 12; do
	prompts texts $draw | tr '\036' '\000' >texts
	prompts images $draw >names
	ok "questions as texts, with the right answers, and their images${draw:+: draw $draw}" py right_answers $draw
done
ok '... draws differ' py draws_differ
printf '%s\n' '{"context": "a", "choices": ["b"], "gold": 0}' '{"context": "b", "choices": ["b"], "gold": 0}' >one
no '... a draw without an image' 1 'draw 3 has no image, expected more' \
	awk -v what=images -f "$top/pipelines/prompts.awk" draw=3 one
printf '%s\n' '{"context": "\ud83d\ude00\\\u0041\t\/", "gold": 1, "more": [], "choices": ["", "\"b\""]}' >one
is '... escapes of JSON' \
	"$(LC_ALL=C awk -v what=texts -f "$top/pipelines/prompts.awk" one | od -An -tx1 | tr -d ' \n')" \
	f09f98805c41092f2262221e
for l in '{"context": "a", "choices": ["b"], "gold": 1}' '{"context": "a", "gold": 0}' '{"context": "a"' '"context"' \
	'{"context": {}}' '{"context": "a", "choices": ["b"], "gold": 0, "images": null}' \
	'{"context": "\u001e", "choices": ["b"], "gold": 0}'; do
	printf '%s\n' "$l" >one
	no "... a bad line: $l" 1 '^prompts.awk: one:1: ' awk -v what=texts -f "$top/pipelines/prompts.awk" one
done
: >one
no '... an empty file' 1 'holds no question' awk -v what=texts -f "$top/pipelines/prompts.awk" one
ok 'mquant-table4 on both models, in place of the embedded ones, over two draws' \
	env PTQ_DRAWS=2 "$tmp/eyes/pipelines/mquant-table4.sh"
t=$(at table4.tsv | grep /mquant/)
is '... the order of tokens changes no answer: compared in each draw' "$(cd "${t%/*}" &&
	cat .steps/pre-aifs*.key | grep -o -- '--paired [^ ]*' | sort | xargs)" \
	'--paired pre-W4A8-W4A8-MQuant.draw1.record --paired pre-W4A8-W4A8-MQuant.record'
ok '... has its table, and its plot' test -s "$t" -a -s "${t%.tsv}.svg"
is '... both models, all rows have all columns' \
	"$(rows "$t" | cut -d' ' -f2) $(cut -f1 "$t" | sort | uniq -c | xargs)" 'even 1 model 6 post 6 pre'
# one given model
for p in mquant-figure1b mquant-table1 mquant-table2 mquant-table5 mquant-table6 dpq-table1 fpe2m2-table2; do
	touch stamp; sleep 0.01
	run "$p" "$top/pipelines/$p.sh" eyes/data/vlm-pre $v/questions.jsonl $v/calibration.jsonl
	case $p in mquant*) f=mquant ;; *) f=$p ;; esac
	t=$(find "my results/$f" -name "${p##*-}.tsv" -newer stamp)
	ok '... has its table, and its plot' test -s "$t" -a -s "${t%.tsv}.svg"
	is '... its number of rows' "$(rows "$t")" "$(case $p in \
		*1b) echo 16 ;; mquant-table1) echo 7 ;; mquant-table2) echo 13 ;; *e5|dpq*) echo 4 ;; *e6) echo 8 ;; \
		*) echo 5 ;; esac) even"
	[ $p = mquant-figure1b ] || ok '... rows that differ have errors' awk \
		-F '\t' \
		'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		($3 != "16") != ($at["kl"] > 0 && $at["kl_se"] > 0) { exit 1 }' "$t"
done
is 'GPTQ at 4 bits has no difference from itself' \
	"$(awk -F '\t' '$3 == "W4A16" && $4 == "GPTQ" { print $6, $7, $13, $14, $17, $18 }' "$(at table6.tsv)")" \
	'0 0 0 0 0 0'
is '... and the table of steps' "$(rows "$(at steps.tsv)")" '4 even'
ok 'easy and hard questions are a third each' awk \
	-F '\t' \
	'NR > 1 && !($5 >= 0 && $8 >= 0 && 3 * $11 - $5 - $8 > -1e-4 && 3 * $11 - $5 - $8 < 1.0001) { exit 1 }' \
	"$(at table2.tsv | grep /mquant/)"
run 'dpq-table1 over two draws' env PTQ_DRAWS=2 PTQ_QUESTIONS=nosuch "$top/pipelines/dpq-table1.sh" \
	eyes/data/vlm-pre $v/questions.jsonl $v/calibration.jsonl
t=$(find "my results/dpq-table1" -name table1.tsv -newer stamp -exec grep -l kl_delta_df {} +)
column() { awk -F '\t' -v name="$3" -v way="$2" '
	NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } $4 == way { print $c }' "$1"; }
over=${t%/*}
is '... calibrated on the questions of each draw, and once for what does not depend on it' \
	"$(cd "$over" && LC_ALL=C && echo model-16* model-DPQ* model-calib*)" "model-16.record model-16.tsv \
model-DPQ.draw1.record model-DPQ.draw1.tsv model-DPQ.record model-DPQ.tsv model-calib.draw1.h5 model-calib.h5"
ok '... by task as well' awk -v got="$(column "$t" DPQ easy)" -v have="$(cut -f1 "$over/model-DPQ.tsv" | xargs)" \
	-v n="$(awk '$1 ~ /^(glyph|colour|count|side|where|pair)$/ { n += $2; s += $2 * $3 } END { print s / n }' \
		"$over/model-DPQ.tsv" "$over/model-DPQ.draw1.tsv")" 'BEGIN { exit !(have && (got - n) ^ 2 < 1e-10) }'
ok '... the means over draws' awk -v got="$(column "$t" DPQ kl)" -v a="$(cell "$over/model-DPQ.tsv" all kl)" \
	-v b="$(cell "$over/model-DPQ.draw1.tsv" all kl)" \
	'BEGIN { e = got - (a + b) / 2; exit !(a > 0 && a != b && e * e < 1e-10 * a * a) }'
is '... degrees of freedom, and a verdict' "$(column "$t" GPTQ kl_delta_df | grep -c '^[0-9]') \
$(column "$t" GPTQ kl_delta_separated | grep -c '^yes$\|^no$') $(column "$t" DPQ kl_delta_separated)" '1 1 -'
ok '... the bars say so' grep -q 'one SE over 2 draws and questions' "$over/table1.svg"
is 'two folders of results: of both models and of one model' \
	"$(find 'my results/mquant' -mindepth 1 -maxdepth 1 | wc -l)" 2
for p in mquant-table2 dpq-table1; do
	p=$top/pipelines/$p.sh
	no 'a model that does not exist' 1 'nosuch: no such file' "$p" nosuch
	no 'questions that do not exist' 1 'nosuch: no such file' "$p" eyes/data/vlm-pre nosuch
	no 'a text as a model' 1 'is not HDF5' "$p" $v/questions.jsonl
	no 'a file without questions' 1 'holds no question' "$p" eyes/data/vlm-pre one
	sed 's/shots.a picture, ..ppm/..\/x/' $v/questions.jsonl >$v/out.jsonl
	: >eyes/data/x
	no 'an image in another folder' 1 "'[.][.]/x' is not in the folder of the questions" "$p" eyes/data/vlm-pre \
		$v/out.jsonl
done

is 'no pipeline has options without effect' "$(cat "$tmp/effects")" ''
done_testing
