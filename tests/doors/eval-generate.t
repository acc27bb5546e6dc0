#!/bin/sh
# eval-generate.t -- lm-evaluation-harness's filters of GSM8K on 100 texts; greedy ids of transformers
#
# MODEL is a folder of a model for transformers and TEXT a text (default: stories260K of the trial data, and README.md).
# PROMPTS is the number of prompts (default: 200), LONGEST the characters of the longest (default: 160).
# shellcheck source=tests/doors/doors.sh
. "$(dirname "$0")/doors.sh"
export OMP_NUM_THREADS=1
if ! "$PEERS" -c 'import h5py, lm_eval.filters.extraction, lm_eval.api.metrics' 2>/dev/null; then
	skip 'filters' "no h5py or lm_eval in $PEERS"
else
	peer made_up
	for m in gsm8k gsm8k-cot; do
		eval-generate -q --bos no --questions $m.jsonl says.h5 -o $m.h5 >x
		is "$m: both filters agree with lm-evaluation-harness on 100 texts" "$(peer harness $m)" yes
	done
fi
model=${MODEL-${shared:+$shared/stories260K}}
if ! "$PEERS" -c 'import h5py, torch, transformers' 2>/dev/null; then
	skip 'greedy ids' "no h5py, torch or transformers in $PEERS"
elif [ -z "$model" ]; then skip 'greedy ids' 'no MODEL and no ../shared/data'
else
	unset OMP_NUM_THREADS
	ok 'a model' model-import -q "$model" -o m.h5
	peer contexts "${TEXT:-$top/README.md}" "${PROMPTS:-200}" "${LONGEST:-160}"
	eval-generate -q --max 32 --questions contexts.jsonl m.h5 -o m-r.h5 >x
	# float32 in both programs: logits differ by the order of sums
	said=$(peer transformers "$model" m-r.h5 32 1e-4)
	ok "the ids of transformers, except near ties of logits below 1e-4: $said" test -n "$said"
fi
done_testing
