#!/bin/sh
# draws.t -- pipelines over draws: their commands, their results, and one draw as before
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
unset PTQ_CPU PTQ_DRAWS PTQ_EACH PTQ_LIMIT PTQ_LOG PTQ_QUESTIONS PTQ_RANKS PTQ_RUNS PTQ_SHARDS
export PTQ_RESULTS=results PTQ_CTX=20 PTQ_TOKENS=600 PTQ_GROUP=16 OMP_NUM_THREADS=1
p=$top/pipelines/dpq-table4.sh
cp "$top/tests/ref/llama-gqa.h5" m.h5

# --- commands of a script, whose steps are declared in any order ---
cat >own.sh <<SH
#!/bin/bash
set -euo pipefail
. "$top/pipelines/lib/common.sh"
draws=\${PTQ_DRAWS:-1}
begin own "\$@"
step "dpq-run -q --compensate none --group 16 model.h5 | tensor-stats >plain.stats"
measure a "dpq-run --order a.order --hessian rotated-hessian.h5 rotated.h5"
measure b "dpq-run --compensate none --hessian hessian.h5 model.h5"
measure c "dpq-run --damp 0.1 --hessian hessian.h5 model.h5"
measure d "dpq-run -q --hessian hessian.h5 model.h5 | fbq-run --method eora --hessian hessian.h5 --reference model.h5"
measure e "dpq-run --compensate none --group 16 model.h5"
measure f "dpq-run --layer-rotation two-sided --seed 7 --compensate none model.h5"
# version 1.0: with a base
measure h b "dpq-run --compensate none --group 8 model.h5" --kv-format uint4
measure i i ./quantize
measure j ./quantize --kv-format uint4
step "gar-order -q rotated-hessian.h5 -o a.order"
step "hadamard-rotate -q --keys --seed 3 model.h5 -o rotated.h5"
step "fbq-run -q --layer-rotation two-sided --seed 5 --method lowrank model.h5 -o g.h5"
step "dpq-run -q --sequential --tokens calib.h5 model.h5 -o s.h5"
calibrate
hessians rotated
printf '#!/bin/sh\\nexec dpq-run --compensate none --group 16 "\$@" model.h5\\n' >quantize
chmod +x quantize
run_steps
SH
commands() { env "$@" bash ./own.sh --dry-run m.h5 | grep -v '^set\|^PATH\|^mkdir\|^ln\|^sample'; }
commands PTQ_DRAWS=2 >two
of() { grep -- " [->o ]*$1\\( \\|\$\\)" two; }
window='--ctx 20 --convention bos' judge='--tokens test.h5 --ctx 20 --convention bos --reference reference.h5'
is 'calibration on drawn windows' "$(of hessian.h5 | grep ^hess; of hessian.draw1.h5 | grep ^hess)" \
	"hessian-accum --tokens calib.h5 --random-windows 0 $window model.h5 -o hessian.h5
hessian-accum --tokens calib.h5 --random-windows 1 $window model.h5 -o hessian.draw1.h5"
is '... also of other tools' "$(of s.draw1.h5)" \
	'dpq-run --damp 0.01001 -q --sequential --tokens calib.h5 --random-windows 1 model.h5 -o s.draw1.h5'
is 'other signs' "$(of rotated.draw1.h5 | grep ^hada)" \
	'hadamard-rotate -q --keys --seed 1003 model.h5 -o rotated.draw1.h5'
is '... also of dpq-run, without calibration' "$(of f.draw1.record | grep -o '^dpq-run.*model.h5 -q')" \
	'dpq-run --layer-rotation two-sided --seed 1007 --compensate none model.h5 -q'
is '... and of fbq-run' "$(of g.draw1.h5 | grep ^fbq)" \
	'fbq-run -q --layer-rotation two-sided --seed 1005 --method lowrank model.h5 -o g.draw1.h5'
is '... first those of the command' "$(of rotated.h5 | grep ^hada)" \
	'hadamard-rotate -q --keys --seed 3 model.h5 -o rotated.h5'
is 'other damping, and files of this draw' "$(of a.draw1.record | grep ^dpq)" "dpq-run --damp 0.01001 --order \
a.draw1.order --hessian rotated-hessian.draw1.h5 rotated.draw1.h5 -q --report a.draw1.report | \
eval-ppl $judge -o a.draw1.record >a.draw1.tsv"
is '... not without compensation' "$(of b.draw1.record | grep '^dpq.*-o b')" "dpq-run --compensate none --hessian \
hessian.draw1.h5 model.h5 -q --report b.draw1.report | eval-ppl $judge -o b.draw1.record >b.draw1.tsv"
is '... not if the command has one' "$(of c.draw1.record | grep -c -- '--damp 0.1 ')$(of c.draw1.record |
	grep -c -- '--damp 0.01')" 10
