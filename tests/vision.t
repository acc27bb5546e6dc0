#!/bin/sh
# vision.t -- vision-language models in all tools: import, evaluation, calibration, quantization by modality, errors
#
# tests/vision.c compares the numbers with transformers.
# shellcheck source=tests/tap.sh
. "${0%/*}/tap.sh"
export OMP_NUM_THREADS=1
ref=$top/tests/ref/vision

if ! has_h5py; then
	skip 'vision' 'no h5py'
	done_testing
fi

# Hugging Face folders from the reference files, with the names of transformers 4 in files and with its names in memory,
# and tokens files for each model.
ok 'folders of the reference models' py make "$ref"

for m in llava-clip llava-clip-full llava-siglip qwen2-vl qwen2.5-vl llava-postnorm vipllava idefics3 smolvlm; do
	ok "$m: import with the names of transformers 4 in files" model-import -q $m-old -o $m.h5
	ok "$m: import with its names in memory" model-import -q $m-new -o new.h5
	ok "$m: both are the same model" h5diff $m.h5 new.h5
	ok "$m: ... equal to the reference" py same_tree "$ref/$m.h5" $m.h5
	eval-ppl --ctx 128 --tokens $m-t.h5 $m.h5 >file.tsv
	ok "$m: the nll is the loss of transformers with the labels of images at -100, to printed digits" \
		py nll "$ref/$m.h5"
	images-import -q --model $m.h5 --tokens $m-text.h5 $m-?.ppm -o own-t.h5
	ok "$m: images-import makes the tokens and the positions of transformers" py positions $m-t.h5
	aifs-order $m-t.h5 -o first-t.h5
	eval-ppl --ctx 128 --tokens first-t.h5 $m.h5 >first.tsv
	ok "$m: visual tokens first: they are moved, and the likelihood is the same" py visual_first $m-t.h5
	ok "$m: a stream: the same result" \
		sh -c 'model-import -q "$1-old" | eval-ppl --ctx 128 --tokens "$1-t.h5" >stream.tsv &&
			cmp stream.tsv file.tsv' x $m
done

# --skip is a file that was cut; an image is read whole or left out
for m in llava-clip qwen2-vl qwen2.5-vl idefics3; do
	py cut $m-t.h5 $m 1 >places; read -r at after <places
	eval-ppl --ctx 128 --tokens $m-at.h5 $m.h5 >want && eval-ppl --ctx 128 --skip "$at" --tokens $m-t.h5 $m.h5 >got
	ok "$m: --skip to an image" sh -c 'grep -q ppl got && cmp want got'
	eval-ppl --ctx 128 --tokens $m-after.h5 $m.h5 >want
	for skip in $((at + 1)) "$after"; do
		eval-ppl --ctx 128 --skip "$skip" --tokens $m-t.h5 $m.h5 >got
		ok "$m: --skip $skip leaves the image out" sh -c 'grep -q ppl got && cmp want got'
	done
done
no 'random windows and images' 1 'llava-clip-t.h5: /image_span: --random-windows needs tokens without images' \
	eval-ppl --ctx 32 --random-windows 0 --tokens llava-clip-t.h5 llava-clip.h5
no 'hidden states with images' 1 'llava-clip-t.h5: --as-reference needs tokens without images, /position' \
	eval-ppl --ctx 128 --as-reference --tokens llava-clip-t.h5 llava-clip.h5 -o states.h5

m=llava-clip
run() { eval-ppl --ctx 128 --tokens $m-t.h5 "$@"; }
warns 'windows without a text token to predict are left out' \
	'/image_span: 8 of 14 windows have no token of text to predict and are left out' eval-ppl --ctx 6 \
	--tokens $m-t.h5 $m.h5 -o few.h5
ok '... and the token after an image is a target' py targets $m-t.h5
no 'an image without text' 1 'mute-t.h5: /image_span: no window of --ctx has a token of text to predict' \
	eval-ppl --ctx 128 --tokens mute-t.h5 $m.h5
