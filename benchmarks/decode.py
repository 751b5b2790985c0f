"""How fast a trained system translates a test set on CPUs, beside CTranslate2 and JoeyNMT.

    python benchmarks/decode.py --system small --corpus phrasebook-en-de --peers FOLDER

To be run where `dvc repro` has trained the system. Translate the same binarised sentences with the
same weights, beam and threads:

- bleuprint: the engine of the translate stage, in float32 and, where the CPU has it, in bfloat16
- CTranslate2, float32 and int8: the exported model, with batches of its own for each thread; and
  float32 with all threads on each product, sentences sorted into batches like ours
- JoeyNMT 2.3.0, if --peers names a folder for its environment (made there): our weights under its
  names, its search, batches like ours; for post-norm models with sinusoids and one vocabulary
- without a cache: greedy, each next word from a whole pass over all words before it

Timed is from ids to units: no reading, no start, no detokenizing. Contestants take turns, round
after round (JoeyNMT, a process of its own, after the others), and translate once before to warm up;
shown is the best round, since whatever disturbs makes slower. `differ` counts outputs other than
ours. Scores are divided by length^alpha, CTranslate2's only penalty (JoeyNMT's: GNMT's).
"""

import argparse
import dataclasses
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from bleuprint.runtime import processor
from bleuprint.runtime.reexec import reexec

Outputs = list[list[int]]
PRECISIONS: tuple[Literal["float32", "bfloat16"], ...] = ("float32", "bfloat16")
CTRANSLATE2_PRECISIONS: tuple[Literal["float32", "int8"], ...] = ("float32", "int8")
PEER = Path(__file__).parent / "peers" / "joeynmt_decode.py"


@dataclass
class Contestant:
    """A contestant and its measurements."""

    name: str
    translate: Callable[[], Outputs]
    outputs: Outputs = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--system", required=True)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--test", help="the test set (the first)")
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=processor.THIS.cores)
    parser.add_argument("--peers", type=Path, help="folder of the peers' environments")
    given = parser.parse_args()
    reexec()
    compare(given)


def compare(given: argparse.Namespace) -> None:
    """Let all contestants translate the test set; print what they reached."""
    import torch

    from bleuprint.config.experiment import load
    from bleuprint.config.paths import Run, folder
    from bleuprint.config.system import LengthPenalty
    from bleuprint.dataset.binarized import BinaryCorpus
    from bleuprint.decoding.translate import create_engine
    from bleuprint.model.weights import load_model

    torch.set_num_threads(given.threads)
    settings = load()
    corpus = BinaryCorpus(folder(given.corpus, "binary"))
    tests = [name for name in corpus.sets if name.startswith("test.")]
    name = f"test.{given.test}" if given.test else tests[0]
    side = corpus.side(name, corpus.source)
    sources = [side[row].tolist() for row in range(len(side))]
    run = Run(given.system, given.corpus, settings.seeds[0])
    model = load_model(run.models / "averaged", corpus)
    for beam in given.beams:
        own = settings.system_on(given.system, given.corpus).decode
        decode = dataclasses.replace(
            own,
            beam=beam,
            length_penalty=LengthPenalty("length", own.length_penalty.alpha),
            precision="float32",
        )
        contestants = []
        for kind in PRECISIONS if processor.THIS.has_bfloat16 else PRECISIONS[:1]:
            own_model = load_model(run.models / "averaged", corpus)
            engine = create_engine(own_model, dataclasses.replace(decode, precision=kind))
            contestants.append(Contestant(f"bleuprint {kind}", partial(ours, engine, sources)))
        contestants += ctranslate2_contestants(model, corpus, decode, given.threads, sources)
        if beam == 1:
            contestants.append(
                Contestant("without a cache", partial(uncached, model, sources, decode))
            )
        take_turns(contestants, given.rounds)
        if given.peers:
            contestants.append(joeynmt(given, model, sources, decode))
        references = Path(folder(given.corpus, "split")) / f"{name}.{corpus.target}"
        show(contestants, corpus, references, f"{name}, beam {beam}, {given.threads} threads")


