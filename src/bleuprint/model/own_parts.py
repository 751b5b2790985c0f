"""Parts of the model that are the user's own code, such as `model: {positions: own.relative}`.

Own code computes on padded sentences, (sentences, positions, d_model), and knows neither rows nor
key-value caches. The classes here stand in for the built-in parts, translate between both forms,
and check what own code returns. A search runs the decoder on all tokens so far at each step
(`PrefixCache`), so that own code needs no second form for it.

training/dry_run.py finds before a training what would make its results wrong. docs/own_code.md
explains how to write a part.
"""

import inspect
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch
from torch import Tensor, nn

from bleuprint.config.system import Model as Settings
from bleuprint.model.layout import Layout, PaddedLayout
from bleuprint.model.rows import unpad_rows
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.own_code import error_at, import_own, module_name, own_errors

# Where a part is used: in the encoder, in the decoder, or from the decoder to the encoder's output.
Kind = Literal["encoder", "decoder", "cross"]


def defines_class(settings: Settings, setting: str, class_name: str) -> bool:
    """Return whether the module of own code that a setting names has a class.

    Args:
        settings: The settings of the model's shape.
        setting: The setting below `model`, such as `layer`.
        class_name: The name of the class, such as `DecoderLayer`.

    Raises:
        UserError: The module does not exist, has changed, or its import fails.
    """
    module = settings.own_parts.get(setting)
    return module is not None and hasattr(import_own(module), class_name)


class _OwnPart(nn.Module):
    """The base of the classes that stand in for built-in parts.

    Attributes:
        own: The user's module. `.own.` is in the names of its weights, as in
            `encoder.0.feed_forward.own.fc1.weight`.
        initializes_itself: The user's constructor sets the initial weights.
    """

    initializes_itself = True

    def __init__(self, settings: Settings, setting: str, class_name: str, kind: Kind) -> None:
        """Import the user's class, create an instance, and check it.

        Args:
            settings: The settings of the model's shape, which the class gets.
            setting: The setting below `model` that names the module, such as `positions`.
            class_name: The name of the class in the module.
            kind: Where the part is used, which the class gets.

        Raises:
            UserError: The class is missing, is no module of PyTorch, or cannot be created.
        """
        super().__init__()
        module = settings.own_parts[setting]
        own_class = getattr(import_own(module), class_name, None)
        if not isinstance(own_class, type):
            raise UserError(
                f"{module_name(module)} must define a class {class_name} that inherits from "
                "torch.nn.Module"
            )
        if not issubclass(own_class, nn.Module):
            raise error_at(own_class, f"{class_name} must inherit from torch.nn.Module")
        _check_arguments(own_class, own_class, ["settings", "kind"])
        with own_errors():
            self.own = own_class(settings, kind)
        self._check_buffers()

    def _check_buffers(self) -> None:
        """Raise UserError if own code has state that checkpoints do not contain.

        Checkpoints contain parameters. Other state, such as the running means of a batch norm,
        would be lost when a training continues.
        """
        parameters = {name for name, _ in self.own.named_parameters(remove_duplicate=False)}
        lost_buffers = sorted(self.own.state_dict().keys() - parameters)
        if lost_buffers:
            raise error_at(
                type(self.own),
                f"{type(self.own).__name__} has the buffer {lost_buffers[0]}, which checkpoints do "
                "not contain. Make it a parameter. Or, if the constructor computes it, register it "
                "with persistent=False",
            )

    # A compiled layer leaves own code as it is: the compiler may not know what it calls.
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _call(self, method: str, inputs: Sequence[object], names: str, like: Tensor) -> Tensor:
        """Call a method of own code, and check that it returns a tensor of the expected shape.

        Args:
            method: The name of the method, `forward` or `score_bias`.
            inputs: Its arguments.
            names: What the arguments are, with spaces between them, such as `x mask` for two. They
                are shown if the user's method has other arguments.
            like: A tensor with the shape, type and device that the result must have.

        Raises:
            UserError: The method has other arguments, raises an exception, or returns another
                shape.
        """
        function = getattr(self.own, method)
        _check_arguments(function, type(self.own), names.split())
        # `own` is called as a module, so that PyTorch's hooks run.
        callee = self.own if method == "forward" else function
        with own_errors(), _autocast(like):
            output = callee(*inputs)
        if not isinstance(output, Tensor) or output.shape != like.shape:
            found = _describe_shape(output)
            raise error_at(
                function,
                f"{type(self.own).__name__}.{method} returns {found}, but must return a tensor of "
                f"shape {tuple(like.shape)}",
            )
        return output.to(like.dtype)


