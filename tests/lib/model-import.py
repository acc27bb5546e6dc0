"""model-import.py -- Python of tests/model-import.t"""

import glob
import io
import json
import os
import random
import shutil
import struct
import subprocess
import sys

import h5py
import numpy as np


def data(a, dtype):
    if dtype == 'BF16':
        return (np.ascontiguousarray(a, 'f4').view('u4') >> 16).astype('u2').tobytes()
    return np.ascontiguousarray(a, {'F32': 'f4', 'F16': 'f2', 'I64': 'i8', 'F64': 'f8'}[dtype]).tobytes()


def entries(tensors, dtypes={}, dtype='F32'):
    h, body = {'__metadata__': {'format': 'pt'}}, b''
    for n, a in tensors.items():
        d = dtypes.get(n, dtype)
        b = data(a, d)
        h[n] = dict(dtype=d, shape=list(a.shape), data_offsets=[len(body), len(body) + len(b)])
        body += b
    return h, body


def put(path, h, body, pad=True):
    h = h if isinstance(h, bytes) else json.dumps(h).encode()
    if pad:
        h += b' ' * (-len(h) % 8)
    open(path, 'wb').write(struct.pack('<Q', len(h)) + h + body)


C = dict(
    architectures=['LlamaForCausalLM'],
    model_type='llama',
    hidden_size=8,
    intermediate_size=12,
    num_hidden_layers=11,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=4,
    vocab_size=10,
    max_position_embeddings=16,
    rms_norm_eps=1e-5,
    rope_theta=10000.0,
    hidden_act='silu',
    tie_word_embeddings=True,
    bos_token_id=1,
)
dice = np.random.default_rng(1)


def rand(*s):
    return dice.standard_normal(s).astype('f4')


def llama():
    t = {'model.embed_tokens.weight': rand(10, 8), 'model.norm.weight': rand(8)}
    for i in range(11):
        p = f'model.layers.{i}.'
        for n, s in dict(q=(8, 8), k=(4, 8), v=(4, 8), o=(8, 8)).items():
            t[f'{p}self_attn.{n}_proj.weight'] = rand(*s)
        for n, s in dict(gate=(12, 8), up=(12, 8), down=(8, 12)).items():
            t[f'{p}mlp.{n}_proj.weight'] = rand(*s)
        t[p + 'input_layernorm.weight'] = rand(8)
        t[p + 'post_attention_layernorm.weight'] = rand(8)
    return t


def folder(name, config=C, tokenizer='{"model": {}}'):
    os.mkdir(name)
    json.dump(config, open(name + '/config.json', 'w'))
    if tokenizer:
        open(name + '/tokenizer.json', 'w').write(tokenizer)
    return name + '/model.safetensors'


T = llama()