def ctranslate2_contestants(
    model: Any, corpus: Any, decode: Any, threads: int, sources: Any
) -> list[Contestant]:
    """Return CTranslate2 with a batch for each thread, then with all threads on each product."""
    contestants = []
    for precision in CTRANSLATE2_PRECISIONS:
        apart = CTranslate2(
            model,
            corpus,
            decode,
            precision=precision,
            inter_threads=threads,
            intra_threads=1,
        )
        contestants.append(
            Contestant(f"CTranslate2 {precision}", partial(apart.translate, sources))
        )
    together = CTranslate2(
        model,
        corpus,
        decode,
        precision="float32",
        inter_threads=1,
        intra_threads=threads,
    )
    contestants.append(Contestant("  threads together", partial(together.translate, sources)))
    return contestants


def take_turns(contestants: Sequence[Contestant], rounds: int) -> None:
    for who in contestants:
        who.outputs = who.translate()
    for _ in range(rounds):
        for who in contestants:
            began = time.perf_counter()
            who.translate()
            who.seconds.append(time.perf_counter() - began)


def show(contestants: Sequence[Contestant], corpus: Any, references: Path, title: str) -> None:
    """Print a row for each contestant, then all of it as JSON."""
    from bleuprint.scoring.bleu import bleu_metric
    from bleuprint.text.parallel import read_lines

    metric = bleu_metric(list(read_lines(references)), corpus.target)
    expected, ours_best = contestants[0].outputs, min(contestants[0].seconds)
    print(f"{title}: {len(expected)} sentences")
    rows = []
    for who in contestants:
        best = min(who.seconds)
        words = sum(len(words) + 1 for words in who.outputs)
        other = sum(one != two for one, two in zip(who.outputs, expected, strict=True))
        lines = [corpus.text(corpus.target, words) for words in who.outputs]
        bleu = metric.corpus_score(lines, None).score
        print(
            f"{who.name:22}{len(expected) / best:8,.0f} sentences/s{words / best:9,.0f} tokens/s"
            f"{best / ours_best:7.2f}x our time{other:6} differ   BLEU {bleu:.2f}"
        )
        rows.append({"who": who.name.strip(), "seconds": who.seconds, "tokens": words})
        rows[-1] |= {"differ": other, "bleu": bleu}
    print(json.dumps({"title": title, "contestants": rows}), flush=True)


def ours(engine: Any, sources: Any) -> Outputs:
    import numpy as np

    lengths = np.array(list(map(len, sources)))
    return [best[0].tokens for best in engine.search(sources, lengths)]


class CTranslate2:
    """A model converted for CTranslate2.

    `inter_threads`: the number of batches that are translated at once; `intra_threads`: the threads
    of each.
    """

    def __init__(
        self,
        model: Any,
        corpus: Any,
        decode: Any,
        *,
        precision: Literal["float32", "int8"],
        inter_threads: int,
        intra_threads: int,
    ) -> None:
        import ctranslate2

        from bleuprint.decoding.ctranslate2_convert import convert

        languages = corpus.source, corpus.target
        source, target = (corpus.segmentation(language).vocabulary for language in languages)
        self._units, self._decode = source.tokens, decode
        self._ids = {unit: number for number, unit in enumerate(target.tokens)}
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "model"
            convert(model, (source, target), folder, precision)
            self._engine = ctranslate2.Translator(
                str(folder),
                compute_type=precision,
                inter_threads=inter_threads,
                intra_threads=intra_threads,
            )

    def translate(self, sources: Any) -> Outputs:
        from bleuprint.decoding.beam_search import BATCH_TOKENS

        results = self._engine.translate_batch(
            [[self._units[number] for number in ids[:-1]] for ids in sources],
            beam_size=self._decode.beam,
            length_penalty=self._decode.length_penalty.alpha,
            max_decoding_length=max(map(len, sources)) + self._decode.max_len_b,
            batch_type="tokens",
            max_batch_size=BATCH_TOKENS // self._decode.beam,
        )
        return [[self._ids[unit] for unit in result.hypotheses[0]] for result in results]


def uncached(model: Any, sources: Any, decode: Any) -> Outputs:
    """Greedy decoding without a cache, in batches of sentences of similar length."""
    import torch

    from bleuprint.dataset.batch import pad
    from bleuprint.dataset.subwords.vocabulary import BOS, EOS

    order = sorted(range(len(sources)), key=lambda row: len(sources[row]))
    found: Outputs = [[] for _ in sources]
    for start in range(0, len(order), 128):
        rows = order[start : start + 128]
        with torch.inference_mode():
            memory = model.encode(pad([sources[row] for row in rows]))
            words = torch.full((len(rows), 1), BOS)
            limit = max(len(sources[row]) for row in rows) + decode.max_len_b
            while words.size(1) < limit and not bool((words == EOS).any(1).all()):
                logs = model.log_probs(model.decode(words, *memory)[:, -1])
                words = torch.cat((words, logs.argmax(-1)[:, None]), 1)
        for row, line in zip(rows, words[:, 1:].tolist(), strict=True):
            found[row] = line[: line.index(EOS)] if EOS in line else line
    return found


