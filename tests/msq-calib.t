#!/bin/sh
# msq-calib.t -- rounding of inputs: static scales from calibration, percentiles of |x|, scales of tokens
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
ref=$top/tests/ref
g=$ref/llama-gqa.h5
sample-tokens -q --length 320 --ctx 32 "$g" -o t.h5
calib() { msq-calib -q --tokens t.h5 --ctx 32 "$@"; }
hessian-accum -q --tokens t.h5 --ctx 32 "$g" -o h.h5

# by the definition, from the histograms that hessian-accum.t compares with numpy
calib --act-format int8 "$g" -o a.h5
ok 'a scale is max|X|/127' py scales a.h5 h.h5 127 100 int8
calib --act-format e4m3fn --clip 99 "$g" -o c.h5
ok 'a scale from a percentile' py scales c.h5 h.h5 448 99 e4m3fn
calib --act-format int4 --clip 99.9 "$g" -o c.h5
ok '... from another' py scales c.h5 h.h5 7 99.9 int4
ok 'at least this percentage is not clipped, and with one bin less it would be' py clipped "$g"
ok 'weights and members outside layers are unchanged' py weights_stay "$g"
calib --act-format int8 --layers '*lm_head' "$g" -o head.h5
ok 'the head, if --layers selects it' py head
calib --act-format int8 --layers '*embed*' --layers '*lm_head' "$g" -o x.h5
ok 'embeddings have no inputs' py embeddings

msq-calib -q --act-format int4 --act-mode dynamic-token --act-clip 0.75 "$g" -o d.h5
dpq-run -q --compensate none --group 8 --act-format int4 --act-mode dynamic-token --act-clip 0.75 "$g" -o q.h5
dpq-run -q --compensate none --group 8 d.h5 -o dq.h5
ok 'scales of tokens: the same attributes by each tool, and kept' \
	py attributes 'dynamic-token int4 0.75' d.h5 q.h5 dq.h5
ok '... and the same results' \
	sh -c 'eval-ppl --tokens t.h5 --ctx 32 q.h5 >1 && eval-ppl --tokens t.h5 --ctx 32 dq.h5 >2 && cmp 1 2'
msq-calib -q --act-format int4 --act-mode dynamic-token "$g" -o d1.h5
ok 'without --act-clip no attribute act_clip' py attributes 'dynamic-token int4 None' d1.h5
ok '... and other results than with it' \
	sh -c 'eval-ppl --tokens t.h5 --ctx 32 d.h5 >1 && eval-ppl --tokens t.h5 --ctx 32 d1.h5 >2 && ! cmp -s 1 2'
msq-calib -q --act-mode none d.h5 -o none.h5
ok '--act-mode none removes them' \
	sh -c 'py attributes "None None None" none.h5 &&
		eval-ppl --tokens t.h5 --ctx 32 none.h5 >1 && eval-ppl --tokens t.h5 --ctx 32 "$1" >2 && cmp 1 2' x "$g"
# static scales of the model, weights with one scale per tensor
dpq-run -q --storage e4m3fn --group tensor --compensate none c.h5 -o w8.h5
ok 'dpq-run keeps static scales' py static_kept
dpq-run -q --compensate none --group 8 "$g" -o codes.h5
calib --act-format int8 codes.h5 -o cq.h5 && hessian-accum -q --tokens t.h5 --ctx 32 codes.h5 -o hq.h5
ok 'static scales of a quantized model' py of_quantized
hadamard-rotate -q "$g" | rms-suppress -q -o split.h5 && calib --act-format int8 split.h5 -o s.h5 &&
	hessian-accum -q --tokens t.h5 --ctx 32 split.h5 -o hs.h5
ok 'split columns do not count' py scales s.h5 hs.h5 127 100 int8
ok '... and exist' py split
ok 'the same bytes for every -j' \
	sh -c 'msq-calib -q -j 1 --tokens t.h5 --ctx 32 --act-format int8 --clip 99 "$1" -o 1.h5 &&
		msq-calib -q -j 3 --tokens t.h5 --ctx 32 --act-format int8 --clip 99 "$1" -o 3.h5 &&
		cmp 1.h5 3.h5' x "$g"
ok 'a stream: the same results' \
	sh -c 'cat "$1" | msq-calib -q --tokens t.h5 --ctx 32 --act-format int8 | cat >stream &&
		for m in stream a.h5; do eval-ppl -q --tokens t.h5 --ctx 32 --json $m >$m.json || exit; done &&
		cmp stream.json a.h5.json' x "$g"
