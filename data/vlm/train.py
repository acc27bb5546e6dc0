#!/usr/bin/env python3
"""Train one of the two small vision-language models on images that are drawn during training.

Usage:
  pip install torch safetensors numpy
  python3 train.py pre --tower-minutes T --short-minutes S --minutes M
                                 the model with the CLIP encoder, to ../vlm-pre
  python3 train.py post ...      the model with the post-norm encoder, to ../vlm-post

Stage 1 (--tower-minutes) trains the vision encoder alone, with 64 images a step.  A linear layer on
its features predicts the row and column of each patch.  It also predicts labels of the thing with its
centre in the patch: its name (a sign, or a shape and its colour), the number of equal things in the
image, and the numbers of things farther left and farther up.

Stages 2 and 3 train on texts, 16 with one image a step or 8 with two.  Two images are compared, or
belong to two episodes, one after the other.  An episode has one to four questions.  The loss is the
sum of
  - the loss of the answers and their line feeds; the first letter of a word counts three times
  - 0.02 times the loss of the rest of the text
  - 0.3 times the loss of the patches: that of the linear layer of stage 1, plus half the loss of a
    linear layer on the outputs of the first block of the language model, which also predicts
    whether an image is the first or the second
Both linear layers are discarded at the end.

In stage 2 (--short-minutes) the encoder is fixed, and an image has 16 tokens: the patches with a
thing in them, and random others.  In stage 3 (--minutes) all weights are trained, the encoder at a
quarter of the rate.  An image has 24 tokens for 0.6 of the time, then all 64.  In stage 2 and until
0.35 of the time of stage 3, the texts are easier, and more of them ask for places.

An image that equals a held-out image is drawn again.  The rates follow a cosine over the clock; in
stage 3 it starts from half of --lr.  The log is losses.tsv in the folder of the model.  Checkpoints are
written to the folder --work, and the current model to its folder latest.  --resume continues from a
checkpoint.  --begin reads the weights of a checkpoint.
"""
import argparse
import json
import math
import os
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import draw
from model import BOS, EOS, IMAGE, PAD, POST, PRE, Llava, answer, config, encode, export, load

# each task is drawn as often as it is listed
SINGLE = ("glyph", "colour") + ("string", "faint") * 2 + ("many", "count") * 3 + ("side", "where") * 4
DOUBLE = ("more", "which", "pair")
PLACES = ("side",) * 4 + ("where", "count") * 3 + ("glyph", "colour", "string", "faint", "many")  # easy texts
TOWER = ("glyph", "count") * 3 + ("faint", "string", "many", "side") * 2 + ("which", "more", "where")
SIDE = draw.SIZE // draw.PATCH
HEADS = {"name": draw.CLASSES, "count": draw.MOST, "left": 4, "above": 4, "row": SIDE, "column": SIDE}
MOST = 4       # questions per episode, at most
PICTURES = 16  # images per step of texts
TOWER_RATE = 0.25  # rate of the encoder after its own stage, relative to the rate of the rest
FIRST = 3.0    # weight of the first letter of a word of an answer; its other bytes have weight 1
OTHER = 0.02   # weight of bytes outside answers