def make():
    put(folder('good'), *entries(T))
    put(
        folder('odd'),
        *(lambda h, b: (json.dumps(h).encode() + b' ' * ((1 - len(json.dumps(h))) % 8), b, False))(*entries(T)),
    )
    put(folder('half'), *entries(T, dtype='F16'))
    put(folder('brain'), *entries(T, dtype='BF16'))
    put(folder('own-head'), *entries(T | {'lm_head.weight': rand(10, 8)}))
    put(folder('same-head'), *entries(T | {'lm_head.weight': T['model.embed_tokens.weight']}))
    put(folder('head-only'), *entries({'lm_head.weight' if 'embed' in k else k: v for k, v in T.items()}))
    put(
        folder('double-head'),
        *entries(T | {'lm_head.weight': T['model.embed_tokens.weight']}, {'lm_head.weight': 'F64'}),
    )
    put(folder('flat-head'), *entries(T | {'lm_head': rand(10, 8)}))
    put(folder('neither'), *entries({k: v for k, v in T.items() if 'embed' not in k}))
    put(folder('untied', C | {'tie_word_embeddings': False}), *entries(T | {'lm_head.weight': rand(10, 8)}))
    put(folder('no-head', C | {'tie_word_embeddings': False}), *entries(T))
    put(
        folder('buffers'), *entries(T | {f'model.layers.{i}.self_attn.rotary_emb.inv_freq': rand(2) for i in range(11)})
    )
    put(
        folder('extra'),
        *entries(T | {'model.layers.3.extra.weight': rand(3), 'scale': rand(1), 'ids': rand(2)}, {'ids': 'I64'}),
    )
    put(
        folder('biases'),
        *entries(
            T
            | {
                'model.layers.3.self_attn.o_proj.bias': rand(8),
                'model.layers.10.mlp.up_proj.bias': rand(12),
                'model.norm.bias': rand(8),
                'model.embed_tokens.bias': rand(8),
                'lm_head.bias': rand(10),
            }
        ),
    )
    put(folder('bias'), *entries(T | {'model.layers.3.self_attn.q_proj.bias': rand(8)}))
    put(folder('beyond', C | {'num_hidden_layers': 10}), *entries(T))
    put(folder('no-bias', C | {'attention_bias': True}), *entries(T))
    put(folder('zero'), *entries(T | {'model.layers.03.extra.weight': rand(3)}))
    for n in 31, 32:
        put(folder(f'nested-{n}'), *entries(T | {'a.' * n + 'b.c': rand(1)}))
    put(folder('missing'), *entries({k: v for k, v in T.items() if k != 'model.layers.10.mlp.up_proj.weight'}))
    put(folder('shape'), *entries(T | {'model.layers.2.mlp.up_proj.weight': rand(8, 12)}))
    put(folder('type'), *entries(T, {'model.norm.weight': 'F64'}))
    for name, value in dict(nan=np.nan, inf=-np.inf).items():
        w = T['model.norm.weight'].copy()
        w[5] = value
        put(folder(name), *entries(T | {'model.norm.weight': w}))
        put(folder(name + '16'), *entries(T | {'model.norm.weight': w}, dtype='BF16'))
    put(folder('unknown', C | {'architectures': ['OtherModel'], 'model_type': 'other'}), *entries(T))
    put(folder('no-tokenizer', C, None), *entries(T))
    put(folder('slash'), *entries(T | {'a/b.c': rand(1)}))
    put(folder('dots'), *entries(T | {'a..c': rand(1)}))
    put(folder('config-tensor'), *entries(T | {'config': rand(1)}))
    put(folder('below-config'), *entries(T | {'config.x': rand(1)}))
    put(folder('below-tokenizer'), *entries(T | {'tokenizer.y.z': rand(1)}))
    put(folder('configs'), *entries(T | {'configs.x': rand(1), 'tokenizers': rand(1)}))
    put(folder('both'), *entries(T | {'a.b': rand(1), 'a.b.c': rand(1)}))
    folder('empty')
    two, scaling = {'num_hidden_layers': 2}, {'rope_type': 'linear', 'factor': 2.0}
    llama3 = {'rope_type': 'llama3', 'factor': 2.0, 'low_freq_factor': 1.0, 'high_freq_factor': 4.0}
    long = {'rope_type': 'longrope', 'short_factor': [1.0, 1.0], 'long_factor': [2.0, 3.0]}
    for name, c in {
        'type': {'model_type': 'odd'},
        'no-type': {'model_type': None, 'architectures': ['OddForCausalLM']},
        'types-short': two | {'layer_types': ['full_attention']},
        'types-long': two | {'layer_types': ['full_attention'] * 3},
        'types-word': two | {'layer_types': ['full_attention', 'chunked_attention']},
        'types-number': two | {'layer_types': [1, 2]},
        'types-text': two | {'layer_types': 'full_attention'},
        'window': {'model_type': 'mistral', 'sliding_window': 0},
        'no-window': two
        | {'model_type': 'mistral', 'sliding_window': None, 'layer_types': ['full_attention', 'sliding_attention']},
        'off-window': two
        | {'model_type': 'qwen2', 'sliding_window': 5, 'layer_types': ['full_attention', 'sliding_attention']},
        'late': {'model_type': 'qwen2', 'max_window_layers': None},
        'rope-text': {'rope_scaling': 'linear'},
        'rope-kind': {'rope_parameters': {'rope_type': 'yarn', 'factor': 2.0}},
        'rope-null': {'rope_scaling': {'rope_type': None, 'type': 'linear', 'factor': 2.0}},
        'rope-factor': {'rope_scaling': {'type': 'linear'}},
        'rope-theta': {'rope_theta': None},
        'rope-inside': {'rope_parameters': {'rope_theta': None}},
        'rope-part': {'rope_scaling': scaling | {'partial_rotary_factor': 0.5}},
        'rope-beside': {'rope_scaling': scaling, 'partial_rotary_factor': 0.5},
        'rope-low': {'rope_scaling': llama3 | {'low_freq_factor': 4.0}},
        'rope-original': {'rope_scaling': llama3, 'original_max_position_embeddings': None},
        'long-list': {'rope_scaling': long | {'short_factor': 2.0}},
        'long-short': {'rope_scaling': long | {'long_factor': [1.0]}},
        'long-number': {'rope_scaling': long | {'long_factor': [1.0, 0]}},
        'long-text': {'rope_scaling': long | {'long_factor': [1.0, 'x']}},
        'long-one': {'rope_scaling': long | {'original_max_position_embeddings': 1}},
        'long-attention': {'rope_scaling': long | {'attention_factor': 0}},
        'long-factor': {'rope_scaling': long | {'factor': '2'}},
        'opt-width': {'model_type': 'opt', 'word_embed_proj_dim': 6},
        'opt-affine': {'model_type': 'opt', 'layer_norm_elementwise_affine': False},
        'opt-final': {'model_type': 'opt', '_remove_final_layer_norm': True},
        'opt-before': {'model_type': 'opt', 'do_layer_norm_before': 1},
        'opt-heads': {'model_type': 'opt', 'num_attention_heads': 3},
        'gemma-window': {'model_type': 'gemma2', 'sliding_window': None},
        'gemma-both': {'model_type': 'gemma', 'use_bidirectional_attention': True},
        'gemma-cap': {'model_type': 'gemma2', 'attn_logit_softcapping': 0},
        'gemma-logits': {'model_type': 'gemma3_text', 'final_logit_softcapping': '3'},
        'gemma-scalar': {'model_type': 'gemma2', 'query_pre_attn_scalar': None},
        'gemma-pattern': {'model_type': 'gemma3_text', 'sliding_window_pattern': 0},
        'gemma-theta': {'model_type': 'gemma3_text', 'rope_local_base_freq': 0},
        'gemma-rope': {'model_type': 'gemma3_text', 'rope_parameters': {'full_attention': 3}},
        'rope-types': {'rope_parameters': {'full_attention': scaling, 'sliding_attention': scaling}},
        'null-size': {'hidden_size': None},
        'null-bias': {'attention_bias': None},
        'null-act': {'hidden_act': None},
        'null-eps': {'rms_norm_eps': None},
        'act': {'hidden_act': 'xielu'},
        'causal': {'is_causal': False},
        'each': {'per_layer_config': {'1': {'intermediate_size': 4}}},
        'quantized': {'quantization_config': {'quant_method': 'aqlm'}},
        'groups': {'model_type': 'mistral', 'num_key_value_heads': 3},
    }.items():
        put(folder('bad-' + name, C | c), *entries({}))
    for name, c in {
        'scale': {'scale_attn_weights': False},
        'layer': {'scale_attn_by_inverse_layer_idx': True},
        'heads': {'n_head': 5},
        'alias': {'hidden_size': None},
    }.items():
        put(folder('bad-gpt2-' + name, {'model_type': 'gpt2', 'n_embd': 8, 'n_head': 2} | c), *entries({}))
    names = sorted(T)
    for shard, bad in (('shards', 0), ('shard-lies', 1), ('shard-outside', 2), ('shard-twice', 3), ('shard-gone', 4)):
        f = folder(shard)
        file = {n: f'model-0000{1 + i % 3}-of-00003.safetensors' for i, n in enumerate(names)}
        for k in set(file.values()):
            put(
                f'{shard}/{k}',
                *entries({n: T[n] for n in names if file[n] == k or (bad == 3 and n == 'model.norm.weight')}),
            )
        if bad == 1:
            file['model.norm.weight'] = file[names[0] if file[names[0]] != file['model.norm.weight'] else names[1]]
        if bad == 2:
            file['model.norm.weight'] = '../good/model.safetensors'
        if bad == 4:
            os.remove(f'{shard}/model-00002-of-00003.safetensors')
        json.dump({'metadata': {}, 'weight_map': file}, open(f + '.index.json', 'w'))

    def fault(name, change):
        h, b = entries(T)
        h, b = change(h, b) or (h, b)
        put(folder(name), h, b)

    first, second = list(T)[:2]
    fault('overlap', lambda h, b: (h | {second: h[second] | {'data_offsets': [0, 32]}}, b))
    fault('outside', lambda h, b: (h | {first: h[first] | {'data_offsets': [len(b), len(b) + 320]}}, b))
    fault('backward', lambda h, b: (h | {first: h[first] | {'data_offsets': [320, 0]}}, b))
    fault('negative', lambda h, b: (h | {first: h[first] | {'shape': [-10, -8]}}, b))
    fault('product', lambda h, b: (h | {first: h[first] | {'shape': [1 << 62, 1 << 62]}}, b))
    fault('long', lambda h, b: (h | {first: h[first] | {'shape': [10, 9]}}, b))
    fault('real', lambda h, b: (h | {first: h[first] | {'shape': [10.0, 8]}}, b))
    fault('cut', lambda h, b: (h, b[:-4]))
    fault('more', lambda h, b: (h, b + b'1234'))
    fault('list', lambda h, b: (b'[]', b))
    fault('junk', lambda h, b: (b'{"a": ', b))
    fault(
        'twice',
        lambda h, b: (b'{' + json.dumps(h)[1:-1].encode() + b',' + json.dumps({first: h[first]})[1:].encode(), b),
    )
    fault('deep', lambda h, b: (b'[' * 100000, b))
    f = folder('header')
    open(f, 'wb').write(struct.pack('<Q', 1 << 62) + b'{}' * 100)
    f = folder('tiny')
    open(f, 'wb').write(b'abc')
    g = dict(
        architectures=['GPT2LMHeadModel'],
        model_type='gpt2',
        n_embd=8,
        n_head=2,
        n_layer=2,
        n_positions=6,
        vocab_size=10,
    )
    G = {'wte.weight': rand(10, 8), 'wpe.weight': rand(6, 8), 'ln_f.weight': rand(8), 'ln_f.bias': rand(8)}
    for i in range(2):
        for n, s in {'attn.c_attn': (8, 24), 'attn.c_proj': (8, 8), 'mlp.c_fc': (8, 32), 'mlp.c_proj': (32, 8)}.items():
            G[f'h.{i}.{n}.weight'], G[f'h.{i}.{n}.bias'] = rand(*s), rand(s[1])
        for n in ('ln_1', 'ln_2'):
            G[f'h.{i}.{n}.weight'], G[f'h.{i}.{n}.bias'] = rand(8), rand(8)
        G[f'h.{i}.attn.bias'] = rand(1, 1, 6, 6)
    put(folder('gpt2', g), *entries(G))
    put(folder('gpt2-prefix', g), *entries({'transformer.' + k: v for k, v in G.items()}))
    neox()


