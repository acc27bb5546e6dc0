#!/bin/sh
# Pipelines run to their end on a small model, give their tables, and make nothing twice.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
model=$top/tests/ref/llama-gqa.h5
py - <<'PY'
import h5py, numpy as np
with h5py.File("tokens.h5", "w") as f:
    f.attrs["ptq_kind"], f.attrs["ptq_version"] = "tokens", "1"
    d = f.create_dataset("tokens", data=np.random.default_rng(1).integers(3, 60, 1200).astype("i4"))
    d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, 1, 61
PY
export PTQ_RESULTS="$tmp/results" PTQ_GROUP=16
cell() { awk -F '\t' -v row="$2" -v name="$3" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } $1 == row { print $c; exit }' "$1"; }
rows() { awk -F '\t' 'NR == 1 { n = NF } NF != n { bad = 1 } END { print NR - 1, bad ? "ragged" : "even" }' "$1"; }
for p in fpe2m2-figure3 fpe2m2-figure9 fpe2m2-table1 fpe2m2-table3 fpe2m2-table4 fpe2m2-figure2; do
	ok "$p" "$top/pipelines/$p.sh" "$model" tokens.h5 tokens.h5
	t=$(find results -name "${p#fpe2m2-}.tsv")
	ok '... has its table, and its plot twice' test -s "$t" -a -s "${t%.tsv}.svg" -a -s "${t%.tsv}.png"
	is '... whose rows all have their columns' "$(rows "$t" | cut -d' ' -f2)" even
done
at() { find results -name "$1"; }
is 'E1M3 is int5' "$(cell "$(at table3.tsv)" e1m3 kl)" "$(cell "$(at table1.tsv)" int5 kl)"
is 'E2M2 has 6 bits with a scale for 32 columns, 5.5 with one of 16 bits' "$(cell "$(at table1.tsv)" e2m2 bits | cut -c1-3) $(cell "$(at table1.tsv)" e2m2 bits_16_bit_scales | cut -c1-3)" '5.9 5.4'
is 'the unquantized model does not diverge from itself' "$(cell "$(at table1.tsv)" unquantized kl)" 0
is 'E2M1 is best to 0.384' "$(cell "$(at figure3.tsv)" 4 best_to)" 0.384118
is '36 runs and the model' "$(rows "$(at figure2.tsv)")" '37 even'
# figure 7 measures for a minute: here of times that are known, by programs that only print
mkdir programs
cat >programs/products <<'SH'
#!/bin/sh
printf 'format\tcolumns\tseconds\tbytes\tflops\n'
for m in 1 2 16; do
	printf 'read\t%s\t0.002\t80000000\t0\nf16\t%s\t0.004\t80000000\t%s00000000\n' $m $m $m
	for f in e2m2 e2m2-int16 e2m2-half int5 nf5 e2m1 int4 bf16 f32 sgemm; do printf '%s\t%s\t0.002\t26000000\t%s00000000\n' $f $m $m; done
done
SH
printf '#!/bin/sh\nprintf "peak-f32\\tours\\t400\\n"\n' >programs/kernels
chmod +x programs/products programs/kernels
ok fpe2m2-figure7 env PTQ_PRODUCTS="$tmp/programs/products" "$top/pipelines/fpe2m2-figure7.sh"
t=$(at figure7.tsv)
ok '... has its table, and its plot twice' test -s "$t" -a -s "${t%.tsv}.svg" -a -s "${t%.tsv}.png"
is '... 33 rows' "$(rows "$t")" '33 even'
is '... how many times fp16, operations a second and a byte' "$(cell "$t" e2m2 times_fp16) $(cell "$t" e2m2 gflops) $(cell "$t" e2m2 flops_a_byte)" '2 50 3.846'
touch stamp; sleep 0.1
ok 'a second time' "$top/pipelines/fpe2m2-table1.sh" "$model" tokens.h5 tokens.h5
is '... nothing is quantized' "$(find results -name '*channel.*' -newer stamp)" ''
touch stamp; sleep 0.1
# shellcheck disable=SC2016
ok 'a run that fails ends the pipeline' sh -c '! PTQ_GROUP=x "$1" "$2" tokens.h5 tokens.h5' sh "$top/pipelines/fpe2m2-table4.sh" "$model"
is '... and no table is made of the rest' "$(find results -name 'table4.tsv' -newer stamp)" ''
done_testing
