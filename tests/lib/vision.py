"""vision.py -- Python of tests/vision.t"""

import json
import os
import shutil
import struct

import h5py
import numpy as np

from lib.h5 import read


def renamed(name, rows):
    name = name.replace('embeddings.pre_layrnorm', 'pre_layrnorm')
    return next((b + name[len(a) :] for a, b in rows if name.startswith(a)), name)


def tensors(f, patch):
    y = {}

    def visit(path, d):
        if isinstance(d, h5py.Dataset) and path.split('/')[0] in (
            'model',
            'lm_head',
            'vision_tower',
            'multi_modal_projector',
            'visual',
            'connector',
        ):
            a = d[()]
            if path.endswith('patch_embedding/weight'):
                a = a.reshape(len(a), 3, patch, patch)
            if path.endswith('patch_embed/proj/weight'):
                a = a.reshape(len(a), 3, 2, patch, patch)
            y[path.replace('/', '.')] = a

    f.visititems(visit)
    for q in [n for n in y if n.startswith('visual.') and '.q_proj.' in n]:
        y[q.replace('q_proj', 'qkv')] = np.concatenate([y.pop(q.replace('q_proj', p + '_proj')) for p in 'qkv'])
    return y


def put(folder, config, processor, t):
    os.mkdir(folder)
    open(folder + '/config.json', 'w').write(json.dumps(config))
    if processor:
        open(folder + '/preprocessor_config.json', 'w').write(processor)
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
        for a in 'ptq_version', 'history':
            g.attrs[a] = f.attrs[a]
        g.attrs['ptq_kind'] = 'tokens'
        for n in 'tokens', 'sequence', 'modality', 'image_span', 'image_grid', 'images', 'position':
            if n in f and change.get(n, 1) is not None:
                f.copy(n, g)
        for n, a in change.items():
            if a is not None:
                kept = dict(g[n].attrs)
                del g[n]
                g[n] = a
                g[n].attrs.update(kept)


def ppm(path, a):
    open(path, 'wb').write(b'P6 %d %d 255\n' % a.shape[1::-1] + a.tobytes())


def make(ref):
    OLD = (
        ('model.', 'language_model.model.'),
        ('lm_head.', 'language_model.lm_head.'),
        ('vision_tower.', 'vision_tower.vision_model.'),
    )
    NEW = (
        ('model.', 'model.language_model.'),
        ('visual.', 'model.visual.'),
        ('vision_tower.', 'model.vision_tower.'),
        ('multi_modal_projector.', 'model.multi_modal_projector.'),
    )
    IDEFICS3 = (
        ('model.', 'model.text_model.'),
        ('vision_tower.', 'model.vision_model.'),
        ('connector.post_layernorm.', 'model.vision_model.post_layernorm.'),
        ('connector.', 'model.connector.'),
    )
    rows_of = {
        'qwen2-vl': ((), NEW),
        'qwen2.5-vl': ((), NEW),
        'idefics3': (IDEFICS3, IDEFICS3),
        'smolvlm': (IDEFICS3, IDEFICS3),
    }

    for name in 'llava-clip', 'llava-clip-full', 'llava-siglip', 'llava-postnorm', 'vipllava', *rows_of:
        with h5py.File(f'{ref}/{name}.h5') as f:
            config, processor = json.loads(f['config'][()]), f['processor'][()].decode()
            t = tensors(f, config['vision_config']['patch_size'])
            tokens(name + '-t.h5', f)
            # the text with one placeholder per image, and its images
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
            for i in range(len(f['images'])):
                ppm(f'{name}-{i}.ppm', f[f'images/{i}'][()])
            if name == 'idefics3':
                put('squares', config | {'scale_factor': 4}, processor, t)
                size = {'size': {'height': 30, 'width': 30}, 'resample': 1, 'image_std': [0.25] * 3}
                put('siglip', config, json.dumps({'image_processor_type': 'SiglipImageProcessor'} | size), t)
            for kind, rows in zip(('old', 'new'), rows_of.get(name, (OLD, NEW))):
                put(f'{name}-{kind}', config, processor, {renamed(n, rows): a for n, a in t.items()})
            for folder, change in (
                ('window', {'window_size': 9}),
                ('whole', {'fullatt_block_indexes': 7}),
                ('whole1', {'fullatt_block_indexes': [1, '2']}),
            ):
                if name == 'qwen2.5-vl':
                    put(folder, config | {'vision_config': config['vision_config'] | change}, processor, t)
            if name != 'llava-clip':
                continue
            behind = {
                'vision_tower.post_layernorm.weight': np.ones(24),
                'vision_tower.encoder.layers.2.layer_norm1.weight': np.ones(24),
            }
            put('behind', config, processor, t | behind)
            put('no-processor', config, None, t)

            def bad(folder, **change):
                c = json.loads(json.dumps(config))
                for k, v in change.items():
                    (c['vision_config'] if k in c['vision_config'] else c)[k] = v
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
            tokens(
                'text-t.h5',
                f,
                tokens=np.where(words == config['image_token_index'], 5, words),
                modality=None,
                image_span=None,
                image_grid=None,
                images=None,
            )
            # images only in the first sequence
            s, spans = f['sequence'][1], f['image_span'][()]
            with h5py.File('mix-t.h5', 'w') as g:
                g.attrs['ptq_kind'], g.attrs['ptq_version'] = 'tokens', '1'
                g['tokens'] = np.where((np.arange(len(words)) >= s) & (words == config['image_token_index']), 5, words)
                g['sequence'], g['modality'] = f['sequence'][()], np.where(
                    np.arange(len(words)) < s, f['modality'][()], 0
                ).astype('u1')
                k = int((spans[:, 0] < s).sum())
                g['image_span'], g['image_grid'] = spans[:k], f['image_grid'][:k]
                for i in range(k):
                    g[f'images/{i}'] = f[f'images/{i}'][()]
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