ok '... can still be used for calibration' hessian-accum -q --ctx 128 --tokens mute-t.h5 $m.h5 -o x.h5
model-import behind -o x.h5 2>said
ok 'tensors after the features are left out, with a warning' \
	sh -c 'grep -q "vision_tower.*: comes after the features that .* names: it and 1 more are left out" said &&
		h5diff x.h5 llava-clip.h5'

# --- other language models, with every name that transformers loads
/usr/bin/python3 -B "$top/tests/ref/llava.py" "$ref/texts.h5" >rows
is 'all rows are tested' "$(wc -l <rows)" "$(grep -c ': Llava(' "$top/tests/ref/llava.py")"
while IFS='	' read -r row what; do is "as transformers: $row" "$what" same; done <rows

# --- calibration
hessian-accum -q --ctx 128 --tokens $m-t.h5 $m.h5 -o h.h5
is 'one Hessian per modality after the embeddings, one before' "$(py modalities)" '(2, 32, 32) (24, 24) (32, 32)'
ok 'the sum over modalities is that of all tokens' py sum_of_modalities $m-t.h5
hessian-accum -q --shard 1/2 --ctx 128 --tokens $m-t.h5 $m.h5 -o h1.h5
hessian-accum -q --shard 2/2 --ctx 128 --tokens $m-t.h5 $m.h5 -o h2.h5
hessian-accum -q h1.h5 h2.h5 -o sum.h5
ok 'shards are summed by modality' py shards
ok 'a shard may have no images' \
	sh -c 'for i in 1 2; do hessian-accum -q --shard $i/2 --ctx 128 --tokens mix-t.h5 "$1" -o m$i.h5 ||
		exit 1; done; hessian-accum -q m1.h5 m2.h5 -o mix.h5 &&
		hessian-accum -q --ctx 128 --tokens mix-t.h5 "$1" -o whole.h5' x $m.h5
ok '... and the sum has their Hessians' py whole_sum
no '... but dpq-run needs them' 1 '/vision_tower/.*/count: is not positive' \
	dpq-run -q --hessian m2.h5 $m.h5 -o x.h5
no 'an image in windows of two shards' 1 '--shard 1/2: an image is in windows of several shards' \
	hessian-accum -q --shard 1/2 --ctx 7 --tokens $m-t.h5 $m.h5 -o x.h5
ok 'weights of encoder, projector and language model are quantized' \
	sh -c 'dpq-run --storage uint4 --group 8 --hessian h.h5 "$1" -o q.h5 2>said &&
		grep -q "^/vision_tower/encoder/layers/1/mlp/fc2" said &&
		grep -q "^/multi_modal_projector/linear_1" said &&
		grep -q "^/model/layers/1/mlp/down_proj" said' x $m.h5
ok 'joined shards have the same groups as the whole model' \
	sh -c 'for i in 1 2; do dpq-run -q --group 8 --hessian h.h5 --shard $i/2 "$1" -o q$i.h5 || exit 1; done
		tensor-join -q q1.h5 q2.h5 -o joined.h5 && dpq-run -q --group 8 --hessian h.h5 "$1" -o whole.h5 &&
		h5ls -r joined.h5 >joined && h5ls -r whole.h5 | diff joined -' x $m.h5
ok '--sequential quantizes encoder, projector and language model in turn' \
	dpq-run -q --sequential --ctx 128 --tokens $m-t.h5 --storage uint4 --group 8 $m.h5 -o s.h5
# A result of a quantized model: the loss is neither 0 nor large.
within() { ok "$1 ($2)" awk -v x="$2" -v a="$3" -v b="$4" 'BEGIN { exit !(x > a && x < b) }'; }
no '... except the embedding of patches' 1 '/vision_tower/embeddings/patch_embedding: --sequential does not quantize' \
	dpq-run -q --sequential --layers '*patch_embedding' --group channel --ctx 128 --tokens $m-t.h5 $m.h5 -o x.h5
