#!/usr/bin/env bash
# cluster.t -- the runners of pipelines/each, and pipelines/cluster.sh: the same bytes by each runner and any number
# of workers; lines that fail, are killed or done. sbatch is that of tests/lib/slurm
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
unset PTQ_CPU PTQ_CTX PTQ_DRAWS
unset PTQ_EACH PTQ_GROUP PTQ_JOBS PTQ_LIMIT PTQ_LOG PTQ_LOGS PTQ_RANKS PTQ_RESULTS PTQ_RUNS PTQ_SBATCH
unset PTQ_SHARDS PTQ_SSHLOGINFILE PTQ_TOKENS SLURM_ARRAY_TASK_ID SLURM_PROCID SLURM_NTASKS
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
each=$top/pipelines/each
mkdir bin
printf '#!/bin/sh\necho $1 >>./ran\n' >bin/count	# no line names its file, which other lines change
printf '#!/bin/sh\n[ -e go ] || { echo "c: no room" >&2; exit 3; }\necho c\n' >bin/needs-go
printf '#!/bin/sh\ntouch began; until [ -e end ]; do sleep 0.05; done; echo whole\n' >bin/waits
chmod +x bin/*
PATH=$tmp/bin:$top/tests/lib/slurm:$PATH

# until_there FILE: waits for it, at most 10 seconds
until_there() { for ((i = 0; i < 200; i++)); do [ ! -e "$1" ] || return 0; sleep 0.05; done; return 1; }
# until_gone TEXT: no process in this folder has it in its command line; at most 10 seconds
until_gone() {
	for ((i = 0; i < 200; i++)); do
		pgrep -f "$1" | while read -r id; do readlink "/proc/$id/cwd"; done | grep -qFx "$PWD" || return 0
		sleep 0.05
	done
	return 1
}
# said: messages of the runner itself, their logs by their names only
said() { grep -a "^each/" said | sed 's,log: .*/each-logs/[0-9a-f]*[.]log,log: ID,'; }

