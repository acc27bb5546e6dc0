#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""tokenizer.json of Llama 2 from a GGUF file with its vocabulary.

    llama-tokenizer.py VOCAB.gguf >tokenizer.json

Merges are all ways to cut a token into two others, in the order of the score of
the whole token, and then of the vocabulary, as in Hugging Face's converter of
SentencePiece models. Needs the PyPI package gguf.
"""
import json
import sys

import gguf

fields = gguf.GGUFReader(sys.argv[1]).fields


def field(name):
    return fields["tokenizer.ggml." + name].contents()


tokens, scores, types = field("tokens"), field("scores"), field("token_type")
vocab = {t: i for i, t in enumerate(tokens)}
normal = int(gguf.TokenType.NORMAL)
merges = []
for i, t in enumerate(tokens):
    if types[i] == normal:
        cuts = [(t[:k], t[k:]) for k in range(1, len(t)) if t[:k] in vocab and t[k:] in vocab]
        merges += [(scores[i], cut) for cut in sorted(cuts, key=lambda c: (vocab[c[0]], vocab[c[1]]))]
merges.sort(key=lambda m: -m[0])
special = [dict(id=i, content=tokens[i], single_word=False, lstrip=False, rstrip=False, normalized=False, special=True) for i in range(3)]
json.dump(dict(
    version="1.0", truncation=None, padding=None, added_tokens=special,
    normalizer=dict(type="Sequence", normalizers=[dict(type="Prepend", prepend="▁"),
                                                  dict(type="Replace", pattern=dict(String=" "), content="▁")]),
    pre_tokenizer=None, decoder=None,
    post_processor=dict(type="TemplateProcessing",
                        single=[{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                        pair=[{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                        special_tokens={"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}),
    model=dict(type="BPE", dropout=None, unk_token="<unk>", continuing_subword_prefix=None, end_of_word_suffix=None,
               fuse_unk=True, byte_fallback=True, ignore_merges=False, vocab=vocab, merges=[" ".join(m[1]) for m in merges])),
          sys.stdout, ensure_ascii=False)