ok '... which is quantized without --sequential if --layers selects it' \
	sh -c 'hessian-accum -q --layers "*patch_embedding" --ctx 128 --tokens "$1-t.h5" "$1.h5" -o patch-h.h5 &&
		dpq-run -q --layers "*patch_embedding" --group channel --hessian patch-h.h5 "$1.h5" -o patch.h5 &&
		h5ls patch.h5/vision_tower/embeddings/patch_embedding | grep -q ^codes' x $m
kl() { run --reference $m.h5 "$@" | awk '$1 == "kl" { print $2 }'; }
within 'KL of the quantized model: one-shot' "$(kl q.h5)" 0.001 0.5
within 'KL of the quantized model: sequential' "$(kl s.h5)" 0.001 0.5
no 'a placeholder without an image' 1 \
	'/tokens: position 4 of window 1 is 60: it is the placeholder of images, expected an image' run --ctx 128 \
	--tokens holder-t.h5 $m.h5
no 'another token within an image' 1 \
	"/tokens: position 4 of window 1 is 5: it belongs to an image, expected the placeholder of images" run \
	--tokens word-t.h5 $m.h5
ok 'sample-tokens does not sample the placeholder' \
	sh -c 'sample-tokens -q --length 4000 --ctx 50 --temperature 5 "$1" -o drawn.h5 &&
		! h5dump -d /tokens drawn.h5 | grep -q "[ ,]60[,\n]"' x $m.h5
no '--sequential: no token reaches the encoder in tokens of text' 1 \
	'/(multi_modal_projector/linear_1|vision_tower/.*): no token reaches the layer: text-t.h5 has no images in' \
	dpq-run -q --sequential --group 8 --ctx 128 --tokens text-t.h5 $m.h5 -o x.h5
ok '... unless --layers leaves it out' \
	dpq-run -q --sequential --layers '/model/layers/*' --group 8 --ctx 128 --tokens text-t.h5 $m.h5 -o x.h5
no 'hessian-accum: no token reaches the encoder in tokens of text' 1 \
	'/vision_tower/encoder/layers/0/.*: no token reached the layer' \
	hessian-accum -q --ctx 128 --tokens text-t.h5 $m.h5 -o x.h5
ok 'tokens of text run through the language model' sh -c 'eval-ppl --ctx 128 --tokens text-t.h5 "$1" >/dev/null' x $m.h5

# --- static scales by modality
msq-calib --act-format int8 --act-mode static-modality --ctx 128 --tokens $m-t.h5 $m.h5 -o msq.h5 2>said
is 'two scales after the embeddings, one before' "$(py scale_counts)" '2 1 1'
ok '... max |x| / 127 of each modality' py scales
for p in visual text; do
	msq-calib -q --act-format int8 --act-mode static-modality --clip 90 --clip-modality $p --ctx 128 \
		--tokens $m-t.h5 $m.h5 -o $p-clip.h5
done
msq-calib -q --act-format int8 --act-mode static-modality --clip 90 --ctx 128 --tokens $m-t.h5 $m.h5 -o both-clip.h5
ok 'the range of one modality is clipped' py clipped
warns '--clip-modality without scales by modality' \
	'without effect here: --clip-modality .one scale for all modalities.' \
	msq-calib --act-format int8 --clip-modality text --ctx 128 --tokens $m-t.h5 $m.h5 -o x.h5
warns '--clip-modality without --clip' 'without effect here: --clip-modality .--clip is 100.' \
	msq-calib --act-format int8 --act-mode static-modality --clip-modality text --ctx 128 --tokens $m-t.h5 $m.h5 \
	-o x.h5
ok 'the report has both modalities' grep -q '^/model/layers/0/mlp/up_proj visual	' said
within 'KL with inputs rounded by these scales' "$(kl msq.h5)" 1e-6 0.05
msq-calib -q --act-format int8 --ctx 128 --tokens text-t.h5 --layers '/model/*' --act-mode static-modality $m.h5 \
	-o text.h5