# --- lines: what runs, what is done, what is printed ---
runner() {
	local r=$1 run=$each/$1 pid second
	mkdir "$r" && cd "$r" || return
	echo 1 >in
	cat >lines <<'L'
count a && cp in a.out && : -o a.out

count b && echo two words >b.out; echo printed
count c && needs-go >c.out && : --shard 2/4
L
	no "$r: a line that fails: its number, shard, message and log" 1 \
		"^each/$r: line 3 \(shard 2/4\) failed: c: no room; log: $PWD/each-logs/[0-9a-f]{16}.log$" \
		bash -c "$run <lines 2>&1 | grep ^each/ >&2; exit \${PIPESTATUS[0]}"
	is '... the others ran' "$(sort ran | xargs) $(cat a.out b.out | xargs)" 'a b c 1 two words'
	is '... a log has the line and what it printed' \
		"$(cat each-logs/"$(cd each-logs && grep -l ^printed ./*.log)")" "$(sed -n 3p lines; echo printed)"
	touch go
	ok '... the next run succeeds' sh -c "$run <lines"
	is '... with this line only' "$(sort ran | xargs)" 'a b c c'
	ok '... another run' sh -c "$run <lines 2>said"
	is '... runs nothing and prints nothing' "$(sort ran | xargs)$(cat said)" 'a b c c'
	rm b.out
	ok 'a file after > was deleted' sh -c "$run <lines"
	is '... its line runs again' "$(sort ran | xargs) $(cat b.out)" 'a b b c c two words'
	sleep 0.02; echo 2 >in
	ok 'an input changed' sh -c "$run <lines"
	is '... its line runs again' "$(sort ran | xargs) $(cat a.out)" 'a a b b c c 2'
	mkdir elsewhere
	cp in go elsewhere
	ok 'the same lines and logs in another folder' sh -c "cd elsewhere && PTQ_LOGS=../each-logs $run <../lines"
	is '... run there' "$(sort elsewhere/ran | xargs)" 'a b c'
	cat >lines <<'L'
echo "${SLURM_ARRAY_TASK_ID-}${SLURM_NTASKS-}" >a.out
cat >b.out
kill -9 $BASHPID
L
	SLURM_ARRAY_TASK_ID=5 PTQ_JOBS=2 "$run" <lines 2>said	# as in a task of another array
	is 'a line that is killed' "$? $(said | cut -d ';' -f 1)" \
		"1 each/$r: line 3 failed: killed by signal 9 (out of memory?)"
	is '... without messages of the runner itself' "$(grep -c 'lines.sh' said)" 0
	is '... the others have no standard input and no number of a task' "$(cat a.out b.out)" ''

	printf 'exit 255\nkill -9 $PPID\necho after >after.out\n' >lines
	PTQ_JOBS=1 "$run" <lines 2>said
	is 'after a line with status 255, and one whose runner is killed, the others run' \
		"$(said | sed 's/.* \(line [0-9]\) failed: \([^:;]*\).*/\1 \2/' | paste -sd ,) $(cat after.out)" \
		'line 1 status 255,line 2 no status after'

	# the runner is killed while its line runs; the line lives on, and the next runner waits for it
	echo 'count x && waits >once.out' >lines
	"$run" <lines >/dev/null 2>&1 &
	pid=$!
	ok 'the runner is killed by kill -9' until_there began
	{ kill -9 $pid && wait $pid; } 2>/dev/null
	"$run" <lines >/dev/null 2>&1 &
	second=$!
	sleep 0.3; touch end
	ok '... the next one succeeds' wait $second
	is '... without a second run of the line' "$(grep -c x ran) $(cat once.out)" '1 whole'

	echo 'touch stops; sleep 60; touch survived' >lines
	"$run" <lines >/dev/null 2>said &
	pid=$!
	until_there stops
	kill $pid
	wait $pid
	is 'SIGTERM ends the runner' "$?" 143
	ok '... and its lines' until_gone 'touch sto[p]s; sleep 60'

	echo 'touch stopped; sleep 1; touch continued' >lines
	"$run" <lines >/dev/null 2>said &
	pid=$!
	until_there stopped
	group=$(pgrep -P $pid | head -n 1)
	kill -STOP "$group"; sleep 0.3; kill -CONT "$group"
	wait $pid
	is 'a run that is stopped and continued' "$? $(ls continued)" '0 continued'

	no 'no line' 2 "^each/$r: no command line on standard input" "$run"
	no 'an operand' 2 "^each/$r: lines: no such option" "$run" lines
	for i in -1 '' 0 1x 99999999 18446744073709551616; do
		no "jobs that are no number: '$i'" 2 "^each/$r: PTQ_JOBS: '$i' is not a number above 0" \
			env PTQ_JOBS="$i" "$run"
	done
	echo "printf 'no\\0 room\\n'; exit 1" >lines
	"$run" <lines 2>said
	is 'a message with a NUL byte' "$(said | sed 's/; log.*//') $(grep -ac 'null byte' said)" \
		"each/$r: line 1 failed: no room 0"
	no 'a folder of logs that is a file' 1 "^each/$r: go: cannot be written" env PTQ_LOGS=go "$run"
	"$run" --help >help
	ok '--help' sh -c "head -n 1 help | grep -q '^$r -- runs the command lines'"
	ok '... shows how it is used' grep -q "^  PTQ_.*EACH=pipelines/each/$r pipelines/" help
	ok '... has no line of shellcheck' sh -c '! grep shellcheck help'
	cd ..
}
runners='local slurm'
if [[ $(parallel --version 2>/dev/null) = 'GNU parallel'* ]]; then runners+=' parallel'
else skip 'each/parallel' 'GNU parallel is not installed'; fi
for r in $runners; do runner "$r"; done

# which files a line names, and which of them changed
mkdir -p again/folder && cd again || exit
for i in 1 2 3 4 5; do echo $i >in$i; done
printf '#!/bin/sh\n[ -e changed ] || echo again >>in4\ntouch changed\n' >../bin/changes
chmod +x ../bin/changes
cat >lines <<'L'
count option && : --tokens=in1 >1.out
count from && cat <in2 >2.out
count start && cat in4 >4.out && changes
count older && cat in5 >5.out
count quote && cat 'in3' >6.out
count glob && cat in[3] >7.out
count variable && f=in3 && cat $f >8.out
count folder && ls folder >9.out
count cluster && : in3 -qo none >10.out
count joined && : -onone >11.out
count abbreviation && : --out none >12.out
count nothing && : in3
L
always='abbreviation cluster folder glob joined nothing quote variable'
for run in ' from older option start' ' start' '' ' from older option'; do
	rm -f ran
	[ "$run" != ' from older option' ] || { sleep 0.02
		echo 7 | tee in1 in2 >old; touch -d 2001-01-01 old; mv old in5; }
	"$each/local" <lines 2>/dev/null
	is "lines that run again:$run" "$(sort ran | xargs)" "$(printf '%s\n' $always $run | sort | xargs)"
done
echo 'echo $OMP_NUM_THREADS' >lines
is 'one line has all processors, whatever PTQ_JOBS is' \
	"$(env -u OMP_NUM_THREADS "$each/local" <lines 2>&1)" "$(env -u OMP_NUM_THREADS nproc)"
echo 'exit 3' >lines
no 'a line that ends without a message' 1 'line 1 failed: status 3; log' sh -c "$each/local <lines 2>&1 | grep ^each >&2
	exit 1"
echo 'waits & kill -15 $!; wait $!' >lines
no '... by another signal' 1 'line 1 failed: .*(Terminated|killed by signal 15)' sh -c "
	$each/local <lines 2>&1 | grep ^each >&2; exit 1"
for i in '' 2 x; do
	no "a job of Slurm with the number '$i' of two" 2 \
		"^each/lines.sh: SLURM_ARRAY_TASK_ID: '$i' is not the number of a line, 0 to 1" \
		env SLURM_ARRAY_TASK_ID="$i" bash "$each/lines.sh" each-logs a b
done
cd ..
if [ -d parallel ]; then
	cat >bin/ssh <<'SH'
#!/bin/sh
# ssh HOST -- COMMAND: here, in an environment as on another machine
host=$1; shift 2
exec env -i SHELL=/bin/bash HOST="$host" PATH=/usr/bin:/bin sh -c "cd / && $*"
SH
	chmod +x bin/ssh
	mkdir 'a folder' && printf "$tmp/bin/ssh one\n$tmp/bin/ssh two\n" >hosts
	for i in 1 2; do
		echo "touch $i; until [ -e $((3 - i)) ]; do sleep 0.05; done; echo \"\$HOST \$PTQ_CPU\" >$i.out"
	done >lines
	ok 'each/parallel: two machines, one line at a time on each' sh -c "cd 'a folder' &&
		PTQ_SSHLOGINFILE=../hosts PTQ_CPU=plain PTQ_JOBS=1 timeout 20 $each/parallel <../lines"
	is '... with variables of this one' "$(sort 'a folder'/*.out | xargs)" 'one plain two plain'
	mkdir 'a{}b'
	no 'a folder with braces' 1 'a.*b: has braces, which GNU parallel replaces' \
		sh -c "cd 'a{}b' && $each/parallel <../lines"
	no '... whose list is not there' 1 '^each/parallel: nosuch: cannot be read' \
		env PTQ_SSHLOGINFILE=nosuch sh -c "$each/parallel <lines"
else skip 'each/parallel: two machines' 'GNU parallel is not installed'; fi
is 'Slurm: SIGTERM cancels the array' "$(ls slurm/canceled)" slurm/canceled
echo true >lines
SBATCH_LOG=$tmp/arguments PTQ_SBATCH='--partition=long --mem=2G' PTQ_JOBS=3 "$each/slurm" <lines
ok '... options of sbatch' grep -q '^--partition=long --mem=2G .*--array=0-0%3 ' arguments
mkdir few
for t in sh bash dirname realpath flock sha256sum mkdir rm tee nproc grep; do ln -s "$(command -v $t)" few; done
no '... sbatch is not installed' 1 '^each/slurm: sbatch: is not installed$' env PATH="$tmp/few" "$each/slurm"
no 'GNU parallel is not installed' 1 '^each/parallel: parallel: is not installed$' env PATH="$tmp/few" "$each/parallel"
printf '#!/bin/sh\n' >few/parallel
chmod +x few/parallel
echo 'true again' >lines
no '... but another parallel' 1 '^each/parallel: parallel: is another program' \
	env PATH="$tmp/few" sh -c "$each/parallel <lines"
printf '#!/bin/sh\necho "sbatch: error: no partition" >&2\nexit 1\n' >few/sbatch
chmod +x few/sbatch
PATH=$tmp/few:$PATH "$each/slurm" <lines 2>said
is 'sbatch that refuses' "$?, $(sed 's/; log.*//' said | paste -sd ,)" \
	'1, sbatch: error: no partition,each/slurm: sbatch failed with status 1; no line started'

# --- cluster.sh: the same bytes ---
export PTQ_SHARDS=3 PTQ_TOKENS=64 PTQ_CTX=8 PTQ_GROUP=8
model=$top/tests/ref/llama-gqa.h5 p=$top/pipelines/cluster.sh
bytes() { (cd "$1"/cluster/* && cksum ./*.h5 ./*.tsv evaluation.record | grep -v usage); }
ok 'cluster.sh' env PTQ_RESULTS=plain "$p" "$model"
bytes plain >expected
hessian-accum -q plain/cluster/*/hessian-[123].h5 -o sum.h5 2>/dev/null
ok '... the Hessians are the sum of their shards' cmp sum.h5 plain/cluster/*/hessian.h5
dpq-run -q --storage uint4 --group 8 --compute e4m3fn --hessian sum.h5 "$model" -o whole.h5 2>/dev/null
ok '... the model is that of one job' h5diff whole.h5 plain/cluster/*/quantized.h5 /model
for run in 'local 1' 'local 2' 'slurm 4' 'parallel 4'; do
	[[ $runners = *${run% *}* ]] || { skip "cluster.sh by $run" 'GNU parallel is not installed'; continue; }
	ok "cluster.sh by each/$run" \
		env PTQ_EACH="$each/${run% *}" PTQ_JOBS="${run#* }" PTQ_RESULTS="$run" "$p" "$model"
	is '... the same bytes' "$(bytes "$run")" "$(cat expected)"
done
rm slurm\ 4/cluster/*/hessian-2.h5
PTQ_EACH=$each/slurm PTQ_RESULTS='slurm 4' "$p" "$model" >/dev/null 2>said
is '... a deleted shard is made again, and nothing else: its bytes are those of before' \
	"$(cat "slurm 4"/cluster/*/each-logs/*.log | grep '^cluster: .* s$' | cut -d ' ' -f 2 | sort | uniq -d) $(
		bytes 'slurm 4')" "hessian-2: $(cat expected)"
PTQ_EACH=$each/slurm PTQ_RESULTS='slurm 4' "$p" --status "$model" >status 2>/dev/null
is '--status' "$(cut -f 1 status | sort | uniq -c | xargs)" "$((2 + 1 + 3 + 1 + 3 + 1 + 1)) done"

# one shard fails: its tool is killed
mkdir tools
cat >tools/hessian-accum <<SH
#!/bin/sh
case \$* in *--shard*/3*) echo >>$tmp/tries ;; esac
case \$* in *'--shard 2/3'*) [ -e $tmp/go ] || kill -9 \$\$ ;; esac
exec $(command -v hessian-accum) "\$@"
SH
chmod +x tools/hessian-accum
cp -r "$top/pipelines" killed
mkdir data && ln -s "$top/data/prose" data/prose
export PTQ_EACH="$each/slurm" PTQ_RESULTS=twice
PATH=$tmp/tools:$PATH killed/cluster.sh "$model" >/dev/null 2>said
is 'a shard whose tool is killed' "$? $(said | sed 's/failed:.*/failed/' | xargs) $(
	tail -n 1 said | grep -o 'missing: .*')" \
	'1 each/slurm: line 2 (shard 2/3) failed missing: hessian-2.h5'