is 'another start of a branch' "$(of d.draw1.record | grep -o 'fbq-run.*eora\|damp [0-9.]* -q' | xargs)" \
	'damp 0.01001 -q fbq-run --seed 1 --method eora'
is 'what no draw changes is made once' \
	"$(grep -c 'plain.stats\|>e.tsv' two) $(grep -c 'plain.draw\|e.draw1' two)" '2 0'
is 'one draw: no option and no suffix' \
	"$(commands A=1 | grep -c 'random-windows\|draw\|damp 0.01\|--seed 1\|eval-compare')" 0
is '... the commands of PTQ_DRAWS=1' "$(commands PTQ_DRAWS=1)" "$(commands A=1)"
is 'a base as in version 1.0: differences in RUN.tsv' "$(of h.tsv | grep -o 'eval-ppl.*')" "eval-ppl --tokens test.h5 \
$window --kv-format uint4 --reference reference.h5 --paired b.record -o h.record >h.tsv"
is '... the run itself' "$(grep '>i.tsv' two)" "./quantize -q --report i.report | eval-ppl $judge -o i.record >i.tsv"
ok 'the script runs' env PTQ_DRAWS=3 bash ./own.sh m.h5
is '... with these differences' \
	"$(cd results/own/* && eval-compare h.record b.record | awk '$1 == "kl_delta" { printf "%.6g", $2 }')" \
	"$(awk '$1 == "paired_kl_delta" { print $2 }' results/own/*/h.tsv)"
is '... and has nothing to do then' "$(PTQ_DRAWS=3 bash ./own.sh --status m.h5 2>/dev/null | cut -f1 | sort -u)" "done"

# --- a pipeline ---
no 'no draws' 2 "^dpq-table4: PTQ_DRAWS: '0' is not a number above 0" env PTQ_DRAWS=0 "$p" m.h5
ok 'one draw' "$p" m.h5
one=$(echo results/dpq/*)
is 'PTQ_DRAWS=1 is the same folder, and all is done' "$(PTQ_DRAWS=1 "$p" --status m.h5 2>&1 | grep -v ^done)" \
	"dpq-table4: 13 of 13 steps are done: $PWD/$one"
printf 'dpq-run\t99999\t1\t1\n' >log
ok 'three draws' env PTQ_LOG=log PTQ_DRAWS=3 "$p" m.h5
cp ok.out shown && cp ok.err said
ok '... with the memory of this run alone, although the log has lines of another' sh -c '
	grep -q "peak memory, MiB: .*dpq-run [0-9]" said && ! grep -q 99999 said && [ "$(wc -l <log)" -gt 20 ]'
is '... have their own folder' "$(ls results/dpq | wc -l)" 2
for three in results/dpq/*; do [ "$three" = "$one" ] || break; done
t=$three/table4.tsv
column() {
	awk -F '\t' -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i; next } { print $c }' "$t"
}
is '... their table has further columns' "$(head -1 "$t" | tr '\t' '\n' | grep 'kl_delta\|nll_delta' | xargs)" \
	"kl_delta kl_delta_se kl_delta_df kl_delta_se_draws kl_delta_se_windows kl_delta_separated nll_delta \
nll_delta_se nll_delta_df nll_delta_se_draws nll_delta_se_windows nll_delta_separated"
is '... which one draw does not have' "$(head -1 "$one/table4.tsv" | xargs)" \
	"$(head -1 "$t" | tr '\t' '\n' | grep -v '_df\|_draws\|_windows\|_separated' | xargs)"
is '... a verdict on all rows but the base' "$(column kl_delta_separated | sed 's/yes\|no/verdict/' | xargs)" \
	'verdict - verdict verdict - verdict'
ok '... which is shown' grep -q 'ΔKL vs GAR .*separated' shown
is '... with the number of differences' "$(grep differences said)" "dpq-table4: $(
	for c in kl_delta nll_delta; do column ${c}_separated; done | grep -c yes) of 8 differences are separated; \
0.4 would be by chance alone"
for r in W4A16-full.draw1 W4A16-gar; do for damage in '$d' '$s/\t.*//' '$s/\t[^\t]*$//' d; do
	sed -i.whole "$damage" "$three/$r.report"
	no "... a damaged report, $r: $damage" 1 "$r.report: does not end with a whole line \"all\"" \
		env PTQ_DRAWS=3 "$p" m.h5
	mv "$three/$r.report.whole" "$three/$r.report"
done; done
cd "$three" || exit 1
is '... numbers of eval-compare' "$(eval-compare W4A8-none.record W4A8-none.draw1.record W4A8-none.draw2.record \
	W4A8-gar.record W4A8-gar.draw1.record W4A8-gar.draw2.record |
	awk '$1 == "kl_delta" { print $2, $3, $4, $5, $6 }')" \
	"$(awk -F '\t' '$1 == "W4A8" && $2 == "none" { print $6, $7, $8, $9, $10 }' table4.tsv)"
