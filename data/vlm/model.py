"""The two small vision-language models in plain torch, with the parameter names of their checkpoints.

Both are LLaVA models: a vision encoder (class Tower), a projector of two linear layers with GELU
between them, and a byte-level Llama.  The projected patches replace the embeddings of the token
<image>.  The encoder is one of

  clip_vision_model      CLIP: blocks x + f(LN(x)), and a norm before the first block, with one number
                         as gain.  The projector begins with a LayerNorm
                         (`VipLlavaForConditionalGeneration`).  So every layer that reads the residual
                         stream reads the output of a norm, and the stream can be centred and rotated
  postnorm_vision_model  x + LN(f(x)) for attention and MLP of each block.  It has the parameters of
                         CLIP under CLIP's names: layer_norm1 normalises the output of attention and
                         layer_norm2 the output of the MLP.  No norm exists before the first block
                         or after the last.  The gain of each norm is one number, so the residual
                         stream can be rotated.  The container is `LlavaForConditionalGeneration`

The features are the outputs of the last block, without the class token (vision_feature_layer -1).
"""
import json
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

IMAGE, BOS, EOS, PAD = 256, 257, 258, 259
PRE, POST = "clip_vision_model", "postnorm_vision_model"


def config(kind):
    own = {
        "architectures": ["LlavaForConditionalGeneration"],
        "model_type": "llava",
        "multimodal_projector_bias": True,
        "vision_feature_select_strategy": "default",
    } if kind == POST else {
        "architectures": ["VipLlavaForConditionalGeneration"],
        "model_type": "vipllava",
        "projector_layernorm_eps": 1e-5,
    }
    return own | {
        "dtype": "bfloat16",
        "image_seq_length": 64,
        "image_token_index": IMAGE,
        "projector_hidden_act": "gelu",
        "text_config": {
            "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": BOS, "eos_token_id": EOS,
            "head_dim": 32, "hidden_act": "silu", "hidden_size": 128, "initializer_range": 0.02,
            "intermediate_size": 256, "max_position_embeddings": 1024, "mlp_bias": False, "model_type": "llama",
            "num_attention_heads": 4, "num_hidden_layers": 4, "num_key_value_heads": 2, "pad_token_id": PAD,
            "rms_norm_eps": 1e-5, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
            "tie_word_embeddings": True, "use_cache": True, "vocab_size": 260,
        },
        "tie_word_embeddings": True,
        "vision_config": {
            "attention_dropout": 0.0, "hidden_act": "gelu", "hidden_size": 128, "image_size": 64,
            "initializer_factor": 1.0, "initializer_range": 0.02, "intermediate_size": 512, "layer_norm_eps": 1e-5,
            "model_type": kind, "num_attention_heads": 4, "num_channels": 3, "num_hidden_layers": 4,
            "patch_size": 8, "projection_dim": 128,
        },
        "vision_feature_layer": -1,
    }


PROCESSOR = {
    "crop_size": {"height": 64, "width": 64},
    "do_center_crop": True,
    "do_convert_rgb": True,
    "do_normalize": True,
    "do_rescale": True,
    "do_resize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_processor_type": "CLIPImageProcessor",
    "image_std": [0.5, 0.5, 0.5],
    "resample": 3,
    "rescale_factor": 0.00392156862745098,
    "size": {"shortest_edge": 64},
}


def tokenizer():
    """Return the contents of tokenizer.json: the id of a byte is the byte, and four special tokens follow."""
    shown = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    hidden = [b for b in range(256) if b not in shown]
    letter = {b: chr(b) for b in shown} | {b: chr(256 + i) for i, b in enumerate(hidden)}
    special = {"<image>": IMAGE, "<s>": BOS, "</s>": EOS, "<pad>": PAD}
    bytelevel = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": name, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for name, i in special.items()],
        "normalizer": None, "pre_tokenizer": bytelevel,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                     {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [BOS], "tokens": ["<s>"]}},
        },
        "decoder": bytelevel,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {letter[b]: b for b in range(256)} | special, "merges": []},
    }


class VisionAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        d, self.heads = c["hidden_size"], c["num_attention_heads"]
        self.k_proj, self.v_proj, self.q_proj, self.out_proj = (nn.Linear(d, d) for _ in range(4))

    def forward(self, x):
        q, k, v = (p(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for p in (self.q_proj, self.k_proj, self.v_proj))
        return self.out_proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class VisionMLP(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.fc1 = nn.Linear(c["hidden_size"], c["intermediate_size"])
        self.fc2 = nn.Linear(c["intermediate_size"], c["hidden_size"])

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class VisionBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.post = c["model_type"] == POST
        self.self_attn = VisionAttention(c)
        self.layer_norm1 = nn.LayerNorm(c["hidden_size"], eps=c["layer_norm_eps"])
        self.mlp = VisionMLP(c)
        self.layer_norm2 = nn.LayerNorm(c["hidden_size"], eps=c["layer_norm_eps"])

    def forward(self, x):
        if self.post:
            x = x + self.layer_norm1(self.self_attn(x))
            return x + self.layer_norm2(self.mlp(x))
        x = x + self.self_attn(self.layer_norm1(x))
        return x + self.mlp(self.layer_norm2(x))


class Embeddings(nn.Module):
    def __init__(self, c):
        super().__init__()
        d, patch = c["hidden_size"], c["patch_size"]
        self.class_embedding = nn.Parameter(torch.empty(d))
        self.patch_embedding = nn.Conv2d(c["num_channels"], d, patch, patch, bias=False)
        self.position_embedding = nn.Embedding((c["image_size"] // patch) ** 2 + 1, d)

    def forward(self, pixels):
        x = self.patch_embedding(pixels).flatten(2).transpose(1, 2)
        return torch.cat([self.class_embedding.expand(len(x), 1, -1), x], 1) + self.position_embedding.weight


class Tower(nn.Module):
    """The vision encoder: [images, 3, height, width] to [images, patches, width of the encoder]."""

    def __init__(self, c):
        super().__init__()
        self.embeddings = Embeddings(c)
        self.encoder = nn.Module()
        self.encoder.layers = nn.ModuleList(VisionBlock(c) for _ in range(c["num_hidden_layers"]))
        self.pre_layrnorm = nn.Identity()
        if c["model_type"] == PRE:  # post_layernorm belongs to CLIP's class; it changes only the class token
            self.pre_layrnorm = nn.LayerNorm(c["hidden_size"], eps=c["layer_norm_eps"])
            self.post_layernorm = nn.LayerNorm(c["hidden_size"], eps=c["layer_norm_eps"])

    def forward(self, pixels):
        x = self.pre_layrnorm(self.embeddings(pixels))
        for layer in self.encoder.layers:
            x = layer(x)
        return x[:, 1:]


class Projector(nn.Module):
    def __init__(self, c):
        super().__init__()
        inputs, outputs = c["vision_config"]["hidden_size"], c["text_config"]["hidden_size"]
        self.projector_layernorm = nn.Identity()
        if c["model_type"] == "vipllava":
            self.projector_layernorm = nn.LayerNorm(inputs, eps=c["projector_layernorm_eps"])
        self.linear_1, self.linear_2 = nn.Linear(inputs, outputs), nn.Linear(outputs, outputs)

    def forward(self, x):
        return self.linear_2(F.gelu(self.linear_1(self.projector_layernorm(x))))


class RMSNorm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(c["hidden_size"]))
        self.eps = c["rms_norm_eps"]

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.h, self.kv, self.d = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        self.q_proj = nn.Linear(c["hidden_size"], self.h * self.d, bias=False)
        self.k_proj = nn.Linear(c["hidden_size"], self.kv * self.d, bias=False)
        self.v_proj = nn.Linear(c["hidden_size"], self.kv * self.d, bias=False)
        self.o_proj = nn.Linear(self.h * self.d, c["hidden_size"], bias=False)

    def forward(self, x, cos, sin):
        def rope(z):
            a, b = z.chunk(2, -1)
            return z * cos + torch.cat([-b, a], -1) * sin
        q, k, v = (p(x).unflatten(-1, (-1, self.d)).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        k, v = (z.repeat_interleave(self.h // self.kv, 1) for z in (rope(k), v))
        y = F.scaled_dot_product_attention(rope(q), k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate_proj = nn.Linear(c["hidden_size"], c["intermediate_size"], bias=False)
        self.up_proj = nn.Linear(c["hidden_size"], c["intermediate_size"], bias=False)
        self.down_proj = nn.Linear(c["intermediate_size"], c["hidden_size"], bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm, self.self_attn = RMSNorm(c), Attention(c)
        self.post_attention_layernorm, self.mlp = RMSNorm(c), MLP(c)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llava(nn.Module):
    def __init__(self, c):
        super().__init__()
        vision, text = c["vision_config"], c["text_config"]
        self.config = c
        self.vision_tower = Tower(vision)
        self.multi_modal_projector = Projector(c)
        self.language_model = nn.Module()
        self.language_model.model = body = nn.Module()
        body.embed_tokens = nn.Embedding(text["vocab_size"], text["hidden_size"])
        body.layers = nn.ModuleList(Block(text) for _ in range(text["num_hidden_layers"]))
        body.norm = RMSNorm(text)
        self.start()

    @torch.no_grad()
    def start(self):
        """Set initial weights.  The gains of norms that write the residual stream start and stay equal."""
        for name, p in self.named_parameters():
            if name.endswith("bias"):
                p.zero_()
            elif name.endswith(("class_embedding", "position_embedding.weight")):
                p.normal_(std=0.3)
            elif name.endswith("embed_tokens.weight"):
                p.normal_(std=0.05)
            elif name.endswith("patch_embedding.weight"):
                p.normal_(std=p[0].numel() ** -0.5)
            elif p.dim() == 2:
                p.normal_(std=0.6 / math.sqrt(p.shape[1]))
                if name.endswith(("o_proj.weight", "down_proj.weight", "out_proj.weight", "fc2.weight")):
                    p /= math.sqrt(2 * 4)
        tower, norms = self.vision_tower, []
        if self.config["vision_config"]["model_type"] == POST:
            norms = [n for layer in tower.encoder.layers for n in (layer.layer_norm1, layer.layer_norm2)]
        for norm in norms or [tower.pre_layrnorm]:
            norm.weight.fill_(0.5 if norms else 1.0)
            norm.weight.register_hook(lambda g: g.mean().expand_as(g))

    def features(self, pixels):
        """Return the features of uint8 images [images, height, width, 3], normalized as by the processor."""
        kind = self.vision_tower.embeddings.class_embedding.dtype
        return self.vision_tower((pixels.permute(0, 3, 1, 2).to(kind) / 255 - 0.5) / 0.5)

    def states(self, ids, features, position=None, early=False):
        """Return the outputs of the final norm [sequences, tokens, width].

        features: of all images, in their order.  position [sequences, tokens]: positions of tokens that are
        not consecutive.  early: the outputs of the first block are returned too, without a norm."""
        body = self.language_model.model
        x = body.embed_tokens(ids)
        mask = (ids == IMAGE).unsqueeze(-1)
        x = x.masked_scatter(mask, self.multi_modal_projector(features))
        text = self.config["text_config"]
        d, theta = text["head_dim"], text["rope_parameters"]["rope_theta"]
        freq = theta ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
        if position is None:
            position = torch.arange(ids.shape[1]).unsqueeze(0)
        angle = (position.unsqueeze(-1).to(x.dtype) * freq).repeat(1, 1, 2).unsqueeze(1)
        cos, sin = angle.cos(), angle.sin()
        kept = body.layers[0](x, cos, sin)
        x = kept
        for layer in body.layers[1:]:
            x = layer(x, cos, sin)
        return (body.norm(x), kept) if early else body.norm(x)

    def head(self, states):
        return F.linear(states, self.language_model.model.embed_tokens.weight)


def encode(text):
    """Return the token ids of a text.  Each <image> becomes the 64 tokens of one image."""
    ids = []
    for i, part in enumerate(text.split("<image>")):
        ids += [IMAGE] * (64 if i else 0) + list(part.encode("ascii"))
    return ids


def export(model, folder):
    from safetensors.torch import save_file
    os.makedirs(folder, exist_ok=True)
    tensors = {k: v.detach().to(torch.bfloat16).contiguous() for k, v in model.state_dict().items()}
    save_file(tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    os.chmod(os.path.join(folder, "model.safetensors"), 0o644)
    for name, content in (("config.json", model.config), ("preprocessor_config.json", PROCESSOR),
                          ("tokenizer.json", tokenizer())):
        with open(os.path.join(folder, name), "w") as f:
            json.dump(content, f, indent=2)
            f.write("\n")


def load(folder):
    """Return the model of a folder, in float32."""
    from safetensors.torch import load_file
    with open(os.path.join(folder, "config.json")) as f:
        model = Llava(json.load(f))
    model.load_state_dict(load_file(os.path.join(folder, "model.safetensors")))
    return model.float().eval()


@torch.no_grad()
def answer(model, row, pixels, bos=True):
    """Return summed log-likelihoods (nats) of the choices of a question; pixels [images, h, w, 3] uint8."""
    prefix = ([BOS] if bos else []) + encode(row["context"])
    choices = [encode(c) for c in row["choices"]]
    longest = max(map(len, choices))
    ids = torch.tensor([prefix + c + [PAD] * (longest - len(c)) for c in choices])
    features = model.features(pixels).repeat(len(choices), 1, 1)
    logp = F.log_softmax(model.head(model.states(ids, features)[:, len(prefix) - 1:-1]), -1)
    return [float(sum(logp[i, j, t] for j, t in enumerate(c))) for i, c in enumerate(choices)]