def one_gain(name, *norms):
    shutil.copy(name + '.h5', name + '-1.h5')
    with h5py.File(name + '-1.h5', 'r+') as f:
        for n in norms:
            f[n + '/weight'][...] = 0.7


def linked():
    blocks = [f'vision_tower/encoder/layers/{i}/layer_norm{k}' for i in range(3) for k in (1, 2)]
    one_gain('vipllava', 'vision_tower/embeddings/pre_layrnorm')
    one_gain('llava-postnorm', *blocks)
    for name in 'qwen2-vl', 'idefics3', 'smolvlm':
        shutil.copy(name + '.h5', name + '-1.h5')


def questions(ref):
    r = np.random.default_rng(5)
    for name in 'llava-clip', 'qwen2-vl', 'qwen2.5-vl', 'idefics3':
        with h5py.File(f'{ref}/{name}.h5') as f, h5py.File(name + '-bytes.h5', 'w') as g:
            for a in 'ptq_kind', 'ptq_version', 'history':
                g.attrs[a] = f.attrs[a]
            c = json.loads(f['config'][()])
            c['text_config']['vocab_size'], c['text_config']['bos_token_id'] = 256, 0
            c['image_token_index' if 'llava' in name else 'image_token_id'] = 1
            g['config'] = json.dumps(c)
            for n in f:
                if n not in ('config', 'test', 'tokens') and not n.startswith('image'):
                    f.copy(n, g)
            for n in 'model/embed_tokens/weight', 'lm_head/weight':
                del g[n]
                x = (0.3 * r.standard_normal((256, 32))).astype('f4')
                if n.startswith('lm_head'):  # texts are ASCII without NUL and placeholders
                    x[128:] = x[:128]
                    x[[0, 1, 128, 129]] = 0
                g[n] = x
        images = [f'{name}-{i}.ppm' for i in range(4)]
        texts = [
            ('ab\x01 or \x01 what? ', ['yes', 'no way'], images[:2]),
            ('\x01is it', [' so', 'n', 'x'], images[2:3]),
            ('none here', ['a', ' bc'], []),
        ]
        with open(name + '.jsonl', 'w') as q:
            for context, choices, own in texts:
                q.write(json.dumps(dict(task='t', context=context, choices=choices, gold=0, images=own)) + '\n')
        with open(name + '.sh', 'w') as s:
            for i, (context, choices, own) in enumerate(texts):
                for j, text in enumerate([context.rstrip(' ')] + [context + c for c in choices]):
                    open(f'{name}.{i}.{j}', 'w').write(text)
                    more = (
                        f'images-import -q --model {name}-bytes.h5 --tokens t.h5 {" ".join(own)} -o t2.h5'
                        if own
                        else 'cp t.h5 t2.h5'
                    )
                    s.write(
                        f'tokenize -q --bytes {name}.{i}.{j} -o t.h5; {more}; eval-ppl --convention sliding --ctx 120 '
                        f'--tokens t2.h5 {name}-bytes.h5 >{name}.{i}.{j}.tsv\n'
                    )