def joeynmt(given: argparse.Namespace, model: Any, sources: Any, decode: Any) -> Contestant:
    """JoeyNMT with our weights, in a process of its own environment."""
    import numpy as np
    import torch

    from bleuprint.dataset.batching import batch_by_size
    from bleuprint.decoding.beam_search import BATCH_TOKENS
    from toolkits import environment, ready

    lengths = np.array(list(map(len, sources)))
    batches = batch_by_size(
        lengths, lengths, np.argsort(-lengths), max(BATCH_TOKENS // decode.beam, max(lengths))
    )
    size = model.settings
    job = {
        "threads": given.threads,
        "rounds": given.rounds,
        "units": model.projection.out_features,
        "model": {"layers": size.encoder_layers, "norm": size.norm, "heads": size.heads}
        | {"d_model": size.d_model, "d_ff": size.d_ff},
        "batches": [[list(map(int, sources[row])) for row in rows] for rows in batches],
        "extra": decode.max_len_b,
        "beam": decode.beam,
        "alpha": decode.length_penalty.alpha,
    }
    with tempfile.TemporaryDirectory() as scratch:
        weights, asked = Path(scratch) / "weights.pt", Path(scratch) / "job.json"
        torch.save(for_joeynmt(model), weights)
        asked.write_text(json.dumps(job), encoding="utf-8")
        done = subprocess.run(
            [str(ready(given.peers.resolve(), "joeynmt")), str(PEER), str(weights), str(asked)],
            env={**environment(), "OMP_NUM_THREADS": str(given.threads)},
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
    said = json.loads(done.stdout.splitlines()[-1])
    made = Contestant("JoeyNMT", list, [[] for _ in sources], said["seconds"])
    for row, output in zip(np.concatenate(batches), said["outputs"], strict=True):
        made.outputs[row] = output
    return made


def for_joeynmt(model: Any) -> dict[str, Any]:
    """Our weights under JoeyNMT's names."""
    import torch

    found = {f"{side}_embed.lut": model.target_embedding for side in ("src", "trg")}
    found["decoder.output_layer"] = model.projection
    named: dict[str, Any] = {}

    def attention(name: str, own: Any) -> None:
        found[f"{name}.output_layer"] = own.out_proj
        for letter, weight, bias in zip(
            "qkv",
            torch.split(own.in_proj.weight, own.qkv_sizes),
            torch.split(own.in_proj.bias, own.qkv_sizes),
            strict=True,
        ):
            named[f"{name}.{letter}_layer.weight"] = weight.clone()
            named[f"{name}.{letter}_layer.bias"] = bias

    def feed_forward(name: str, own: Any, sublayer: Any) -> None:
        found[f"{name}.pwff_layer.0"], found[f"{name}.pwff_layer.3"] = own.fc1, own.fc2
        found[f"{name}.layer_norm"] = sublayer.norm

    for index, layer in enumerate(model.encoder):
        name = f"encoder.layers.{index}"
        attention(f"{name}.src_src_att", layer.self_attention)
        found[f"{name}.layer_norm"] = layer.self_attention_residual.norm
        feed_forward(f"{name}.feed_forward", layer.feed_forward, layer.feed_forward_residual)
    for index, layer in enumerate(model.decoder):
        name = f"decoder.layers.{index}"
        attention(f"{name}.trg_trg_att", layer.self_attention)
        attention(f"{name}.src_trg_att", layer.cross_attention)
        found[f"{name}.x_layer_norm"] = layer.self_attention_residual.norm
        found[f"{name}.dec_layer_norm"] = layer.cross_attention_residual.norm
        feed_forward(f"{name}.feed_forward", layer.feed_forward, layer.feed_forward_residual)
    for name, module in found.items():
        named |= {f"{name}.{key}": weight for key, weight in module.state_dict().items()}
    return named


if __name__ == "__main__":
    main()
