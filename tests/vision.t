#!/bin/sh
# vision.t -- models that see images through the tools: imported from both spellings of a checkpoint, run, calibrated,
# quantized with scales by modality, and what is refused. tests/vision.c holds the numbers against transformers.
# shellcheck source=tests/tap.sh
. "${0%/*}/tap.sh"
export OMP_NUM_THREADS=1
ref=$top/tests/ref/vision

if ! py -c 'import h5py, numpy' 2>/dev/null; then
	skip 'vision' 'no h5py'
	done_testing
fi

# Folders in Hugging Face form from the reference files: names as transformers 4 wrote them, and as it has them in
# memory; tokens files of their own.
cat >make.py <<'PY'
import json, os, shutil, struct, sys
import h5py, numpy as np
ref = sys.argv[1]
OLD = ('model.', 'language_model.model.'), ('lm_head.', 'language_model.lm_head.'), ('vision_tower.', 'vision_tower.vision_model.')
NEW = ('model.', 'model.language_model.'), ('visual.', 'model.visual.'), ('vision_tower.', 'model.vision_tower.'), ('multi_modal_projector.', 'model.multi_modal_projector.')
def renamed(name, rows):
    name = name.replace('embeddings.pre_layrnorm', 'pre_layrnorm')
    return next((b + name[len(a):] for a, b in rows if name.startswith(a)), name)
def tensors(f, patch):
    y = {}
    def visit(path, d):
        if isinstance(d, h5py.Dataset) and path.split('/')[0] in ('model', 'lm_head', 'vision_tower', 'multi_modal_projector', 'visual'):
            a = d[()]
            if path.endswith('patch_embedding/weight'): a = a.reshape(len(a), 3, patch, patch)
            if path.endswith('patch_embed/proj/weight'): a = a.reshape(len(a), 3, 2, patch, patch)
            y[path.replace('/', '.')] = a
    f.visititems(visit)
    for q in [n for n in y if n.startswith('visual.') and '.q_proj.' in n]:
        y[q.replace('q_proj', 'qkv')] = np.concatenate([y.pop(q.replace('q_proj', p + '_proj')) for p in 'qkv'])
    return y
def put(folder, config, processor, t):
    os.mkdir(folder)
    open(folder + '/config.json', 'w').write(json.dumps(config))
    if processor: open(folder + '/preprocessor_config.json', 'w').write(processor)
    h, body = {}, b''
    for n, a in t.items():
        b = np.ascontiguousarray(a, 'f4').tobytes()
        h[n] = dict(dtype='F32', shape=list(a.shape), data_offsets=[len(body), len(body) + len(b)])
        body += b
    h = json.dumps(h).encode()
    h += b' ' * (-len(h) % 8)
    open(folder + '/model.safetensors', 'wb').write(struct.pack('<Q', len(h)) + h + body)
def tokens(to, f, **change):
    with h5py.File(to, 'w') as g:
        for a in 'ptq_version', 'history': g.attrs[a] = f.attrs[a]
        g.attrs['ptq_kind'] = 'tokens'
        for n in 'tokens', 'sequence', 'modality', 'image_span', 'image_grid', 'images', 'position':
            if n in f and change.get(n, 1) is not None: f.copy(n, g)
        for n, a in change.items():
            if a is not None:
                kept = dict(g[n].attrs)
                del g[n]
                g[n] = a
                g[n].attrs.update(kept)
