#!/usr/bin/env bash
# cluster.sh [MODEL [TEST [CALIBRATION]]] -- make check-cluster: pipelines/cluster.sh by each/slurm on a cluster of two
# nodes with two processors each, which are slurmd's of this machine. Shows the bytes of a local run: undisturbed, after
# kill -9 of a worker and of a node, with a node drained, after a full disk, after SIGTERM. Takes root and munge,
# slurmctld and slurmd of Debian. Their files are in a scratch folder, which is removed at the end with all that runs.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
[ "$(id -u)" = 0 ] || { echo 'make check-cluster: needs root' >&2; exit 1; }
cd "$OLDPWD" && inputs=() || exit
for f; do inputs+=("${f:+$(realpath -- "$f")}"); done
cd "$tmp" || exit
export OMP_WAIT_POLICY=passive SLURM_CONF=$tmp/slurm.conf PTQ_TOKENS=${PTQ_TOKENS:-4080}
unset PTQ_EACH PTQ_JOBS PTQ_LOG PTQ_LOGS PTQ_RESULTS PTQ_SBATCH

# --- a cluster ---
until_true() { for ((i = 0; i < 600; i++)); do ! "$@" 2>/dev/null || return 0; sleep 0.1; done; return 1; }
no_job() { [ -z "$(squeue -h)" ]; }
stop() {
	[ -z "$pipeline" ] || kill "$pipeline" 2>/dev/null
	scancel --user=root 2>/dev/null && until_true no_job
	local file	# or process
	for file in one.pid two.pid slurmctld.pid munge/pid; do [ ! -s $file ] || kill "$(cat $file)" 2>/dev/null; done
	for ((i = 0; i < 100; i++)); do pgrep -f "$tmp/" >/dev/null || break; sleep 0.1; done
	for file in $(pgrep -f "$tmp/") $(grep -lsz "^SLURM_CONF=$tmp/" /proc/[0-9]*/environ | grep -o '[0-9]*'); do
		kill -9 "$file" 2>/dev/null
	done
	umount disk 2>/dev/null
	cd / && rm -rf "$tmp"
}
pipeline=''
trap stop EXIT
trap 'exit 143' INT TERM
port=$((20000 + $$ % 4000 * 3))
chmod 711 .	# munged's clients reach its socket
mkdir state munge disk
head -c 128 /dev/urandom >munge/key
chmod 600 munge/key
ok 'munged' munged --force --key-file="$tmp/munge/key" --socket="$tmp/munge/socket" --pid-file="$tmp/munge/pid" \
	--log-file="$tmp/munge/log" --seed-file="$tmp/munge/seed"
echo CgroupPlugin=cgroup/v1 >cgroup.conf
cat >slurm.conf <<C
ClusterName=ptqtools
SlurmctldHost=localhost
SlurmctldPort=$port
SlurmdTimeout=10
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$tmp/munge/socket
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0
StateSaveLocation=$tmp/state
SlurmdSpoolDir=$tmp/spool-%n
SlurmctldPidFile=$tmp/slurmctld.pid
SlurmdPidFile=$tmp/%n.pid
SlurmctldLogFile=$tmp/slurmctld.log
SlurmdLogFile=$tmp/%n.log
NodeName=one NodeHostname=localhost NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=2 State=UNKNOWN
NodeName=two NodeHostname=localhost NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
C
ok 'slurmctld' slurmctld -f "$tmp/slurm.conf"
start() { slurmd -f "$tmp/slurm.conf" -N "$1"; }
for node in one two; do ok "slurmd of node $node" start $node; done
nodes() { [ "$(sinfo -h -N -o %t | sort -u)" = "$1" ]; }
ok 'both nodes are ready' until_true nodes idle || { cat slurmctld.log one.log two.log >&2; done_testing; }