ok '... the geometric mean of output errors' awk -F '\t' '
	FNR == 1 { file++ } file < 4 && $1 == "all" { s += log($2) / 3 }
	file == 4 && $1 == "W4A16" && $2 == "full" { exit !(($3 - exp(s)) ^ 2 < 1e-10 * $3 ^ 2) }' \
	W4A16-full.report W4A16-full.draw1.report W4A16-full.draw2.report table4.tsv
for k in 0 1; do
	hessian-accum -q --tokens calib.h5 --random-windows $k --ctx 20 --convention bos model.h5 -o again.h5
	f=hessian.h5; [ $k = 0 ] || f=hessian.draw$k.h5
	ok "... draw $k has its calibration windows" h5diff again.h5 $f
done
ok '... all draws have the same test windows' h5diff W4A8-gar.record W4A8-gar.draw2.record /target
ok '... the bars say so' grep -q 'one standard error over 3 draws and windows' table4.svg
cd "$tmp" || exit 1
touch stamp
ok 'a second run' env PTQ_DRAWS=3 "$p" m.h5
is '... makes only table and plot' "$(find "$three" -type f -newer stamp ! -path '*/.steps/*' ! -name usage.tsv |
	sed 's/.*\///' | sort | xargs)" 'table4.svg table4.tsv'
ok 'branches, with bits per weight' env PTQ_DRAWS=2 PTQ_RANKS='1 2' "$top/pipelines/fbquant-ranks.sh" m.h5
is '... all rows have all columns' "$(awk -F '\t' '
	NR == 1 { n = NF } NF != n || !($3 > 2 && $3 < 9) && NR > 1 { exit 1 } END { print NR - 1, n }' \
	results/fbquant/*/ranks.tsv)" '11 22'
ok 'a table with a row of the model itself' env PTQ_DRAWS=2 "$top/pipelines/dpq-table3.sh" m.h5
is '... all rows have all columns' "$(awk -F '\t' 'NR == 1 { n = NF } NF != n { exit 1 } END { print NR - 1, n }' \
	results/dpq/*/table3.tsv)" '6 25'
# --- questions ---
printf '{"task": "%s", "context": "%s", "choices": [" a", " the end", " dog"], "gold": 1}\n' \
	x I x We x They y A y The y Once >questions.jsonl
export PTQ_QUESTIONS=questions.jsonl
model-import -q "$top/tests/tiny" -o tiny.h5
for k in 1 2; do
	ok "questions, draws: $k" env PTQ_DRAWS=$k "$p" tiny.h5
	cp ok.out shown && cp ok.err said
	cd results/dpq/*/.. || exit 1
	t=$(grep -l acc ./*/table4.tsv | xargs ls -t | head -1)
	is '... columns' "$(head -1 "$t" | tr '\t' '\n' | grep '^acc' | grep -vc '_df\|_draws\|_windows\|separated')" 8
	is '... in all rows' "$(awk -F '\t' 'NR == 1 { n = NF } NF != n { exit 1 } END { print NR }' "$t")" 7
	ok '... which are shown' grep -q 'accuracy.*Δaccuracy' "$tmp/shown"
	cd "${t%/*}" || exit 1
	set -- W4A8-none.answers W4A8-gar.answers
	[ $k = 1 ] || set -- W4A8-none.answers W4A8-none.draw1.answers W4A8-gar.answers W4A8-gar.draw1.answers
	is '... are those of eval-compare' \
		"$(eval-compare "$@" | awk '$1 ~ /^acc_delta|^acc_norm$/ { print $2, $3 }' | xargs)" \
		"$(awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
			$1 == "W4A8" && $2 == "none" { print $at["acc_norm"], $at["acc_norm_se"], $at["acc_delta"],
				$at["acc_delta_se"] }' table4.tsv)"
	is '... and the model has its own' "$(grep -c 'accuracy of the unquantized model: [0-9.]*$' "$tmp/said")" 1
	cd "$tmp" || exit 1
done
ok 'formats, with draws' env PTQ_DRAWS=2 "$top/pipelines/fpe2m2-table3.sh" tiny.h5
is '... E2M2 is its own base, the others have verdicts' "$(awk -F '\t' '
	NR == 1 { n = NF; for (i = 1; i <= NF; i++) at[$i] = i; next }
	NF == n { print $1 ":" ($at["kl_delta_separated"] ~ /^(yes|no)$/) }' results/fpe2m2/*/table3.tsv | xargs)" \
	'e1m3:1 e2m2:0 e3m1:1 e4m0:1'
