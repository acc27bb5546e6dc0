#!/bin/sh
# shellcheck source=tests/tap.sh
. "${0%/*}/tap.sh"
export OMP_NUM_THREADS=1

if ! py -c 'import h5py, numpy' 2>/dev/null; then
	skip 'model-import of GGUF' 'no h5py'
	done_testing
fi

# The models of tests/forward.c, whose logits are transformers', as GGUF; and one a fault.
cat >make.py <<'PY'
import h5py, json, os, shutil, struct, sys
import numpy as np
sys.dont_write_bytecode = True
ref = sys.argv[1] + '/tests/ref/'
sys.path.insert(0, ref)
import gguf
from gguf import ARRAY, F32, F64, I32, STRING, U8, U16, U32, U64, write
dice = np.random.default_rng(1)

# Models with what GGUF does not know left out: a window.
names = 'llama-gqa', 'llama-rope', 'llama-linear', 'llama-tied', 'qwen2-bias', 'qwen3', 'gpt2', 'neox-parallel', 'neox-serial'
for name in names:
    shutil.copy(ref + (name if name != 'qwen3' else 'qwen3-window') + '.h5', name + '.h5')
with h5py.File('qwen3.h5', 'r+') as f:
    c = json.loads(f['config'][()]) | {'use_sliding_window': False, 'layer_types': None}
    del f['config']
    f['config'] = json.dumps(c)
for name in names:
    write(name + '.gguf', *gguf.model(name + '.h5'))
# And with what GGUF does not know of blocks and windows that differ.
def patch(name, *changes):
    if not os.path.exists(ref + name + '.h5'): return
    shutil.copy(ref + name + '.h5', name + '.h5')
    with h5py.File(name + '.h5', 'r+') as f:
        c = json.loads(f['config'][()]) | dict(*changes)
        del f['config']
        f['config'] = json.dumps(c)
        if name.endswith('-moe'):                       # the one of two blocks that has experts
            del f['model/layers/0']
            f.move('model/layers/1', 'model/layers/0')
        if name.startswith('gemma'):                    # norms that are what adding 1 and subtracting it leaves
            def round(p, o):
                if 'norm' in p and isinstance(o, h5py.Dataset): o[...] = o[...] + np.float32(1) - np.float32(1)
            f.visititems(round)
    write(name + '.gguf', *gguf.model(name + '.h5'))
sparse = {'num_hidden_layers': 1, 'decoder_sparse_step': 1, 'mlp_only_layers': [], 'layer_types': None}
patch('mixtral', {'sliding_window': None})
for name in 'qwen2-moe', 'qwen3-moe': patch(name, sparse)
for name in 'phi3-window', 'phi3-long', 'gemma': patch(name)
for name in 'gemma2', 'gemma3': patch(name, {'query_pre_attn_scalar': 10})
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
write('halves.gguf', *gguf.model('llama-gqa.h5', lambda n, a: 'F32' if a.ndim == 1 else 'BF16' if 'attn' in n else 'F16'))
write('wide.gguf', {k: (U64, v) if isinstance(v, int) else (F64, v) if isinstance(v, float) else v for k, v in V.items()}, T)
write('few.gguf', {k: v for k, v in V.items() if not k.endswith(('.key_length', '.value_length', '.dimension_count'))}, T)
write('strange.gguf', V, T | {'blk.0.attn_rot.weight': ((3,), 'F32', bytes(12)), 'ids': ((2,), 26, bytes(8))})

# Every type, as tensors of no class and in rows that are permuted.
more, want = {}, {}
for kind, (_, length, size) in gguf.TYPES.items():
    if length > 1:
        raw, y = gguf.blocks(dice, kind, 24)
        more[f'extra.{kind}'] = ((2, 12 * length), kind, raw)
        want[f'extra/{kind}'] = y.reshape(2, -1)
