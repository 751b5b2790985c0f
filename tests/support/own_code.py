"""Own code for tests: parts of the model written as a student would write them."""

# The built-in parts once more, by plain formulas. Their weights have the names of the built-in
# ones, so that these can be copied into them.
PLAIN_PARTS = '''\
"""Multi-head attention, a feed-forward network and layers, written out."""

import math

import torch
from torch import nn


class Attention(nn.Module):
    """Multi-head attention with one matrix for queries, keys and values."""

    def __init__(self, settings, kind):
        super().__init__()
        self.heads = settings.heads
        self.in_proj = nn.Linear(settings.d_model, 3 * settings.d_model)
        self.out_proj = nn.Linear(settings.d_model, settings.d_model)

    def forward(self, query, memory, mask):
        queries = self.split(self.in_proj(query).chunk(3, -1)[0])
        keys = self.split(self.in_proj(memory).chunk(3, -1)[1])
        values = self.split(self.in_proj(memory).chunk(3, -1)[2])
        scores = queries @ keys.transpose(2, 3) / math.sqrt(queries.size(-1))
        weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
        return self.out_proj((weights @ values).transpose(1, 2).flatten(2))

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, -1).transpose(1, 2)


class FeedForward(nn.Module):
    """ReLU between two linear layers."""

    def __init__(self, settings, kind):
        super().__init__()
        self.fc1 = nn.Linear(settings.d_model, settings.d_ff)
        self.fc2 = nn.Linear(settings.d_ff, settings.d_model)

    def forward(self, x):
        return self.fc2(self.fc1(x).relu())


class Residual(nn.Module):
    """The norm after a residual sum."""

    def __init__(self, settings):
        super().__init__()
        self.norm = nn.LayerNorm(settings.d_model)


class EncoderLayer(nn.Module):
    """A post-norm encoder layer."""

    def __init__(self, settings, kind):
        super().__init__()
        self.self_attention = Attention(settings, kind)
        self.feed_forward = FeedForward(settings, kind)
        self.self_attention_residual = Residual(settings)
        self.feed_forward_residual = Residual(settings)

    def forward(self, x, mask):
        x = self.self_attention_residual.norm(x + self.self_attention(x, x, mask))
        return self.feed_forward_residual.norm(x + self.feed_forward(x))


class DecoderLayer(EncoderLayer):
    """A post-norm decoder layer."""

    def __init__(self, settings, kind):
        super().__init__(settings, kind)
        self.cross_attention = Attention(settings, kind)
        self.cross_attention_residual = Residual(settings)

    def forward(self, x, memory, mask, memory_mask):
        x = self.self_attention_residual.norm(x + self.self_attention(x, x, mask))
        attended = self.cross_attention(x, memory, memory_mask)
        x = self.cross_attention_residual.norm(x + attended)
        return self.feed_forward_residual.norm(x + self.feed_forward(x))


class Positions(nn.Module):
    """Sinusoids, as in the paper."""

    def __init__(self, settings, kind):
        super().__init__()

    def forward(self, embedded):
        length, size = embedded.shape[1:]
        encoding = torch.zeros(length, size, dtype=embedded.dtype)
        for position in range(length):
            for i in range(0, size, 2):
                angle = position / 10000 ** (i / size)
                encoding[position, i] = math.sin(angle)
                encoding[position, i + 1] = math.cos(angle)
        return embedded + encoding
'''


def write_module(root, name, text):
    """Write a module of own code, such as `relative` to own/relative.py; return its file."""
    path = root / "own" / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def own_code_example():
    """Return the module own/relative.py of docs/own_code.md."""
    from contributing import code_blocks
    from root import ROOT

    page = (ROOT / "docs" / "own_code.md").read_text("utf-8")
    (module,) = [block for block in code_blocks(page, "python") if "class Positions" in block]
    return module
