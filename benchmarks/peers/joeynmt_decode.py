"""Let JoeyNMT translate ids with a model of ours; run by its own Python, for benchmarks/decode.py.

    python joeynmt_decode.py MODEL JOB

MODEL: our weights under JoeyNMT's names (torch.save). JOB: what to do, as JSON. Prints the
seconds of each round and the outputs as JSON.
"""

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary


def main() -> None:
    job = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    torch.set_num_threads(job["threads"])
    names = {"unk": 3, "pad": 0, "bos": 1, "eos": 2}
    special = SimpleNamespace(lang_tags=[], sep_token=None, sep_id=None)
    for name, number in names.items():
        setattr(special, f"{name}_token", f"<{name}>")
        setattr(special, f"{name}_id", number)
    vocabulary = vocabulary_of(special, job["units"])
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
    model = build_model(
        {"encoder": side, "decoder": side, "tied_embeddings": True, "tied_softmax": True},
        vocabulary,
        vocabulary,
    )
    missing, unknown = model.load_state_dict(
        torch.load(sys.argv[1], weights_only=True), strict=False
    )
    assert not unknown and all(name.endswith("pe.pe") for name in missing), (missing, unknown)
    model.eval()
    rounds = []
    for _ in range(job["rounds"] + 1):  # one to warm up
        began = time.perf_counter()
        outputs = translate(model, job)
        rounds.append(time.perf_counter() - began)
    print(json.dumps({"seconds": rounds[1:], "outputs": outputs}))


def vocabulary_of(special: SimpleNamespace, units: int) -> Vocabulary:
    """JoeyNMT's vocabulary with our numbers, which its own way to make one would not keep."""
    order = [special.pad_token, special.bos_token, special.eos_token, special.unk_token]
    made = Vocabulary.__new__(Vocabulary)
    made.specials, made.lang_tags, made._stoi, made._itos = order, [], {}, []
    made.add_tokens([*order, *(f"unit{number}" for number in range(4, units))])
    for name in ("pad", "bos", "eos", "unk"):
        setattr(made, f"{name}_index", getattr(special, f"{name}_id"))
    made.sep_index = None
    return made


def translate(model: Any, job: dict[str, Any]) -> list[list[int]]:
    """The best output of each sentence, batch by batch as they come."""
    found = []
    for sentences in job["batches"]:
        longest = max(map(len, sentences))
        ids = torch.tensor([words + [0] * (longest - len(words)) for words in sentences])
        batch = Batch(
            src=ids,
            src_length=torch.tensor(list(map(len, sentences))),
            src_prompt_mask=None,
            trg=None,
            trg_prompt_mask=None,
            indices=torch.arange(len(sentences)),
            device=torch.device("cpu"),
            pad_index=0,
            eos_index=2,
            is_train=False,
        )
        output, _, _ = search(
            model=model,
            batch=batch,
            max_output_length=longest + job["extra"],
            beam_size=job["beam"],
            beam_alpha=job["alpha"],
        )
        for row in output.astype(int).tolist():
            found.append(row[: row.index(2)] if 2 in row else [word for word in row if word])
    return found


if __name__ == "__main__":
    main()
