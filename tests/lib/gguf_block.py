"""gguf_block.py -- Python of tests/gguf_block.t, also in doors: blocks in files, and weights with a Hessian"""

import importlib
import importlib.util
import os
import types

import h5py
import numpy as np

from lib import llama
from lib.h5 import copied, create
from ref import gguf

KIND = {'q4_k': 'Q4_K', 'q5_k': 'Q5_K', 'q6_k': 'Q6_K', 'iq4_nl': 'IQ4_NL'}


def layers(f):
    """The layers of a file with codes: their paths."""
    found = []
    f.visititems(lambda p, o: found.append(p.rpartition('/')[0]) if p.endswith('/codes') else None)
    return found


def decoded(kind, raw, shape):
    size = gguf.TYPES[kind][2]
    raw = np.ascontiguousarray(raw).reshape(-1, size)
    return np.concatenate([gguf.decode(kind, b.tobytes()) for b in raw]).reshape(shape)


def written(quantized, exported):
    """The bytes of each layer are those of a tensor of the GGUF file, whose rows may have another order."""
    raw = open(exported, 'rb').read()
    tensors = importlib.import_module('lib.model-export').tensors(exported)
    n = 0
    with h5py.File(quantized) as f:
        for path in layers(f):
            codes = f[path + '/codes'][()]
            number, length, size = gguf.TYPES[KIND[f[path].attrs['storage']]]
            block, name = path.split('/')[2], gguf.LLAMA['/'.join(path.split('/')[3:])]
            kind, dim, at = tensors[f'blk.{block}.{name}.weight']
            assert kind == number and dim == (codes.shape[1] // size * length, codes.shape[0]), path
            rows = np.frombuffer(raw, 'u1', codes.size, at).reshape(codes.shape)
            if name in ('attn_q', 'attn_k'):
                rows, codes = (x[np.lexsort(x.T)] for x in (rows, codes))
            assert np.array_equal(rows, codes), path
            n += 1
    assert n == 56, n


def stands_for(quantized, plain):
    """The plain weights are those of the blocks, decoded number by number."""
    with h5py.File(quantized) as f, h5py.File(plain) as g:
        for path in ('model/layers/0/mlp/down_proj', 'model/layers/7/self_attn/q_proj'):
            w = g[path + '/weight'][:8]
            codes = f[path + '/codes'][:8]
            assert np.array_equal(w, decoded(KIND[f[path].attrs['storage']], codes, w.shape)), path
            assert f[path + '/codes'].attrs['columns'] == w.shape[1]
            assert 'scale' not in f[path] and 'group' not in f[path].attrs


def diagonal(source, path, times):
    """A copy of the Hessians with only the diagonals, times a power of two, as are the tokens."""
    with copied(source, path) as f:

        def change(p, o):
            if p.endswith('/hessian'):
                o[...] = np.diag(np.diag(o[()])) * np.float32(times)
            if p.endswith(('/count', '/histogram')):
                o[...] = o[()] * int(times)

        f.visititems(change)


def same_codes(one, other):
    with h5py.File(one) as f, h5py.File(other) as g:
        assert layers(f) and layers(f) == layers(g)
        for path in layers(f):
            assert np.array_equal(f[path + '/codes'][()], g[path + '/codes'][()]), path


def broken(source, path, what):
    """A copy with a layer that is not valid."""
    with copied(source, path) as f:
        layer = f['model/layers/0/mlp/down_proj']
        if what == 'scale':
            layer['scale'] = np.ones((1, 1), 'f4')
        elif what == 'group':
            layer.attrs['group'] = 32
        elif what == 'type':
            layer.attrs['scale_dtype'] = 'f16'
        else:
            codes = layer['codes'][()]
            codes[5, 144:146] = 0, 0x7C  # infinity
            layer['codes'][...] = codes


def plain_copy(model, codes, path):
    """pipelines/lib/ggml.py, with a library that doubles weights: it changes the layers that have codes, no others."""
    source = os.path.join(os.path.dirname(os.path.dirname(gguf.__file__)), '..', 'pipelines', 'lib', 'ggml.py')
    spec = importlib.util.spec_from_file_location('ggml', source)
    ggml = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ggml)
    ggml.library = lambda: types.SimpleNamespace(ggml_type_name=lambda i: b'q%d' % i, ggml_quantize_init=int)
    ggml.requantized = lambda lib, numbers, name, weight, importance: (2 * weight, 4 * weight.size)
    ggml.main('q4', model, '-', codes, '-o', path)
    with h5py.File(model) as f, h5py.File(path) as g, h5py.File(codes) as c:
        weights = []
        f.visititems(lambda p, o: weights.append(p) if p.endswith('/weight') else None)
        found = [p.rpartition('/')[0] for p in weights if not np.array_equal(f[p][()], g[p][()])]
        assert sorted(found) == sorted(layers(c)), found


