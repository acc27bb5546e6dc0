"""llama.py -- Python of tests/doors/llama.t: likelihoods of llama.cpp, numbers of the package gguf"""

import importlib

import numpy as np

# The models of tests/gguf.t, without phi3-window, whose window llama.cpp ignores.
NAMES = """llama-gqa llama-rope llama-linear llama-tied qwen2-bias qwen3 gpt2 neox-parallel mixtral
qwen2-moe qwen3-moe phi3-long gemma gemma2 gemma3""".split()


def classes(top):
    """Writes NAME.gguf for each class that llama.cpp supports, and returns the names."""
    importlib.import_module("lib.gguf").make(top)
    print(*NAMES)


def random_ids(path, vocab, count):
    """Random tokens without BOS, which is 0."""
    from lib.h5 import create

    with create(path, "tokens") as f:
        f["tokens"] = np.random.default_rng(1).integers(1, int(vocab), int(count)).astype("i4")
        f["tokens"].attrs.update(bos_id=0, add_bos=1)


def ids(tokens, path):
    import h5py

    with h5py.File(tokens) as f:
        np.append(0, f['tokens'][()].ravel()).astype('i4').tofile(path)  # BOS before the text


def likelihoods(ids, ctx, *paths):
    """Mean likelihoods over the second half of each window, as in llama.cpp's tool; keys and values in f32."""
    for path in paths:
        print(path, nll(path, np.fromfile(ids, 'i4'), int(ctx)), sep='\t', flush=True)


def nll(path, t, n):
    import llama_cpp

    m = llama_cpp.Llama(path, n_ctx=n, n_batch=n, logits_all=True, type_k=0, type_v=0, flash_attn=False, verbose=False)
    total = []
    for at in range(0, len(t) - n + 1, n):
        m.reset()
        m.eval([0] + t[at + 1 : at + n].tolist())  # and in place of each window's first id
        x = np.array(m.scores[:n], 'f8')
        first = n // 2
        rows = x[first : n - 1]
        top = rows.max(1)
        log = top + np.log(np.exp(rows - top[:, None]).sum(1))
        total += (log - rows[np.arange(len(rows)), t[at + first + 1 : at + n]]).tolist()
    np.save(path + '.npy', total)
    return f'{np.mean(total):.8f}'


def apart(one, other, least):
    """The mean difference of the likelihoods of tokens, or the bound of F32 if that is larger."""
    print(max(float(least), np.mean(np.abs(np.load(one + '.npy') - np.load(other + '.npy')))))


def same(one, other, kind):
    """Both files have the same numbers; the layers of one have this type, those of the other F32."""
    import gguf

    a, b = ({t.name: t for t in gguf.GGUFReader(p).tensors} for p in (one, other))
    assert set(a) == set(b) and any(t.tensor_type.name == kind for t in a.values())
    for name in a:
        x, y = (gguf.dequantize(t.data, t.tensor_type).astype('f4') for t in (a[name], b[name]))
        assert np.array_equal(x, y) and b[name].tensor_type.name == 'F32', name


def model(reference, name, tokenizer, vocab, **config):
    """A model with this tokenizer and arbitrary embeddings."""
    import json

    import h5py

    with h5py.File(reference) as old, h5py.File(name + '.h5', 'w') as f:
        for key in old.attrs:
            f.attrs[key] = old.attrs[key]
        for key in 'model', 'lm_head':
            old.copy(key, f)
        f['config'] = json.dumps(json.loads(old['config'][()]) | {'vocab_size': vocab} | config)
        f['tokenizer'] = tokenizer
        for path in 'model/embed_tokens/weight', 'lm_head/weight':
            width = f[path].shape[1]
            del f[path]
            f[path] = np.ones((vocab, width), 'f4')


def added(id, content):
    flags = dict.fromkeys(('single_word', 'lstrip', 'rstrip', 'normalized'), False)
    return dict(id=id, content=content, special=True) | flags


def gpt2(folder):
    import json

    level = dict(type='ByteLevel', add_prefix_space=False, trim_offsets=True, use_regex=True)
    with open(folder + 'gpt2_vocab.json') as v, open(folder + 'gpt2_merges_vocab.bpe', encoding='utf8') as m:
        bpe = dict(type='BPE', vocab=json.load(v), merges=[t for t in m.read().split('\n')[1:] if t])
    return json.dumps(dict(added_tokens=[added(50256, '<|endoftext|>')], pre_tokenizer=level, decoder=level, model=bpe))