def answers(name):
    """Questions whose answers are generated, some with images."""
    images = [f'{name}-{i}.ppm' for i in range(4)]
    texts = [('ab\x01 or \x01 what?', images[:2]), ('\x01is it', images[2:3]), ('none here', []), ('\x01', images[:1])]
    texts += [('\x01is it', images[3:]), ('ab\x01 or \x01 what?', images[1:3])]
    with open(name + '-answers.jsonl', 'w') as q:
        for context, own in texts:
            q.write(json.dumps(dict(task='t', context=context, answer='a', match='exact', images=own)) + '\n')


def greedy(name, record):
    """Choices of eval-choice that are the generated texts; other texts for other images."""
    with h5py.File(record) as f:
        texts = list(f['question/text'].asstr()[()])
        texts = [t + ('' if end else '\x02') for t, end in zip(texts, f['question/end'][()])]  # 0: id 2, an end
    assert texts[0] != texts[5] and texts[1] != texts[4], texts
    with open(name + '-answers.jsonl') as q, open('generated.jsonl', 'w') as to:
        for line, text in zip(q, texts):
            x = json.loads(line)
            more = dict(context=x['context'], images=x['images'])
            to.write(json.dumps(dict(task='t', choices=[text], gold=0, **more)) + '\n')


def total(path):
    v = dict(l.split() for l in open(path))
    return float(v['tokens']) * float(v['nll'])


def compare(name, record):
    with h5py.File(record) as f:
        y = f['choice/log_likelihood'][()]
    k = 0
    for i, choices in enumerate((2, 3, 2)):
        for j in range(choices):
            want = total(f'{name}.{i}.0.tsv') - total(f'{name}.{i}.{j + 1}.tsv')
            assert abs(y[k] - want) < 1e-4, (i, j, y[k], want)
            k += 1


def without(name, path):
    shutil.copy('llava-clip.h5', name)
    with h5py.File(name, 'r+') as f:
        del f[path]


def faults():
    without('no-class.h5', 'vision_tower/embeddings/class_embedding')
    without('no-shift.h5', 'vision_tower/encoder/layers/0/layer_norm2/bias')
    shutil.copy('qwen2-vl-t.h5', 'flat-t.h5')
    with h5py.File('flat-t.h5', 'r+') as f:
        del f['position']
    shutil.copy('llava-clip-t.h5', 'kind-t.h5')
    with h5py.File('kind-t.h5', 'r+') as f:
        f['modality'][-1] = 255


def same_tree(reference, path):
    with h5py.File(reference) as a, h5py.File(path) as b:

        def see(path, d):
            if isinstance(d, h5py.Dataset) and path.split("/")[0] in (
                "model",
                "lm_head",
                "vision_tower",
                "multi_modal_projector",
                "visual",
                "connector",
            ):
                assert (d[()] == b[path][()]).all(), path

        a.visititems(see)
        assert a["processor"][()] == b["processor"][()]


def nll(reference):
    v = dict(l.split() for l in open("file.tsv"))
    with h5py.File(reference) as f:
        text, s = f["tokens"][()] != 60, f["sequence"][()]
        n = [text[a + 1 : b].sum() for a, b in zip(s, s[1:])]
        want = sum(n * f["test/loss"][()]) / sum(n)
    assert int(v["tokens"]) == sum(n) < text.sum() and abs(float(v["nll"]) - want) < 1e-6 * want, (v, n, want)


def positions(tokens):
    with h5py.File(tokens) as a, h5py.File("own-t.h5") as b:
        for n in "tokens", "sequence", "modality", "image_span", "image_grid", "images/3":
            assert (a[n][()] == b[n][()]).all(), n
        assert ("position" in a) == ("position" in b) and (
            "position" not in a or (a["position"][()] == b["position"][()]).all()
        )


