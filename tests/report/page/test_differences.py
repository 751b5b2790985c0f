"""What each system is, in a line."""

from dataclasses import replace

import result_trees as trees
from bleuprint.report.page.differences import describe_rows
from systems import with_systems


def test_a_line_says_the_size_of_the_first_and_what_differs_in_the_others(tmp_path):
    settings = trees.settings_in(tmp_path, ("base", "same", "big", "other"))
    base = settings.system_settings("base")
    big = replace(
        base,
        model=replace(base.model, d_model=64),
        # the first decides no weights
        train=replace(
            base.train, validate_interval=base.train.validate_interval + 1, max_updates=77
        ),
    )
    watched = replace(base, train=replace(base.train, save_interval=1))
    dropout = replace(base.model.dropout, embedding=0.5, residual=0.5, attention=0.5)
    model = replace(base.model, dropout=dropout, bias=False, norm="pre", activation="gelu")
    changed = {"same": watched, "big": big, "other": replace(base, model=model)}
    found = describe_rows(with_systems(settings, changed), {})
    assert found["base"].startswith(
        f"{base.model.encoder_layers} + {base.model.decoder_layers} layers, "
        f"d_model {base.model.d_model}, d_ff {base.model.d_ff}, {base.model.heads} heads"
    )
    assert found["same"] == "as base"
    assert found["big"] == "max_updates 77, d_model 64"
    assert found["other"].startswith("norm pre, activation gelu, dropout.embedding 0.5")
    assert found["other"].endswith(" and 1 more") and found["other"].count(",") == 4
