#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
# tokenizer.py -- makes tokenizer.json: odd strings and the ids that the PyPI package `tokenizers` 0.23.3 gives them
#
#	tests/ref/tokenizer.py ../shared/data >tests/ref/tokenizer.json
#
# "small": tokenizers of this file and their ids. "shared": ids of the models of ../shared/data. "plain": special tokens in the text
# are read as text. "special": they are read as tokens (stored if the ids differ). "decoders": texts of decoders for ids of the first
# small tokenizer, as CRC-32 of all texts, with a newline after each.
import json
import random
import sys
import zlib
from tokenizers import Tokenizer

hand = """a|b|ab|abc|cab|a b| a|a | |  |   |a  b|  a  b  |\\n|\\n\\n|a\\nb| \\n |\\t|a\\tb|\\r\\n|Once upon a time|once UPON a Time.
▁|▁▁|a▁b|▁ a| ▁a|é|e\u0301|ä ö ü|ﬁ|ß|中|中文 字|日本語|한국|שלום|مرحبا|😀|👩‍👩‍👧|🇩🇪 🇫🇷|a😀b|\u00a0|a\u00a0b|\u2003|\u200b|\ufeff|\ufeffa|\ufffd
<s>|</s>|<unk>|<s>a|a<s>|a <s> b|<s><s>|< s >|<s|s>|</s><s>a</s>|<0x41>|<0x0A>|<0x|0x41|a<0x41>b|<S>|<x>|a<x>b| <x> |<x><x>|ab<x>ab
don't|"quoted"|(a)[b]{c}|1234567890|3.14|-1|1,000,000|$5.00|100%|a_b|a-b|a/b\\c|http://a.b/c?d=e&f|a@b.c|#a|`a`|~|^|*
aaaaaaaaaaaaaaaa|abababababab|abcabcabc|cccc|bbbbbbbbb|aab|baa|bab|aba aba|a a a a|the the the|thethethe|The end.|He said, "Hello!"
\x01|\x1f|\x7f|a\x01b|\x80|\u0085|\u2028|\U0010ffff|\ud7ff|\ue000|a\x0bb|a\x0cb|!|?!|...|…|—|a—b|“a”|‘b’|½|x²|H₂O|Ω|→|∑|𝕏|ｆｕｌｌ"""
escapes = {'\\n': '\n', '\\t': '\t', '\\r': '\r'}
strings = [s for line in hand.split('\n') for s in line.split('|')]
for written, meant in escapes.items():
	strings = [s.replace(written, meant) for s in strings]
dice = random.Random(5)
while len(strings) < 220:
	strings.append(''.join(dice.choice('aaabbc  \n▁é中😀<>sx') for _ in range(dice.randint(4, 16))))

