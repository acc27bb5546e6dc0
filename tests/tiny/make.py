#!/usr/bin/env python3
# make.py -- the smallest model that every tool runs on, and the inputs that fuzzers start from; needs h5py
# usage: tests/tiny/make.py; writes model.safetensors, config.json and tokenizer.json beside itself, and
# ../fuzz/seeds. Seeds that the tools make, in ../fuzz/seeds/part:
#   model-import ../../../tiny -o model; sample-tokens --tokens 32 --ctx 8 model -o tokens
#   dpq-run --compensate none --group 4 model --layers '*/0/*q_proj' | cat >stream
#   dpq-run --compensate none --group channel --storage e4m3fn model --layers '*/1/*down_proj' -o codes
import json, os, random, struct

random.seed(1)
here = os.path.dirname(os.path.abspath(__file__))
HIDDEN, INNER, VOCAB, BLOCKS = 8, 16, 24, 2

words = ["<unk>", "<s>", "</s>", "<0xFF>", "<0xC3>", "<0x0A>", "<0x61>", "\u2581", "a", "o", "n", "c", "e",
    "on", "\u2581a", "ce", "once"]
config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
    "num_hidden_layers": BLOCKS, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
    "intermediate_size": INNER, "vocab_size": VOCAB, "max_position_embeddings": 16, "rms_norm_eps": 1e-5,
    "hidden_act": "silu", "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2}

def added(i, s, **more):
    return {"id": i, "content": s, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
        "special": True} | more

tokenizer = {"version": "1.0", "added_tokens": [added(i, words[i]) for i in range(3)],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
    "pre_tokenizer": None,
    "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
    "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True,
        "vocab": {w: i for i, w in enumerate(words)},
        "merges": ["o n", ["\u2581", "a"], "c e", ["on", "ce"]]}}

def tensors(path, shapes, dtype="F32", metadata=True):
    header, data = {"__metadata__": {"format": "pt"}} if metadata else {}, b""
    for name, shape in shapes.items():
        n = 1
        for d in shape:
            n *= d
        new = b"".join(struct.pack("<f" if dtype == "F32" else "<e", random.gauss(0, 1)) for _ in range(n))
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(new)]}
        data += new
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)

def seed(name):
    path = f"{here}/../fuzz/seeds/{name}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path

def put(path, value):
    json.dump(value, open(path, "w"))

shapes = {"model.embed_tokens.weight": [VOCAB, HIDDEN], "model.norm.weight": [HIDDEN]}
for b in range(BLOCKS):
    layer = f"model.layers.{b}."
    shapes |= {layer + "self_attn.q_proj.weight": [8, HIDDEN], layer + "self_attn.k_proj.weight": [4, HIDDEN],
        layer + "self_attn.v_proj.weight": [4, HIDDEN], layer + "self_attn.o_proj.weight": [HIDDEN, 8],
        layer + "mlp.gate_proj.weight": [INNER, HIDDEN], layer + "mlp.up_proj.weight": [INNER, HIDDEN],
        layer + "mlp.down_proj.weight": [HIDDEN, INNER], layer + "input_layernorm.weight": [HIDDEN],
        layer + "post_attention_layernorm.weight": [HIDDEN]}
put(f"{here}/config.json", config)
put(f"{here}/tokenizer.json", tokenizer)
tensors(f"{here}/model.safetensors", shapes)

tensors(seed("safetensors/f32"), {"a": [2, 2], "b": [3], "c": []})
tensors(seed("safetensors/f16"), {"a": [1, 2, 3], "bb": [0]}, "F16", False)
header = json.dumps({"a": {"dtype": "F8_E4M3", "shape": [3], "data_offsets": [0, 3]},
    "b": {"dtype": "BF16", "shape": [1], "data_offsets": [3, 5]},
    "i": {"dtype": "I64", "shape": [], "data_offsets": [5, 13]}}).encode()
open(seed("safetensors/unaligned"), "wb").write(struct.pack("<Q", len(header)) + header + bytes(range(13)))
put(seed("safetensors/index.json"), {"weight_map": {"w": "a.safetensors"}})

put(seed("tokenizer/prepend"), tokenizer)
put(seed("tokenizer/metaspace"), tokenizer | {"normalizer": None, "post_processor": None,
    "added_tokens": [added(0, "<unk>"), added(1, "<s>", normalized=True, lstrip=True, rstrip=True, special=False)],
    "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True},
    "model": tokenizer["model"] | {"byte_fallback": False, "fuse_unk": False, "ignore_merges": True}})
put(seed("tokenizer/byte-level"), {"model": {"type": "BPE", "vocab": {"a": 0, "\u0120": 1, "\u0120a": 2, "\u00c3": 3, "\u00a9": 4,
    "aa": 5, "1": 6}, "merges": ["\u0120 a", "a a"], "ignore_merges": True, "unk_token": "a"},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True}, "decoder": {"type": "ByteLevel"},
    "post_processor": {"type": "ByteLevel"}, "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]},
    "added_tokens": [added(7, "a", single_word=True, special=False, lstrip=True), added(8, "caf\u00e9", normalized=True, special=False)]})
