"""What the lexemes of a text depend on: our rules, and the Unicode tables of this Python.

Belongs here: the analyzer's version, which is asked for at every run and costs nothing to say.
Raise it whenever the same text may get other lexemes.
"""

from __future__ import annotations

import unicodedata

ANALYZER_VERSION = f"kb-1/u{unicodedata.unidata_version}"