class Episodes:
    """Training texts: (ids, weight of each id as a target, images, labels)."""

    def __init__(self, seed, questions):
        self.rng = draw.stream(seed, draw.TRAINING)
        self.held = {p.digest() for child in (draw.HELD_OUT,)
                     for _, pictures in draw.ask(seed, child, questions, draw.LEVELS) for p in pictures}
        self.redrawn, self.ready = 0, {1: [], 2: []}

    def episode(self, tasks, ceiling):
        task = draw.pick(self.rng, tasks)
        while True:
            pictures, questions = draw.EPISODES[task](self.rng, self.rng.uniform(0, ceiling))
            if not any(p.digest() in self.held for p in pictures):
                return pictures, questions
            self.redrawn += 1

    def text(self, count, ceiling, tasks):
        rng = self.rng
        if count == 1:
            episodes = [self.episode(tasks, ceiling)]
        elif tasks is PLACES or rng.integers(4):
            episodes = [self.episode(DOUBLE, ceiling)]
        else:
            episodes = [self.episode(tasks, ceiling) for _ in range(2)]
        ids, weight, shown = ([BOS], [0.0], []) if rng.integers(2) else ([], [], [])
        for pictures, questions in episodes:
            shown += pictures
            head = "".join(f"{t}<image>\n" for t in draw.introduction(rng, len(pictures)))
            part = encode(head)
            ids += part
            weight += [OTHER * (t != IMAGE) for t in part]
            for _, question, reply, _ in draw.pick(rng, questions, min(MOST, len(questions))):
                ask, reply = encode(f"Q: {question}\nA:"), encode(f" {reply}\n")
                ids += ask + reply
                weight += [OTHER] * len(ask) + [1.0] + [FIRST if a == ord(" ") else 1.0 for a in reply[:-1]]
        return ids + [EOS], weight + [OTHER], shown

    def batch(self, count, ceiling, tasks=SINGLE):
        """Return PICTURES / count texts of about the same length."""
        n = PICTURES // count
        if not self.ready[count]:
            drawn = sorted((self.text(count, ceiling, tasks) for _ in range(4 * n)), key=lambda t: len(t[0]))
            parts = [drawn[i:i + n] for i in range(0, len(drawn), n)]
            self.ready[count] = [parts[int(i)] for i in self.rng.permutation(len(parts))]
        part = self.ready[count].pop()
        length = max(len(t[0]) for t in part)
        ids = torch.tensor([t[0] + [PAD] * (length - len(t[0])) for t in part])
        weight = torch.tensor([t[1] + [0.0] * (length - len(t[1])) for t in part])
        pictures = [p for t in part for p in t[2]]
        pixels = torch.from_numpy(np.stack([p.pixels for p in pictures]))
        labels = torch.from_numpy(np.stack([p.labels() for p in pictures]))
        return ids, weight, pixels, labels

    def pictures(self, count, ceiling):
        """Return images without texts: pixels and labels."""
        drawn = []
        while len(drawn) < count:
            drawn += self.episode(TOWER, ceiling)[0]
        return (torch.from_numpy(np.stack([p.pixels for p in drawn])),
                torch.from_numpy(np.stack([p.labels() for p in drawn])))