class OwnPositions(_OwnPart):
    """Own code in place of the positional encoding: the user's class Positions.

    Attributes:
        has_score_bias: Whether it adds a bias to the scores of self-attention.
    """

    def __init__(self, settings: Settings, kind: Kind) -> None:
        """Create the user's positions for the encoder or the decoder."""
        super().__init__(settings, "positions", "Positions", kind)
        self._heads = settings.heads
        self._changes_embeddings = type(self.own).forward is not nn.Module.forward
        self.has_score_bias = hasattr(self.own, "score_bias")
        if not self._changes_embeddings and not self.has_score_bias:
            raise error_at(type(self.own), "Positions needs a method forward, score_bias, or both")
        if self.has_score_bias and (settings.attention or settings.layer):
            raise error_at(
                type(self.own),
                "score_bias needs the built-in attention. Remove model.attention and model.layer",
            )

    def forward(self, embedded: Tensor, positions: range | Tensor) -> Tensor:
        """Return the embeddings of padded sentences with their positions.

        Args:
            embedded: The embeddings, (sentences, length, d_model).
            positions: The positions from 0 to length - 1.

        Returns:
            The embeddings with positions, in the same shape.
        """
        assert isinstance(positions, range) and positions.start == 0, "own code needs all positions"
        if not self._changes_embeddings:
            return embedded
        output: Tensor = self._call("forward", [embedded], "embedded", like=embedded)
        return output

    def score_bias(self, length: int, like: Tensor) -> Tensor | None:
        """Return what is added to the scores of self-attention, (heads, length, length).

        Args:
            length: The number of positions of queries and keys.
            like: A tensor of the type and device that the result must have.

        Returns:
            The bias; None if the user's positions add none.
        """
        if not self.has_score_bias:
            return None
        expected = like.new_empty(self._heads, length, length)
        bias: Tensor = self._call("score_bias", [length], "length", like=expected)
        return bias


class OwnAttention(_OwnPart):
    """Own code in place of multi-head attention: the user's class Attention.

    Its methods are those of MultiHeadAttention that run on whole sentences.
    """

    def __init__(self, settings: Settings, kind: Kind) -> None:
        """Create the user's attention."""
        super().__init__(settings, "attention", "Attention", kind)

    def forward(self, x: Tensor, layout: Layout, is_causal: bool = False) -> Tensor:
        """Compute self-attention.

        Args:
            x: The tokens, (rows, d_model).
            layout: Which rows belong to which sentence.
            is_causal: Whether tokens do not attend to later ones.

        Returns:
            The output of the sublayer, (rows, d_model).
        """
        return self._attend(x, layout, x, layout, is_causal)

    def project_key_value(self, memory: Tensor, _: Layout) -> tuple[Tensor, Tensor]:
        """Return the encoder's output twice: own code computes keys and values itself."""
        return memory, memory

    def attend_memory(
        self, x: Tensor, layout: Layout, key: Tensor, value: Tensor, memory_layout: Layout
    ) -> Tensor:
        """Compute cross-attention.

        Args:
            x: The target tokens, (rows, d_model).
            layout: Which rows belong to which sentence.
            key: The encoder's output, from `project_key_value`, (memory rows, d_model).
            value: The same.
            memory_layout: Which rows of the encoder's output belong to which sentence.

        Returns:
            The output of the sublayer, (rows, d_model).
        """
        assert key is value
        return self._attend(x, layout, key, memory_layout, is_causal=False)

    def _attend(
        self, x: Tensor, layout: Layout, memory: Tensor, memory_layout: Layout, is_causal: bool
    ) -> Tensor:
        """Call the user's attention.

        Args:
            x: The tokens that attend, (rows, d_model).
            layout: Which of these rows belong to which sentence.
            memory: The tokens that are attended to, (memory rows, d_model).
            memory_layout: Which of those rows belong to which sentence.
            is_causal: Whether tokens do not attend to later ones.
        """
        queries = _sentences(x, layout)
        keys = _sentences(memory, memory_layout)
        mask = _attention_mask(queries, keys, memory_layout, is_causal)
        output = self._call("forward", [queries, keys, mask], "query memory mask", like=queries)
        return _rows(output, layout)


class OwnFeedForward(_OwnPart):
    """Own code in place of the feed-forward network: the user's class FeedForward."""

    def __init__(self, settings: Settings, kind: Kind) -> None:
        """Create the user's feed-forward network."""
        super().__init__(settings, "feed_forward", "FeedForward", kind)

    def forward(self, x: Tensor) -> Tensor:
        """Transform each token by itself, (rows, d_model)."""
        output: Tensor = self._call("forward", [x], "x", like=x)
        return output


class OwnEncoderLayer(_OwnPart):
    """Own code in place of an encoder layer: the user's class EncoderLayer."""

    def __init__(self, settings: Settings) -> None:
        """Create the user's layer."""
        super().__init__(settings, "layer", "EncoderLayer", "encoder")

    def forward(self, x: Tensor, layout: Layout) -> Tensor:
        """Transform the source tokens of a batch.

        Args:
            x: The source tokens of all sentences, (rows, d_model).
            layout: Which rows belong to which sentence.
        """
        sentences = _sentences(x, layout)
        mask = _attention_mask(sentences, sentences, layout, is_causal=False)
        return _rows(self._call("forward", [sentences, mask], "x mask", like=sentences), layout)


