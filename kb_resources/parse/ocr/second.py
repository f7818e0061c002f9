"""A second engine for Latin script, where it is installed.

Belongs here: RapidOCR behind one call. Its bundled models know no Cyrillic, those of older
distributions few diacritics, so it only votes on Latin pages and only on plain letters.
https://rapidai.github.io/RapidOCRDocs/
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any

from kb_resources.parse.ocr.picture import Picture

_MODULES = ("rapidocr", "rapidocr_onnxruntime")


@dataclass(slots=True)
class RapidReader:
    """RapidOCR, loaded with the first page.

    Attributes:
        module: the installed distribution's module.
    """

    module: str
    _engine: Any = None

    def read(self, picture: Picture) -> list[str] | None:
        """Texts of the lines it finds, None when it cannot be used."""
        import numpy as np

        try:
            if self._engine is None:
                self._engine = importlib.import_module(self.module).RapidOCR()
            answer = self._engine(np.repeat(picture.pixels[:, :, None], 3, axis=2))
        except (ImportError, RuntimeError, ValueError, OSError, AttributeError):
            return None
        if hasattr(answer, "txts"):  # the newer distribution answers with an object
            return [str(text) for text in answer.txts or ()]
        return [str(line[1]) for line in answer[0] or ()]


def find_rapid() -> RapidReader | None:
    """The installed distribution, or None."""
    for module in _MODULES:
        if importlib.util.find_spec(module) is not None:
            return RapidReader(module)
    return None
