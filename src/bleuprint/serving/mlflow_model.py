"""An exported system as MLflow loads it: code that is copied beside the exported folder.

It needs MLflow and what the folder's translate.py needs, but not this project.
"""

import runpy
from typing import Any

import mlflow
from mlflow.pyfunc.model import PythonModel


class Exported(PythonModel):
    """Translates sentences by translate.py of the folder."""

    def load_context(self, context: Any) -> None:
        """Load the weights; MLflow calls it once."""
        script = runpy.run_path(f"{context.artifacts['exported']}/translate.py")
        self._translate, self._batch = script["Translator"](), script["BATCH"]

    def predict(  # type: ignore[override]
        self,
        context: Any,  # noqa: ARG002
        model_input: list[str],
    ) -> list[str]:
        """The translation of each sentence; the types are the model's signature."""
        size, count = self._batch, len(model_input)
        batches = (model_input[start : start + size] for start in range(0, count, size))
        return [text for batch in batches for text in self._translate(batch)]


mlflow.models.set_model(Exported())