def ppm(path, a): open(path, 'wb').write(b'P6 %d %d 255\n' % a.shape[1::-1] + a.tobytes())
for name in 'llava-clip', 'llava-clip-full', 'llava-siglip', 'qwen2-vl', 'llava-postnorm', 'vipllava':
    with h5py.File(f'{ref}/{name}.h5') as f:
        config, processor = json.loads(f['config'][()]), f['processor'][()].decode()
        t = tensors(f, config['vision_config']['patch_size'])
        tokens(name + '-t.h5', f)
        # the text alone, a placeholder an image, and its images
        ids, place, starts, span = [], {}, [], {a: n for a, n in f['image_span'][()]}
        i = 0
        while i < len(f['tokens']):
            place[i] = len(ids)
            ids.append(f['tokens'][i])
            i += span.get(i, 1)
        place[i] = len(ids)
        with h5py.File(name + '-text.h5', 'w') as g:
            g.attrs['ptq_kind'], g.attrs['ptq_version'] = 'tokens', '1'
            g['tokens'], g['sequence'] = np.array(ids, 'i4'), np.array([place[s] for s in f['sequence'][()]], 'i8')
        for i, section in enumerate(([1, 1, 1], [9, 9, 9], [1, 2, 1, 0]) if name == 'qwen2-vl' else ()):
            text = config['text_config']
            own = text | {'rope_parameters': text['rope_parameters'] | {'mrope_section': section}}
            put(f'sections{i}', config | {'text_config': own}, processor, t)
        for i in range(len(f['images'])): ppm(f'{name}-{i}.ppm', f[f'images/{i}'][()])
        for kind, rows in ('old', () if name == 'qwen2-vl' else OLD), ('new', NEW):
            put(f'{name}-{kind}', config, processor, {renamed(n, rows): a for n, a in t.items()})
        if name != 'llava-clip': continue
        behind = {'vision_tower.post_layernorm.weight': np.ones(24), 'vision_tower.encoder.layers.2.layer_norm1.weight': np.ones(24)}
        put('behind', config, processor, t | behind)
        put('no-processor', config, None, t)
        def bad(folder, **change):
            c = json.loads(json.dumps(config))
            for k, v in change.items(): (c['vision_config'] if k in c['vision_config'] else c)[k] = v
            put(folder, c, processor, t)
        bad('layer0', vision_feature_layer=0)
        bad('layers', vision_feature_layer=[-2, -1])
        bad('layer9', vision_feature_layer=9)
        bad('tower', model_type='dinov2')
        bad('patch', patch_size=99)
        bad('strategy', vision_feature_select_strategy='cls')
        bad('channels', num_channels=1)
        bad('none', vision_config=None)
        bad('side', image_size=25)
        bad('id', image_token_index=2**32 + 1)
        name = next(n for n in t if n.endswith('patch_embedding.weight'))
        put('last', config, processor, t | {name: t[name].transpose(0, 2, 3, 1).copy()})
        words = f['tokens'][()]
        tokens('holder-t.h5', f, modality=None, image_span=None, image_grid=None, images=None)
        tokens('word-t.h5', f, tokens=np.where(np.arange(len(words)) == f['image_span'][0, 0], 5, words))
        tokens('text-t.h5', f, tokens=np.where(words == config['image_token_index'], 5, words), modality=None, image_span=None, image_grid=None, images=None)
        # images in the first sequence alone
        s, spans = f['sequence'][1], f['image_span'][()]
        with h5py.File('mix-t.h5', 'w') as g:
            g.attrs['ptq_kind'], g.attrs['ptq_version'] = 'tokens', '1'
            g['tokens'] = np.where((np.arange(len(words)) >= s) & (words == config['image_token_index']), 5, words)
            g['sequence'], g['modality'] = f['sequence'][()], np.where(np.arange(len(words)) < s, f['modality'][()], 0).astype('u1')
            k = int((spans[:, 0] < s).sum())
            g['image_span'], g['image_grid'] = spans[:k], f['image_grid'][:k]
            for i in range(k): g[f'images/{i}'] = f[f'images/{i}'][()]
        with h5py.File('mute-t.h5', 'w') as g:
            g.attrs['ptq_kind'], g.attrs['ptq_version'] = 'tokens', '1'
            g['tokens'], g['modality'], g['sequence'] = np.full(16, 60, 'i4'), np.ones(16, 'u1'), [0, 16]
            g['tokens'].attrs['add_bos'] = 0
            g['image_span'], g['image_grid'], g['images/0'] = [[0, 16]], f['image_grid'][:1], f['images/0'][()]
        small = f['images/0'][:10]
        tokens('small-t.h5', f)
        with h5py.File('small-t.h5', 'a') as g:
            del g['images/0']
            g['images/0'] = small
PY
ok 'folders of the reference models' py make.py "$ref"

for m in llava-clip llava-clip-full llava-siglip qwen2-vl llava-postnorm vipllava; do
	ok "$m: from names as transformers 4 wrote them" model-import -q $m-old -o $m.h5
	ok "$m: from names as it has them in memory" model-import -q $m-new -o new.h5
	ok "$m: both give the same" h5diff $m.h5 new.h5
	ok "$m: which is the reference's tree" py -c '
import h5py, sys
with h5py.File(sys.argv[1]) as a, h5py.File(sys.argv[2]) as b:
    def see(path, d):
        if isinstance(d, h5py.Dataset) and path.split("/")[0] in ("model", "lm_head", "vision_tower", "multi_modal_projector", "visual"):
            assert (d[()] == b[path][()]).all(), path
    a.visititems(see)
    assert a["processor"][()] == b["processor"][()]' "$ref/$m.h5" $m.h5
	eval-ppl --ctx 128 --tokens $m-t.h5 $m.h5 >file.tsv
	ok "$m: the nll is the loss of transformers with the labels of images at -100, to what is printed" py -c '
