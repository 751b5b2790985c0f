"""Scores of translations that are given: those of search, where it found the same."""

import pytest
from test_attention import COMMAND

import processes
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.decoding.forced_decoding import token_log_probs
from trainings import environment


def run(root, *arguments, status=0):
    done = processes.run([*COMMAND, *arguments], root, environment())
    assert done.returncode == status, done.stderr.decode()
    return done.stdout.decode().split("\n")[:-1], done.stderr.decode()


def test_what_was_found_has_the_score_it_was_found_with(toy, tmp_path, translator):
    lines = [*(toy / "data/split/toy/test.x.de").read_text().split("\n")[:-1], ""]
    source, given = tmp_path / "source", tmp_path / "given"
    source.write_text("".join(f"{line}\n" for line in lines))
    scored, _ = run(toy, "--scores", str(source))
    scores, texts = zip(*(line.split("\t") for line in scored), strict=True)
    given.write_text("".join(f"{text}\n" for text in texts))
    again, said = run(toy, f"--score={given}", str(source))
    assert [line.split("\t")[1] for line in again] == list(texts) and said == ""
    same = [
        translator.ids(text, given=True) == (found.pieces[0].tokens if found.pieces else [])
        for text, found in zip(texts, translator(lines), strict=True)
    ]
    assert sum(same) > 0.8 * len(same)
    for line, score, is_same in zip(again, scores, same, strict=True):
        if is_same:
            assert float(line.split("\t")[0]) == pytest.approx(float(score), abs=1e-4)


def test_a_score_by_hand(toy, tmp_path, translator):
    given = tmp_path / "given"
    given.write_text("BA BE\n BA\n")
    (tmp_path / "source").write_text("be ba\nbe ba\n")
    found, _ = run(toy, f"--score={given}", str(tmp_path / "source"))
    source = [*translator.ids("be ba"), EOS]
    for line, text in zip(found, ["BA BE", " BA"], strict=True):
        target = [*translator.ids(text, given=True), EOS]
        (logs,) = token_log_probs(translator.model, [source], [target])
        score, tab, printed = line.partition("\t")
        # gnmt's penalty with alpha 0.6
        assert float(score) == pytest.approx(sum(logs) / ((5 + len(target)) / 6) ** 0.6, abs=1e-5)
        assert (tab, printed) == ("\t", text)


@pytest.mark.parametrize(
    ("arguments", "given", "text", "message"),
    [
        ((), b"BA\n", b"ba\nbe\n", "{source} has 2 lines and {given} has 1: not parallel"),
        ((), b"BA\nBE\n", b"ba\n", "{source} has 1 lines and {given} has 2: not parallel"),
        ((), b"BA\n\xff\n", b"ba\nbe\n", "{given}:2: byte 1 of the line is 0xff: not UTF-8"),
        (
            (),
            b"BA\n" + b"BE " * 300 + b"\nBA\n",
            b"ba\nba\nba\n",
            "{source}:2 and {given}:2: 3 and 301 tokens with EOS: model.max_positions is",
        ),
        (("params.yaml",), b"", b"", "--score needs one FILE of input"),
        (("--n-best=2",), b"", b"", "it excludes --n-best"),
        (("--attention=a.html",), b"", b"", "it excludes --attention"),
    ],
)
def test_errors_are_reported_in_one_line(toy, tmp_path, arguments, given, text, message):
    source, path = tmp_path / "source", tmp_path / "given"
    source.write_bytes(text)
    path.write_bytes(given)
    found, said = run(toy, f"--score={path}", *arguments, str(source), status=1)
    assert message.format(source=source, given=path) in said and "Traceback" not in said
    assert found == []
