#!/bin/sh
# questions-import.t -- prompts, choices and results of lm-evaluation-harness; Parquet files
#
# COUNT is the number of made-up items of a task (default: 200). MODEL is a folder of a model for transformers, whose
# tokenizer has an EOS. TEXT is a text (default: TinyStories of the trial data), ITEMS the number of questions of a set
# (default: 40), and BOUND the largest difference of log-likelihoods, in nats (default: 1e-4). BOS is yes for models
# to which the harness gives a BOS (Gemma).
# shellcheck source=tests/doors/doors.sh
. "$(dirname "$0")/doors.sh"
need_peers lm_eval datasets h5py pyarrow
export PEERS HF_HUB_OFFLINE=1 TQDM_DISABLE=1
peer harness "${COUNT:-200}" >tasks
while read -r task examples; do
	set -- --task "$task"
	[ "$examples" = 0 ] || set -- "$@" --examples "$task-examples.jsonl"
	ok "$task" questions-import "$@" "$task.jsonl" -o "$task-ours.jsonl"
	said=$(peer compare "$task")
	ok "... the questions of the harness, character for character: $said" test "${said%% *}" = equal
done <tasks
is 'tasks' "$(wc -l <tasks)" 12

peer parquet
ok 'Parquet to JSON lines' sh -c '"$PEERS" "$1" g.parquet >g.jsonl' sh "$top/pipelines/lib/parquet.py"
ok '... as they are' cmp g.jsonl g-rows.jsonl
ok '... which become questions' questions-import --task piqa g.jsonl -o x
ok '... in a locale without UTF-8' sh -c 'PYTHONIOENCODING=ascii "$PEERS" "$1" g.parquet | cmp - g.jsonl' \
	sh "$top/pipelines/lib/parquet.py"
no '... on a full disk' 1 'parquet.py: <stdout>: cannot be written: No space left on device' \
	sh -c '"$PEERS" "$1" g.parquet >/dev/full' sh "$top/pipelines/lib/parquet.py"
no '... with output closed' 1 'parquet.py: <stdout>: is closed' \
	sh -c '"$PEERS" "$1" g.parquet >&-' sh "$top/pipelines/lib/parquet.py"
no '... with two columns of one name' 1 'twice.parquet: has two columns of one name' \
	"$PEERS" "$top/pipelines/lib/parquet.py" twice.parquet
is '... with not a number in a map' "$("$PEERS" "$top/pipelines/lib/parquet.py" map.parquet)" '{"m": [["k", null]]}'
head -c 200 g.parquet >cut.parquet
no 'Parquet cut short' 1 'cut.parquet: is not a Parquet file, or is cut short' \
	"$PEERS" "$top/pipelines/lib/parquet.py" cut.parquet

model=${MODEL:-} text=${TEXT-${shared:+$shared/tinystories.txt}} items=${ITEMS:-40}
if ! "$PEERS" -c 'import torch, transformers' 2>/dev/null; then skip 'results' "no torch or transformers in $PEERS"
elif [ -z "$model" ] || [ -z "$shared" ]; then skip 'results' 'no MODEL or no ../shared/data'
else
	ok 'a model' model-import -q "$model" -o m.h5
	peer real arc_easy "$shared/mc/ARC-Easy-train.json" "$items"
	peer real openbookqa "$shared/mc/openbookqa-train.json" "$items"
	peer sentences "$text" "$items"
	for task in arc_easy openbookqa winogrande lambada; do
		questions-import --task $task $task-real.jsonl -o $task-real-questions.jsonl
		eval-choice -q --bos "${BOS:-no}" --greedy --questions $task-real-questions.jsonl m.h5 -o $task.h5 >x
		said=$(peer scores $task "$model" "${BOUND:-1e-4}")
		ok "$task: the harness's results and likelihoods: $said" test -n "$said"
	done
fi
done_testing