import h5py, sys
v = dict(l.split() for l in open("file.tsv"))
with h5py.File(sys.argv[1]) as f:
    text, s = f["tokens"][()] != 60, f["sequence"][()]
    n = [text[a + 1:b].sum() for a, b in zip(s, s[1:])]
    want = sum(n * f["test/loss"][()]) / sum(n)
assert int(v["tokens"]) == sum(n) < text.sum() and abs(float(v["nll"]) - want) < 1e-6 * want, (v, n, want)' "$ref/$m.h5"
	images-import -q --model $m.h5 --tokens $m-text.h5 $m-?.ppm -o own-t.h5
	ok "$m: images-import makes the tokens, and the positions of transformers" py -c '
import h5py, sys
with h5py.File(sys.argv[1]) as a, h5py.File("own-t.h5") as b:
    for n in "tokens", "sequence", "modality", "image_span", "image_grid", "images/3": assert (a[n][()] == b[n][()]).all(), n
    assert ("position" in a) == ("position" in b) and ("position" not in a or (a["position"][()] == b["position"][()]).all())' $m-t.h5
	aifs-order $m-t.h5 -o first-t.h5
	eval-ppl --ctx 128 --tokens first-t.h5 $m.h5 >first.tsv
	ok "$m: with visual tokens first: they are moved, and the likelihood is the same" py -c '
import h5py, sys
a, b = ({k: float(v) for k, v in (l.split() for l in open(n))} for n in ("file.tsv", "first.tsv"))
assert a["tokens"] == b["tokens"] and abs(a["nll"] - b["nll"]) < 1e-5
x, y = h5py.File(sys.argv[1])["tokens"][()], h5py.File("first-t.h5")["tokens"][()]
assert (x != y).mean() > 0.2' $m-t.h5
	ok "$m: the same from a stream" sh -c 'model-import -q "$1-old" | eval-ppl --ctx 128 --tokens "$1-t.h5" >stream.tsv && cmp stream.tsv file.tsv' x $m
done

m=llava-clip
run() { eval-ppl --ctx 128 --tokens $m-t.h5 "$@"; }
warns 'windows of an image alone are left out' '/image_span: 8 of 14 windows have no token of text to predict and are left out' eval-ppl --ctx 6 --tokens $m-t.h5 $m.h5 -o few.h5
ok '... and what follows an image is a target' py -c '
import h5py, sys
with h5py.File("few.h5") as r, h5py.File(sys.argv[1]) as f:
    t, s = f["tokens"][()], f["sequence"][()]
    windows = [t[i:min(i + 6, b)][1:] for a, b in zip(s, s[1:]) for i in range(a, b, 6)]
    want = [w[w != 60] for w in windows if (w != 60).any()]
    assert r["target"][()].tolist() == [i for w in want for i in w]
    assert r["window"][()].tolist() == [k for k, w in enumerate(want) for i in w]' $m-t.h5
no 'an image alone' 1 'mute-t.h5: /image_span: no window of --ctx has a token of text to predict' eval-ppl --ctx 128 --tokens mute-t.h5 $m.h5
ok '... calibrates all the same' hessian-accum -q --ctx 128 --tokens mute-t.h5 $m.h5 -o x.h5
model-import behind -o x.h5 2>said
ok 'what stands behind the features is left out, and said' sh -c 'grep -q "vision_tower.*: stands behind the features that vision_feature_layer names: it and 1 more are left out" said && h5diff x.h5 llava-clip.h5'

# --- other language models, by every name that transformers loads
py -B "$top/tests/ref/llava.py" "$ref/texts.h5" >rows
is 'all rows' "$(wc -l <rows)" "$(grep -c ': Llava(' "$top/tests/ref/llava.py")"
while IFS='	' read -r row what; do is "as transformers: $row" "$what" same; done <rows

# --- calibration
hessian-accum -q --ctx 128 --tokens $m-t.h5 $m.h5 -o h.h5
is 'a Hessian for each modality behind the embeddings, one before' "$(py -c '
import h5py
with h5py.File("h.h5") as f: print(*(f[g + "/hessian"].shape for g in ("model/layers/0/mlp/up_proj", "vision_tower/encoder/layers/0/mlp/fc1", "multi_modal_projector/linear_2")))')" '(2, 32, 32) (24, 24) (32, 32)'
ok 'the sum over modalities is that of all tokens' py -c '
import h5py, numpy as np, sys
with h5py.File("h.h5") as f:
    g = f["model/layers/1/self_attn/q_proj"]
    assert g["count"][()].sum() == len(h5py.File(sys.argv[1])["tokens"]) and (g["count"][()] > 0).all()
    assert (g["fourth"][()] > 0).all() and (g["histogram"][()].sum(1) == 32 * g["count"][()]).all()' $m-t.h5