def visual_first(tokens):
    a, b = ({k: float(v) for k, v in (l.split() for l in open(n))} for n in ("file.tsv", "first.tsv"))
    assert a["tokens"] == b["tokens"] and abs(a["nll"] - b["nll"]) < 1e-5
    x, y = h5py.File(tokens)["tokens"][()], read("first-t.h5", "tokens")
    assert (x != y).mean() > 0.2


def targets(tokens):
    with h5py.File("few.h5") as r, h5py.File(tokens) as f:
        t, s = f["tokens"][()], f["sequence"][()]
        windows = [t[i : min(i + 6, b)][1:] for a, b in zip(s, s[1:]) for i in range(a, b, 6)]
        want = [w[w != 60] for w in windows if (w != 60).any()]
        assert r["target"][()].tolist() == [i for w in want for i in w]
        assert r["window"][()].tolist() == [k for k, w in enumerate(want) for i in w]


def modalities():
    with h5py.File("h.h5") as f:
        print(
            *(
                f[g + "/hessian"].shape
                for g in (
                    "model/layers/0/mlp/up_proj",
                    "vision_tower/encoder/layers/0/mlp/fc1",
                    "multi_modal_projector/linear_2",
                )
            )
        )


def sum_of_modalities(tokens):
    with h5py.File("h.h5") as f:
        g = f["model/layers/1/self_attn/q_proj"]
        assert g["count"][()].sum() == len(h5py.File(tokens)["tokens"]) and (g["count"][()] > 0).all()
        assert (g["fourth"][()] > 0).all() and (g["histogram"][()].sum(1) == 32 * g["count"][()]).all()


def shards():
    with h5py.File("h.h5") as a, h5py.File("sum.h5") as b:
        for layer in (
            "model/layers/1/mlp/down_proj",
            "vision_tower/encoder/layers/1/mlp/fc2",
            "multi_modal_projector/linear_1",
        ):
            for n in "hessian", "count", "absmax", "mean_abs":
                x, y = (f[layer + "/" + n][()] for f in (a, b))
                assert x.shape == y.shape and abs(x - y).max() <= 1e-5 * abs(x).max(), (layer, n)


def whole_sum():
    with h5py.File("mix.h5") as a, h5py.File("whole.h5") as b:
        for n in (
            "model/layers/1/mlp/down_proj",
            "vision_tower/encoder/layers/1/mlp/fc2",
            "model/layers/0/self_attn/q_proj",
        ):
            x, y = (f[n + "/hessian"][()] for f in (a, b))
            assert (a[n + "/count"][()] == b[n + "/count"][()]).all() and abs(x - y).max() <= 1e-5 * abs(x).max(), n


def scale_counts():
    with h5py.File("msq.h5") as f:
        print(
            *(
                len(f[g + "/act_scale"])
                for g in (
                    "model/layers/0/mlp/up_proj",
                    "vision_tower/encoder/layers/0/mlp/fc1",
                    "multi_modal_projector/linear_2",
                )
            )
        )


def scales():
    with h5py.File("h.h5") as h, h5py.File("msq.h5") as f:
        for g in "model/layers/0/self_attn/q_proj", "model/layers/1/mlp/down_proj":
            assert np.allclose(f[g + "/act_scale"][()], h[g + "/absmax"][()].max(1) / 127, rtol=1e-6), g


def clipped():
    with h5py.File("msq.h5") as whole, h5py.File("both-clip.h5") as both, h5py.File("text-clip.h5") as text, h5py.File(
        "visual-clip.h5"
    ) as visual:
        for g in "model/layers/0/self_attn/q_proj", "model/layers/1/mlp/down_proj":
            w, b, t, v = (f[g + "/act_scale"][()] for f in (whole, both, text, visual))
            assert (b < w).all() and (t == [b[0], w[1]]).all() and (v == [w[0], b[1]]).all(), g
        g = "vision_tower/encoder/layers/0/mlp/fc1/act_scale"
        assert both[g][0] == visual[g][0] < text[g][0] == whole[g][0]