no 'scales without a modality of the tokens' 1 \
	'/model/layers/0/.*: has input scales for 1 modalities, the tokens have 2' run text.h5

# --- norms and rotations (tests/invariant.c tests the same in double)
py linked
checked() {
	awk -v x="$(sed -n 's/.*check: the logits differ by at most \([^ ]*\) of the largest$/\1/p' said)" \
		'BEGIN { exit !(x != "" && x >= 0 && x <= 1e-5) }'
}
for m in vipllava llava-postnorm qwen2-vl idefics3 smolvlm; do
	no "$m: a rotation of a model with LayerNorms" 1 \
		'is a LayerNorm, whose mean a rotation does not keep: ln2rms makes RMS norms' hadamard-rotate \
		-q $m-1.h5 -o x.h5
	ln2rms --check $m-1.h5 -o rms.h5 2>said
	ok "$m: the same logits with RMS norms ($(cat said))" checked
	hadamard-rotate --check --seed 5 rms.h5 -o turned.h5 2>said
	ok "$m: ... with both residual streams rotated ($(cat said))" checked
	hadamard-rotate --check --language $m-1.h5 -o language.h5 2>said
	ok "$m: ... with the stream of the language model rotated ($(cat said))" checked
	ok "$m: rotated and unrotated weights, changed norms" py rotated $m-1.h5
	rms-suppress --check turned.h5 -o split.h5 2>said
	ok "$m: columns are split in the encoder and the projector, too, if that has an online Hadamard" \
		sh -c 'grep -q "^/v.*/fc2	" said && case $1 in
			idefics3 | smolvlm) ! grep -q ^/connector said ;;
			*) grep -q "^/multi_modal_projector/linear_2\|^/visual/merger/mlp/2" said ;;
			esac' x $m
	eval-ppl --ctx 128 --tokens $m-t.h5 $m-1.h5 >file.tsv
	ok "$m: the likelihood with images is the same" \
		sh -c 'eval-ppl --ctx 128 --tokens "$1" turned.h5 >t.tsv &&
			paste file.tsv t.tsv | awk "\$1 == \"nll\" { d = \$2 - \$4; exit !(d * d < 1e-10) }"' x $m-t.h5
	ok "$m: ... through pipes" \
		sh -c 'ln2rms -q - <"$1" | hadamard-rotate -q --seed 5 - >s.h5 &&
			eval-ppl --ctx 128 --tokens "$2" - <s.h5 | cmp - t.tsv' x $m-1.h5 $m-t.h5
done
# An encoder with RMS norms, a gated MLP and windows of attention.
m=qwen2.5-vl
no "$m: LayerNorms are absent" 1 '/visual/blocks/0/norm1: is an RMS norm already' ln2rms -q $m.h5 -o x.h5
hadamard-rotate --check --seed 5 $m.h5 -o turned.h5 2>said
ok "$m: the same logits with both residual streams rotated ($(cat said))" checked
hadamard-rotate --check --language $m.h5 -o language.h5 2>said
ok "$m: ... with the stream of the language model rotated ($(cat said))" checked
ok "$m: rotated encoder, unrotated encoder" py turned_encoder $m.h5
eval-ppl --ctx 128 --tokens $m-t.h5 $m.h5 >file.tsv
ok "$m: the likelihood with images is the same" \
	sh -c 'eval-ppl --ctx 128 --tokens "$1" turned.h5 >t.tsv &&
		paste file.tsv t.tsv | awk "\$1 == \"nll\" { d = \$2 - \$4; exit !(d * d < 1e-10) }"' x $m-t.h5