def one_layer(path, n, by):
    """A model of one layer, of 4 x n normal weights times a number."""
    with create(path, 'model') as f:
        f['a/weight'] = np.random.default_rng(1).standard_normal((4, int(n))).astype('f4') * np.float32(by)


# --- tests/doors/gguf_block.t: the same weights by llama.cpp ---
def ids(tokens, path):
    llama.ids(tokens, path)


def likelihoods(*arguments):
    llama.likelihoods(*arguments)


def patterns(n):
    r = np.random.default_rng(1)
    yield 'normal', r.normal(size=(64, n))
    yield 'laplace', r.laplace(size=(64, n)) * 0.01
    yield 'uniform', r.uniform(size=(64, n))
    yield 'zeros', np.zeros((4, n))
    yield 'equal', np.repeat([[1.0], [-2.5], [1e-3]], n, 1)
    for e in (-30, -20, -16, -15, -14, -12, -9, -7, -6, -5, -3, 3, 5, 6):
        yield f'size{e:+}', r.normal(size=(16, n)) * (0.3 * 10.0**e)
    yield 'outliers', r.normal(size=(64, n)) * np.where(np.arange(n) % 97, 1, 100)
    yield 'tails', r.standard_t(3, size=(64, n))
    yield 'sparse', r.normal(size=(64, n)) * (r.random((64, n)) < 0.3)
    yield 'ties', np.round(r.normal(size=(64, n)) * 4) / 4
    w = r.normal(size=(64, n))
    w[:, 256:512], w[:, 600:640], w[:, 1024:1280] = 0, 0, 3
    yield 'holes', w


def importances(n):
    """Mean squares of inputs: of similar and of very different sizes, and of columns without inputs."""
    r = np.random.default_rng(2)
    yield 'similar', r.exponential(size=n)
    yield 'different', 10 ** r.uniform(-6, 3, size=n)
    x = r.exponential(size=n)
    x[256:512], x[544:576] = 0, 0
    x[5::41] = 0
    yield 'dead', x


def make_patterns(count=64):
    """weights.h5, and h-NAME.h5 with Hessians of `count` tokens, a power of two, so that count · mean is exact."""
    n, count = 2816, int(count)
    with create('weights.h5', 'model') as f:
        for name, w in patterns(n):
            f[name + '/weight'] = w.astype('f4')
    for kind, x in importances(n):
        x = x.astype('f4')
        np.save(kind, x)
        with create(f'h-{kind}.h5', 'hessian') as f:
            for name, _ in patterns(n):
                f[name + '/hessian'] = np.diag(x * np.float32(count))
                f[name + '/count'] = np.int64(count)
        print(kind)


def quantized_by_llama(kind, w, importance):
    import ctypes
    import glob
    import os

    import llama_cpp

    path = glob.glob(os.path.join(os.path.dirname(llama_cpp.__file__), 'lib', 'libggml-base.so'))[0]
    f = ctypes.CDLL(path).ggml_quantize_chunk
    f.restype, p, i = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int64
    f.argtypes = ctypes.c_int, p, p, i, i, i, p
    number, length, size = gguf.TYPES[kind]
    w = np.ascontiguousarray(w, 'f4')
    y = np.zeros((w.shape[0], w.shape[1] // length * size), 'u1')
    x = None if importance is None else np.ascontiguousarray(importance, 'f4')
    n = f(number, w.ctypes.data, y.ctypes.data, 0, *w.shape, None if x is None else x.ctypes.data)
    assert n == y.size
    return y


def plain_weights(d):
    return d[()] if d.dtype.kind == 'f' else (d[()].astype('u4') << 16).view('f4')  # bf16 as uint16


def same_blocks(model, quantized, importance='', hessian=''):
    """The codes of each layer are the blocks of llama.cpp, whose importances are in a .npy or those of Hessians."""
    blocks = 0
    with h5py.File(model) as m, h5py.File(quantized) as f:
        h = h5py.File(hessian) if hessian else None
        for path in layers(f):
            kind = KIND[f[path].attrs['storage']]
            x = np.load(importance + '.npy') if importance else None
            if h:
                x = (np.diag(h[path + '/hessian'][()]).astype('f8') / h[path + '/count'][()]).astype('f4')
            want = quantized_by_llama(kind, plain_weights(m[path + '/weight']), x)
            size = gguf.TYPES[kind][2]
            differ = (f[path + '/codes'][()] != want).reshape(-1, size).any(1)
            assert not differ.any(), f'{path}: {differ.sum()} of {differ.size} blocks differ'
            blocks += differ.size
    print(blocks)
