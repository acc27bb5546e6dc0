#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
# bytelevel.py -- byte-level tokenizers, and the ids of texts by the PyPI package `tokenizers` 0.23.3
#
#	tests/ref/bytelevel.py make >tests/ref/bytelevel.json	trains, and encodes with the library
#	tests/ref/bytelevel.py text [BYTES [SEED]]		a text of code, accents, CJK, emoji, digits (no library)
#	tests/ref/bytelevel.py strings				odd strings, a JSON array
#
# bytelevel.json has a vocabulary with its merges, and a record for each tokenizer, which consists of its parts and the vocabulary:
# the number and the CRC-32 of the ids, as little-endian int32, of the text and of all strings one after the other, and the CRC-32
# of the decoded texts.
import json
import random
import sys
import zlib

words = """the of and to in is that for it was on are as with they be at this from have or by one had not but what all were when we there
can an your which their said if do will each about how up out them then she many some so these would other into has more her two like
him see time could no make than first been its who now people my made over did down only way find use may water long little very after
words called just where most know Don't I'll we've they're she'd it's I'm YOU'RE ISN'T x1 e5 naïve café déjà vu Straße größer Ærøskøbing
señor coração žluťoučký kůň příliš đường phố İstanbul ığdır Ελληνικά γλώσσα Москва привет мир українська ქართული հայերեն שלום עולם مرحبا
بالعالم فارسی हिन्दी भाषा বাংলা தமிழ் ไทยแลนด์ ລາວ မြန်မာ ខ្មែរ 한국어 안녕하세요 日本語 テキスト ひらがな カタカナ 中文 漢字 机器学习 模型量化 𠀀𠮷 ｆｕｌｌ ﬁne""".split()
code = """int main(void) {|\treturn 0;\n}|for (size_t i = 0; i < n; i++)|	x[i] += a * b[i];|if (!p)\n\t\treturn NULL;|/* comment */|// TODO: x
def f(self, *args, **kwargs):|    return {k: v for k, v in args}|lambda x: x**2|import numpy as np\n|#include <stdio.h>\n|printf("%d\\n", i);
SELECT * FROM t WHERE id = 42;|<div class="a">text</div>|$HOME/bin:$PATH|http://example.org/a?b=c&d=%20e#f|user@example.com|0xDEADBEEF|1e-10
a->b.c[3]|x != y && z >= w|`code`|**bold**|{"key": [1, 2.5, null]}|\\frac{a}{b}|#!/bin/sh|\r\n\r\n|\n\n\n|  \n|\t\t\t|        |'s 't 'LL|<|im_start|>""".replace('\n', '|').split('|')
emoji = ['😀', '🎉🎊', '👩‍👩‍👧', '🇩🇪🇫🇷', '👍🏽', '❤️', '🧑🏿‍🚀', '1️⃣', '☃', '→', '∑', '½', '²', 'Ⅻ', '①', '𝔘', '٣٤', '१२', '〇', '．', '。', '、', '！', '…', '—', '“x”', '\u00a0',
	'\u3000', '\u2003', '\u200b', '\u200d', '\ufeff', '\ufffd', 'e\u0301', 'ａ', '\u1100\u1161\u11a8', '\u0344', 'ｶﾞ', '\u180e', '\u2028', '\x85', '\x0b', '\x1f']

def mixed(size, seed=1):
	dice = random.Random(seed)
	out, n = [], 0
	while n < size:
		kind = dice.random()
		if kind < 0.6:
			s = dice.choice(words)
			s = s.upper() if dice.random() < 0.05 else s.title() if dice.random() < 0.1 else s
			s += dice.choice([' '] * 12 + ['  ', '\n', ', ', '. ', '.\n\n', '', ': ', '\t'])
		elif kind < 0.75:
			s = dice.choice(code) + dice.choice(['\n', ' ', ''])
		elif kind < 0.85:
			s = str(dice.randrange(10 ** dice.randint(1, 12))) + dice.choice([' ', ',', '.', '%', ''])
		elif kind < 0.95:
			s = dice.choice(emoji) * dice.choice([1, 1, 1, 2, 5]) + dice.choice([' ', ''])
		elif kind < 0.98:
			s = ''.join(dice.choice('abcdefghijklmnopqrstuvwxyzABCDEF0123456789_-./') for _ in range(dice.randint(1, 40))) + ' '
		else:
			s = chr(dice.choice([dice.randrange(0x80, 0x250), dice.randrange(0x370, 0x600), dice.randrange(0x900, 0xe80), dice.randrange(0x3040, 0x30ff),
				dice.randrange(0x4e00, 0x9fa5), dice.randrange(0xac00, 0xd7a4), dice.randrange(0x1f300, 0x1f650)]))
		out.append(s)
		n += len(s.encode())
	return ''.join(out)