hessian-accum -q --shard 1/2 --ctx 128 --tokens $m-t.h5 $m.h5 -o h1.h5
hessian-accum -q --shard 2/2 --ctx 128 --tokens $m-t.h5 $m.h5 -o h2.h5
hessian-accum -q h1.h5 h2.h5 -o sum.h5
ok 'shards are summed by modality' py -c '
import h5py, numpy as np
with h5py.File("h.h5") as a, h5py.File("sum.h5") as b:
    for layer in "model/layers/1/mlp/down_proj", "vision_tower/encoder/layers/1/mlp/fc2", "multi_modal_projector/linear_1":
        for n in "hessian", "count", "absmax", "mean_abs":
            x, y = (f[layer + "/" + n][()] for f in (a, b))
            assert x.shape == y.shape and abs(x - y).max() <= 1e-5 * abs(x).max(), (layer, n)'
ok 'a shard may have no images' sh -c 'for i in 1 2; do hessian-accum -q --shard $i/2 --ctx 128 --tokens mix-t.h5 "$1" -o m$i.h5 || exit 1; done; hessian-accum -q m1.h5 m2.h5 -o mix.h5 && hessian-accum -q --ctx 128 --tokens mix-t.h5 "$1" -o whole.h5' x $m.h5
ok '... and the sum has them' py -c '
import h5py
with h5py.File("mix.h5") as a, h5py.File("whole.h5") as b:
    for n in "model/layers/1/mlp/down_proj", "vision_tower/encoder/layers/1/mlp/fc2", "model/layers/0/self_attn/q_proj":
        x, y = (f[n + "/hessian"][()] for f in (a, b))
        assert (a[n + "/count"][()] == b[n + "/count"][()]).all() and abs(x - y).max() <= 1e-5 * abs(x).max(), n'
no '... but what solves needs them' 1 '/vision_tower/.*/count: says that no token was seen' dpq-run -q --hessian m2.h5 $m.h5 -o x.h5
no 'an image in windows of two shards' 1 '--shard 1/2: an image is in windows of several shards' hessian-accum -q --shard 1/2 --ctx 7 --tokens $m-t.h5 $m.h5 -o x.h5
ok 'weights of all three stacks are quantized' sh -c 'dpq-run --storage uint4 --group 8 --hessian h.h5 "$1" -o q.h5 2>said && grep -q "^/vision_tower/encoder/layers/1/mlp/fc2" said && grep -q "^/multi_modal_projector/linear_1" said && grep -q "^/model/layers/1/mlp/down_proj" said' x $m.h5
ok '--sequential quantizes them behind each other' dpq-run -q --sequential --ctx 128 --tokens $m-t.h5 --storage uint4 --group 8 $m.h5 -o s.h5
# Values of a model that was quantized: neither nothing nor much is lost.
within() { ok "$1 ($2)" awk -v x="$2" -v a="$3" -v b="$4" 'BEGIN { exit !(x > a && x < b) }'; }
no 'but for the embedding of patches' 1 '/vision_tower/embeddings/patch_embedding: --sequential does not quantize' dpq-run -q --sequential --layers '*patch_embedding' --group channel --ctx 128 --tokens $m-t.h5 $m.h5 -o x.h5
ok 'which is quantized without, if it is named' sh -c 'hessian-accum -q --layers "*patch_embedding" --ctx 128 --tokens "$1-t.h5" "$1.h5" -o patch-h.h5 && dpq-run -q --layers "*patch_embedding" --group channel --hessian patch-h.h5 "$1.h5" -o patch.h5 && h5ls patch.h5/vision_tower/embeddings/patch_embedding | grep -q ^codes' x $m
kl() { run --reference $m.h5 "$@" | awk '$1 == "kl" { print $2 }'; }
within 'what is quantized is run: one-shot' "$(kl q.h5)" 0.001 0.5
within 'what is quantized is run: sequential' "$(kl s.h5)" 0.001 0.5
no 'a token that stands for an image, and there is none' 1 '/tokens: position 4 of window 1 is 60: it stands for an image, expected one there' run --ctx 128 --tokens holder-t.h5 $m.h5
no 'another token in an image' 1 "/tokens: position 4 of window 1 is 5: it is an image's, expected the id that stands for one" run --tokens word-t.h5 $m.h5
ok 'a model does not draw what stands for an image' sh -c 'sample-tokens -q --length 4000 --ctx 50 --temperature 5 "$1" -o drawn.h5 && ! h5dump -d /tokens drawn.h5 | grep -q "[ ,]60[,\n]"' x $m.h5
no 'nor does --sequential' 1 '/multi_modal_projector/linear_1: has seen no tokens: text-t.h5 has no images in its windows|/vision_tower/.*: has seen no tokens: text-t.h5 has no images' dpq-run -q --sequential --group 8 --ctx 128 --tokens text-t.h5 $m.h5 -o x.h5
ok '... unless they are left out' dpq-run -q --sequential --layers '/model/layers/*' --group 8 --ctx 128 --tokens text-t.h5 $m.h5 -o x.h5
no 'calibration on text does not reach the encoder' 1 '/vision_tower/encoder/layers/0/.*: has seen no tokens' hessian-accum -q --ctx 128 --tokens text-t.h5 $m.h5 -o x.h5
ok 'a text alone runs through the language model' sh -c 'eval-ppl --ctx 128 --tokens text-t.h5 "$1" >/dev/null' x $m.h5