# --- pipelines ---
# bytes RESULTS: the digests of all results
bytes() { (cd "$1"/cluster/* && sha256sum ./*.h5 ./*.record ./[!u]*.tsv); }
command=("PTQ_EACH=$top/pipelines/each/slurm" "$top/pipelines/cluster.sh" "${inputs[@]}")
run() { env PTQ_RESULTS="$tmp/$1" "${command[@]}"; }
begin() {
	env PTQ_RESULTS="$tmp/$1" "${command[@]}" >said 2>&1 &
	pipeline=$!
}
end() { wait "$pipeline"; local status=$?; pipeline=''; return $status; }
# shard TOOL N: its process. works TOOL N: it runs
shard() { pgrep -f "^$1 .*--shard $2/16"; }
works() { shard "$@" >/dev/null; }
same() {
	is '... the same bytes' "$(bytes "$1" | diff expected - | head -n 3)" ''
	rm -rf "${1:?}"/cluster
}
again() {
	ok 'the same command again' run "$1"
	same "$1"
}
took() { echo "# $1: $SECONDS s"; SECONDS=0; }

SECONDS=0
ok "cluster.sh here, without a runner" env PTQ_RESULTS="$tmp/plain" "$top/pipelines/cluster.sh" "${inputs[@]}"
cat ok.out
bytes plain >expected
took 'without a runner'
ok 'cluster.sh by each/slurm, 4 workers' run whole
same whole
took 'by each/slurm'

begin killed
ok 'shard 7 of the Hessians runs' until_true works hessian-accum 7
shard hessian-accum 7 | xargs kill -9
end
is 'kill -9 of its worker: the status' $? 1
is '... the message of the pipeline' "$(sed -n 's/^cluster: .*missing: //p' said)" hessian-7.h5
is '... the message of the runner' "$(sed -n 's/ failed: .*[Kk]illed.*log: .*/ failed/p' said | cut -d ' ' -f 4-)" \
	'(shard 7/16) failed'
again killed
took 'with kill -9'

# processes: those of jobs on node two. A node is lost with slurmd, with slurmstepd, the parent of a job, which would
# report its end, and with the job. What was to run there again does so at once, and not after two minutes
processes() {
	grep -lsz '^SLURMD_NODENAME=two$' /proc/[0-9]*/environ | grep -o '[0-9]*' | while read -r id; do
		! grep -qsz "^SLURM_CONF=$tmp/" "/proc/$id/environ" || echo "$id"
	done
}
parents() { sed -s 's/.*) . \([0-9]*\) .*/\1/' "${@/%//stat}" 2>/dev/null | sort -u; }
begin lost
ok 'shard 4 of the Hessians runs' until_true works hessian-accum 4
mapfile -t ids < <(processes)
for id in $(cat two.pid) $(parents "${ids[@]/#//proc/}") "${ids[@]}"; do
	[[ $(cat "/proc/$id/comm" 2>/dev/null) = systemd || $id = 1 ]] || kill -9 "$id" 2>/dev/null
done
ok 'kill -9 of all of node two: Slurm counts its jobs as failed, to be run again' \
	until_true sh -c 'squeue -h -r -t PD -o "%i %r" | grep -q BeginTime'
squeue -h -r -t PD -o '%i %r' | sed -n 's/ BeginTime$//p' | while read -r job; do
	scontrol update "jobid=$job" starttime=now
done
ok '... the pipeline succeeds' end
same lost
ok '... node two is back' start two
until_true nodes idle
took 'with a node lost'

begin drained
ok 'shard 3 of the Hessians runs' until_true works hessian-accum 3
ok 'node two is drained' scontrol update nodename=two state=drain reason=test
ok '... the pipeline succeeds' end
same drained
ok '... node two is back' scontrol update nodename=two state=resume
took 'with a node drained'

size=$(cd plain/cluster/* && du -scB 1 hessian-*.h5 | tail -n 1 | cut -f 1)
mount -t tmpfs -o size=$((size / 2)) tmpfs disk
begin disk
end
is 'a full disk: the status' $? 1
sed 's/^/# /' said
ok '... an error that names the shard and the reason' \
	grep -q '^each/slurm: line [0-9]* (shard [0-9]*/16) failed: .*No space left on device; log: /' said
mount -o "remount,size=$((size * 4))" disk
again disk
took 'with a full disk'

begin stopped
ok 'shard 2 of the Hessians runs' until_true works hessian-accum 2
kill "$pipeline"
end
is 'SIGTERM: the status' $? 143
ok '... no job is left' until_true no_job
is '... the steps that were not made' "$(find stopped -name 'quantized*')" ''
ok '... no process' until_true sh -c '! pgrep -f "^hessian-accum .*--shard"'
again stopped
took 'after SIGTERM'
done_testing