odd = """|a| |  |   |a b| a|a |  a  b  |\\n|\\n\\n| \\n |\\r\\n|\\ta\\t\\tb|a\\n\\nb|a \\n\\n b|   \\n   a|Hello world|Hello, World!|I'm you're he'll 'S 'LL we'VE
123|1234567|3.14159|a1b22c333|１２３|½²Ⅻ①|٣٤٥|x=1;y=[2,3]|'''|''s|'t|can't|CAN'T|don’t|_a_b_|__init__|a-b|$5.00|100%|...|?!|!!a|a!!|(a)|[a]|{a}|"q"
é|e\u0301|ä|a\u0308\u0323|a\u0323\u0308|ﬁ|ß|İ|ǅ|Å|한국어|\u1112\u1161\u11ab|中文字|日本語。|ｶﾞ|שלום|مرحبا|हिन्दी|ไทย|😀|👩‍👩‍👧|🇩🇪🇫🇷|a😀b|\u00a0a|\u2003|\u200b|\u200da|\u180ea|\u2028a|\x85a|\x0ba|\ufeffa|\ufffd
<s>|</s>|<|x|>|a<|x|>b|<s>a|a <s> b|<s><s>|<x>|a <x> b|a<x>b|<x><x>| <x>|<y>|<Y>|a<y>| <y> |word|aword|words|a word b|word word|_word|-word-|é word|\u0301word|www|<z>a|É<z>|  <z>  a
 a|  a|   a|    a\\n| \\n\\na| \\t a|a \\r\\n b|the theThe THE|ababababab|aaaaaaaaaaaa|▁|▁▁a|a▁b|a,b;c|a...b|.a.|#a#b""".replace('<|x|>', '<\x00x\x00>')
def strings():
	lines = [s.replace('\x00', '|') for line in odd.split('\n') for s in line.split('|')]
	out = [s.replace('\\n', '\n').replace('\\t', '\t').replace('\\r', '\r') for s in lines]
	dice = random.Random(7)
	pool = ['a', 'B', 'é', ' ', ' ', '\n', '1', '2', '.', ',', "'", 's', 'll', '中', '😀', '\u0301', '\u0323', '<s>', '<x>', '<y>', 'word', '_', '\t', '\r\n', 'İ', 'ﬁ', '\u3000', '▁', '½', '가', '\u11a8']
	while len(out) < 400:
		out.append(''.join(dice.choice(pool) for _ in range(dice.randint(2, 14))))
	return [s for s in out if s]

def level(prefix=False, regex=True):
	return dict(type='ByteLevel', add_prefix_space=prefix, trim_offsets=True, use_regex=regex)
def split(pattern, behavior='Isolated', invert=False, kind='Regex'):
	return dict(type='Split', pattern={kind: pattern}, behavior=behavior, invert=invert)
def sequence(*parts):
	return dict(type='Sequence', pretokenizers=list(parts))
def form(*names):
	return dict(type='Sequence', normalizers=[dict(type=n) for n in names])

