"""gguf.py -- Python of tests/gguf.t"""

import json
import os
import random
import shutil
import struct
import subprocess
import sys

import h5py
import numpy as np

from lib.h5 import read
from ref import gguf
from ref.gguf import ARRAY, F64, I32, STRING, U8, U16, U64, write


def make(top):
    ref = top + '/tests/ref/'

    dice = np.random.default_rng(1)

    # Models without settings that GGUF does not support: a window.
    names = (
        'llama-gqa',
        'llama-rope',
        'llama-linear',
        'llama-tied',
        'qwen2-bias',
        'qwen3',
        'gpt2',
        'neox-parallel',
        'neox-serial',
    )
    for name in names:
        shutil.copy(ref + (name if name != 'qwen3' else 'qwen3-window') + '.h5', name + '.h5')
    with h5py.File('qwen3.h5', 'r+') as f:
        c = json.loads(f['config'][()]) | {'use_sliding_window': False, 'layer_types': None}
        del f['config']
        f['config'] = json.dumps(c)
    for name in names:
        write(name + '.gguf', *gguf.model(name + '.h5'))

    # Models with settings that GGUF does not support: blocks and windows that differ.
    def patch(name, *changes):
        if not os.path.exists(ref + name + '.h5'):
            return
        shutil.copy(ref + name + '.h5', name + '.h5')
        with h5py.File(name + '.h5', 'r+') as f:
            c = json.loads(f['config'][()]) | dict(*changes)
            del f['config']
            f['config'] = json.dumps(c)
            if name.endswith('-moe'):  # the one of two blocks that has experts
                del f['model/layers/0']
                f.move('model/layers/1', 'model/layers/0')
            if name.startswith('gemma'):  # norms rounded as if 1 were added and subtracted

                def round(p, o):
                    if 'norm' in p and isinstance(o, h5py.Dataset):
                        o[...] = o[...] + np.float32(1) - np.float32(1)

                f.visititems(round)
        write(name + '.gguf', *gguf.model(name + '.h5'))

    sparse = {'num_hidden_layers': 1, 'decoder_sparse_step': 1, 'mlp_only_layers': [], 'layer_types': None}
    patch('mixtral', {'sliding_window': None})
    for name in 'qwen2-moe', 'qwen3-moe':
        patch(name, sparse)
    for name in 'phi3-window', 'phi3-long', 'gemma':
        patch(name)
    for name in 'gemma2', 'gemma3':
        patch(name, {'query_pre_attn_scalar': 10})
    shutil.copy(ref + 'phi3-window.h5', 'phi3-linear.h5')
    with h5py.File('phi3-linear.h5', 'r+') as f:
        c = json.loads(f['config'][()]) | {'rope_scaling': {'rope_type': 'linear', 'factor': 2.0}}
        del f['config']
        f['config'] = json.dumps(c)
    V, T = gguf.model('phi3-window.h5')
    write('phi3-linear.gguf', V | {'phi3.rope.scaling.type': 'linear', 'phi3.rope.scaling.factor': 2.0}, T)
    write('bad-phi3-none.gguf', V | {'phi3.rope.scaling.type': 'longrope'}, T)
    write('bad-phi3-yarn.gguf', V | {'phi3.rope.scaling.type': 'yarn'}, T)
    V, T = gguf.model('llama-gqa.h5')
    write('v2.gguf', V, T, version=2)
    write('align.gguf', V | {'general.alignment': 64}, T, align=64)
    write('order.gguf', dict(reversed(V.items())), dict(reversed(T.items())))
    write('no-name', V, T)
    write(
        'halves.gguf',
        *gguf.model('llama-gqa.h5', lambda n, a: 'F32' if a.ndim == 1 else 'BF16' if 'attn' in n else 'F16'),
    )
    write(
        'wide.gguf',
        {k: (U64, v) if isinstance(v, int) else (F64, v) if isinstance(v, float) else v for k, v in V.items()},
        T,
    )
    write(
        'few.gguf',
        {k: v for k, v in V.items() if not k.endswith(('.key_length', '.value_length', '.dimension_count'))},
        T,
    )
    write('strange.gguf', V, T | {'blk.0.attn_rot.weight': ((3,), 'F32', bytes(12)), 'ids': ((2,), 26, bytes(8))})

    # Every type, as tensors of no class and in permuted rows.
    more, want = {}, {}
    for kind, (_, length, size) in gguf.TYPES.items():
        if length > 1:
            raw, y = gguf.blocks(dice, kind, 24)
            more[f'extra.{kind}'] = ((2, 12 * length), kind, raw)
            want[f'extra/{kind}'] = y.reshape(2, -1)
    for name, kind, rows, heads in ('q', 'Q8_0', 32, 4), ('k', 'MXFP4', 16, 2):
        raw, y = gguf.blocks(dice, kind, rows)
        more[f'blk.1.attn_{name}.weight'] = ((rows, 32), kind, raw)
        want[f'model/layers/1/self_attn/{name}_proj/weight'] = (
            y.reshape(heads, 32 // 8, 2, 32).swapaxes(1, 2).reshape(rows, 32)
        )
    write('types.gguf', V, T | more)
    np.savez('want.npz', **want)

    def fault(name, values={}, tensors={}, drop=(), **how):
        write(
            f'bad-{name}.gguf',
            {k: v for k, v in (V | values).items() if k not in drop},
            {k: v for k, v in (T | tensors).items() if k not in drop},
            **how,
        )

    E32 = T['token_embd.weight']
    fault('magic', magic=b'GGML')
    fault('version1', version=1)
    fault('version4', version=4)
    fault('big', version=3, order='>')
    fault('kinds', {'general.architecture': 'mamba'})
    fault('no-kind', drop=['general.architecture'])
    fault('adapter', {'general.type': 'adapter'})
    fault('split', {'split.count': (U16, 3)})
    fault('quant', {'general.quantization_version': 1})
    fault('tensors', counts=(1 << 61, len(V)))
    fault('values', counts=(len(T), (1 << 64) - 1))
    fault('text', {'general.name': struct.pack('<IQ', STRING, (1 << 64) - 1) + b'abc'})
    fault('list', {'a.list': struct.pack('<IIQ', ARRAY, U64, 1 << 62)})
    fault('lists', {'a.list': struct.pack('<IIQ', ARRAY, STRING, 1 << 60)})
    fault('type', {'a.value': struct.pack('<II', 99, 0)})
    fault('element', {'a.value': struct.pack('<IIQ', ARRAY, 13, 0)})
    fault(
        'deep', {'a.list': struct.pack('<I', ARRAY) + struct.pack('<IQ', ARRAY, 1) * 1000 + struct.pack('<IQ', U8, 0)}
    )
    fault('key', {'': 1})
    fault('nul', {'a\0b': 1})
    fault('align', {'general.alignment': 24})
    fault('align0', {'general.alignment': 0})
    fault('align-text', {'general.alignment': 'x'})
    fault('offset', offsets={'token_embd.weight': 8})
    fault('outside', offsets={'token_embd.weight': 1 << 40})
    fault('overlap', offsets={'blk.1.ffn_up.weight': 0})
    fault('rank', tensors={'a': ((1,) * 5, 'F32', bytes(4))})
    fault('overflow', tensors={'token_embd.weight': ((1 << 33, 1 << 33), 'F32', b'')})
    fault('large', tensors={'token_embd.weight': ((1 << 30, 32), 'F32', E32[2])})
    fault('stored', tensors={'blk.0.attn_q.weight': ((32, 256), 23, bytes(32 * 136))})
    fault('unknown', tensors={'token_embd.weight': (E32[0], 77, E32[2])})
    fault('row', tensors={'blk.0.attn_q.weight': ((32, 33), 'Q8_0', bytes(2000))})
    fault('missing', drop=['blk.1.ffn_up.weight'])
    fault('shape', tensors={'blk.1.ffn_up.weight': ((32, 44), 'F32', bytes(32 * 44 * 4))})
    fault('turned', tensors={'blk.1.attn_q.weight': ((31, 32), 'F32', bytes(31 * 32 * 4))})
    fault('inf', tensors={'blk.1.attn_v.weight': ((16, 32), 'Q8_0', (b'\0\x7c' + b'\1' * 32) * 16)})
    fault('hidden', {'llama.embedding_length': 64, 'llama.attention.key_length': 8})
    fault('blocks', {'llama.block_count': 3})
    fault('vocab', {'llama.vocab_size': 60})
    fault(
        'heads',
        {'llama.attention.head_count': 3},
        drop=['llama.attention.key_length', 'llama.attention.value_length', 'llama.rope.dimension_count'],
    )
    fault('no-heads', {'llama.attention.head_count': 0})
    fault('kv', {'llama.attention.head_count_kv': 3})
    fault('array', {'llama.feed_forward_length': [44, 44]})
    fault('negative', {'llama.block_count': (I32, -2)})
    fault('word', {'llama.block_count': 'two'})
    fault('real', {'llama.attention.layer_norm_rms_epsilon': float('nan')})
    fault('value-length', {'llama.attention.value_length': 4})
    fault('rotary', {'llama.rope.dimension_count': 4})
    fault('yarn', {'llama.rope.scaling.type': 'yarn', 'llama.rope.scaling.factor': 2.0})
    fault('longrope', tensors={'rope_factors_long.weight': ((4,), 'F32', bytes(16))})
    fault('window', {'llama.attention.sliding_window': 7})
    for name, y in dict(freqs=(1, 1, 1.5, 8), short=(1, 8), below=(0.5, 1, 8, 8), blunt=(1, 1, 8, 8)).items():
        fault('rope-' + name, tensors={'rope_freqs.weight': ((len(y),), 'F32', gguf.data(y, 'F32'))})
    fault(
        'rope-both',
        {'llama.rope.scaling.type': 'linear', 'llama.rope.scaling.factor': 2.0},
        {'rope_freqs.weight': ((4,), 'F32', gguf.data((1, 1, 1, 1), 'F32'))},
    )
    for k in V:
        if k.startswith('llama.') and not k.endswith(
            ('_kv', '.key_length', '.value_length', '.dimension_count', '.freq_base')
        ):
            fault('no-' + k[6:], drop=[k])
    write('bad-twice.gguf', list(V.items()) + [('general.architecture', 'llama')], T)
    write('bad-tensor-twice.gguf', V, list(T.items()) + [('output.weight', T['output.weight'])])
    N, X = gguf.model('neox-parallel.h5')
    for name, n in ('none', 0), ('wide', 9):
        write(f'bad-neox-{name}.gguf', N | {'gptneox.rope.dimension_count': n}, X)
    write('bad-neox-apart.gguf', N | {'gptneox.attention.head_count_kv': 1}, X)
    write('bad-neox-heads.gguf', N, X | {'blk.0.attn_qkv.weight': ((70, 24), 'F32', bytes(70 * 24 * 4))})
    # Tokenizers: SentencePiece with random scores; byte-level BPE with each name of its pre-tokenizer.
    tok = 'tokenizer.ggml.'
    pieces = ['<unk>', '<s>', '</s>', '\u2581'] + list('abcde') + ['\u00e9', '<u>']
    while len(pieces) < 61:
        p = ''.join(dice.choice([t for t in pieces[3:-1] if len(t) < 7], 2))
        if p not in pieces:
            pieces.append(p)
    types = [2, 3, 3] + [1] * 7 + [4] + [1] * 50
    S = {
        tok + 'model': 'llama',
        tok + 'tokens': pieces,
        tok + 'scores': [float(x) for x in -dice.permutation(61)],
        tok + 'token_type': types,
        tok + 'bos_token_id': 1,
        tok + 'eos_token_id': 2,
        tok + 'unknown_token_id': 0,
    }
    json.dump(S[tok + 'scores'], open('scores.json', 'w'))
    write('spm.gguf', V | S, T)
    write('spm-bare.gguf', V | S | {tok + 'add_space_prefix': False, tok + 'add_bos_token': False}, T)
    both = pieces + [f'<0x{i:02X}>' for i in range(256)]
    rows = {n: ((len(both), 32), 'F32', bytes(len(both) * 128)) for n in ('token_embd.weight', 'output.weight')}
    A = {
        tok + 'tokens': both,
        tok + 'scores': [float(x) for x in -dice.permutation(len(both))],
        tok + 'token_type': types + [6] * 256,
        'llama.vocab_size': len(both),
    }
    write('spm-bytes.gguf', V | S | A, T | rows)
    bare = {tok + 'add_space_prefix': False, tok + 'add_bos_token': False}
    write('spm-bytes-bare.gguf', V | S | A | bare, T | rows)
    words = list('ab') + ['\u0120', 'ab', '\u0120a', '<|end|>', '<tool>'] + [f'<{i}>' for i in range(54)]
    B = {
        tok + 'model': 'gpt2',
        tok + 'pre': 'gpt-2',
        tok + 'tokens': words,
        tok + 'merges': ['a b', '\u0120 a'],
        tok + 'token_type': [1] * 5 + [3, 4] + [5] * 54,
        tok + 'bos_token_id': 5,
        tok + 'eos_token_id': 5,
    }
    for pre in 'default', 'gpt-2', 'smollm', 'llama-bpe', 'qwen2', 'gpt-4o', 'tekken', 'dbrx':
        write(f'bpe-{pre}.gguf', V | B | {tok + 'pre': pre}, T)
    write('bpe-ends.gguf', V | B | {tok + 'add_bos_token': True, tok + 'add_eos_token': True}, T)
    write('bpe-none.gguf', V | {k: v for k, v in B.items() if not k.endswith('.pre')}, T)
    write('json.gguf', V | B | {'tokenizer.huggingface.json': '{"model": {"type": "BPE"}}'}, T)
    write('no-tokens.gguf', V | {tok + 'model': 'none'}, T)
    write('only-words.gguf', V | S, {})
    for name, with_, change in (
        ('tok-kind', S, {tok + 'model': 'bert'}),
        ('tok-none', S, {tok + 'tokens': None}),
        ('tok-empty', S, {tok + 'tokens': (ARRAY, (STRING, []))}),
        ('tok-type', S, {tok + 'tokens': [1, 2]}),
        ('tok-twice', S, {tok + 'tokens': pieces[:60] + ['a']}),
        ('tok-blank', S, {tok + 'tokens': pieces[:60] + ['']}),
        ('tok-utf8', S, {tok + 'tokens': (ARRAY, (STRING, pieces[:60] + [b'\xff']))}),
        ('tok-nul', S, {tok + 'tokens': pieces[:60] + ['a\0']}),
        ('tok-types', S, {tok + 'token_type': types[1:]}),
        ('tok-scores', S, {tok + 'scores': [0.0] * 60}),
        ('tok-no-scores', S, {tok + 'scores': None}),
        ('tok-nan', S, {tok + 'scores': [float('nan')] * 61}),
        ('tok-bytes', S, {tok + 'tokens': pieces[:60] + ['<0x41>']}),
        ('tok-long', S, {tok + 'tokens': pieces[:60] + ['a' * 513]}),
        ('tok-unk', S, {tok + 'unknown_token_id': 61}),
        ('tok-bos', S, {tok + 'bos_token_id': (I32, -1)}),
        ('tok-no-bos', S, {tok + 'bos_token_id': None}),
        ('tok-more', S, {tok + 'tokens': pieces + ['x'], tok + 'scores': [0.0] * 62, tok + 'token_type': types + [1]}),
        ('bpe-pre', B, {tok + 'pre': 'odd'}),
        ('bpe-no-merges', B, {tok + 'merges': None}),
        ('bpe-merge', B, {tok + 'merges': ['a b', 'ab']}),
        ('bpe-part', B, {tok + 'merges': ['a c']}),
        ('bpe-whole', B, {tok + 'merges': ['b a']}),
        ('bpe-flag', B, {tok + 'add_bos_token': 1}),
        ('bpe-eos', B, {tok + 'eos_token_id': None, tok + 'add_eos_token': True}),
    ):
        write(f'bad-{name}.gguf', {k: v for k, v in (V | with_ | change).items() if v is not None}, T)
    G, X = gguf.model('gpt2.h5')
    write(
        'bad-stored-stack.gguf',
        V | {'llama.expert_count': (U64, 1 << 40), 'llama.expert_used_count': 2},
        T | {'blk.0.ffn_up_exps.weight': ((1 << 40, 1, 256), 10, bytes(84))},
    )
    for name, shape in ('stack', (3, 44, 32)), ('flat', (4 * 44, 32)), ('hollow', (4, 0, 32)):
        write(
            f'bad-{name}.gguf',
            V | {'llama.expert_count': 4, 'llama.expert_used_count': 2},
            T | {'blk.0.ffn_up_exps.weight': (shape, 'F32', bytes(4 * int(np.prod(shape))))},
        )
    for name, y in (
        ('phi3-short', {'long': (1, 2, 3, 4)}),
        ('phi3-factor', {'long': (1, 2, 3, 4), 'short': (1, 0, 1, 1)}),
        ('phi3-few', {'short': (1, 2)}),
    ):
        write(
            f'bad-{name}.gguf',
            {k.replace('llama.', 'phi3.'): 'phi3' if v == 'llama' else v for k, v in V.items()},
            T | {f'rope_factors_{n}.weight': ((len(x),), 'F32', gguf.data(x, 'F32')) for n, x in y.items()},
        )
    write('bad-experts.gguf', G | {'gpt2.expert_count': 8}, X)
    raw = open('llama-gqa.gguf', 'rb').read()
    for n in 3, 23, 100, 700, len(raw) - 40:
        open(f'cut-{n}.gguf', 'wb').write(raw[:n])


def same_tensors(one, other):
    TIED = [
        n + '/weight' for n in ('model/embed_tokens', 'transformer/wte', 'gpt_neox/embed_in', 'lm_head', 'embed_out')
    ]
    a, b = h5py.File(one), h5py.File(other)

    def tree(f):
        t = {}
        f.visititems(
            lambda p, o: t.update(
                {p: o} if isinstance(o, h5py.Dataset) and p[:5] != 'test/' and p not in ('config', 'tokenizer') else {}
            )
        )
        return t | {p: f[p] for p in TIED if p in f}  # visit() visits only one of two links

    x, y = tree(a), tree(b)
    assert set(x) == set(y), set(x) ^ set(y)
    for p in x:
        assert (
            x[p].dtype == y[p].dtype == 'f4' and x[p].shape == y[p].shape and x[p][...].tobytes() == y[p][...].tobytes()
        ), p
    there = [f for f in TIED if f in a]
    assert json.loads(a['config'][()])['tie_word_embeddings'] == (a[there[0]] == a[there[1]]) and len(there) == 2


def merges():
    dice, wrong = random.Random(1), 0
    for name, mark in ('spm', '\u2581'), ('spm-bare', ''):
        k = json.loads(h5py.File(name + '.h5')['tokenizer'][()])
        ids, by_id = k['model']['vocab'], {v: t for t, v in k['model']['vocab'].items()}
        score = dict(zip(by_id.values(), json.load(open('scores.json'))))
        for n in range(8):
            text = ''.join(dice.choice('aabbccdde\u00e9 ') for _ in range(dice.randint(1, 150)))
            s = list(mark + text.replace(' ', '\u2581'))
            while True:
                pairs = [
                    (-score[a + b], i)
                    for i, (a, b) in enumerate(zip(s, s[1:]))
                    if a + b in score and ids[a + b] not in (0, 1, 2, 10)
                ]
                if not pairs:
                    break
                i = min(pairs)[1]
                s[i : i + 2] = [s[i] + s[i + 1]]
            open('text', 'w').write(text)
            subprocess.run(['tokenize', '-q', '--model', name + '.h5', 'text', '-o', 'tok.h5'], check=True)
            f = h5py.File('tok.h5')
            assert f['tokens'].attrs['add_bos'] == (mark != '') and f['tokens'].attrs['bos_id'] == 1
            if list(f['tokens'][...]) != [ids[t] for t in s]:
                wrong += 1
                print(name, n, text)
    sys.exit(wrong)


def of(name):
    subprocess.run(['model-import', '-q', name + '.gguf', '-o', 'json.h5'], check=True)
    return json.loads(h5py.File('json.h5')['tokenizer'][()])


def families():
    gpt2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    cl100k = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    o200k = (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    level = dict(type='ByteLevel', add_prefix_space=False, trim_offsets=True, use_regex=False)
    split = lambda *p: [dict(type='Split', pattern={'Regex': x}, behavior='Isolated', invert=False) for x in p] + [
        level
    ]
    for name, parts, whole, bos in (
        ('gpt-2', [level | {'use_regex': True}], False, False),
        ('default', split(r'[\p{P}\$\+<=>\^~\|]+', gpt2, r'\p{N}+', '[0-9][0-9][0-9]'), False, False),
        ('smollm', [dict(type='Digits', individual_digits=True), level | {'use_regex': True}], False, False),
        ('llama-bpe', split(cl100k % r'\p{N}{1,3}'), True, True),
        ('dbrx', split(cl100k % r'\p{N}{1,3}'), False, False),
        ('qwen2', split(cl100k % r'\p{N}'), False, False),
        ('gpt-4o', split(o200k), False, False),
        ('tekken', split(o200k.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", '').replace('{1,3}', '')), True, True),
    ):
        t = of('bpe-' + name)
        m = t['model']
        assert t['pre_tokenizer'] == dict(type='Sequence', pretokenizers=parts), (name, t['pre_tokenizer'])
        assert (m['type'], m['ignore_merges'], m['byte_fallback'], m['merges']) == (
            'BPE',
            whole,
            False,
            [['a', 'b'], ['\u0120', 'a']],
        )
        assert (
            len(m['vocab']) == 61
            and m['vocab']['<|end|>'] == 5
            and t['decoder']['type'] == 'ByteLevel'
            and t['normalizer'] is None
        )
        assert [(a['id'], a['content'], a['special']) for a in t['added_tokens']] == [
            (5, '<|end|>', True),
            (6, '<tool>', False),
        ]
        assert (t['post_processor'] or {}).get('single') == (
            [dict(SpecialToken=dict(id='<|end|>', type_id=0)), dict(Sequence=dict(id='A', type_id=0))] if bos else None
        ), name
    assert [list(p)[0] for p in of('bpe-ends')['post_processor']['single']] == [
        'SpecialToken',
        'Sequence',
        'SpecialToken',
    ]
    assert of('bpe-none')['pre_tokenizer'] == of('bpe-default')['pre_tokenizer']
    assert of('json') == {'model': {'type': 'BPE'}}
    t = of('spm')
    assert (
        t['normalizer']['normalizers'][0] == dict(type='Prepend', prepend='\u2581')
        and t['model']['unk_token'] == '<unk>'
        and t['model']['fuse_unk']
    )
    assert [(a['id'], a['special']) for a in t['added_tokens']] == [(0, True), (1, True), (2, True), (10, False)]
    assert [n['type'] for n in of('spm-bare')['normalizer']['normalizers']] == ['Replace']


def same_tokenizer(a, b):
    assert of(a) == of(b)


def split_twice(merges):
    """The first place where two neighbouring merges make one token."""
    return next(i for i in range(len(merges) - 1) if ''.join(merges[i]) == ''.join(merges[i + 1]))


def said():
    """Writes models with a changed tokenizer."""

    def variant(name, change, source='said'):
        shutil.copy(source + '.h5', f'said-{name}.h5')
        with h5py.File(f'said-{name}.h5', 'r+') as f:
            t = json.loads(f['tokenizer'][()])
            t = change(t) or t
            del f['tokenizer']
            f['tokenizer'] = t if isinstance(t, str) else json.dumps(t)
            if name == 'texts':
                chat = [dict(name='other', template='x'), dict(name='default', template='chat')]
                del f['tokenizer_config']
                f['tokenizer_config'] = json.dumps(dict(pad_token=dict(content='<tool>'), chat_template=chat))
            if name == 'chats':
                chat = [dict(name=n, template=t) for n, t in (('a', 'A'), ('a', 'B'), ('n', '\0'), ('l' * 300, 'L'))]
                del f['tokenizer_config']
                f['tokenizer_config'] = json.dumps(dict(chat_template=chat + [5]))
            if name == 'nul':
                del f['tokenizer_config']
                f['tokenizer_config'] = json.dumps(dict(chat_template='a\0'))

    def part(t, i):
        return t['pre_tokenizer']['pretokenizers'][i]

    def begin(token):
        single = [dict(SpecialToken=dict(id=token, type_id=0)), dict(Sequence=dict(id='A', type_id=0))]
        return dict(post_processor=dict(type='TemplateProcessing', single=single, special_tokens={}))

    def merges(t):
        return t['model']['merges']

    variant('json', lambda t: '{')
    variant('unigram', lambda t: t['model'].update(type='Unigram'))
    variant('dropout', lambda t: t['model'].update(dropout=0.1))
    variant('id', lambda t: t['model']['vocab'].update(zz=61))
    variant('twice', lambda t: t['added_tokens'].append(dict(id=7, content='a', special=True)))
    variant('pattern', lambda t: part(t, 0).update(pattern=dict(Regex='x')))
    variant('space', lambda t: part(t, 1).update(add_prefix_space=True))
    variant('ignore', lambda t: t['model'].update(ignore_merges=True))
    variant('lower', lambda t: t.update(normalizer=dict(type='Lowercase')))
    variant('merge', lambda t: merges(t).insert(0, ['a', 'c']))
    variant('ends', lambda t: t.update(begin('\u0120a')))
    variant('bert', lambda t: t.update(post_processor=dict(type='BertProcessing')))
    variant('nfc', lambda t: t.update(normalizer=dict(type='NFC')))
    variant('rstrip', lambda t: t['added_tokens'][0].update(rstrip=True))
    for name in 'texts', 'chats', 'nul':
        variant(name, lambda t: None)
    variant('order', lambda t: merges(t).append(merges(t).pop(split_twice(merges(t)))), 'spm-bytes')
    variant('missing', lambda t: merges(t).pop(0) and None, 'spm-bytes')
    variant('bytes', lambda t: t['model']['vocab'].update(zz=t['model']['vocab'].pop('<0x41>')), 'spm-bytes')
    variant('words', lambda t: t.update(pre_tokenizer=dict(type='Whitespace')), 'spm-bytes')
    space = dict(type='Metaspace', replacement='\u2581', prepend_scheme='first', split=False)
    variant('metaspace', lambda t: t.update(normalizer=None, pre_tokenizer=space), 'spm-bytes')

    def swapped(t):
        i = split_twice(merges(t))
        merges(t)[i : i + 2] = merges(t)[i + 1 : i - 1 if i else None : -1]
        del t['model']['vocab']['</s>']
        t['added_tokens'] = [a for a in t['added_tokens'] if a['content'] != '</s>']

    variant('pairs', swapped, 'spm-bytes')


def pairs(path):
    """The same merges, those of one token in any order; a token for the id that had none."""
    t, wanted = (json.loads(h5py.File(p)['tokenizer'][()])['model'] for p in (path, 'said-pairs.h5'))
    a, b = t['merges'], wanted['merges']
    assert a != b and sorted(a) == sorted(b) and [''.join(m) for m in a] == [''.join(m) for m in b]
    assert t['vocab'] == wanted['vocab'] | {'[PAD2]': 2}


def texts_said(path, again):
    raw = open(path, 'rb').read()
    key = b'tokenizer.ggml.padding_token_id'
    kind, id = struct.unpack_from('<II', raw, raw.index(key) + len(key))
    assert kind == 4
    with h5py.File(again) as f:
        config = json.loads(f['tokenizer_config'][()])
        print(f['chat_template'][()].decode(), id, config['pad_token'], config['eos_token'], config['chat_template'])


def templates_of(path):
    """The names and texts of the chat templates of a model, other than the default."""
    for t in json.loads(h5py.File(path)['tokenizer_config'][()])['chat_template']:
        print(t['name'], t['template'], end=' ')


def same_text(name, one, other):
    assert h5py.File(one)[name][()] == h5py.File(other)[name][()]


def fuzz():
    dice, wrong = random.Random(5), 0
    raw = open('neox-serial.gguf', 'rb').read()
    for i in range(80):
        a = bytearray(raw)
        for _ in range(dice.randint(1, 3)):
            a[dice.randrange(4, 4000 if dice.random() < 0.9 else len(a))] = dice.choice(
                [0, 1, 2, 8, 32, 127, 128, 255, dice.randrange(256)]
            )
        open('fuzz.gguf', 'wb').write(a)
        r = subprocess.run(['model-import', '-q', 'fuzz.gguf', '-o', 'fuzz.h5'], stderr=subprocess.PIPE)
        if r.returncode not in (0, 1) or (
            r.returncode and sum(b': warning: ' not in l for l in r.stderr.splitlines()) != 1
        ):
            wrong += 1
            print(i, r.returncode, r.stderr.decode(errors='replace')[:2000])
    sys.exit(wrong > 0)


def make_tokens():
    with h5py.File("llama-gqa.h5") as f, h5py.File("tokens.h5", "w") as t:
        t.attrs["ptq_kind"], t.attrs["ptq_version"] = "tokens", "1"
        t["tokens"] = f["test/tokens"][...].ravel().astype("i4")


def decimals():
    c = json.loads(read("llama-rope-gguf.h5", "config"))
    assert (
        c["rms_norm_eps"] == 1e-5
        and c["rope_theta"] == 5e5
        and c["rope_scaling"]
        == dict(
            rope_type="llama3", factor=8, low_freq_factor=1, high_freq_factor=4, original_max_position_embeddings=64
        )
    ), c
    assert c["vocab_size"] == 61 and c["bos_token_id"] is None and c["tie_word_embeddings"] is False


def bits_16():
    f, g = h5py.File("halves.h5"), h5py.File("llama-gqa.h5")
    for p, size in (
        ("model/embed_tokens", 2),
        ("model/layers/1/self_attn/k_proj", 2),
        ("model/layers/0/mlp/down_proj", 2),
        ("model/norm", 4),
    ):
        y, w = f[p + "/weight"], g[p + "/weight"][...]
        assert y.id.get_type().get_size() == size
        if "attn" in p:
            assert (y[...].astype("f4") == (w.view("u4") & 0xFFFF0000).view("f4")).all(), p
        else:
            assert (y[...] == w.astype(y.dtype)).all() and y.dtype == "f%d" % size, p


def types():
    f = h5py.File("types.h5")
    for p, w in np.load("want.npz").items():
        y = f[p][...]
        assert y.dtype == "f4" and y.shape == w.shape and (y.view("u4") == w.view("u4")).all(), p