def neox():
    c = dict(
        model_type='gpt_neox',
        hidden_size=24,
        num_attention_heads=3,
        num_hidden_layers=2,
        intermediate_size=12,
        vocab_size=10,
        max_position_embeddings=16,
    )
    X = {'gpt_neox.embed_in.weight': rand(10, 24), 'embed_out.weight': rand(10, 24)}
    N = {'gpt_neox.final_layer_norm': (24,)}
    for i in range(2):
        p = f'gpt_neox.layers.{i}.'
        N |= {
            p + 'input_layernorm': (24,),
            p + 'post_attention_layernorm': (24,),
            p + 'attention.query_key_value': (72, 24),
            p + 'attention.dense': (24, 24),
            p + 'mlp.dense_h_to_4h': (12, 24),
            p + 'mlp.dense_4h_to_h': (24, 12),
        }
        X |= {
            p + 'attention.bias': rand(1, 1, 4, 4),
            p + 'attention.masked_bias': rand(1),
            p + 'attention.rotary_emb.inv_freq': rand(1),
        }
    for n, s in N.items():
        X |= {n + '.weight': rand(*s), n + '.bias': rand(*s[:1])}
    fused = 'gpt_neox.layers.1.attention.query_key_value'
    for name, t in {
        'neox': X,
        'neox-missing': {k: v for k, v in X.items() if k != fused + '.weight'},
        'neox-apart': {k: v for k, v in X.items() if k != fused + '.weight'}
        | {f'gpt_neox.layers.1.attention.{n}_proj.weight': rand(24, 24) for n in 'qkv'},
        'neox-both': X | {'gpt_neox.layers.1.attention.k_proj.weight': rand(24, 24)},
        'neox-shape': X | {fused + '.weight': rand(48, 24)},
        'neox-short': X | {fused + '.bias': rand(24)},
        'neox-more': X | {fused + '.scale': rand(72)},
    }.items():
        put(folder(name, c), *entries(t))
    put(folder('neox-half', c), *entries(X, dtype='F16'))
    put(folder('neox-no-bias', c | {'attention_bias': False}), *entries(X))
    w = X[fused + '.weight'].copy()
    w[71, 23] = np.nan
    put(folder('neox-nan', c), *entries(X | {fused + '.weight': w}))
    for name, k in {
        'odd': {'rotary_pct': 0.4},
        'none': {'rotary_pct': 0.1},
        'over': {'rotary_pct': 1.25},
        'null': {'rotary_pct': None},
        'inside': {'rope_parameters': {'partial_rotary_factor': '1'}},
        'base': {'rotary_emb_base': 0},
        'parallel': {'use_parallel_residual': None},
        'heads': {'num_attention_heads': 5},
    }.items():
        put(folder('bad-neox-' + name, c | k), *entries({}))
    q = C | {'model_type': 'qwen3', 'num_hidden_layers': 1, 'tie_word_embeddings': False}
    Q = {k: v for k, v in T.items() if '.layers.' not in k or '.layers.0.' in k} | {'lm_head.weight': rand(10, 8)}
    Q |= {f'model.layers.0.self_attn.{n}_norm.weight': rand(4) for n in 'qk'}
    put(folder('qwen3', q), *entries(Q))
    put(folder('qwen3-norm', q), *entries(Q | {'model.layers.0.self_attn.k_norm.weight': rand(8)}))
    put(folder('qwen3-no-norm', q), *entries({k: v for k, v in Q.items() if 'q_norm' not in k}))