touch go
ok '... the same command again' env PATH="$tmp/tools:$PATH" killed/cluster.sh "$model"
is '... the same bytes, and no other shard is made again' "$(bytes twice) $(wc -l <tries)" "$(cat expected) 4"
PTQ_SHARDS=30 PTQ_RESULTS=many "$p" "$model" >/dev/null 2>said
is 'more shards than windows' "$? $(grep '^each/' said | sed 's/; log.*//')" \
	'1 each/slurm: line 1 failed: calib.h5: 9 windows for 30 shards: set PTQ_SHARDS to at most 9'
is '... no Hessian is made' "$(find many -name 'hessian*')" ''
for i in 4097 9999; do
	no "$i shards" 2 "^cluster: PTQ_SHARDS: '$i' is more than 4096" env PTQ_SHARDS=$i "$p" "$model"
done
for i in PTQ_SHARDS PTQ_RUNS; do
	no "$i without bounds" 2 "^cluster: $i: '99999999999999999999' is more than 9999" \
		env $i=99999999999999999999 timeout 10 "$p" "$model"
done
no 'PTQ_DRAWS without bounds' 2 "^cluster: PTQ_DRAWS: '100' is more than 99" env PTQ_DRAWS=100 "$p" "$model"
no 'shards that are no number' 2 "^cluster: PTQ_SHARDS: 'many' is not a number" env PTQ_SHARDS=many "$p" "$model"
done_testing