# experts: the larger of the maximum of their tokens and of their prior
m=$ref/mixtral.h5
sample-tokens -q --length 40 --ctx 20 "$m" -o tm.h5
hessian-accum -q --tokens tm.h5 --ctx 20 "$m" -o hm.h5 && msq-calib -q --act-format int8 --tokens tm.h5 --ctx 20 "$m" \
	-o am.h5
ok 'scales of experts' py experts
msq-calib -q --act-format int8 --tokens tm.h5 --ctx 20 --clip 90 "$m" -o am.h5
ok '... from percentiles of tokens and prior, weighted as in the Hessian' py percentiles
msq-calib --tokens t.h5 --ctx 32 --act-format int8 --clip 99 "$g" -o r.h5 2>said
is 'the report is a table of layers' \
	"$(head -n 1 said | tr '\t' ' ') $(grep -c '^/model/layers' said)" 'layer absmax clip scale 14'

# --- errors ---
rm -f r.h5
py faults "$g"
no 'a layer without scales' 1 'lost.h5: /model/layers/1/mlp/up_proj/act_scale: is missing' \
	eval-ppl --tokens t.h5 --ctx 32 lost.h5
no 'a clip above 1' 1 'wide.h5: /model/layers/1/mlp/up_proj: attribute act_clip' eval-ppl --tokens t.h5 --ctx 32 wide.h5
no 'act_clip with a static scale' 1 'odd.h5: /model/layers/1/mlp/up_proj.*act_clip.*act_mode is not dynamic-token' \
	eval-ppl --tokens t.h5 --ctx 32 odd.h5
calib --act-format int8 --kv-format int2 "$g" -o kv.h5
msq-calib -q --kv-format int2 "$g" -o kv-only.h5
calib --act-format int8 kv-only.h5 -o kv-then.h5
is 'a format of keys and values is used in the calibration' \
	"$(h5dump -a /kv_format kv.h5 | sed -n 's/.*(0): //p') $(h5diff kv.h5 kv-then.h5 /model >/dev/null &&
	echo same) $(h5diff -q kv.h5 a.h5 /model >/dev/null || echo other)" '"int2" same other'
warns 'tokens without --act-format' 'without effect here: --tokens .no --act-format' \
	msq-calib --kv-format int2 --tokens t.h5 "$g" -o x.h5
warns 'a stride of windows that do not slide' 'without effect here: --stride' \
	msq-calib --act-format int8 --tokens t.h5 --ctx 32 --stride 8 "$g" -o x.h5
no 'no format' 2 '--act-format FORMAT is expected' msq-calib --tokens t.h5 "$g" -o r.h5
no 'no tokens' 2 '--tokens FILE is expected for static scales' msq-calib --act-format int8 "$g" -o r.h5
no 'a zero point' 2 '--act-format: uint8 has a zero point' calib --act-format uint8 "$g" -o r.h5
no 'scales of groups' 2 '--act-format: mxfp4 has scales of groups' calib --act-format mxfp4 "$g" -o r.h5
no 'a fraction for a percentile' 2 "clip: '0.999'" calib --act-format int8 --clip 0.999 "$g" -o r.h5
no 'a clip of 0' 2 "act-clip: '0'" msq-calib --act-format int8 --act-mode dynamic-token --act-clip 0 "$g" -o r.h5
warns 'a percentile with scales of tokens' 'without effect here: --clip .no static scale' \
	msq-calib --act-format int8 --act-mode dynamic-token --clip 99 "$g" -o x.h5
warns '--act-clip with static scales' 'without effect here: --act-clip .no scale of each token' \
	msq-calib --tokens t.h5 --ctx 32 --act-format int8 --act-clip 0.9 "$g" -o x.h5
is '... and no attribute act_clip' "$(h5diff x.h5 a.h5 >/dev/null && echo same)" same
warns '--act-clip with static scales in dpq-run' 'without effect here: --act-clip .no scale of each token' \
	dpq-run --compensate none --group 8 --act-clip 0.9 "$g" -o x.h5
no 'no configuration' 1 'w.h5: /config: is missing; static scales come from running the model' \
	calib --act-format int8 w.h5 -o r.h5
ok '... which scales of tokens do not need' msq-calib -q --act-format int8 --act-mode dynamic-token w.h5 -o x.h5
no '--layers selects no layer' 1 'selects no linear layer' calib --act-format int8 --layers nothing "$g" -o r.h5
no '... for scales of tokens' 1 'holds no linear layer with inputs that --layers selects' \
	msq-calib --act-format int8 --act-mode dynamic-token --layers nothing "$g" -o r.h5
no 'a Hessian in place of a model' 1 "holds a 'hessian'" calib --act-format int8 h.h5 -o r.h5
ok 'errors leave no file' test ! -e r.h5
done_testing