def same_tensors(folder, out):
    f = h5py.File(out)
    seen = set()
    for path in sorted(glob.glob(folder + '/*.safetensors')):
        raw = open(path, 'rb').read()
        n = struct.unpack('<Q', raw[:8])[0]
        for name, e in json.loads(raw[8 : 8 + n]).items():
            if name == '__metadata__':
                continue
            d = f[name.replace('.', '/')]
            b, e2 = e['data_offsets']
            buf = np.empty(d.shape, dtype=d.dtype)
            assert list(d.shape) == e['shape'], name
            if e['dtype'] == 'BF16':
                buf, want = d[...], (np.frombuffer(raw[8 + n + b : 8 + n + e2], 'u2').astype('u4') << 16).view('f4')
                assert d.id.get_type().get_size() == 2 and (buf.ravel().astype('f4') == want).all(), name
            else:
                assert d[...].tobytes() == raw[8 + n + b : 8 + n + e2], name
            seen.add('/' + name.replace('.', '/'))
    all = []
    f.visititems(lambda p, o: all.append('/' + p) if isinstance(o, h5py.Dataset) else None)
    assert set(all) - seen <= {'/config', '/tokenizer', '/lm_head/weight'}, set(all) - seen
    assert f['config'][()].decode() == open(folder + '/config.json').read()
    assert f['tokenizer'][()].decode() == open(folder + '/tokenizer.json').read()
    assert f.attrs['ptq_kind'] == 'model'


