"""llama.py -- Python of tests/doors/llama.t: likelihoods of llama.cpp, numbers of the package gguf"""

import numpy as np


def ids(tokens, path):
    import h5py

    with h5py.File(tokens) as f:
        np.append(0, f['tokens'][()].ravel()).astype('i4').tofile(path)  # BOS before the text


def nll(path, ids, ctx):
    """The mean over the later half of each window, as its own tool takes it; keys and values in f32."""
    import llama_cpp

    n, t = int(ctx), np.fromfile(ids, 'i4')
    m = llama_cpp.Llama(path, n_ctx=n, n_batch=n, logits_all=True, type_k=0, type_v=0, flash_attn=False, verbose=False)
    total = []
    for at in range(0, len(t) - n + 1, n):
        m.reset()
        m.eval([0] + t[at + 1 : at + n].tolist())  # and in the place of each window's first id
        x = np.array(m.scores[:n], 'f8')
        first = n // 2
        rows = x[first : n - 1]
        top = rows.max(1)
        log = top + np.log(np.exp(rows - top[:, None]).sum(1))
        total += (log - rows[np.arange(len(rows)), t[at + first + 1 : at + n]]).tolist()
    print(f'{np.mean(total):.8f}')


def same(one, other):
    import gguf

    a, b = ({t.name: t for t in gguf.GGUFReader(p).tensors} for p in (one, other))
    assert set(a) == set(b)
    for name in a:
        x, y = (gguf.dequantize(t.data, t.tensor_type).astype('f4') for t in (a[name], b[name]))
        assert np.array_equal(x, y), name