def tokenizer(letters, merges, normalizer, pre_tokenizer, pairs=False, fallback=False, fuse=True, ignore=False, added=(), bos=True):
	vocab = {}
	tokens = ['<unk>', '<s>', '</s>'] + [f'<0x{i:02X}>' for i in range(256) if fallback] + list(letters)
	for t in tokens + [a + b for a, b in merges]:
		vocab.setdefault(t, len(vocab))
	extra = [dict(id=len(vocab) + i if a['content'] not in vocab else vocab[a['content']], single_word=False, **a) for i, a in enumerate(added)]
	special = [dict(id=i, content=c, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
		for i, c in enumerate(tokens[:3])]
	template = dict(type='TemplateProcessing', single=[{'SpecialToken': {'id': '<s>', 'type_id': 0}}] * bos + [{'Sequence': {'id': 'A', 'type_id': 0}}],
		pair=[{'Sequence': {'id': 'A', 'type_id': 0}}, {'Sequence': {'id': 'B', 'type_id': 1}}],
		special_tokens={'<s>': {'id': '<s>', 'ids': [1], 'tokens': ['<s>']}} if bos else {})
	return dict(version='1.0', truncation=None, padding=None, added_tokens=special + extra, normalizer=normalizer, pre_tokenizer=pre_tokenizer,
		post_processor=template, decoder=None, model=dict(type='BPE', dropout=None, unk_token='<unk>', continuing_subword_prefix=None,
		end_of_word_suffix=None, fuse_unk=fuse, byte_fallback=fallback, ignore_merges=ignore, vocab=vocab,
		merges=[list(m) if pairs else ' '.join(m) for m in merges]))

prepend = dict(type='Prepend', prepend='▁')
replace = dict(type='Replace', pattern={'String': ' '}, content='▁')
both = dict(type='Sequence', normalizers=[prepend, replace])
def space(scheme, split):
	return dict(type='Metaspace', replacement='▁', prepend_scheme=scheme, split=split)
# abc is made in two ways, of different ranks
merges = [('a', 'b'), ('▁', 'a'), ('ab', 'c'), ('▁', '▁'), ('b', 'a'), ('▁a', 'b'), ('b', 'c'), ('a', 'bc'), ('▁▁', '▁▁'),
	('a', 'a'), ('aa', 'aa'), ('c', 'ab')]
def mark(text, special=False, lstrip=False, rstrip=False, normalized=False):
	return dict(content=text, special=special, lstrip=lstrip, rstrip=rstrip, normalized=normalized)

small = {
	'llama 2': tokenizer('▁abc', merges, both, None, fallback=True),
	'metaspace first': tokenizer('▁abcé\n', merges, None, space('first', False), pairs=True, added=[mark('<x>')]),
	'metaspace always split': tokenizer('▁abc', merges, None, space('always', True), pairs=True, fuse=False, added=[mark('<x>', True, True, True)], bos=False),
	'metaspace never, whole words': tokenizer('▁abc', merges, None, space('never', True), ignore=True, added=[mark('ab', normalized=True)]),
	'seam of spaces': tokenizer('▁abc ', merges + [('c', ' '), (' ', ' '), ('  ', 'a')], None, None, pairs=True, added=[mark('aba', normalized=True)]),
}

def ids(t, text, special):
	t.encode_special_tokens = not special
	return t.encode(text, add_special_tokens=False).ids

def record(t, texts):
	plain = [ids(t, s, False) for s in texts]
	special = [ids(t, s, True) for s in texts]
	return dict(plain=plain, special={str(i): s for i, s in enumerate(special) if s != plain[i]})

def decoder(kind, **how):
	return dict(type=kind, **how)
def chain(*parts):
	return dict(type='Sequence', decoders=list(parts))
swap = decoder('Replace', pattern={'String': '▁'}, content=' ')
decoders = {
	'none': None,
	'llama 2': chain(swap, decoder('ByteFallback'), decoder('Fuse'), decoder('Strip', content=' ', start=1, stop=0)),
	'strip': chain(swap, decoder('Strip', content='a', start=2, stop=0), decoder('Fuse')),	# with stop the library panics on short ones
	'a pattern': chain(decoder('Replace', pattern={'Regex': 'a|▁+'}, content=''), decoder('ByteFallback')),
	'metaspace first': chain(decoder('ByteFallback'), decoder('Metaspace', replacement='▁', prepend_scheme='first', split=True)),
	'metaspace never': decoder('Metaspace', replacement='▁', prepend_scheme='never', split=False),
	'bytes': decoder('ByteLevel', add_prefix_space=True, trim_offsets=True, use_regex=True),
}
first = next(iter(small.values()))
lists = [[dice.choice([0, 1, dice.randrange(3, 259), dice.randrange(200, 259), dice.randrange(259, len(first['model']['vocab']))]) for _ in range(dice.randint(1, 9))]
	for _ in range(100)]
vocab = first['model']['vocab']
lists += [[vocab[f'<0x{b:02X}>'] for b in s.encode()] for s in ('é', '中文', '😀', 'a😀b')]

def decoded(d):
	t = Tokenizer.from_str(json.dumps(first | dict(decoder=d)))
	return zlib.crc32(''.join(t.decode(i, skip_special_tokens=False) + '\n' for i in lists).encode())

result = dict(strings=strings, lists=lists, decoders={name: dict(decoder=d, text=decoded(d)) for name, d in decoders.items()},
	small={name: dict(json=t, **record(Tokenizer.from_str(json.dumps(t)), strings)) for name, t in small.items()},
	shared={name: record(Tokenizer.from_file(f'{sys.argv[1]}/{name}/tokenizer.json'), strings) for name in ('stories260K', 'babyllama-105')})
print('{')
for i, (key, value) in enumerate(result.items()):
	lines = value.items() if isinstance(value, dict) else [(None, value)]
	body = ',\n'.join((json.dumps(k) + ':' if k else '') + json.dumps(v, separators=(',', ':')) for k, v in lines)
	print(json.dumps(key) + ':' + ('{\n' + body + '\n}' if isinstance(value, dict) else body) + (',' if i < len(result) - 1 else ''))
print('}')