def stream_parts():
    raw, at, out = open('good.stream', 'rb').read(), 0, []
    while at < len(raw):
        size = int.from_bytes(raw[at + 28 : at + 36], 'little')  # end of file address, superblock version 2
        f = h5py.File(io.BytesIO(raw[at : at + size]))
        assert f.attrs['part'] == len(out) and f.attrs['parts'] == 14
        names = []
        f.visititems(lambda p, o: names.append(p) if isinstance(o, h5py.Dataset) else None)
        out.append(names)
        at += size
        if 'lm_head' in f:
            print(f['lm_head/weight'].attrs['tied_to'], end=' ')
    print(out[0], out[1], [o[0].split('/')[2] for o in out[2:13]], {len(o) for o in out[2:13]}, out[13])


def apart(folder):
    raw = open(folder + '/model.safetensors', 'rb').read()
    n = struct.unpack('<Q', raw[:8])[0]
    f = h5py.File(folder + '.h5')
    for name, e in json.loads(raw[8 : 8 + n]).items():
        if name == '__metadata__' or name.split('.')[-2:] in (
            ['attention', 'bias'],
            ['attention', 'masked_bias'],
            ['rotary_emb', 'inv_freq'],
        ):
            continue
        b, end = e['data_offsets']
        a = np.frombuffer(raw[8 + n + b : 8 + n + end], {'F32': 'f4', 'F16': 'f2'}[e['dtype']]).reshape(e['shape'])
        if 'query_key_value' in name:
            a = a.reshape(3, 3, 8, *a.shape[1:])  # head, which, channel
            for i, part in enumerate('qkv'):
                d = f[name.replace('.', '/').replace('query_key_value', part + '_proj')]
                assert d.dtype == a.dtype and (d[...] == a[:, i].reshape(24, *a.shape[3:])).all(), name
        else:
            assert (f[name.replace('.', '/')][...] == a).all(), name
    names = []
    f.visititems(lambda p, o: names.append(p) if isinstance(o, h5py.Dataset) else None)
    assert len(names) == 2 * 16 + 2 + 2 + 2, len(names)  # blocks; embedding, head; final norm; config, tokenizer


