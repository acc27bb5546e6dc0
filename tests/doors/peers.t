#!/bin/sh
# peers.t -- the embedded model quantized by llm-compressor and GPTQModel, imported: transformers and eval-ppl agree
#
# pipelines/peers.sh runs llmcompressor(), gptqmodel() and nll() of lib/peers.py there. GPTQMODEL is a Python that has
# gptqmodel and optimum (default: PEERS).
# shellcheck source=tests/doors/doors.sh
. "$(dirname "$0")/doors.sh"
need_peers torch transformers compressed_tensors llmcompressor datasets h5py
export OMP_NUM_THREADS=1 TQDM_DISABLE=1 PTQ_RESULTS=results PTQ_TOKENS=2040 PEERS
ok 'pipelines/peers.sh succeeds' "$top/pipelines/peers.sh"
t=$(find results -name peers.tsv)
rows=8
"${GPTQMODEL:-$PEERS}" -c 'import gptqmodel, optimum' >/dev/null 2>&1 && rows=9
is '... and has a row for each scheme of the packages' "$(grep -c ^theirs "$t")" $rows
# Logits are float32 in both programs and differ by the order of sums.
grep ^theirs "$t" >rows
while IFS='	' read -r _ method scheme row; do
	near "$method $scheme: the likelihood by transformers" "$(echo "$row" | awk '{ print $(NF - 1) }')" \
		"$(echo "$row" | awk '{ print $NF }')" 1e-5
done <rows
done_testing