is '... 16 evaluations of 12 runs, four of them by GPTQ' \
	"$(PTQ_DRAWS=2 "$top/pipelines/fpe2m2-table4.sh" --dry-run tiny.h5 | grep -c -- '--reference reference.h5')" 16
cd results/fpe2m2/* || exit 1
is '... weights rounded to nearest are evaluated once, with the output errors of all draws' \
	"$(echo e2m2-channel.*record e2m2-channel.*report)" \
	'e2m2-channel.record e2m2-channel.draw1.report e2m2-channel.report'
for damage in '$d' '$s/\t.*//'; do for f in e1m3-channel.stats e1m3-channel.diff; do
	sed -i.whole "$damage" $f
	no "... a damaged table of one run, $f: $damage" 1 "$f: has no (bits|weight_error) of all" \
		env PTQ_RESULTS="$tmp/results" PTQ_QUESTIONS="$tmp/questions.jsonl" PTQ_DRAWS=2 \
		"$top/pipelines/fpe2m2-table3.sh" "$tmp/tiny.h5"
	mv $f.whole $f
done; done
cd "$tmp" || exit 1
ok 'branches' env PTQ_RANKS=1 "$top/pipelines/fbquant-ranks.sh" tiny.h5
is '... have accuracies' "$(head -1 results/fbquant/*/ranks.tsv | tr '\t' '\n' | grep -c '^acc_norm_delta_se$')" 1
sed '/^step\|^measure\|^run_steps/d' own.sh >names.sh
echo 'measure hessian dpq-run' >>names.sh
no 'a run with the name of a file that runs read' 1 'hessian: a run has the name of a file that runs read' \
	bash ./names.sh m.h5
for f in "$top"/pipelines/*.sh; do
	# scripts of vision.sh evaluate questions alone
	grep -q 'draws=\${PTQ_DRAWS' "$f" && ! grep -q lib/vision.sh "$f" || continue
	PEERS=/nonexistent "$f" --dry-run >commands 2>err || cat err
	judged=$(grep -c eval-ppl commands)
	ok "${f##*/}: each of $judged evaluations has its accuracies" \
		test "$judged" -gt 1 -a "$judged" = "$(grep -c eval-choice commands)"
	is '... with the same keys and values' "$(grep -c 'eval-ppl.*--kv-format uint4 .*eval-choice' commands)" \
		"$(grep -c 'eval-choice.*--kv-format uint4' commands)"
done
no 'questions that are not there' 1 'none.jsonl: no such file' env PTQ_QUESTIONS=none.jsonl "$p" tiny.h5
unset PTQ_QUESTIONS

is '--help names the draws of a pipeline that has them' \
	"$("$p" --help | grep -c '^PTQ_DRAWS') $("$top/pipelines/outliers.sh" --help | grep -c '^PTQ_DRAWS')" '1 0'
PTQ_QUESTIONS=questions.jsonl "$top/pipelines/outliers.sh" --status m.h5 >out 2>err
is '... PTQ_QUESTIONS has no effect' "$(head -1 err)" 'outliers: PTQ_QUESTIONS has no effect here'
PTQ_DRAWS=2 "$top/pipelines/outliers.sh" --status m.h5 >out 2>err
is '... others have one draw, and say so' "$(head -1 err)" 'outliers: PTQ_DRAWS has no effect here: one draw'

# --- mistakes in a script ---
cd "$tmp" || exit 1
unset PTQ_QUESTIONS
cat >wrong.sh <<SH
set -euo pipefail
. "$top/pipelines/lib/common.sh"
begin wrong "\$@"
calibrate
measure a "dpq-run --compensate none model.h5"
run_steps
tabulate one 'kl foo' comparison <<'T'
run	@
a	@a a
T
SH
bash ./wrong.sh m.h5 >out 2>err
is 'a column that does not exist' "$? $(tail -1 err | cut -d ';' -f 1)" '1 there is no column "foo"'
sed 's/kl foo/kl/; $ a plot one other.gp' wrong.sh >plots.sh
no 'a plot without its file' 1 'plots/other.gp: no such file; plot one needs it' bash ./plots.sh m.h5
printf 'set output out\nplot 0\n' >here.gp
sed 's/kl foo/kl/; $ a plot one "$here/../../here.gp"' wrong.sh >path.sh
sed -i "s#\$here/../..#$tmp#" path.sh
ok '... by a path' bash ./path.sh m.h5
done_testing