def fuzz():
    dice = random.Random(3)
    raw, config = open('good/model.safetensors', 'rb').read(), open('good/config.json', 'rb').read()
    header = 8 + int.from_bytes(raw[:8], 'little')
    os.mkdir('fuzz')
    open('fuzz/tokenizer.json', 'w').write('{}')
    wrong = 0
    for i in range(120):
        a, c = bytearray(raw), bytearray(config)
        for _ in range(dice.randint(1, 4)):
            if i % 4:
                a[dice.randrange(8, header) if dice.random() < 0.95 else dice.randrange(8)] = dice.choice(
                    b'0123456789[]{},:"-. eE\x00\xff\n'
                )
            else:
                c[dice.randrange(len(c))] = dice.choice(b'0123456789[]{},:"-. ')
        open('fuzz/model.safetensors', 'wb').write(a)
        open('fuzz/config.json', 'wb').write(c)
        r = subprocess.run(['model-import', '-q', 'fuzz', '-o', 'fuzz.h5'], stderr=subprocess.PIPE)
        if r.returncode not in (0, 1) or (
            r.returncode and sum(b': warning: ' not in l for l in r.stderr.splitlines()) != 1
        ):
            wrong += 1
            print(i, r.returncode, r.stderr.decode(errors='replace')[:2000])
    sys.exit(wrong > 0)


def tied():
    f = h5py.File("good.h5")
    assert (f["lm_head/weight"][...] == f["model/embed_tokens/weight"][...]).all()


def linked():
    f = h5py.File("good.h5")
    assert f["lm_head/weight"] == f["model/embed_tokens/weight"]


def not_there():
    f = h5py.File("beyond.h5")
    assert len(f["model/layers"]) == 10 and "10" not in f["model/layers"]


def one_block_more():
    shutil.copy("good.h5", "more.h5")
    f = h5py.File("more.h5", "r+")
    f.copy("model/layers/0", f["model/layers"], "11")


def there():
    f = h5py.File("extra.h5")
    f["model/layers/3/extra/weight"]
    f["scale"]


def conv1d():
    raw = open("gpt2/model.safetensors", "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    f = h5py.File("gpt2.h5")
    for name, e in json.loads(raw[8 : 8 + n]).items():
        if name == "__metadata__" or name.endswith(".attn.bias"):
            continue
        b, end = e["data_offsets"]
        a = np.frombuffer(raw[8 + n + b : 8 + n + end], "f4").reshape(e["shape"])
        if ".c_" in name and a.ndim == 2:
            a = a.T
        assert (f["transformer/" + name.replace(".", "/")][...] == a).all(), name
    assert "bias" not in f["transformer/h/0/attn"]


def undivided():
    assert h5py.File("neox-more.h5")["gpt_neox/layers/1/attention/query_key_value/scale"].shape == (72,)