# --- static scales by modality
msq-calib --act-format int8 --act-mode static-modality --ctx 128 --tokens $m-t.h5 $m.h5 -o msq.h5 2>said
is 'two scales behind the embeddings, one before' "$(py -c '
import h5py
with h5py.File("msq.h5") as f: print(*(len(f[g + "/act_scale"]) for g in ("model/layers/0/mlp/up_proj", "vision_tower/encoder/layers/0/mlp/fc1", "multi_modal_projector/linear_2")))')" '2 1 1'
ok 'they are max |x| / 127 of each modality' py -c '
import h5py, numpy as np
with h5py.File("h.h5") as h, h5py.File("msq.h5") as f:
    for g in "model/layers/0/self_attn/q_proj", "model/layers/1/mlp/down_proj":
        assert np.allclose(f[g + "/act_scale"][()], h[g + "/absmax"][()].max(1) / 127, rtol=1e-6), g'
for p in visual text; do msq-calib -q --act-format int8 --act-mode static-modality --clip 90 --clip-modality $p --ctx 128 --tokens $m-t.h5 $m.h5 -o $p-clip.h5; done
msq-calib -q --act-format int8 --act-mode static-modality --clip 90 --ctx 128 --tokens $m-t.h5 $m.h5 -o both-clip.h5
ok 'the range of one modality is clipped' py -c '
import h5py
with h5py.File("msq.h5") as whole, h5py.File("both-clip.h5") as both, h5py.File("text-clip.h5") as text, h5py.File("visual-clip.h5") as visual:
    for g in "model/layers/0/self_attn/q_proj", "model/layers/1/mlp/down_proj":
        w, b, t, v = (f[g + "/act_scale"][()] for f in (whole, both, text, visual))
        assert (b < w).all() and (t == [b[0], w[1]]).all() and (v == [w[0], b[1]]).all(), g
    g = "vision_tower/encoder/layers/0/mlp/fc1/act_scale"
    assert both[g][0] == visual[g][0] < text[g][0] == whole[g][0]'
warns '--clip-modality without modalities' 'without effect here: --clip-modality .one scale for all modalities.' msq-calib --act-format int8 --clip-modality text --ctx 128 --tokens $m-t.h5 $m.h5 -o x.h5
ok 'the report names both' grep -q '^/model/layers/0/mlp/up_proj visual	' said
within 'inputs are rounded under them' "$(kl msq.h5)" 1e-6 0.05
msq-calib -q --act-format int8 --ctx 128 --tokens text-t.h5 --layers '/model/*' --act-mode static-modality $m.h5 -o text.h5
no 'scales that lack a modality of the tokens' 1 '/model/layers/0/.*: has a scale of inputs for each of 1 modalities, the tokens are of 2' run text.h5

# --- norms and rotations (the same in double: tests/invariant.c)
py - <<'PY'
import h5py, shutil
def one_gain(name, *norms):
    shutil.copy(name + '.h5', name + '-1.h5')
    with h5py.File(name + '-1.h5', 'r+') as f:
        for n in norms: f[n + '/weight'][...] = 0.7