def gram(f, path):
    w = f[path][()].astype("f8").reshape(-1, f[path].shape[-1])
    return w @ w.T


def rotated(model):
    before, rms, turned, language = (h5py.File(n) for n in (model, "rms.h5", "turned.h5", "language.h5"))
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
    assert (rms[x][()] == before[x][()]).all() and (turned[x][()] == 1).all()  # RMS norms unchanged, then folded

    names = [
        n
        for n in ("vision_tower/embeddings/position_embedding/weight", "vision_tower/embeddings/class_embedding")
        if n in before
    ]
    for n in names + ["model/embed_tokens/weight"]:
        a, b, c = gram(rms, n), gram(turned, n), gram(language, n)
        assert abs(a - b).max() < 1e-5 * abs(a).max() and abs(rms[n][()] - turned[n][()]).max() > 1e-2, n
    for n in names:
        assert (language[n][()] == before[n][()]).all(), n
    projectors = "visual/merger/mlp/2", "multi_modal_projector/linear_2", "connector/modality_projection/proj"
    projector = next(n for n in projectors if n in before)
    online = not projector.startswith("connector")  # whose only layer has no input of its own
    assert ("online_hadamard" in turned[projector].attrs) == online
    assert "online_hadamard" not in language[projector].attrs
    assert abs(language[projector]["weight"][()] - before[projector]["weight"][()]).max() > 1e-2


def turned_encoder(model):
    before, turned, language = (h5py.File(n) for n in (model, "turned.h5", "language.h5"))
    visual, text = "visual/blocks/0/attn/q_proj/weight", "model/layers/0/self_attn/q_proj/weight"
    for n, changes in (visual, (1, 0)), (text, (1, 1)):
        for f, change in zip((turned, language), changes):
            assert (abs(f[n][()] - before[n][()]).max() > 1e-2) == change, n
    assert (turned["visual/blocks/1/norm2/weight"][()] == 1).all()  # folded
    assert "online_hadamard" in turned["visual/blocks/0/mlp/down_proj"].attrs


def scales_of(*names):
    with h5py.File("msq.h5") as f:
        print(*(len(f[g + "/act_scale"]) for g in names))


def window_scales():
    scales_of("model/layers/0/mlp/up_proj", "visual/blocks/0/mlp/up_proj", "visual/merger/mlp/2")


def single_scales():
    tower = "vision_tower/encoder/layers/0/mlp/fc1"
    scales_of("model/layers/0/mlp/up_proj", tower, "connector/modality_projection/proj")


def rotation():
    q = np.linalg.qr(np.random.default_rng(1).standard_normal((32, 32)))[0]
    with h5py.File("learned.h5", "w") as f:
        f.attrs["ptq_kind"], f.attrs["ptq_version"], f["residual"] = "rotation", "1", q.astype("f4")


def encoder():
    a, b = (read(n, "vision_tower/embeddings/position_embedding/weight") for n in ("rms.h5", "turned.h5"))
    assert abs(a - b).max() > 1e-2


def cut(source, path, image):
    """A file cut by hand so that it begins with this image, and one that begins after it; the ids before each."""
    image = int(image)
    with h5py.File(source) as f:
        n, span = len(f['tokens']), f['image_span'][()]
        for name, first in ('at', span[image, 0]), ('after', span[image].sum()):
            with h5py.File(f'{path}-{name}.h5', 'w') as g:
                g.attrs.update(f.attrs)
                for d in {'tokens', 'bytes', 'modality', 'position', 'index'} & set(f):
                    g[d] = f[d][first:]
                g['tokens'].attrs.update({k: v for k, v in f['tokens'].attrs.items() if k != 'tokens_sha256'})
                if 'sequence' in f:
                    g['sequence'] = np.unique(np.clip(f['sequence'][()], first, n) - first)
                kept = np.flatnonzero(span[:, 0] >= first)
                if len(kept):
                    g['image_span'] = span[kept] - [first, 0]
                    g['image_grid'] = f['image_grid'][kept]
                    for to, i in enumerate(kept):
                        g[f'images/{to}'] = f[f'images/{i}'][()]
        return f'{span[image, 0]} {span[image].sum()}'