hessian-accum -q --ctx 128 --tokens $m-t.h5 $m.h5 -o window-h.h5
smooth-scale --check --hessian window-h.h5 $m.h5 -o smooth.h5 2>said
ok "$m: outliers move into weights after its norms and up projections ($(sed -n '/check/p' said))" checked
ok "$m: ... of the encoder, too" grep -q '^/visual/blocks/1/norm2' said
for j in 1 3; do
	hessian-accum -q -j $j --ctx 128 --tokens $m-t.h5 $m.h5 -o window-h$j.h5
	eval-ppl -j $j --memory 0 --ctx 128 --tokens $m-t.h5 $m.h5 >window$j.tsv
done
ok "$m: the same bytes for every -j" sh -c 'cmp window-h1.h5 window-h3.h5 && cmp window1.tsv window3.tsv'
ok "$m: gate, up and down projections of the encoder are quantized" \
	sh -c 'dpq-run --storage uint4 --group 6 --hessian window-h.h5 "$1" -o q.h5 2>said &&
		for l in gate up down; do grep -q "^/visual/blocks/0/mlp/${l}_proj" said || exit 1; done' x $m.h5
ok "$m: --sequential takes blocks with windows and without" \
	dpq-run -q --sequential --ctx 128 --tokens $m-t.h5 --storage uint4 --group 6 $m.h5 -o s.h5
msq-calib -q --act-format int8 --act-mode static-modality --ctx 128 --tokens $m-t.h5 $m.h5 -o msq.h5
is "$m: scales by modality after the embeddings, one scale before" "$(py window_scales)" '2 1 1'
# The processor of SigLIP for Idefics3: images of the encoder's size are unchanged, others are resized.
m=idefics3
model-import -q siglip -o siglip.h5
eval-ppl --ctx 128 --tokens $m-t.h5 $m.h5 >want && eval-ppl --ctx 128 --tokens $m-t.h5 siglip.h5 >got
ok "$m: SiglipImageProcessor leaves images of the encoder's size unchanged" sh -c 'grep -q ppl got && cmp want got'
images-import -q --model siglip.h5 --tokens $m-text.h5 qwen2.5-vl-?.ppm -o resized-t.h5
eval-ppl --ctx 128 --tokens resized-t.h5 siglip.h5 >got
ok "$m: ... and resizes others: as many tokens, another likelihood" \
	sh -c 'grep "^tokens" want >n && grep "^tokens" got | cmp - n && grep -q ppl got && ! cmp -s want got'
# A projector of one layer, which reads the stream of the encoder and adds to that of the language model.
hessian-accum -q --ctx 128 --tokens $m-t.h5 $m.h5 -o single-h.h5
ok "$m: the only layer of the projector is quantized" \
	sh -c 'dpq-run --storage uint4 --group 8 --hessian single-h.h5 "$1" -o q.h5 2>said &&
		grep -q "^/connector/modality_projection/proj	" said' x $m.h5
ok "$m: ... with --sequential, too" \
	sh -c 'dpq-run --sequential --ctx 128 --tokens "$1-t.h5" --storage uint4 --group 8 "$1.h5" -o s.h5 2>said &&
		grep -q "^/connector/modality_projection/proj	" said' x $m
smooth-scale --check --hessian single-h.h5 $m.h5 -o smooth.h5 2>said
ok "$m: outliers move from the norm before it into its weights ($(sed -n '/check/p' said))" checked
ok '... for all rows of a square' grep -q '^/connector/post_layernorm' said
msq-calib -q --act-format int8 --act-mode static-modality --ctx 128 --tokens $m-t.h5 $m.h5 -o msq.h5
is "$m: scales by modality after the embeddings, one scale before" "$(py single_scales)" '2 1 1'
m=llava-clip
no 'a norm before the blocks whose gain differs by channel' 1 \
	'/vision_tower/embeddings/pre_layrnorm: adds to a stream that norms read, with a gain' ln2rms \
	-q vipllava.h5 -o x.h5
no 'a projector that reads the stream without a norm' 1 \
	'/multi_modal_projector/linear_1: reads the stream without a norm' ln2rms -q llava-siglip.h5 -o x.h5