blocks = [f'vision_tower/encoder/layers/{i}/layer_norm{k}' for i in range(3) for k in (1, 2)]
one_gain('vipllava', 'vision_tower/embeddings/pre_layrnorm')
one_gain('llava-postnorm', *blocks)
shutil.copy('qwen2-vl.h5', 'qwen2-vl-1.h5')
PY
checked() { awk -v x="$(sed -n 's/.*check: the logits differ by at most \([^ ]*\) of the largest$/\1/p' said)" 'BEGIN { exit !(x != "" && x >= 0 && x <= 1e-5) }'; }
for m in vipllava llava-postnorm qwen2-vl; do
	no "$m: a rotation past LayerNorms" 1 'is a LayerNorm, whose mean a rotation does not keep: ln2rms makes RMS norms' hadamard-rotate -q $m-1.h5 -o x.h5
	ln2rms --check $m-1.h5 -o rms.h5 2>said
	ok "$m: RMS norms compute the same ($(cat said))" checked
	hadamard-rotate --check --seed 5 rms.h5 -o turned.h5 2>said
	ok "$m: both streams turned ($(cat said))" checked
	hadamard-rotate --check --language $m-1.h5 -o language.h5 2>said
	ok "$m: that of the language model turned ($(cat said))" checked
	ok "$m: where things have turned, and norms changed" py -c '
import h5py, numpy as np, sys
before, rms, turned, language = (h5py.File(n) for n in (sys.argv[1], "rms.h5", "turned.h5", "language.h5"))
encoder = "visual" if "visual" in before else "vision_tower"
kinds = {"layer_norm", "norm1", "norm2", "ln_q", "layrnorm", "layernorm"}
seen = set()
def norm(path, g):
    if "norm" in path.split("/")[-1] or path.endswith("ln_q"):
        if isinstance(g, h5py.Group) and not path.startswith("model/"):
            assert g.attrs["norm"] == "rms" and "norm" not in before[path].attrs, path
            seen.add(path)
rms.visititems(norm)
assert len(seen) >= 4
x = "model/layers/0/input_layernorm/weight"
assert (rms[x][()] == before[x][()]).all() and (turned[x][()] == 1).all()	# RMS norms as they were, then folded
def gram(f, path): w = f[path][()].astype("f8").reshape(-1, f[path].shape[-1]); return w @ w.T
names = [n for n in ("vision_tower/embeddings/position_embedding/weight", "vision_tower/embeddings/class_embedding") if n in before]
for n in names + ["model/embed_tokens/weight"]:
    a, b, c = gram(rms, n), gram(turned, n), gram(language, n)
    assert abs(a - b).max() < 1e-5 * abs(a).max() and abs(rms[n][()] - turned[n][()]).max() > 1e-2, n
for n in names: assert (language[n][()] == before[n][()]).all(), n
projector = "visual/merger/mlp/2" if encoder == "visual" else "multi_modal_projector/linear_2"
assert "online_hadamard" in turned[projector].attrs and "online_hadamard" not in language[projector].attrs
assert abs(language[projector]["weight"][()] - before[projector]["weight"][()]).max() > 1e-2' $m-1.h5
	rms-suppress --check turned.h5 -o split.h5 2>said
	ok "$m: channels are taken out of the encoder's layers and the projector's too" sh -c 'grep -q "^/v.*/fc2	" said && grep -q "^/multi_modal_projector/linear_2\|^/visual/merger/mlp/2" said'
	eval-ppl --ctx 128 --tokens $m-t.h5 $m-1.h5 >file.tsv
	ok "$m: the likelihood with images is the same" sh -c 'eval-ppl --ctx 128 --tokens "$1" turned.h5 >t.tsv && paste file.tsv t.tsv | awk "\$1 == \"nll\" { d = \$2 - \$4; exit !(d * d < 1e-10) }"' x $m-t.h5
	ok "$m: the same stream by stream" sh -c 'ln2rms -q - <"$1" | hadamard-rotate -q --seed 5 - >s.h5 && eval-ppl --ctx 128 --tokens "$2" - <s.h5 | cmp - t.tsv' x $m-1.h5 $m-t.h5