def splits(name, decoder, *parts):
    put(seed(name), {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"], "unk_token": "a", "fuse_unk": True},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": p}, "behavior": b, "invert": i}
            for p, b, i in parts] + [{"type": "Digits", "individual_digits": True}, {"type": "Punctuation"}, {"type": "Whitespace"},
            {"type": "Split", "pattern": {"String": "a"}, "behavior": "Removed", "invert": False}]}, "decoder": decoder})
splits("tokenizer/split", {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"Regex": "a|b+"}, "content": ""}, {"type": "ByteFallback"},
    {"type": "Strip", "content": "a", "start": 1, "stop": 1}, {"type": "Fuse"}]},
    (r"(?i:'s|'t|'re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+", "Isolated", False))
splits("tokenizer/split-odd", {"type": "Metaspace", "replacement": "a", "prepend_scheme": "first"},
    (r"\b\h{,2}+|[[:alpha:]_-]|(?m:a.)|\p{^Han}", "MergedWithPrevious", True), (r"(?<=\w)\d|^a*?$|\u0061\x{62}", "Contiguous", False),
    (r"(?>\W|x++)\1?|(a)", "MergedWithNext", False))
patterns = [r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+""",
    r"(?i)a(?=b)|(?<!\w)[[:^space:]\x{61}-\u0063]{,2}|\p{Letter}{2,}?|(?>(a|aa)*)\1$|^\B.|\p{^Greek}\h|[\]\[^\-\\]",
    r"[^\p{P}\d\s]{1,2}|((a+)+b)*|(?m-i:.)|\R|\X\Z|\G\A|\v|\O\N"]
for i, p in enumerate(patterns):
    open(seed(f"tokenizer/pattern-{i}"), "w").write(p)
put(seed("tokenizer/unigram"), {"model": {"type": "Unigram", "vocab": [["a", 0]]}})
put(seed("tokenizer/llama-config"), config | {"rope_scaling": {"rope_type": "llama3", "factor": 8.0,
    "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})
put(seed("tokenizer/qwen2-config"), config | {"architectures": ["Qwen2ForCausalLM"], "use_sliding_window": True,
    "sliding_window": 4, "max_window_layers": 1, "rope_scaling": {"type": "linear", "factor": 2.0},
    "layer_types": ["sliding_attention", "full_attention"], "eos_token_id": [1, 2]})

try:
    import h5py
    import numpy as np
except ImportError:
    raise SystemExit("no h5py: seeds/image/{odd,old,links} are not made")
os.makedirs(os.path.dirname(seed("image/x")), exist_ok=True)
with h5py.File(seed("image/odd"), "w", libver=("v108", "v108")) as f:	# other types, layouts, strings than ours
    f.attrs["ptq_kind"], f.attrs["ptq_version"], f.attrs["history"] = "model", "1", np.bytes_("abc")
    f["a/big"], f["a/double"], f["a/text"], f["a/fixed"] = np.arange(4, dtype=">f4"), 3.5, "any length", np.bytes_("fixed")
    f.create_dataset("a/zip", data=np.zeros((8, 8), "f4"), chunks=(4, 4), compression="gzip")
    f.create_dataset("a/sum", data=np.arange(16, dtype="i2"), chunks=(8,), shuffle=True, fletcher32=True)
    f["b"] = f["a"]
    f["a/big"].attrs["group"], f["a"].attrs["norm"], f["a"].attrs["bits"] = np.int8(-1), "rms", np.arange(3)
with h5py.File(seed("image/old"), "w", libver="earliest") as f:	# symbol tables, in the tree of a model
    f["config"] = json.dumps({"architectures": ["LlamaForCausalLM"]})
    f["model/layers/0/x/weight"], f["model/layers/1/x/weight"] = np.ones((2, 2), "f2"), np.ones((2, 2), "f4")
    f["model/y"], f["n"] = f["model/layers/0"], np.zeros(0, "f4")
    f["model"].attrs["bits"] = 4
with h5py.File(seed("image/links"), "w", libver="latest") as f:	# what is refused
    f["w"], f["s"], f["e"] = np.zeros(3, "u1"), h5py.SoftLink("/w"), h5py.ExternalLink("other", "/w")
    f["t"] = np.dtype("f4")
    f.create_dataset("c", shape=(2,), dtype=np.dtype([("a", "f4"), ("b", "i4")]))
    f["v"] = np.array(["a", "bc"], dtype=object)
    for i in range(9):
        f.attrs[f"k{i}"] = np.int32(i)
with h5py.File(seed("image/reference"), "w", libver="v108") as f:
    f["w"] = np.zeros(3, "u1")
    f["r"] = f["w"].ref