for name, kind, rows, heads in ('q', 'Q8_0', 32, 4), ('k', 'MXFP4', 16, 2):
    raw, y = gguf.blocks(dice, kind, rows)
    more[f'blk.1.attn_{name}.weight'] = ((rows, 32), kind, raw)
    want[f'model/layers/1/self_attn/{name}_proj/weight'] = y.reshape(heads, 32 // 8, 2, 32).swapaxes(1, 2).reshape(rows, 32)
write('types.gguf', V, T | more)
np.savez('want.npz', **want)

def fault(name, values={}, tensors={}, drop=(), **how):
    write(f'bad-{name}.gguf', {k: v for k, v in (V | values).items() if k not in drop},
        {k: v for k, v in (T | tensors).items() if k not in drop}, **how)
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
fault('deep', {'a.list': struct.pack('<I', ARRAY) + struct.pack('<IQ', ARRAY, 1) * 1000 + struct.pack('<IQ', U8, 0)})
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
fault('heads', {'llama.attention.head_count': 3}, drop=['llama.attention.key_length', 'llama.attention.value_length', 'llama.rope.dimension_count'])
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
for name, y in dict(freqs=(1, 1, 1.5, 8), short=(1, 8), below=(.5, 1, 8, 8), blunt=(1, 1, 8, 8)).items():
    fault('rope-' + name, tensors={'rope_freqs.weight': ((len(y),), 'F32', gguf.data(y, 'F32'))})
fault('rope-both', {'llama.rope.scaling.type': 'linear', 'llama.rope.scaling.factor': 2.0},
    {'rope_freqs.weight': ((4,), 'F32', gguf.data((1, 1, 1, 1), 'F32'))})
for k in V:
    if k.startswith('llama.') and not k.endswith(('_kv', '.key_length', '.value_length', '.dimension_count', '.freq_base')):
        fault('no-' + k[6:], drop=[k])
write('bad-twice.gguf', list(V.items()) + [('general.architecture', 'llama')], T)
write('bad-tensor-twice.gguf', V, list(T.items()) + [('output.weight', T['output.weight'])])
N, X = gguf.model('neox-parallel.h5')
for name, n in ('none', 0), ('wide', 9):
    write(f'bad-neox-{name}.gguf', N | {'gptneox.rope.dimension_count': n}, X)
write('bad-neox-apart.gguf', N | {'gptneox.attention.head_count_kv': 1}, X)
write('bad-neox-heads.gguf', N, X | {'blk.0.attn_qkv.weight': ((70, 24), 'F32', bytes(70 * 24 * 4))})
# Tokenizers: of SentencePiece's kind, with scores drawn by dice; byte-level BPE by each name of its pre-tokenizer.
tok = 'tokenizer.ggml.'
pieces = ['<unk>', '<s>', '</s>', '\u2581'] + list('abcde') + ['\u00e9', '<u>']
while len(pieces) < 61:
    p = ''.join(dice.choice([t for t in pieces[3:-1] if len(t) < 7], 2))
    if p not in pieces: pieces.append(p)
types = [2, 3, 3] + [1] * 7 + [4] + [1] * 50
S = {tok + 'model': 'llama', tok + 'tokens': pieces, tok + 'scores': [float(x) for x in -dice.permutation(61)], tok + 'token_type': types,
    tok + 'bos_token_id': 1, tok + 'eos_token_id': 2, tok + 'unknown_token_id': 0}
json.dump(S[tok + 'scores'], open('scores.json', 'w'))
write('spm.gguf', V | S, T)
write('spm-bare.gguf', V | S | {tok + 'add_space_prefix': False, tok + 'add_bos_token': False}, T)
words = list('ab') + ['\u0120', 'ab', '\u0120a', '<|end|>', '<tool>'] + [f'<{i}>' for i in range(54)]
B = {tok + 'model': 'gpt2', tok + 'pre': 'gpt-2', tok + 'tokens': words, tok + 'merges': ['a b', '\u0120 a'],
    tok + 'token_type': [1] * 5 + [3, 4] + [5] * 54, tok + 'bos_token_id': 5, tok + 'eos_token_id': 5}
for pre in 'default', 'gpt-2', 'smollm', 'llama-bpe', 'qwen2', 'gpt-4o', 'tekken', 'dbrx':
    write(f'bpe-{pre}.gguf', V | B | {tok + 'pre': pre}, T)
write('bpe-ends.gguf', V | B | {tok + 'add_bos_token': True, tok + 'add_eos_token': True}, T)
write('bpe-none.gguf', V | {k: v for k, v in B.items() if not k.endswith('.pre')}, T)
write('json.gguf', V | B | {'tokenizer.huggingface.json': '{"model": {"type": "BPE"}}'}, T)
write('no-tokens.gguf', V | {tok + 'model': 'none'}, T)
write('only-words.gguf', V | S, {})
for name, with_, change in (('tok-kind', S, {tok + 'model': 'bert'}), ('tok-none', S, {tok + 'tokens': None}), ('tok-empty', S, {tok + 'tokens': (ARRAY, (STRING, []))}),
        ('tok-type', S, {tok + 'tokens': [1, 2]}), ('tok-twice', S, {tok + 'tokens': pieces[:60] + ['a']}), ('tok-blank', S, {tok + 'tokens': pieces[:60] + ['']}),
        ('tok-utf8', S, {tok + 'tokens': (ARRAY, (STRING, pieces[:60] + [b'\xff']))}), ('tok-nul', S, {tok + 'tokens': pieces[:60] + ['a\0']}),
        ('tok-types', S, {tok + 'token_type': types[1:]}), ('tok-scores', S, {tok + 'scores': [0.0] * 60}), ('tok-no-scores', S, {tok + 'scores': None}),
        ('tok-nan', S, {tok + 'scores': [float('nan')] * 61}), ('tok-bytes', S, {tok + 'tokens': pieces[:60] + ['<0x41>']}),
        ('tok-long', S, {tok + 'tokens': pieces[:60] + ['a' * 513]}), ('tok-unk', S, {tok + 'unknown_token_id': 61}), ('tok-bos', S, {tok + 'bos_token_id': (I32, -1)}),
        ('tok-no-bos', S, {tok + 'bos_token_id': None}), ('tok-more', S, {tok + 'tokens': pieces + ['x'], tok + 'scores': [0.0] * 62, tok + 'token_type': types + [1]}),
        ('bpe-pre', B, {tok + 'pre': 'odd'}), ('bpe-no-merges', B, {tok + 'merges': None}), ('bpe-merge', B, {tok + 'merges': ['a b', 'ab']}),
        ('bpe-part', B, {tok + 'merges': ['a c']}), ('bpe-whole', B, {tok + 'merges': ['b a']}), ('bpe-flag', B, {tok + 'add_bos_token': 1}),
        ('bpe-eos', B, {tok + 'eos_token_id': None, tok + 'add_eos_token': True})):
    write(f'bad-{name}.gguf', {k: v for k, v in (V | with_ | change).items() if v is not None}, T)
G, X = gguf.model('gpt2.h5')
write('bad-stored-stack.gguf', V | {'llama.expert_count': (U64, 1 << 40), 'llama.expert_used_count': 2},
    T | {'blk.0.ffn_up_exps.weight': ((1 << 40, 1, 256), 10, bytes(84))})
for name, shape in ('stack', (3, 44, 32)), ('flat', (4 * 44, 32)), ('hollow', (4, 0, 32)):
    write(f'bad-{name}.gguf', V | {'llama.expert_count': 4, 'llama.expert_used_count': 2}, T | {'blk.0.ffn_up_exps.weight':
        (shape, 'F32', bytes(4 * int(np.prod(shape))))})
for name, y in ('phi3-short', {'long': (1, 2, 3, 4)}), ('phi3-factor', {'long': (1, 2, 3, 4), 'short': (1, 0, 1, 1)}), ('phi3-few', {'short': (1, 2)}):
    write(f'bad-{name}.gguf', {k.replace('llama.', 'phi3.'): 'phi3' if v == 'llama' else v for k, v in V.items()},
        T | {f'rope_factors_{n}.weight': ((len(x),), 'F32', gguf.data(x, 'F32')) for n, x in y.items()})
write('bad-experts.gguf', G | {'gpt2.expert_count': 8}, X)
raw = open('llama-gqa.gguf', 'rb').read()
for n in 3, 23, 100, 700, len(raw) - 40:
    open(f'cut-{n}.gguf', 'wb').write(raw[:n])
PY
py make.py "$top" || exit 1

# same OURS REFERENCE: the same tensors, bit for bit; a config that means the same is shown by the likelihoods
cat >same.py <<'PY'
import h5py, json, sys
TIED = [n + '/weight' for n in ('model/embed_tokens', 'transformer/wte', 'gpt_neox/embed_in', 'lm_head', 'embed_out')]
a, b = (h5py.File(n) for n in sys.argv[1:3])
def tree(f):
    t = {}
    f.visititems(lambda p, o: t.update({p: o} if isinstance(o, h5py.Dataset) and p[:5] != 'test/' and p not in ('config', 'tokenizer') else {}))
    return t | {p: f[p] for p in TIED if p in f}        # of two links only one is visited
x, y = tree(a), tree(b)
assert set(x) == set(y), set(x) ^ set(y)
for p in x: assert x[p].dtype == y[p].dtype == 'f4' and x[p].shape == y[p].shape and x[p][...].tobytes() == y[p][...].tobytes(), p
there = [f for f in TIED if f in a]
assert json.loads(a['config'][()])['tie_word_embeddings'] == (a[there[0]] == a[there[1]]) and len(there) == 2
PY
py -c '
import h5py
with h5py.File("llama-gqa.h5") as f, h5py.File("tokens.h5", "w") as t:
    t.attrs["ptq_kind"], t.attrs["ptq_version"] = "tokens", "1"
    t["tokens"] = f["test/tokens"][...].ravel().astype("i4")'
nll() { eval-ppl -q --tokens tokens.h5 --ctx 37 "$1"; }
for f in llama-gqa llama-rope llama-linear llama-tied qwen2-bias qwen3 gpt2 neox-parallel neox-serial mixtral qwen2-moe qwen3-moe \
	phi3-window phi3-long phi3-linear gemma gemma2 gemma3; do
	[ -e "$f.gguf" ] || { skip "$f" 'no such model in tests/ref'; continue; }
	ok "$f: imports in silence but for its tokenizer" sh -c "model-import $f.gguf -o $f-gguf.h5 2>warning && test \$(wc -l <warning) = 1 && grep -q 'has no tokenizer' warning"
	ok "$f: every tensor as it was" py same.py $f-gguf.h5 $f.h5
	is "$f: the same likelihoods" "$(nll $f-gguf.h5)" "$(nll $f.h5)"
done
is 'there are likelihoods' "$(nll llama-gqa.h5 | grep -c '^nll	')" 1
for f in v2.gguf align.gguf order.gguf no-name wide.gguf few.gguf; do	# the last is used below
	model-import -q $f -o other.h5
	ok "$f: the same tensors" py same.py other.h5 llama-gqa.h5
done
is 'heads, widths and rotation that the file does not name: the same likelihoods' "$(nll other.h5)" "$(nll llama-gqa.h5)"
ok 'numbers that were decimals are again' py -c '
import h5py, json
c = json.loads(h5py.File("llama-rope-gguf.h5")["config"][()])
assert c["rms_norm_eps"] == 1e-5 and c["rope_theta"] == 5e5 and c["rope_scaling"] == dict(rope_type="llama3", factor=8, low_freq_factor=1,
    high_freq_factor=4, original_max_position_embeddings=64), c
assert c["vocab_size"] == 61 and c["bos_token_id"] is None and c["tie_word_embeddings"] is False'
ok '16-bit types stay' sh -c 'model-import -q halves.gguf -o halves.h5' && ok 'bit for bit' py -c '
import h5py, numpy as np
f, g = h5py.File("halves.h5"), h5py.File("llama-gqa.h5")
for p, size in ("model/embed_tokens", 2), ("model/layers/1/self_attn/k_proj", 2), ("model/layers/0/mlp/down_proj", 2), ("model/norm", 4):
    y, w = f[p + "/weight"], g[p + "/weight"][...]
    assert y.id.get_type().get_size() == size
    if "attn" in p: assert (y[...].astype("f4") == (w.view("u4") & 0xffff0000).view("f4")).all(), p
    else: assert (y[...] == w.astype(y.dtype)).all() and y.dtype == "f%d" % size, p'
model-import types.gguf -o types.h5 2>warning
ok 'every type, and permuted rows of two' py -c '
import h5py, numpy as np
f = h5py.File("types.h5")
for p, w in np.load("want.npz").items():
    y = f[p][...]
    assert y.dtype == "f4" and y.shape == w.shape and (y.view("u4") == w.view("u4")).all(), p'
model-import strange.gguf -o strange.h5 2>warning
is 'names that are not known stay, if they can be read' \
	"$(grep -c 'blk.0.attn_rot.weight: .* it is passed on' warning) $(grep -c 'ids: .* left out' warning)" '1 1'
ok 'on a pipe' sh -c 'model-import -q llama-gqa.gguf | tensor-stats -q'

# Tokens by a plain merge of the pair with the best score.
cat >merge.py <<'PY'
import h5py, json, random, subprocess, sys
dice, wrong = random.Random(1), 0
for name, mark in ('spm', '\u2581'), ('spm-bare', ''):
    k = json.loads(h5py.File(name + '.h5')['tokenizer'][()])
    ids, by_id = k['model']['vocab'], {v: t for t, v in k['model']['vocab'].items()}
    score = dict(zip(by_id.values(), json.load(open('scores.json'))))
    for n in range(8):
        text = ''.join(dice.choice('aabbccdde\u00e9 ') for _ in range(dice.randint(1, 150)))
        s = list(mark + text.replace(' ', '\u2581'))
        while True:
            pairs = [(-score[a + b], i) for i, (a, b) in enumerate(zip(s, s[1:])) if a + b in score and ids[a + b] not in (0, 1, 2, 10)]
            if not pairs: break
            i = min(pairs)[1]
            s[i:i + 2] = [s[i] + s[i + 1]]
        open('text', 'w').write(text)
        subprocess.run(['tokenize', '-q', '--model', name + '.h5', 'text', '-o', 'tok.h5'], check=True)
        f = h5py.File('tok.h5')
        assert f['tokens'].attrs['add_bos'] == (mark != '') and f['tokens'].attrs['bos_id'] == 1
        if list(f['tokens'][...]) != [ids[t] for t in s]: wrong += 1; print(name, n, text)
sys.exit(wrong)
PY
for f in spm spm-bare; do model-import $f.gguf -o $f.h5; done
ok 'merges by score are merges by rank' py merge.py
cat >parts.py <<'PY'
import h5py, json, subprocess
def of(name):
    subprocess.run(['model-import', '-q', name + '.gguf', '-o', 'json.h5'], check=True)
    return json.loads(h5py.File('json.h5')['tokenizer'][()])
gpt2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
cl100k = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
o200k = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
level = dict(type='ByteLevel', add_prefix_space=False, trim_offsets=True, use_regex=False)
split = lambda *p: [dict(type='Split', pattern={'Regex': x}, behavior='Isolated', invert=False) for x in p] + [level]
for name, parts, whole, bos in (('gpt-2', [level | {'use_regex': True}], False, False),
        ('default', split(r'[\p{P}\$\+<=>\^~\|]+', gpt2, r'\p{N}+', '[0-9][0-9][0-9]'), False, False),
        ('smollm', [dict(type='Digits', individual_digits=True), level | {'use_regex': True}], False, False),
        ('llama-bpe', split(cl100k % r'\p{N}{1,3}'), True, True), ('dbrx', split(cl100k % r'\p{N}{1,3}'), False, False),
        ('qwen2', split(cl100k % r'\p{N}'), False, False), ('gpt-4o', split(o200k), False, False),
        ('tekken', split(o200k.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", '').replace('{1,3}', '')), True, True)):
    t = of('bpe-' + name)
    m = t['model']
    assert t['pre_tokenizer'] == dict(type='Sequence', pretokenizers=parts), (name, t['pre_tokenizer'])
    assert (m['type'], m['ignore_merges'], m['byte_fallback'], m['merges']) == ('BPE', whole, False, [['a', 'b'], ['\u0120', 'a']])
    assert len(m['vocab']) == 61 and m['vocab']['<|end|>'] == 5 and t['decoder']['type'] == 'ByteLevel' and t['normalizer'] is None
    assert [(a['id'], a['content'], a['special']) for a in t['added_tokens']] == [(5, '<|end|>', True), (6, '<tool>', False)]
    assert (t['post_processor'] or {}).get('single') == ([dict(SpecialToken=dict(id='<|end|>', type_id=0)),
        dict(Sequence=dict(id='A', type_id=0))] if bos else None), name
assert [list(p)[0] for p in of('bpe-ends')['post_processor']['single']] == ['SpecialToken', 'Sequence', 'SpecialToken']
assert of('bpe-none')['pre_tokenizer'] == of('bpe-default')['pre_tokenizer']
assert of('json') == {'model': {'type': 'BPE'}}
t = of('spm')
assert t['normalizer']['normalizers'][0] == dict(type='Prepend', prepend='\u2581') and t['model']['unk_token'] == '<unk>' and t['model']['fuse_unk']
assert [(a['id'], a['special']) for a in t['added_tokens']] == [(0, True), (1, True), (2, True), (10, False)]
assert [n['type'] for n in of('spm-bare')['normalizer']['normalizers']] == ['Replace']
PY
ok "each family's tokenizer.json" py parts.py
warns 'a pre-tokenizer that is not named' 'tokenizer.ggml.pre: is missing; words are cut as llama.cpp does' model-import bpe-none.gguf -o none.h5
warns 'no tokenizer' 'has no tokenizer' model-import no-tokens.gguf -o none.h5
rm -f none.h5

bad() { no "$1: $2" 1 "bad-$1.gguf: (.*[ .])?$2" model-import -q "bad-$1.gguf" -o no.h5; }
bad magic 'is not a GGUF file: it does not begin with GGUF'
bad version1 'is GGUF of version 1, expected 2 or 3'
bad version4 'is GGUF of version 4, expected 2 or 3'
bad big 'is a GGUF file for big-endian machines'
bad kinds "general.architecture: is 'mamba', known are llama, qwen2, "
bad no-kind 'general.architecture: is missing, known are llama'
bad adapter "general.type: is 'adapter', expected a model"
bad split 'split.count: is one of 3 files of a model'
bad quant 'general.quantization_version: is 1, expected 2'
bad tensors 'its tensors: would be 2305843009213693952, of 24 bytes'
bad values 'its values: would be 18446744073709551615, of 13 bytes'
bad text 'general.name: goes beyond the end of the file'
bad list 'a.list: would be 4611686018427387904, of 8 bytes'
bad lists 'a.list: would be 1152921504606846976, of 8 bytes'
bad type 'a.value: has a value of type 99, expected one of 0 to 12'
bad element 'a.value: has a value of type 13, '
bad deep 'a.list: has arrays inside each other, expected at most 8'
bad key 'the key of a value: is empty'
bad nul 'the key of a value: is a name with a NUL byte'
bad align 'general.alignment: is 24, expected a power of two'
bad align0 'general.alignment: is 0, expected a power of two'
bad align-text 'general.alignment: is of type string, expected a whole number'
bad offset 'token_embd.weight: its data are at 8, expected a multiple of 32'
bad outside 'token_embd.weight: its data begin 1099511627776 bytes behind the header'
bad overlap 'needs [0-9]* bytes of data, [0-9]* are there before the next tensor or the end'
bad rank 'a: has 5 dimensions, expected at most 4'
bad overflow 'token_embd.weight: the shape overflows'
bad large 'token_embd.weight: needs 137438953472 bytes of data, '
bad stored 'blk.0.attn_q.weight: is stored as IQ4_XS, known are F32, F16, BF16, Q4_0, .*, Q6_K, MXFP4$'
bad unknown 'token_embd.weight: is stored as type 77, known are F32'
bad row 'blk.0.attn_q.weight: has rows of 33 numbers, Q8_0 has blocks of 32'
bad missing 'model.layers.1.mlp.up_proj.weight: is missing, a LlamaForCausalLM needs it'
bad shape 'model.layers.1.mlp.up_proj.weight: its shape is not the \[44, 32\]'
bad turned 'model.layers.1.self_attn.q_proj.weight: its shape is not the \[32, 32\]'
bad inf 'model.layers.1.self_attn.v_proj.weight: element 0 is NaN or infinite'
bad hidden 'model.embed_tokens.weight: its shape is not the \[61, 64\]'
bad blocks 'model.layers.2.input_layernorm.weight: is missing'
bad vocab 'model.embed_tokens.weight: its shape is not the \[60, 32\]'
bad heads "/config: hidden size 32 is not a multiple of 3 heads"
bad no-heads "'num_attention_heads' must be a whole number from 1"
bad kv '4 attention heads are not a multiple of 3 key and value heads'
bad array 'llama.feed_forward_length: is an array of i32, expected a whole number'
bad negative 'llama.block_count: is -2, expected no negative number'
bad word 'llama.block_count: is of type string, expected a whole number'
bad real 'llama.attention.layer_norm_rms_epsilon: holds a number that is not finite'
bad value-length 'llama.attention.value_length: is 4, and keys have 8: expected the same'
bad rotary 'llama.rope.dimension_count: is 4, a LlamaForCausalLM turns all 8 channels'
bad yarn "llama.rope.scaling.type: rotary scaling 'yarn' is not supported"
bad longrope "rope_factors_long.weight: rotary scaling 'longrope' is not supported"
bad experts "general.architecture: is 'gpt2' with experts, known are llama, "
for f in stack flat hollow; do bad $f 'blk.0.ffn_up_exps.weight: is not a stack of the matrices of 4 experts'; done
bad stored-stack 'blk.0.ffn_up_exps.weight: is stored as Q2_K, known are F32'
bad phi3-short 'rope_factors_short.weight: is not there, or not 4 numbers of type F32'
bad phi3-none 'rope_factors_short.weight: is not there'
bad phi3-yarn "phi3.rope.scaling.type: rotary scaling 'yarn' is not supported, expected none, linear or longrope"
bad phi3-few 'rope_factors_short.weight: is not there, or not 4 numbers of type F32'
bad phi3-factor 'rope_factors_short.weight: element 1 is 0, expected a positive divisor'
bad window 'llama.attention.sliding_window: is 7, expected attention to all positions'
bad rope-freqs 'rope_freqs.weight: does not scale as Llama 3 does'
bad rope-blunt 'rope_freqs.weight: does not scale as Llama 3 does'
bad rope-short 'rope_freqs.weight: is not 4 numbers of type F32'
bad rope-below 'rope_freqs.weight: element 0 is 0.5, expected a divisor from 1 on'
bad rope-both 'rope_freqs.weight: rotary scaling by frequency is not supported beside others'
for k in block_count context_length embedding_length feed_forward_length attention.head_count attention.layer_norm_rms_epsilon; do
	bad no-$k "llama.$k: is missing"
done
bad twice 'general.architecture: is there twice'
bad tensor-twice 'output.weight: the tensor is there twice'
bad neox-none 'gptneox.rope.dimension_count: is 0, expected 1 to the 8 channels'
bad neox-wide 'gptneox.rope.dimension_count: is 9, expected 1 to the 8 channels'
bad neox-apart 'gptneox.attention.head_count_kv: is 1, a GPTNeoXForCausalLM has as many as heads, 3'
bad neox-heads 'query_key_value.weight: its shape is not the \[72, 24\]'
bad tok-kind "tokenizer.ggml.model: 'bert' is not known; known are gpt2, llama"
bad tok-none 'tokenizer.ggml.tokens: is missing'
bad tok-empty 'tokenizer.ggml.tokens: is empty'
bad tok-type 'tokenizer.ggml.tokens: is an array of i32, expected an array of strings'
bad tok-twice "tokenizer.ggml.tokens: 'a' is there twice, as 4 and 60"
bad tok-blank 'tokenizer.ggml.tokens: number 60 is empty'
bad tok-utf8 'tokenizer.ggml.tokens: number 60 is not valid UTF-8'
bad tok-nul 'tokenizer.ggml.tokens: number 60 is with a NUL byte'
bad tok-types 'tokenizer.ggml.token_type: has 60 elements, expected one for each of 61'
bad tok-scores 'tokenizer.ggml.scores: has 60 elements'
bad tok-no-scores 'tokenizer.ggml.scores: has 0 elements'
bad tok-nan 'tokenizer.ggml.scores: holds a number that is not finite'
bad tok-bytes 'has 1 of the 256 tokens <0x00> to <0xFF>'
bad tok-long 'number 60 has 513 bytes, expected at most 512'
bad tok-unk 'tokenizer.ggml.unknown_token_id: is 61, expected an id from 0 to 60'
bad tok-bos 'tokenizer.ggml.bos_token_id: is -1, expected an id'
bad tok-no-bos 'tokenizer.ggml.add_bos_token: is true, but there is no tokenizer.ggml.bos_token_id'
bad tok-more 'model.embed_tokens.weight: its shape is not the \[62, 32\]'
bad bpe-pre "tokenizer.ggml.pre: 'odd' is not known; known are default, gpt-2, "
bad bpe-no-merges 'tokenizer.ggml.merges: is missing'
bad bpe-merge 'tokenizer.ggml.merges: number 1 is not two texts with a blank'
bad bpe-part "tokenizer.ggml.merges: number 0: 'ac', or a part of it, is no token"
bad bpe-whole "tokenizer.ggml.merges: number 0: 'ba', or a part of it, is no token"
bad bpe-flag 'tokenizer.ggml.add_bos_token: is of type u32, expected a bool'
bad bpe-eos 'tokenizer.ggml.add_eos_token: is true, but there is no tokenizer.ggml.eos_token_id'
no 'the file as the result' 1 'llama-gqa.gguf: is an input that holds no model' model-import -q llama-gqa.gguf -o llama-gqa.gguf
no 'a vocabulary without tensors' 1 'only-words.gguf: model.embed_tokens.weight: is missing' model-import -q only-words.gguf -o no.h5
for f in cut-*.gguf; do no "$f" 1 "$f: .*(expected at least 24|goes beyond the end|in the [0-9]* bytes that are left|the file ends before|needs [0-9]* bytes)" model-import -q "$f" -o no.h5; done
ok 'nothing is left behind' sh -c 'test ! -e no.h5 && ! ls .ptq.* 2>/dev/null'

# Bytes changed, mostly in the header: done or refused in one line, never a crash.
cat >fuzz.py <<'PY'
import random, subprocess, sys
dice, wrong = random.Random(5), 0
raw = open('neox-serial.gguf', 'rb').read()
for i in range(80):
    a = bytearray(raw)
    for _ in range(dice.randint(1, 3)):
        a[dice.randrange(4, 4000 if dice.random() < .9 else len(a))] = dice.choice([0, 1, 2, 8, 32, 127, 128, 255, dice.randrange(256)])
    open('fuzz.gguf', 'wb').write(a)
    r = subprocess.run(['model-import', '-q', 'fuzz.gguf', '-o', 'fuzz.h5'], stderr=subprocess.PIPE)
    if r.returncode not in (0, 1) or (r.returncode and sum(b': warning: ' not in l for l in r.stderr.splitlines()) != 1):
        wrong += 1
        print(i, r.returncode, r.stderr.decode(errors='replace')[:2000])
sys.exit(wrong > 0)
PY
ok 'changed bytes' py fuzz.py
done_testing
