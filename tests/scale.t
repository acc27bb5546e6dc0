#!/bin/sh
# scale.t -- the commands of docs/scale.md for clusters, with mock launchers that run their tasks on this machine
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
unset SLURM_PROCID SLURM_NTASKS OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE
model-import -q "$top/tests/tiny" -o model.h5
sample-tokens -q --length 64 --ctx 8 model.h5 -o calib.h5
# block NAME: the code after <!-- NAME -->, with smaller numbers
block() {
	awk -v name="<!-- $1 -->" '$0 == name { on = 1; next } on && !/^    / { exit } on { print substr($0, 5) }' \
		"$top/docs/scale.md" |
		sed -e 's/--ctx 2048/--ctx 8/' -e 's/1-16/1-2/' -e 's/-n 16/-n 2/' -e 's/ntasks 16/ntasks 2/' \
			-e 's/dpq-run /dpq-run --group 4 /'
}
mkdir bin
cat >bin/sbatch <<'SH'
#!/bin/bash
# sbatch --wait SCRIPT: the tasks of its array, one after the other
[[ $1 == --wait ]] || exit 1
[[ $(grep -o 'array=[0-9]*-[0-9]*' "$2") =~ ([0-9]+)-([0-9]+) ]] || exit 1
export SLURM_ARRAY_TASK_MIN=${BASH_REMATCH[1]} SLURM_ARRAY_TASK_MAX=${BASH_REMATCH[2]} SLURM_ARRAY_TASK_STEP=1
export SLURM_ARRAY_TASK_COUNT=$((SLURM_ARRAY_TASK_MAX - SLURM_ARRAY_TASK_MIN + 1))
for ((i = SLURM_ARRAY_TASK_MIN; i <= SLURM_ARRAY_TASK_MAX; i++)); do
	export SLURM_ARRAY_TASK_ID=$i
	bash "$2" || exit 1
done
SH
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
PATH=$tmp/bin:$PATH
for f in calibrate.sbatch quantize.sbatch commands srun mpirun streams; do
	block $f >$f
	ok "docs/scale.md has $f" test -s $f
done
ok 'arrays of jobs' bash -euo pipefail commands
hessian-accum -q --shard 1/2 --tokens calib.h5 --ctx 8 model.h5 -o 1.h5
hessian-accum -q --shard 2/2 --tokens calib.h5 --ctx 8 model.h5 -o 2.h5
hessian-accum -q 1.h5 2.h5 -o sum.h5
ok '... Hessians' cmp sum.h5 hessian.h5
dpq-run -q --group 4 --hessian sum.h5 model.h5 -o whole.h5
ok '... the model' h5diff quantized.h5 whole.h5 /model
cp quantized.h5 arrays.h5
for f in srun mpirun; do
	rm -f part-*.h5
	ok "$f" bash -euo pipefail $f
	ok '... Hessians' sh -c 'hessian-accum -q part-*.h5 -o x.h5 && cmp x.h5 sum.h5'
done
rm quantized.h5
ok 'streams' bash -euo pipefail streams
ok '... the model' sh -c 'h5diff quantized.h5 arrays.h5 /model && h5diff quantized.h5 whole.h5 /model'
done_testing
