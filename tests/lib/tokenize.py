"""tokenize.py -- Python of tests/tokenize.t"""

import json
import os
import random
import shutil
import unicodedata
import zlib

import h5py
import numpy as np

from lib.h5 import read


def make(path, tokenizer, **config):
    with h5py.File('model.h5') as old, h5py.File(path, 'w') as new:
        for k, v in old.attrs.items():
            new.attrs[k] = v
        c = json.loads(old['config'][()]) | config
        new['config'] = json.dumps(c)
        if tokenizer:
            new['tokenizer'] = tokenizer


def faults():
    text = h5py.File('model.h5')['tokenizer'][()].decode()
    make('none.h5', None)
    make('narrow.h5', text, vocab_size=400)
    make('broken.h5', text[:1000])
    j = json.loads(text)
    j['post_processor'] = None
    make('no-bos.h5', json.dumps(j))


def replace(a, b):
    return {'type': 'Replace', 'pattern': {'String': a}, 'content': b}


def doubling(**parts):
    return {'type': 'Sequence'} | parts


def byte_level(top):
    ref = json.load(open(top + '/tests/ref/bytelevel.json'))

    def folder(name, record, **changes):
        shutil.copytree(top + '/tests/tiny', name)
        config = json.load(open(name + '/config.json')) | {'vocab_size': 1000}
        json.dump(config, open(name + '/config.json', 'w'))
        json.dump(
            {
                'added_tokens': ref['added_tokens'],
                'normalizer': record['normalizer'],
                'pre_tokenizer': record['pre_tokenizer'],
                'post_processor': ref['level'],
                'decoder': ref['level'],
                'model': {'type': 'BPE', 'vocab': ref['vocab'], 'merges': ref['merges']},
            }
            | changes,
            open(name + '/tokenizer.json', 'w'),
        )

    for name, record in ref['tokenizers'].items():
        if name in ('GPT-2', 'Llama 3', 'Qwen2', 'SmolLM'):
            folder(name.split()[0], record)
    folder(
        'catastrophe',
        {
            'normalizer': None,
            'pre_tokenizer': {
                'type': 'Split',
                'pattern': {'Regex': '(a|aa)+$'},
                'behavior': 'Isolated',
                'invert': False,
            },
        },
    )
    folder(
        'pattern',
        {
            'normalizer': None,
            'pre_tokenizer': {'type': 'Split', 'pattern': {'Regex': 'a(b'}, 'behavior': 'Isolated', 'invert': False},
        },
    )
    folder('huge', ref['tokenizers']['GPT-2'], added_tokens=[{'id': 2147483646, 'content': 'x', 'special': False}])
    folder('twice', ref['tokenizers']['GPT-2'], added_tokens=[{'id': 5, 'content': '<x>', 'special': False}])
    level = {'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': True, 'use_regex': False}

    folder(
        'doubles',
        {'normalizer': doubling(normalizers=[replace('a', 'aa')] * 40), 'pre_tokenizer': level},
        added_tokens=[],
    )
    folder('long', {'normalizer': replace('a', 'b' * 100000), 'pre_tokenizer': level}, added_tokens=[])
    folder('cuts', {'normalizer': None, 'pre_tokenizer': doubling(pretokenizers=[level] * 40)})
    folder(
        'answers',
        {'normalizer': None, 'pre_tokenizer': level},
        decoder=doubling(decoders=[ref['level']] + [replace('a', 'aa')] * 40),
    )
    # the longest decomposition, with a longer symbol for a space, and two bytes for each
    folder(
        'longest',
        {'normalizer': doubling(normalizers=[{'type': 'NFKD'}, replace(' ', '\u2581')]), 'pre_tokenizer': level},
    )

    open('long-letters', 'w').write('\ufdfa' * 100000)
    open('decomposed', 'w').write(unicodedata.normalize('NFKD', '\ufdfa' * 100000).replace(' ', '\u2581'))
    folder('bare', ref['tokenizers']['GPT-2'])
    os.remove('bare/tokenizer.json')
    # bytes that are mostly not UTF-8, and their replacement by Python
    dice = random.Random(11)
    starts = [
        0x00,
        0x41,
        0x7F,
        0x80,
        0xBF,
        0xC0,
        0xC2,
        0xDF,
        0xE0,
        0xE1,
        0xED,
        0xEF,
        0xF0,
        0xF1,
        0xF4,
        0xF5,
        0xFF,
        0x90,
        0x9F,
        0xA0,
        0x8F,
    ]
    strings = [bytes(dice.choice(starts) for _ in range(dice.randint(1, 8))) for _ in range(20000)]
    strings += [bytes(dice.randrange(256) for _ in range(dice.randint(1, 8))) for _ in range(20000)]
    strings += [
        s.encode()[: dice.randint(1, 9)] for s in ref['strings'] if '<' not in s for _ in range(4)
    ]  # added tokens that include neighbouring white space
    text = b'\n'.join(strings)
    open('broken', 'wb').write(text)
    open('mended', 'wb').write(text.decode('utf-8', errors='replace').encode())


def change(name, make):
    shutil.copy('gpt2.h5', name)
    with h5py.File(name, 'r+') as f:
        make(f)


def damaged():
    change('strange.h5', lambda f: f['tokens'].__setitem__(3, 950))
    change('half.h5', lambda f: f['tokens'].__setitem__(len(f['tokens']) - 1, f['tokens'][0] * 0 + 162))
    change('sequences.h5', lambda f: f.__setitem__('sequence', np.array([0, 3, len(f['tokens'])])))


def get(path):
    f = h5py.File(path)
    print(
        f["tokens"][...].tolist(),
        f["bytes"][...].tolist(),
        *(int(f["tokens"].attrs[a]) for a in ("bos_id", "add_bos", "vocab")),
        f["tokens"].dtype,
        f["bytes"].dtype
    )


def sequences():
    f = h5py.File("texts.h5")
    print(*(f[n][...].tolist() for n in ("tokens", "bytes", "sequence")))


def crc():
    f = h5py.File("all.h5")
    print(len(f["tokens"]), zlib.crc32(f["tokens"][...].tobytes()), int(f["bytes"][...].sum()))


def apart():
    a, b, both = (h5py.File(n + ".h5") for n in ("first", "second", "both"))
    n = len(a["tokens"])
    assert both["sequence"][...].tolist() == [0, n, n + len(b["tokens"])] and all(
        (both[m][:n] == a[m][...]).all() and (both[m][n:] == b[m][...]).all() for m in ("tokens", "bytes")
    )


def broken_text():
    print(
        *(
            int(read(f, "bytes").sum()) == os.path.getsize(g)
            for f, g in (("broken.h5", "broken"), ("mended.h5", "mended"), ("gpt2.h5", "mixed"))
        )
    )