done
no 'a norm before the blocks whose gain differs by channel' 1 '/vision_tower/embeddings/pre_layrnorm: adds to a stream that norms read, by another gain' ln2rms -q vipllava.h5 -o x.h5
no 'a projector that reads the stream itself' 1 '/multi_modal_projector/linear_1: reads the stream itself, with the mean' ln2rms -q llava-siglip.h5 -o x.h5
no 'a norm behind a branch whose gain differs by channel' 1 '/vision_tower/encoder/layers/0/layer_norm1: stands behind a branch and has another gain' sh -c 'ln2rms -q llava-postnorm.h5 | hadamard-rotate -q -o x.h5'
no 'nothing to convert' 1 '/model/layers/0/input_layernorm: is an RMS norm already' ln2rms -q --language llava-siglip.h5 -o x.h5
hessian-accum -q --ctx 128 --tokens qwen2-vl-t.h5 qwen2-vl.h5 -o smooth-h.h5
ok 'outliers go into the weights of all three' sh -c 'smooth-scale --check --hessian smooth-h.h5 qwen2-vl.h5 -o smooth.h5 2>said && grep -q "^/visual/merger/ln_q" said && grep -q "^/visual/blocks/1/norm2" said && grep -q "^/model/layers/1/input_layernorm" said'
py -c '
import h5py, numpy as np
q = np.linalg.qr(np.random.default_rng(1).standard_normal((32, 32)))[0]
with h5py.File("learned.h5", "w") as f:
    f.attrs["ptq_kind"], f.attrs["ptq_version"], f["residual"] = "rotation", "1", q.astype("f4")'
ln2rms -q vipllava-1.h5 -o rms.h5
hadamard-rotate --check --load learned.h5 rms.h5 -o turned.h5 2>said
ok "a learned rotation is the language model's ($(cat said))" checked
ok '... and the encoder turns by a Hadamard matrix' py -c '
import h5py, numpy as np
a, b = (h5py.File(n)["vision_tower/embeddings/position_embedding/weight"][()] for n in ("rms.h5", "turned.h5"))
assert abs(a - b).max() > 1e-2'
m=llava-clip

# --- questions with images, of models whose tokens are bytes: 1 stands for an image
cat >questions.py <<'PY'
import json, sys
import h5py, numpy as np
r = np.random.default_rng(5)
for name in 'llava-clip', 'qwen2-vl':
    with h5py.File(f'{sys.argv[1]}/{name}.h5') as f, h5py.File(name + '-bytes.h5', 'w') as g:
        for a in 'ptq_kind', 'ptq_version', 'history': g.attrs[a] = f.attrs[a]
        c = json.loads(f['config'][()])
        c['text_config']['vocab_size'], c['text_config']['bos_token_id'] = 256, 0
        c['image_token_index' if 'llava' in name else 'image_token_id'] = 1
        g['config'] = json.dumps(c)
        for n in f:
            if n not in ('config', 'test', 'tokens') and not n.startswith('image'): f.copy(n, g)
        for n in 'model/embed_tokens/weight', 'lm_head/weight':
            del g[n]
            g[n] = (0.3 * r.standard_normal((256, 32))).astype('f4')
    images = [f'{name}-{i}.ppm' for i in range(4)]
    texts = [('ab\x01 or \x01 what? ', ['yes', 'no way'], images[:2]), ('\x01is it', [' so', 'n', 'x'], images[2:3]), ('none here', ['a', ' bc'], [])]
    with open(name + '.jsonl', 'w') as q:
        for context, choices, own in texts:
            q.write(json.dumps(dict(task='t', context=context, choices=choices, gold=0, images=own)) + '\n')
    with open(name + '.sh', 'w') as s:
        for i, (context, choices, own) in enumerate(texts):
            for j, text in enumerate([context.rstrip(' ')] + [context + c for c in choices]):
                open(f'{name}.{i}.{j}', 'w').write(text)
                more = f'images-import -q --model {name}-bytes.h5 --tokens t.h5 {" ".join(own)} -o t2.h5' if own else 'cp t.h5 t2.h5'
                s.write(f'tokenize -q --bytes {name}.{i}.{j} -o t.h5; {more}; eval-ppl --convention sliding --ctx 120 --tokens t2.h5 {name}-bytes.h5 >{name}.{i}.{j}.tsv\n')
PY
cat >compare.py <<'PY'
import sys
import h5py
name, record = sys.argv[1:]
def total(path):
    v = dict(l.split() for l in open(path))
    return float(v['tokens']) * float(v['nll'])
with h5py.File(record) as f: y = f['choice/log_likelihood'][()]
k = 0
for i, choices in enumerate((2, 3, 2)):
    for j in range(choices):
        want = total(f'{name}.{i}.0.tsv') - total(f'{name}.{i}.{j + 1}.tsv')
        assert abs(y[k] - want) < 1e-4, (i, j, y[k], want)
        k += 1
PY
ok 'models of bytes' py questions.py "$ref"
for q in llava-clip qwen2-vl; do
	eval-choice -q --bos yes --questions $q.jsonl $q-bytes.h5 -o choices.h5 >choices.tsv
	sh -eu $q.sh
	ok "$q: choices behind images have the likelihoods that eval-ppl gives" py compare.py $q choices.h5
	eval-choice -q --bos yes --aifs --questions $q.jsonl $q-bytes.h5 -o choices.h5 >aifs.tsv
	ok "$q: with visual tokens first too" py compare.py $q choices.h5
	ok "$q: and the same answers" cmp choices.tsv aifs.tsv