class OwnDecoderLayer(_OwnPart):
    """Own code in place of a decoder layer: the user's class DecoderLayer."""

    def __init__(self, settings: Settings) -> None:
        """Create the user's layer."""
        super().__init__(settings, "layer", "DecoderLayer", "decoder")

    def forward(self, x: Tensor, layout: Layout, memory: Tensor, memory_layout: Layout) -> Tensor:
        """Transform the target tokens of a batch.

        Args:
            x: The target tokens of all sentences, (target rows, d_model).
            layout: Which target rows belong to which sentence.
            memory: The encoder's output, (source rows, d_model).
            memory_layout: Which source rows belong to which sentence.
        """
        sentences = _sentences(x, layout)
        sources = _sentences(memory, memory_layout)
        mask = _attention_mask(sentences, sentences, layout, is_causal=True)
        memory_mask = _attention_mask(sentences, sources, memory_layout, is_causal=False)
        inputs = [sentences, sources, mask, memory_mask]
        output = self._call("forward", inputs, "x memory mask memory_mask", like=sentences)
        return _rows(output, layout)


class PrefixCache:
    """The state of a search that runs the decoder on all tokens so far at each step.

    Attributes:
        memory: The encoder's output for each hypothesis, (hypotheses, source_len, d_model).
        mask: False at padding of the sources, (hypotheses, 1, 1, source_len); None without padding.
        tokens: The tokens of each hypothesis so far, (hypotheses, positions).
    """

    def __init__(self, memory: Tensor, mask: Tensor | None) -> None:
        """Start a search with one hypothesis for each sentence, which has no tokens yet.

        Args:
            memory: The encoder's output, (sentences, source_len, d_model).
            mask: False at padding of the sources, (sentences, 1, 1, source_len); None without.
        """
        self.memory = memory
        self.mask = mask
        self.tokens = torch.empty(len(memory), 0, dtype=torch.long, device=memory.device)

    def append(self, tokens: Tensor) -> None:
        """Append the newest token of each hypothesis, (hypotheses,)."""
        self.tokens = torch.cat((self.tokens, tokens[:, None]), dim=1)

    def reorder(self, hypotheses: Tensor, _: Tensor | None = None) -> "PrefixCache":
        """Keep the hypotheses that a search continues; this changes the cache and returns it.

        Args:
            hypotheses: The hypotheses to keep, as indices into the present ones. An index may occur
                twice.
        """
        self.tokens = self.tokens[hypotheses]
        self.memory = self.memory[hypotheses]
        if self.mask is not None:
            self.mask = self.mask[hypotheses]
        return self


def _check_arguments(function: object, owner: type, names: Sequence[str]) -> None:
    """Raise UserError if a function of own code cannot be called with the given arguments.

    Args:
        function: The class, or a method of an instance.
        owner: The class, for the message.
        names: What the arguments are; they are passed by position.
    """
    assert callable(function)
    try:
        inspect.signature(function).bind(*names)
    except TypeError:
        method = "__init__" if isinstance(function, type) else getattr(function, "__name__", "")
        raise error_at(
            function,
            f"{owner.__name__}.{method} must take the arguments self, {', '.join(names)}",
        ) from None


def _describe_shape(output: object) -> str:
    """Describe what own code has returned, for a message."""
    if isinstance(output, Tensor):
        return f"a tensor of shape {tuple(output.shape)}"
    return f"a value of the type {type(output).__name__}"


def _autocast(x: Tensor) -> AbstractContextManager[object]:
    """Return a context in which own code with float32 weights can compute on 16-bit activations."""
    if x.dtype in (torch.bfloat16, torch.float16):
        return torch.autocast(x.device.type, dtype=x.dtype)
    return nullcontext()


def _sentences(rows: Tensor, layout: Layout) -> Tensor:
    """Return rows as padded sentences, (sentences, positions, d_model)."""
    assert isinstance(layout, PaddedLayout), "own code computes on padded sentences"
    return unpad_rows(rows, layout.size)


def _rows(sentences: Tensor, layout: Layout) -> Tensor:
    """Return padded sentences as rows, (rows, d_model)."""
    assert isinstance(layout, PaddedLayout), "own code computes on padded sentences"
    return layout.rows(sentences)


def _attention_mask(query: Tensor, key: Tensor, key_layout: Layout, is_causal: bool) -> Tensor:
    """Return which positions may attend to which.

    Args:
        query: The tokens that attend, (sentences, queries, d_model).
        key: The tokens that are attended to, (sentences, keys, d_model).
        key_layout: The layout of the keys, with the mask of their padding.
        is_causal: Whether tokens do not attend to later ones.

    Returns:
        True where the query may attend to the key, (sentences, 1, queries, keys).
    """
    assert isinstance(key_layout, PaddedLayout)
    size = (query.size(0), 1, query.size(1), key.size(1))
    mask = torch.ones(size, dtype=torch.bool, device=query.device)
    if is_causal:
        mask = mask.tril()
    if key_layout.mask is not None:
        mask = mask & key_layout.mask
    return mask