def telling(logits, labels, at=None):
    """Return the loss of the predictions for the patches, and the shares of right predictions.

    The shares are those of name, count, left and above, without the empty patches (most patches are empty).
    at [images, patches]: the numbers of the patches, if they are not all patches in order."""
    weight = torch.cat([torch.full((1,), 0.05), torch.ones(draw.CLASSES - 1)])
    name, count, left, above, row, column = logits.flatten(0, 1).split(list(HEADS.values()), -1)
    targets = labels.transpose(0, 1).flatten(1)
    loss = F.cross_entropy(name, targets[0], weight)
    at = (torch.arange(SIDE * SIDE).repeat(len(labels), 1) if at is None else at).flatten()
    loss = loss + 0.3 * (F.cross_entropy(row, at // SIDE) + F.cross_entropy(column, at % SIDE))
    for part, target, share in zip((count, left, above), targets[1:], (1.0, 0.5, 0.5)):
        told = (target >= 0).sum().clamp(min=1)
        loss = loss + share * F.cross_entropy(part, target, ignore_index=-1, reduction="sum") / told
    full = targets[0] > 0
    right = [(part.detach().argmax(-1) == t)[full & (t >= 0)].float().mean().item()
             for part, t in zip((name, count, left, above), targets)]
    return loss, right


def losses(model, names, inner, batch, tokens, tower):
    """Return the losses of the text, of the answers alone, and of the predictions for the patches.

    tower: whether the encoder is trained.  The loss of the patches is the loss of names, on the features,
    plus half the loss of inner, on the outputs of the first block of the language model.  inner also
    predicts the number of the image in the text.

    If an image has fewer tokens than patches, the patches with a thing in them are kept, and random others.
    The kept tokens keep their positions."""
    ids, weight, pixels, labels = batch
    with torch.set_grad_enabled(tower):
        features = model.features(pixels)
    taken, position, told, order, full = features, None, labels, None, labels[:, 0] > 0
    if tokens < full.shape[1]:
        order = (full + 0.9 * torch.rand(full.shape)).topk(tokens).indices.sort().values
        taken = features.gather(1, order.unsqueeze(-1).expand(-1, -1, features.shape[-1]))
        told = labels.gather(2, order.unsqueeze(1).expand(-1, labels.shape[1], -1))
        stays = ids != IMAGE
        stays[~stays] = torch.zeros_like(full).scatter(1, order, True).flatten()
        position = stays.nonzero()[:, 1].view(len(ids), -1)
        ids, weight = ids.gather(1, position), weight.gather(1, position)
    states, early = model.states(ids, taken, position, True)
    states, early = states[:, :-1], inner(early[ids == IMAGE]).unflatten(0, taken.shape[:2])
    which = torch.arange(len(taken)) % (len(taken) // len(ids))
    seen = telling(names(features), labels)[0] + 0.5 * (
        telling(early[..., :-2], told, order)[0]
        + F.cross_entropy(early[..., -2:].flatten(0, 1), which.repeat_interleave(taken.shape[1])))
    weight, target = weight[:, 1:], ids[:, 1:]
    at = weight > 0
    each = F.cross_entropy(model.head(states[at]), target[at], reduction="none")
    weight = weight[at]
    replies = weight >= 1
    return (each * weight).sum() / replies.sum(), each[replies].mean(), seen


def accuracy(model, rows):
    """Return the share of right choices, by task."""
    right = {}
    for row, pictures in rows:
        scores = answer(model, row, torch.from_numpy(np.stack([p.pixels for p in pictures])))
        right.setdefault(row["task"], []).append(int(np.argmax(scores)) == row["gold"])
    return {task: sum(v) / len(v) for task, v in right.items()}


class Run:
    """The contents of a checkpoint, and the clock."""

    def __init__(self, a, work, out):
        self.a, self.out, self.checkpoint = a, out, os.path.join(work, "checkpoint.pt")
        self.latest = os.path.join(work, "latest")
        self.model = Llava(config({"pre": PRE, "post": POST}[a.kind]))
        self.names = nn.Linear(128, sum(HEADS.values()))
        self.inner = nn.Linear(128, sum(HEADS.values()) + 2)
        self.data = Episodes(a.seed, a.questions)
        self.trial = draw.ask(a.seed, draw.TRIAL, a.trial, draw.LEVELS)
        self.all = [p for part in (self.model, self.names, self.inner) for p in part.parameters()]
        self.optimizer()
        self.stage, self.step, self.spent, self.log, self.running = 0, 0, 0.0, [], []
        if a.begin:
            state = torch.load(a.begin, weights_only=False)
            self.names.load_state_dict(state["names"])
            if "inner" in state:
                self.inner.load_state_dict(state["inner"])
            self.model.load_state_dict(state["model"])
            self.data.rng = state["rng"]
        if a.resume:
            state = torch.load(self.checkpoint, weights_only=False)
            for key in ("model", "names", "inner", "opt"):
                getattr(self, key).load_state_dict(state.pop(key))
            self.data.rng = state.pop("rng")
            self.__dict__.update(state)

    def optimizer(self):
        """Make an optimizer of four groups: only matrices decay; the encoder may have a lower rate."""
        tower = {id(p) for p in self.model.vision_tower.parameters()}
        groups = [{"params": [p for p in self.all if (p.dim() > 1) == many and (id(p) in tower) == slow],
                   "weight_decay": self.a.weight_decay * many, "slow": slow}
                  for many in (True, False) for slow in (True, False)]
        self.opt = torch.optim.AdamW(groups, betas=(0.9, 0.98), fused=True)

    def save(self):
        state = {key: getattr(self, key).state_dict() for key in ("model", "names", "inner", "opt")}
        state.update({key: getattr(self, key) for key in ("stage", "step", "spent", "log")}, rng=self.data.rng)
        torch.save(state, self.checkpoint + ".new")
        os.replace(self.checkpoint + ".new", self.checkpoint)
        export(self.model, self.latest)

    def watch(self):
        """Log the mean losses since the last row, and shares of right choices by task (other questions)."""
        mean = np.mean(self.running, 0) if self.running else (math.nan,) * 3
        right = accuracy(self.model, self.trial)
        self.log.append([self.step, *mean, *right.values(), self.spent])
        with open(os.path.join(self.out, "losses.tsv"), "w") as f:
            f.write("\t".join(["step", "text_loss", "answer_loss", "patch_loss", *right, "seconds"]) + "\n")
            for row in self.log:
                f.write("\t".join(["%d" % row[0]] + ["%.4f" % v for v in row[1:4]]
                                  + ["%.3f" % v for v in row[4:-1]] + ["%.0f" % row[-1]]) + "\n")
        print(self.step, *(f"{t}:{v:.2f}" for t, v in right.items()), flush=True)
        self.running.clear()

    def tower_step(self, done):
        pixels, labels = self.data.pictures(4 * PICTURES, min(1.0, 0.2 + 1.5 * done))
        loss, right = telling(self.names(self.model.features(pixels)), labels)
        return loss, (loss.item(), *right)

    def short_step(self, done):
        return self.whole_step(done, 16)

    def whole_step(self, done, tokens=None):
        tokens = tokens or (24 if done < 0.6 else 64)
        early = self.stage == 1 or done < 0.35
        batch = self.data.batch(1 + (self.step % (2 if early else 3) == 1), 0.7 if early else 1.0,
                                PLACES if early else SINGLE)
        text, replies, seen = losses(self.model, self.names, self.inner, batch, tokens, self.stage == 2)
        return text + 0.3 * seen, (text.item(), replies.item(), seen.item())

    def train(self, minutes, one_step, lr, end):
        """Train for so many minutes.  The rate falls from lr to end times lr."""
        begun = kept = time.time() - self.spent
        kept = time.time()
        while self.spent < 60 * minutes:
            done = self.spent / (60 * minutes)
            rate = lr * min(1.0, (self.step + 1) / 100) * (end + (1 - end) * 0.5 * (1 + math.cos(math.pi * done)))
            for group in self.opt.param_groups:
                group["lr"] = rate * (TOWER_RATE if group["slow"] and self.stage else 1.0)
            loss, said = one_step(done)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.all, 1.0)
            self.opt.step()
            self.opt.zero_grad(set_to_none=True)
            self.running.append(said)
            self.step += 1
            self.spent = time.time() - begun
            if self.step % 50 == 0:
                print("step", self.step, *("%.4f" % v for v in np.mean(self.running[-50:], 0)),
                      "%.0f s" % self.spent, flush=True)
            if time.time() - kept > 60 * self.a.watch:
                if self.stage:
                    self.watch()
                self.save()
                kept = time.time()
        if self.step and self.stage:
            self.watch()
        self.running, self.stage, self.step, self.spent = [], self.stage + 1, 0, 0.0


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    ap = argparse.ArgumentParser(description="Train a small vision-language model; see the head of the file.")
    ap.add_argument("kind", choices=("pre", "post"))
    ap.add_argument("--tower-minutes", type=float, default=0)
    ap.add_argument("--short-minutes", type=float, default=0)
    ap.add_argument("--minutes", type=float, default=0)
    ap.add_argument("--begin", help="checkpoint whose weights to begin with")
    ap.add_argument("--out", help="folder of the model (../vlm-pre or ../vlm-post)")
    ap.add_argument("--work", help="folder of the checkpoint (work-pre or work-post)")
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--weight-decay", type=float, default=0.05)
    ap.add_argument("--seed", type=int, default=1811)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--questions", type=int, default=48, help="held-out questions of each task")
    ap.add_argument("--trial", type=int, default=24, help="questions of each task for the watch while training")
    ap.add_argument("--watch", type=float, default=5, help="minutes between two watches, each with a checkpoint")
    ap.add_argument("--resume", action="store_true", help="go on from the checkpoint in the work folder")
    a = ap.parse_args()
    out = a.out or os.path.join(here, "..", "vlm-" + a.kind)
    work = a.work or os.path.join(here, "work-" + a.kind)
    os.makedirs(work, exist_ok=True)
    os.makedirs(out, exist_ok=True)
    torch.set_num_threads(a.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(a.seed)
    run = Run(a, work, out)
    print(sum(p.numel() for p in run.model.parameters()), "parameters", flush=True)
    for minutes, step, begin, end in ((a.tower_minutes, run.tower_step, 1.0, 0.1),
                                      (a.short_minutes, run.short_step, 1.0, 0.3),
                                      (a.minutes, run.whole_step, 0.5, 0.0))[run.stage:]:
        run.train(minutes, step, begin * a.lr, end)
        run.optimizer()
        run.save()
    export(run.model, out)
    right = accuracy(load(out), draw.ask(a.seed, draw.HELD_OUT, a.questions, draw.LEVELS))
    print(f"{run.data.redrawn} pictures drawn again; held out:", json.dumps(right))


if __name__ == "__main__":
    main()
