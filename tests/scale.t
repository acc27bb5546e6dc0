#!/bin/sh
# scale.t -- docs/scale.md: its tables, and its commands for clusters, with mock launchers that run tasks here
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
unset SLURM_PROCID SLURM_NTASKS OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE
unset PTQ_CPU PTQ_CTX PTQ_DRAWS PTQ_EACH PTQ_JOBS PTQ_LIMIT PTQ_LOG PTQ_LOGS PTQ_RESULTS PTQ_SBATCH
ln -s "$top/pipelines" .
model-import -q "$top/tests/tiny" -o model.h5
sample-tokens -q --length 64 --ctx 8 model.h5 -o calib.h5
# block NAME: the code after <!-- NAME -->, with smaller numbers
block() {
	awk -v name="<!-- $1 -->" '$0 == name { on = 1; next } on && !/^    / { exit } on { print substr($0, 5) }' \
		"$top/docs/scale.md" |
		sed -e 's/--ctx 2048/--ctx 8/; s/PTQ_CTX=2048/PTQ_CTX=8/; s/dpq-run /dpq-run --group 4 /' \
			-e 's/seq 16/seq 2/; s,/16,/2,; s/-n 16/-n 2/; s/ntasks 16/ntasks 2/' \
			-e 's/Llama-2-70b-hf test.txt calib.txt/model.h5 calib.h5 calib.h5/'
}
mkdir bin
cat >bin/srun <<'SH'
#!/bin/bash
# srun --ntasks N COMMAND, mpirun -n N COMMAND
n=$2; shift 2
for ((i = 0; i < n; i++)); do
	case $0 in
	*srun) SLURM_PROCID=$i SLURM_NTASKS=$n "$@" || exit 1 ;;
	*) OMPI_COMM_WORLD_RANK=$i OMPI_COMM_WORLD_SIZE=$n "$@" || exit 1 ;;
	esac
done
SH
cp bin/srun bin/mpirun
printf '#!/bin/sh\nshift; exec "$@"\n' >bin/ssh
chmod +x bin/*
PATH=$tmp/bin:$top/tests/lib/slurm:$PATH
for f in cluster lines srun mpirun streams; do
	block $f >$f
	ok "docs/scale.md has $f" test -s $f
done
ok 'the pipeline on a cluster' env PTQ_SHARDS=2 PTQ_GROUP=4 bash -euo pipefail cluster
ok '... its model' test -s results/cluster/*/quantized.h5
ok 'lines of your own' bash -euo pipefail lines
hessian-accum -q --shard 1/2 --tokens calib.h5 --ctx 8 model.h5 -o 1.h5
hessian-accum -q --shard 2/2 --tokens calib.h5 --ctx 8 model.h5 -o 2.h5
hessian-accum -q 1.h5 2.h5 -o sum.h5
ok '... Hessians' h5diff sum.h5 hessian.h5
dpq-run -q --group 4 --hessian sum.h5 model.h5 -o whole.h5
for f in srun mpirun; do
	rm -f part-*.h5
	ok "$f" bash -euo pipefail $f
	ok '... Hessians' sh -c 'hessian-accum -q part-*.h5 -o x.h5 && cmp x.h5 sum.h5'
done
ok 'streams' bash -euo pipefail streams
ok '... the model' h5diff quantized.h5 whole.h5 /model

# --- the tables of this page and of the README are those of tests/bench/plan.py ---
kernels=$top/build/tests/bench/kernels
if [ -x "$kernels" ]; then
	cp "$top/README.md" "$top/docs/scale.md" .
	ok 'the tables of the rates in docs/results/bench.tsv' \
		env PTQ_CPU=avx2 /usr/bin/python3 "$top/tests/bench/plan.py" "$kernels" "$top/docs/results/bench.tsv" \
		README.md scale.md
	ok '... are those of docs/scale.md' diff "$top/docs/scale.md" scale.md
	ok '... and of the README' diff "$top/README.md" README.md
	is '... with a row for each size in each table' "$(grep -c '^| [0-9]* billion |' scale.md README.md | xargs)" \
		'scale.md:8 README.md:4'
else
	skip 'the tables' 'build/tests/bench/kernels is not built'
fi
done_testing
