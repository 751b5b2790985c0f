"""The help of `bleuprint`: its commands by what one wants to do, with an example of each."""

import argparse
from textwrap import TextWrapper

# By purpose, an example of each command.
EXAMPLES: dict[str, dict[str, str]] = {
    "Before a run": {
        "check": "bleuprint check",
        "plan": "bleuprint plan",
        "new-corpus": "bleuprint new-corpus inputs/mine.de inputs/mine.en",
        "inspect": "bleuprint inspect phrasebook-en-de",
        "schema": "bleuprint schema > docs/params.schema.json",
    },
    "A run": {
        "reproduce": "bleuprint reproduce",
    },
    "Results": {
        "table": "bleuprint table",
        "compare": "bleuprint compare tiny small",
        "verify": "bleuprint verify HEAD~1",
        "power": "bleuprint power --difference 0.5",
        "cite": "bleuprint cite > references.bib",
        "numbers": "bleuprint numbers > numbers.tex",
        "mlflow-sync": "bleuprint mlflow-sync",
    },
    "A trained system": {
        "translate": "bleuprint translate --system small --corpus phrasebook-en-de FILE",
        "serve": "bleuprint serve --system small --corpus phrasebook-en-de",
        "export": "bleuprint export FOLDER --system small --corpus phrasebook-en-de",
        "log-model": "bleuprint log-model --system small --corpus phrasebook-en-de",
        "release": "bleuprint release FOLDER",
        "train": "bleuprint train small phrasebook-en-de 1",
    },
    "Data and disk": {
        "show": "bleuprint show phrasebook-en-de --lines 10:20",
        "record": "bleuprint record",
    },
    "The shell and the manual": {
        "completion": "source <(bleuprint completion bash)",
    },
}


class Parser(argparse.ArgumentParser):
    """The parser of `bleuprint`, whose help lists commands by purpose."""

    def format_help(self) -> str:
        """The usage, and the commands: name, what it does, example."""
        (commands,) = (a for a in self._actions if isinstance(a, argparse._SubParsersAction))
        texts = {action.dest: action.help or "" for action in commands._choices_actions}
        lines = [self.format_usage()]
        for purpose, examples in EXAMPLES.items():
            lines.append(f"{purpose}:")
            for name, example in examples.items():
                lines += _WRAPPER.wrap(f"{name:<13}{texts[name]}")
                lines.append(f"{' ' * 15}$ {example}")
            lines.append("")
        lines.append("bleuprint COMMAND --help lists a command's options. Documentation: docs/")
        return "\n".join(lines) + "\n"


_WRAPPER = TextWrapper(width=96, initial_indent="  ", subsequent_indent=" " * 15)


def add_examples(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Put the example of each command below its own help."""
    for examples in EXAMPLES.values():
        for name, example in examples.items():
            commands.choices[name].epilog = f"example: {example}"