def llama(folder):
    """A tokenizer.json from Llama's tokens and scores, made as in transformers: merges of a token ordered by ids."""
    import json

    import gguf

    f = gguf.GGUFReader(folder + 'ggml-vocab-llama-spm.gguf').fields
    tokens, score, kind = (f['tokenizer.ggml.' + n].contents() for n in ('tokens', 'scores', 'token_type'))
    ids = {t: i for i, t in enumerate(tokens)}
    merges = []
    for i, t in sorted(enumerate(tokens), key=lambda item: -score[item[0]]):
        cuts = [(t[:k], t[k:]) for k in range(1, len(t))] if kind[i] == 1 else []
        merges += sorted(((a, b) for a, b in cuts if a in ids and b in ids), key=lambda c: (ids[c[0]], ids[c[1]]))
    steps = [
        dict(type='Prepend', prepend='\u2581'),
        dict(type='Replace', pattern=dict(String=' '), content='\u2581'),
    ]
    bpe = dict(type='BPE', vocab=ids, merges=merges, unk_token='<unk>', fuse_unk=True, byte_fallback=True)
    first = [dict(SpecialToken=dict(id='<s>', type_id=0)), dict(Sequence=dict(id='A', type_id=0))]
    special = {'<s>': dict(id='<s>', ids=[1], tokens=['<s>'])}
    last = dict(type='TemplateProcessing', single=first, special_tokens=special)
    return json.dumps(dict(
        added_tokens=[added(i, t) for i, t in enumerate(('<unk>', '<s>', '</s>'))],
        normalizer=dict(type='Sequence', normalizers=steps), post_processor=last, model=bpe,
    ))


def tokenizers(shared, reference, models):
    """Writes models with tokenizers of the trial data and of other models, and prints their names and kinds."""
    import h5py

    if shared:
        folder = shared + '/tokenizers/'
        model(reference, 'gpt2', gpt2(folder), 50304, bos_token_id=50256, eos_token_id=50256)
        print('gpt2 gpt2')
        model(reference, 'llama', llama(folder), 32000, bos_token_id=1, eos_token_id=2)
        print('llama llama')
        with open(shared + '/stories260K/tokenizer.json') as f:
            model(reference, 'stories', f.read(), 512, bos_token_id=1, eos_token_id=2)
        print('stories llama')
    for i, path in enumerate(models.split()):
        with h5py.File(path) as f:
            text = f['tokenizer'][()].decode()
            vocab = f['model/embed_tokens/weight'].shape[0]
        model(reference, f'model{i}', text, vocab, bos_token_id=1, eos_token_id=2)
        print(f'model{i} gpt2')


def text(shared, path):
    """Prose, texts in other scripts with special tokens, random characters and blanks."""
    dice = np.random.default_rng(3)
    marks = list(' \t\n\r.,\'"0123456789aZ\u00e9\u0416\u4e2d\u0e01\U0001f600\u200d\u00a0_-+<>')
    blanks = [' ', '  ', '   ', '\n\n', '\t', ' \n', "'s", "'LL", '<s>', '</s>', '<|endoftext|>', '<|im_start|>']
    parts = [dice.choice(marks + blanks) for _ in range(20000)]
    if shared:
        for name in 'tinyshakespeare.txt', 'tokenizers/ggml-vocab-gpt-2.gguf.inp', 'wikitext2-valid.txt':
            with open(f'{shared}/{name}', encoding='utf8') as f:
                parts.append(f.read(100000))
    with open(path, 'w', encoding='utf8', newline='') as f:
        f.write('x' + ''.join(parts))


def same_ids(one, other):
    import h5py

    with h5py.File(one) as a, h5py.File(other) as b:
        assert np.array_equal(a['tokens'][()], b['tokens'][()]) and len(a['tokens']) > 30000


def tokenized(path, text, ids, kind, special=''):
    import h5py
    import llama_cpp

    m = llama_cpp.Llama(path, vocab_only=True, verbose=False)
    assert m.metadata['tokenizer.ggml.model'] == kind
    with open(text, 'rb') as f, h5py.File(ids) as h:
        wanted = h['tokens'][()]
        found = np.array(m.tokenize(f.read(), add_bos=False, special=bool(special)))
    n = min(len(found), len(wanted))
    at = np.flatnonzero(found[:n] != wanted[:n])
    assert not len(at) and len(found) == len(wanted), (len(found), len(wanted), at[:1], [
        x[max(0, at[0] - 3) : at[0] + 5] if len(at) else x[-3:] for x in (found, wanted)])
