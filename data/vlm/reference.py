#!/usr/bin/env python3
"""Answer the held-out questions with the models of ../vlm-pre and ../vlm-post.

Usage:
  pip install torch safetensors numpy pillow tokenizers transformers
  python3 reference.py [FOLDER...]

The script reads questions.jsonl, its images and the files of each folder.  It writes to the folder
  accuracy.tsv     for each task, in float32: right choices, with BOS and without, and exact greedy
                   answers, with BOS.  The model chooses the largest summed log-likelihood of the
                   bytes of a choice after the context.  A greedy answer ends at the line feed
  likelihoods.tsv  in float64, with BOS: the summed log-likelihoods in nats of every choice of the
                   first four questions of each task, and the sum of the log-likelihoods of the
                   right choices over all questions
  answers.tsv      for every question, in float32 with BOS: the right choice, the choice of the
                   model, and the greedy answer
The script also loads each folder with transformers, which reads images with its CLIPImageProcessor
and text with tokenizer.json.  The results of both must agree.  transformers has no post-norm encoder,
so the blocks of its CLIP encoder are rearranged for that model.
"""
import argparse
import json
import os

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

from draw import EASY, HARD
from model import BOS, IMAGE, POST, answer, encode, load


def read(here):
    """Return the questions, each with its images [images, 64, 64, 3] uint8."""
    def picture(name):
        with Image.open(os.path.join(here, name)) as image:
            return np.array(image)
    with open(os.path.join(here, "questions.jsonl")) as f:
        rows = [json.loads(line) for line in f]
    return [(row, torch.from_numpy(np.stack([picture(n) for n in row["images"]]))) for row in rows]


@torch.no_grad()
def greedy(model, row, pixels, most=12):
    """Return the answer that the model generates, up to its line feed."""
    ids, told = [BOS] + encode(row["context"]), b""
    features = model.features(pixels)
    while len(told) < most and not told.endswith(b"\n"):
        token = int(model.head(model.states(torch.tensor([ids]), features)[:, -1]).argmax())
        ids.append(token)
        told += bytes([token]) if token < 256 else b"\0"
    return told.rstrip(b"\n").decode("latin1")


def in_transformers(folder):
    """Return a function that computes the log-likelihoods of the choices of a question with transformers."""
    from tokenizers import Tokenizer
    from transformers import (CLIPImageProcessor, LlavaConfig, LlavaForConditionalGeneration,
                              VipLlavaForConditionalGeneration)
    from transformers.models.clip import modeling_clip
    with open(os.path.join(folder, "config.json")) as f:
        post = json.load(f)["vision_config"]["model_type"] == POST
    if post:
        class PostNorm(modeling_clip.CLIPEncoderLayer):
            def forward(self, x, mask=None, **rest):
                x = x + self.layer_norm1(self.self_attn(x, mask, **rest)[0])
                return x + self.layer_norm2(self.mlp(x))
        with open(os.path.join(folder, "config.json")) as f:
            fields = json.load(f)
        fields["vision_config"]["model_type"] = "clip_vision_model"
        clip, modeling_clip.CLIPEncoderLayer = modeling_clip.CLIPEncoderLayer, PostNorm
        # transformers records the outputs of this class as hidden states
        modeling_clip.CLIPPreTrainedModel._can_record_outputs["hidden_states"] = PostNorm
        model, said = LlavaForConditionalGeneration.from_pretrained(
            folder, config=LlavaConfig.from_dict(fields), dtype=torch.float32, output_loading_info=True)
        modeling_clip.CLIPEncoderLayer = clip
        model.model.vision_tower.pre_layrnorm = torch.nn.Identity()
        allowed = ("pre_layrnorm", "post_layernorm")
        missing = [k for k in said["missing_keys"] if not any(a in k for a in allowed)]
    else:
        model, said = VipLlavaForConditionalGeneration.from_pretrained(folder, dtype=torch.float32,
                                                                       output_loading_info=True)
        missing = list(said["missing_keys"])
    if missing or said["unexpected_keys"] or said["mismatched_keys"]:
        raise SystemExit(f"{folder}: {said}")
    model.eval()
    processor = CLIPImageProcessor.from_pretrained(folder)
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))

    @torch.no_grad()
    def score(row, pixels):
        values = processor(images=[Image.fromarray(p.numpy()) for p in pixels], return_tensors="pt")["pixel_values"]
        out = []
        for choice in row["choices"]:
            ids = [j for i in tokenizer.encode(row["context"] + choice).ids for j in [i] * (64 if i == IMAGE else 1)]
            logits = model(input_ids=torch.tensor([ids]), pixel_values=values).logits[0]
            n = len(choice)
            logp = F.log_softmax(logits[-n - 1:-1].float(), -1)
            out.append(float(logp[torch.arange(n), torch.tensor(ids[-n:])].sum()))
        return out
    return score


def judge(folder, rows):
    model = load(folder)
    tasks = {task: [] for task in EASY + HARD}
    with open(os.path.join(folder, "answers.tsv"), "w") as f:
        f.write("task\tquestion\tright\ttaken\tgreedy\n")
        for row, pixels in rows:
            right = row["choices"][row["gold"]]
            taken = [row["choices"][int(np.argmax(answer(model, row, pixels, bos)))] for bos in (True, False)]
            told = greedy(model, row, pixels)
            f.write(f"{row['task']}\t{len(tasks[row['task']])}\t{right}\t{taken[0]}\t{told!r}\n")
            tasks[row["task"]].append([t == right for t in taken + [told]])
    with open(os.path.join(folder, "accuracy.tsv"), "w") as f:
        f.write("task\tquestions\tchoice\tchoice_without_bos\tgreedy\n")
        for task, right in tasks.items():
            f.write("\t".join([task, str(len(right))] + ["%.4f" % v for v in np.mean(right, 0)]) + "\n")
    model, worst = model.double(), 0.0
    score = in_transformers(folder)
    with open(os.path.join(folder, "likelihoods.tsv"), "w") as f:
        f.write("task\tquestion\tlog_likelihoods\n")
        for task in tasks:
            total = 0.0
            for i, (row, pixels) in enumerate(r for r in rows if r[0]["task"] == task):
                exact = answer(model, row, pixels)
                total += exact[row["gold"]]
                if i < 4:
                    f.write(f"{task}\t{i}\t" + " ".join("%.7g" % v for v in exact) + "\n")
                if i < 16:
                    theirs = score(row, pixels)
                    worst = max(worst, max(abs(a - b) for a, b in zip(exact, theirs)))
            f.write(f"{task}\tall\t{total:.7g}\n")
    print(f"{folder}: transformers differs by at most {worst:.2g} nats in 16 questions of each task")
    if worst > 1e-3:
        raise SystemExit(f"{folder}: this is not the same model")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    ap = argparse.ArgumentParser(description="Answer the held-out questions; see the head of the file.")
    ap.add_argument("folder", nargs="*", default=[os.path.join(here, "..", n) for n in ("vlm-pre", "vlm-post")])
    ap.add_argument("--threads", type=int, default=1)
    a = ap.parse_args()
    torch.set_num_threads(a.threads)
    rows = read(here)
    for folder in a.folder:
        judge(folder, rows)


if __name__ == "__main__":
    main()