no 'a norm after a residual branch whose gain differs by channel' 1 \
	'/vision_tower/encoder/layers/0/layer_norm1: is after a residual branch and has a gain' \
	sh -c 'ln2rms -q llava-postnorm.h5 | hadamard-rotate -q -o x.h5'
no 'a language model without LayerNorms' 1 '/model/layers/0/input_layernorm: is an RMS norm already' \
	ln2rms -q --language llava-siglip.h5 -o x.h5
hessian-accum -q --ctx 128 --tokens qwen2-vl-t.h5 qwen2-vl.h5 -o smooth-h.h5
ok 'outliers move into the weights of encoder, projector and language model' \
	sh -c 'smooth-scale --check --hessian smooth-h.h5 qwen2-vl.h5 -o smooth.h5 2>said &&
		grep -q "^/visual/merger/ln_q" said && grep -q "^/visual/blocks/1/norm2" said &&
		grep -q "^/model/layers/1/input_layernorm" said'
py rotation
ln2rms -q vipllava-1.h5 -o rms.h5
hadamard-rotate --check --load learned.h5 rms.h5 -o turned.h5 2>said
ok "a learned rotation rotates the language model ($(cat said))" checked
ok '... and a Hadamard matrix the encoder' py encoder
m=llava-clip

# --- questions with images, models whose tokens are bytes; 1 is the placeholder of an image
ok 'models with byte tokens' py questions "$ref"
for q in llava-clip qwen2-vl qwen2.5-vl idefics3; do
	eval-choice -q --bos yes --questions $q.jsonl $q-bytes.h5 -o choices.h5 >choices.tsv
	sh -eu $q.sh
	ok "$q: choices after images have the likelihoods of eval-ppl" py compare $q choices.h5
	eval-choice -q --bos yes --aifs --questions $q.jsonl $q-bytes.h5 -o choices.h5 >aifs.tsv
	ok "$q: ... with visual tokens first, too" py compare $q choices.h5
	ok "$q: ... and the same table" cmp choices.tsv aifs.tsv
	py answers $q
	eval-generate -q --bos yes --max 9 --questions $q-answers.jsonl $q-bytes.h5 -o answers.h5 >answers.tsv
	ok "$q: generated answers depend on images" py greedy $q answers.h5
	is "$q: ... and each id is the most likely one of a pass of eval-choice" "$(eval-choice -q --bos yes --greedy \
		--questions generated.jsonl $q-bytes.h5 | awk 'END { print $2, $7 }')" '6 1'
	eval-generate -q --bos yes --max 9 --batch 2 -j 2 --memory 0 --questions $q-answers.jsonl $q-bytes.h5 -o x.h5 >x
	ok "$q: ... the same bytes in other batches" cmp x.h5 answers.h5
done
mkdir other
cp llava-clip.jsonl other
for i in llava-clip-*.ppm; do cp llava-clip-0.ppm other/$i; done
eval-choice -q --bos yes --questions llava-clip.jsonl llava-clip-bytes.h5 -o choices.h5 >choices.tsv
no 'the same questions about other images' 1 'choices.h5: has other images than other/llava-clip.jsonl' \
	eval-choice -q --bos yes --questions other/llava-clip.jsonl --paired choices.h5 llava-clip-bytes.h5
choice() { printf '%s\n' "$1" >q.jsonl && eval-choice -q --bos no --questions q.jsonl llava-clip-bytes.h5; }
no 'an image without a placeholder' 1 "q.jsonl:1: 'context' has 0 placeholders of images .id 1., 'images' has 1" \
	choice '{"task": "t", "context": "a", "choices": ["b"], "gold": 0, "images": ["llava-clip-0.ppm"]}'
no 'a missing image' 1 'q.jsonl:1: .*none.png' \
	choice '{"task": "t", "context": "a\u0001b", "choices": ["b"], "gold": 0, "images": ["none.png"]}'
