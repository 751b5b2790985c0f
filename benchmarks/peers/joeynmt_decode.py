"""Lets JoeyNMT translate ids with a model of ours; run by JoeyNMT's own Python.

    python joeynmt_decode.py MODEL JOB

benchmarks/decode.py calls it. MODEL has our weights under JoeyNMT's names (torch.save). JOB
describes the model, the batches and the search as JSON. Prints the seconds of each round and the
outputs as JSON.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary

# Our ids of the special symbols.
SPECIAL_IDS = {"pad": 0, "bos": 1, "eos": 2, "unk": 3}
PAD = SPECIAL_IDS["pad"]
EOS = SPECIAL_IDS["eos"]


def main() -> None:
    """Translate all batches once to warm up and once per round, and print the result."""
    weights_path, job_path = sys.argv[1:]
    job = json.loads(Path(job_path).read_text(encoding="utf-8"))
    torch.set_num_threads(job["threads"])
    model = load_model(Path(weights_path), job)
    translate(model, job)
    round_seconds = []
    for _ in range(job["rounds"]):
        start = time.perf_counter()
        outputs = translate(model, job)
        round_seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": round_seconds, "outputs": outputs}))


def load_model(weights_path: Path, job: dict[str, Any]) -> Any:
    """Build JoeyNMT's model in the size of ours, with our weights.

    Args:
        weights_path: The file of our weights, by JoeyNMT's names.
        job: The job, which bleuprint's script benchmarks/decode.py has written.
    """
    size = job["model"]
    side = {
        "type": "transformer",
        "num_layers": size["layers"],
        "num_heads": size["heads"],
        "embeddings": {"embedding_dim": size["d_model"], "scale": True},
        "hidden_size": size["d_model"],
        "ff_size": size["d_ff"],
        "layer_norm": size["norm"],
    }
    settings = {"encoder": side, "decoder": side, "tied_embeddings": True, "tied_softmax": True}
    vocabulary = numbered_vocabulary(job["units"])
    model = build_model(settings, vocabulary, vocabulary)
    weights = torch.load(weights_path, weights_only=True)
    missing, unknown = model.load_state_dict(weights, strict=False)
    # Only the tables of position encodings may be missing, since they are computed.
    assert not unknown, unknown
    assert all(name.endswith("pe.pe") for name in missing), missing
    model.eval()
    return model


def numbered_vocabulary(units: int) -> Vocabulary:
    """Return a JoeyNMT vocabulary in which each token has the same id as in bleuprint.

    JoeyNMT's constructor would number the tokens in its own way, so it is not called (`__new__`).

    Args:
        units: The number of ids.
    """
    vocabulary = Vocabulary.__new__(Vocabulary)
    for name, number in SPECIAL_IDS.items():
        setattr(vocabulary, f"{name}_index", number)
    vocabulary.specials = [f"<{name}>" for name in SPECIAL_IDS]
    vocabulary.lang_tags = []
    vocabulary.sep_index = None
    vocabulary._stoi = {}
    vocabulary._itos = []
    invented = [f"unit{number}" for number in range(len(SPECIAL_IDS), units)]
    vocabulary.add_tokens([*vocabulary.specials, *invented])
    return vocabulary


def translate(model: Any, job: dict[str, Any]) -> list[list[int]]:
    """Return the best output of each sentence, batch by batch, without its end symbol.

    Args:
        model: JoeyNMT's model.
        job: The job, with batches of sentences of ids.
    """
    outputs = []
    for sentences in job["batches"]:
        lengths = [len(ids) for ids in sentences]
        longest = max(lengths)
        padded = [ids + [PAD] * (longest - len(ids)) for ids in sentences]
        batch = Batch(
            src=torch.tensor(padded),
            src_length=torch.tensor(lengths),
            src_prompt_mask=None,
            trg=None,
            trg_prompt_mask=None,
            indices=torch.arange(len(sentences)),
            device=torch.device("cpu"),
            pad_index=PAD,
            eos_index=EOS,
            is_train=False,
        )
        rows, _, _ = search(
            model=model,
            batch=batch,
            max_output_length=longest + job["extra"],
            beam_size=job["beam"],
            beam_alpha=job["alpha"],
        )
        for row in rows.astype(int).tolist():
            if EOS in row:
                outputs.append(row[: row.index(EOS)])
            else:
                outputs.append([number for number in row if number != PAD])
    return outputs


if __name__ == "__main__":
    main()