llama3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
qwen2 = llama3.replace('{1,3}', '')
possessive = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
cased = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
digits = dict(type='Digits', individual_digits=True)
# name → pre_tokenizer, normalizer; the first four are whole families'
families = {
	'GPT-2': (level(), None),
	'Llama 3': (sequence(split(llama3), level(regex=False)), None),
	'Qwen2': (sequence(split(qwen2), level(regex=False)), dict(type='NFC')),
	'SmolLM': (sequence(digits, level()), None),
}
parts = families | {
	'GPT-4o': (sequence(split(cased), level(regex=False)), None),
	'possessive': (sequence(split(possessive), level(regex=False)), None),
	'DeepSeek': (sequence(split(r'\p{N}{1,3}'), split('[一-龥぀-ゟ゠-ヿ]+'), split(r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"), level(regex=False)), None),
	'prefix': (level(prefix=True), None),
	'prefix without pattern': (level(True, False), None),
	'nothing but bytes': (level(False, False), None),
	'NFD, lower case': (level(), form('NFD', 'Lowercase')),
	'NFKC': (sequence(split(r'\s+'), level(regex=False)), form('NFKC')),
	'NFKD': (level(), form('NFKD')),
	'lower case': (level(), form('Lowercase')),
	'Replace by a pattern': (level(), dict(type='Replace', pattern=dict(Regex=r' {2,}|\n'), content='x')),
	'whole words of Rust': (sequence(dict(type='Whitespace'), level(regex=False)), None),
	'white space': (sequence(dict(type='WhitespaceSplit'), level(regex=False)), None),
	'punctuation': (sequence(dict(type='Punctuation', behavior='Contiguous'), level(regex=False)), None),
	'runs of digits': (sequence(digits | dict(individual_digits=False), level(regex=False)), None),
	'delimiter': (sequence(dict(type='CharDelimiterSplit', delimiter='a'), level(regex=False)), None),
	'a string': (sequence(split('ab', 'Removed', kind='String'), split('.', 'MergedWithPrevious', kind='String'), level(regex=False)), None),
	'\\w \\b \\h': (sequence(split(r'\b\h+\b|\w+|[\w\d]', 'MergedWithNext'), level(regex=False)), None),
	'sets': (sequence(split(r'[[:alpha:]_]+|[^[:space:][:alpha:]]|[\s\x{3000}-\u3010]', 'Contiguous'), level(regex=False)), None),
	'lines': (sequence(split(r'^.|.$|(?m:\n.)|x{,2}y'), level(regex=False)), None),
	'scripts': (sequence(split(r'\p{Han}+|\p{Greek}|\p{^L}{2}|\P{Letter}'), level(regex=False)), None),
	'empty matches': (sequence(split(r'a*'), split(r'(?=1)'), level(regex=False)), None),
} | {f'{b}{" inverted" * i}': (sequence(split(r'\d\d|[ab]', b, bool(i)), level(regex=False)), None)
	for b in ('Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous') for i in (0, 1)}

def mark(at, content, special=False, **flags):
	return dict(id=at, content=content, special=special, **(dict(single_word=False, lstrip=False, rstrip=False, normalized=False) | flags))

def whole(model, pre_tokenizer, normalizer, ignore=False):
	n = len(model['vocab'])
	return dict(version='1.0', truncation=None, padding=None, normalizer=normalizer, pre_tokenizer=pre_tokenizer, post_processor=level(), decoder=level(),
		added_tokens=[mark(n, '<s>', True), mark(n + 1, '<x>', lstrip=True), mark(n + 2, '<y>', normalized=True), mark(n + 3, 'word', single_word=True),
			mark(n + 4, '<z>', rstrip=True, lstrip=True, normalized=True), mark(n + 5, 'www')],
		model=dict(type='BPE', dropout=None, unk_token=None, continuing_subword_prefix='', end_of_word_suffix='', fuse_unk=False, byte_fallback=False,
			ignore_merges=ignore, **model))

def crc(ids):
	return zlib.crc32(b''.join(i.to_bytes(4, 'little') for i in ids))

def make():
	from tokenizers import Tokenizer, models, pre_tokenizers, trainers
	t = Tokenizer(models.BPE())
	t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
	t.train_from_iterator(mixed(300000, 3).split('\n'), trainers.BpeTrainer(vocab_size=900, show_progress=False,
		initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
	model = json.loads(t.to_str())['model']
	model = dict(vocab=model['vocab'], merges=[' '.join(m) for m in model['merges']])
	text, odd_strings, out = mixed(1 << 20), strings(), {}
	for name, (pre, normal) in parts.items():
		t = Tokenizer.from_str(json.dumps(whole(model, pre, normal, name == 'Llama 3')))
		ids = [[t.encode(s, add_special_tokens=False).ids for s in odd_strings]]
		t.encode_special_tokens = True
		ids += [[t.encode(s, add_special_tokens=False).ids for s in odd_strings]]
		back = ''.join(t.decode(i, skip_special_tokens=False) for i in ids[1])
		out[name] = dict(pre_tokenizer=pre, normalizer=normal, ignore_merges=name == 'Llama 3', special=[sum(map(len, ids[0])), crc(sum(ids[0], []))],
			plain=[sum(map(len, ids[1])), crc(sum(ids[1], []))], decoded=zlib.crc32(back.encode()))
		if name in families:
			i = t.encode(text, add_special_tokens=False).ids
			out[name]['text'] = [len(i), crc(i)]
	print('{"vocab":' + json.dumps(model['vocab'], separators=(',', ':')) + ',\n"merges":' + json.dumps(model['merges'], separators=(',', ':')) + ',')
	print('"added_tokens":' + json.dumps(whole(model, None, None)['added_tokens'], separators=(',', ':')) + ',')
	print('"level":' + json.dumps(level()) + ',')
	print('"strings":' + json.dumps(odd_strings, separators=(',', ':')) + ',')
	print('"tokenizers":{\n' + ',\n'.join(json.dumps(k) + ':' + json.dumps(v, separators=(',', ':')) for k, v in out.items()) + '\n}}')

if sys.argv[1:2] == ['make']:
	make()
elif sys.argv[1:2] == ['text']:
	sys.stdout.buffer.write(mixed(*map(int, sys.argv[2:] or ['1048576'])).encode())
elif sys.argv[1:2] == ['strings']:
	print(json.dumps(strings()))