done
choice() { printf '%s\n' "$1" >q.jsonl && eval-choice -q --bos no --questions q.jsonl llava-clip-bytes.h5; }
no 'an image without a placeholder' 1 "q.jsonl:1: 'context' has 0 placeholders of images .id 1., 'images' has 1" choice '{"task": "t", "context": "a", "choices": ["b"], "gold": 0, "images": ["llava-clip-0.ppm"]}'
no 'an image that is not there' 1 'q.jsonl:1: .*none.png' choice '{"task": "t", "context": "a\u0001b", "choices": ["b"], "gold": 0, "images": ["none.png"]}'
no 'a placeholder in a choice' 1 'choice 0 has a placeholder of an image' choice '{"task": "t", "context": "a\u0001b", "choices": ["\u0001"], "gold": 0, "images": ["llava-clip-0.ppm"]}'

# --- what is refused
no 'no processor' 1 '/processor: is missing; a model that sees images needs its preprocessor_config.json' sh -c 'model-import -q no-processor | eval-ppl --ctx 128 --tokens "$1"' x $m-t.h5
py - <<'PY'
import h5py, shutil
def without(name, path):
    shutil.copy('llava-clip.h5', name)
    with h5py.File(name, 'r+') as f: del f[path]
without('no-class.h5', 'vision_tower/embeddings/class_embedding')
without('no-shift.h5', 'vision_tower/encoder/layers/0/layer_norm2/bias')
shutil.copy('qwen2-vl-t.h5', 'flat-t.h5')
with h5py.File('flat-t.h5', 'r+') as f: del f['position']
shutil.copy('llava-clip-t.h5', 'kind-t.h5')
with h5py.File('kind-t.h5', 'r+') as f: f['modality'][-1] = 255
PY
no 'no class token' 1 '/vision_tower/embeddings/class_embedding: is missing' run no-class.h5
no 'a LayerNorm without a shift' 1 '/vision_tower/encoder/layers/0/layer_norm2/bias: is missing' run no-shift.h5
no 'images without multimodal positions' 1 '/position: is missing, expected frames, rows and columns' eval-ppl --ctx 128 --tokens flat-t.h5 qwen2-vl.h5
no 'a third modality' 1 '/modality: token .* is of kind 255, expected 0, text, or 1, visual' eval-ppl --ctx 128 --tokens kind-t.h5 $m.h5
no 'an id beyond the vocabulary' 1 'an image is token 4294967297' model-import -q id -o x.h5
no 'patches whose channels are last' 1 'patch_embedding.weight: its shape is not the' model-import -q last -o x.h5
no 'the embeddings themselves' 1 "'vision_feature_layer' is 0, expected one behind a block of the 3" model-import -q layer0 -o x.h5
no 'a block that is not there' 1 "'vision_feature_layer' is 9" model-import -q layer9 -o x.h5
no 'several layers' 1 "'vision_feature_layer' must be a whole number: features of several layers" model-import -q layers -o x.h5
no 'another encoder' 1 "'vision_config': unknown model_type 'dinov2'; known are clip_vision_model, siglip_vision_model" model-import -q tower -o x.h5
no 'no encoder' 1 "'vision_config' is missing" model-import -q none -o x.h5
no 'a patch larger than the image' 1 "'patch_size' is 99, the images are 20 pixels wide" model-import -q patch -o x.h5
no 'another strategy' 1 "'vision_feature_select_strategy' is 'cls', expected default or full" model-import -q strategy -o x.h5
no 'grey images' 1 "'num_channels' is not supported other than 3" model-import -q channels -o x.h5
no 'positions of another number of patches' 1 'position_embedding.weight: its shape is not the \[26, 24\] of config.json' model-import -q side -o x.h5
no 'an image of another size' 1 '/processor: makes 10 x 20 pixels of a picture of 10 x 20; the vision tower takes 20 x 20' eval-ppl --ctx 128 --tokens small-t.h5 $m.h5
for s in 0 1 2; do no "sections of rotary pairs that are none ($s)" 1 "'mrope_section' must be a list of 3 numbers of rotary pairs, 4 in all" model-import -q sections$s -o x.h5; done
no 'images and a model of text' 1 '/images: the model is of text alone' eval-ppl --ctx 128 --tokens $m-t.h5 "$top/tests/ref/llama-gqa.h5"
done_testing