no 'a placeholder in a choice' 1 'choice 0 has a placeholder of an image' \
	choice '{"task": "t", "context": "a\u0001b", "choices": ["\u0001"], "gold": 0, "images": ["llava-clip-0.ppm"]}'

# --- errors
no 'a model without a processor' 1 \
	'/processor: is missing; a vision-language model needs its preprocessor_config.json' \
	sh -c 'model-import -q no-processor | eval-ppl --ctx 128 --tokens "$1"' x $m-t.h5
py faults
no 'no class token' 1 '/vision_tower/embeddings/class_embedding: is missing' run no-class.h5
no 'a LayerNorm without a shift' 1 '/vision_tower/encoder/layers/0/layer_norm2/bias: is missing' run no-shift.h5
no 'images without multimodal positions' 1 '/position: is missing, expected frames, rows and columns' \
	eval-ppl --ctx 128 --tokens flat-t.h5 qwen2-vl.h5
no 'a third modality' 1 '/modality: token .* is of kind 255, expected 0, text, or 1, visual' \
	eval-ppl --ctx 128 --tokens kind-t.h5 $m.h5
no 'a placeholder beyond the vocabulary' 1 'an image is token 4294967297' model-import -q id -o x.h5
no 'a patch embedding with channels last' 1 'patch_embedding.weight: its shape is not the' model-import -q last -o x.h5
no 'features from the embeddings' 1 "'vision_feature_layer' is 0, expected the output of one of the 3 blocks" \
	model-import -q layer0 -o x.h5
no 'features from a block that does not exist' 1 "'vision_feature_layer' is 9" model-import -q layer9 -o x.h5
no 'features from several blocks' 1 "'vision_feature_layer' must be a whole number: features of several layers" \
	model-import -q layers -o x.h5
no 'an unknown encoder' 1 \
	"'vision_config': unknown model_type 'dinov2', expected one of clip_vision_model, siglip_vision_model" \
	model-import -q tower -o x.h5
no 'no encoder' 1 "'vision_config' is missing" model-import -q none -o x.h5
no 'a patch larger than the image' 1 "'patch_size' is 99, the images are 20 pixels wide" model-import -q patch -o x.h5
no 'an unknown strategy' 1 "'vision_feature_select_strategy' is 'cls', expected default or full" \
	model-import -q strategy -o x.h5
no 'grey images' 1 "'num_channels' must be 3; other values are not supported" model-import -q channels -o x.h5
no 'positions of another number of patches' 1 \
	'position_embedding.weight: its shape is not the \[26, 24\] of config.json' model-import -q side -o x.h5
no 'an image of another size' 1 \
	'/processor: makes 10 x 20 pixels of an image of 10 x 20; the encoder needs 20 x 20' eval-ppl --ctx 128 \
	--tokens small-t.h5 $m.h5
for s in 0 1 2; do
	no "invalid sections of rotary pairs ($s)" 1 \
		"'mrope_section' must be a list of 3 numbers of rotary pairs, 4 in all" model-import -q sections$s \
		-o x.h5
done
no 'squares that do not fill an image' 1 "'scale_factor' is 4, expected a divisor of the 6 patches per side of" \
	model-import -q squares -o x.h5
no 'windows smaller than a feature' 1 "'window_size' is 9, expected at least the 2 x 5 pixels of a feature" \
	model-import -q window -o x.h5
no 'blocks without windows that are no list' 1 "'fullatt_block_indexes' must be a list of blocks" \
	model-import -q whole -o x.h5
no 'blocks without windows that are no numbers' 1 "'fullatt_block_indexes' must hold whole numbers" \
	model-import -q whole1 -o x.h5
no 'tokens with images and a model without an encoder' 1 '/images: the model reads no images' \
	eval-ppl --ctx 128 --tokens $m-t.h5 "$top/tests/ref/llama-gqa.h5"
done_testing
