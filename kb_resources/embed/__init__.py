"""Turns texts into vectors that can be compared, and says which can't.

Belongs here: the default model's build, local and remote embedders, token counting, identities.
What does not: which chunks need vectors and where they go (`stages`, `store`), ranking
(`retrieve`). Nothing heavy is imported before it is called. The default model is described in
Wang et al. 2024, "Multilingual E5 Text Embeddings: A Technical Report".
"""

from typing import TYPE_CHECKING

from kb_resources.embed.identity import (
    Block,
    Embedded,
    Embedder,
    Kind,
    ModelIdentity,
    TokenCounter,
    embed_stream,
)
from kb_resources.embed.registry import DEFAULT_MODEL, ModelSpec, find_model, known_models
from kb_resources.lazy import on_demand

if TYPE_CHECKING:
    from kb_resources.embed.batching import TOKEN_BUDGET
    from kb_resources.embed.cache import (
        VerifyReport,
        identity_of,
        installed,
        load,
        load_token_counter,
        open_model,
        verify,
    )
    from kb_resources.embed.cpus import available_cpus
    from kb_resources.embed.manifest import Manifest
    from kb_resources.embed.onnx_embedder import OnnxEmbedder
    from kb_resources.embed.preparation import prepare
    from kb_resources.embed.prepared import identity_of_build, open_build
else:
    __getattr__ = on_demand(
        __name__,
        {
            "batching": ("TOKEN_BUDGET",),
            "cache": (
                "VerifyReport",
                "identity_of",
                "installed",
                "load",
                "load_token_counter",
                "open_model",
                "verify",
            ),
            "cpus": ("available_cpus",),
            "manifest": ("Manifest",),
            "onnx_embedder": ("OnnxEmbedder",),
            "preparation": ("prepare",),
            "prepared": ("identity_of_build", "open_build"),
        },
    )

__all__ = [
    "DEFAULT_MODEL",
    "TOKEN_BUDGET",
    "Block",
    "Embedded",
    "Embedder",
    "Kind",
    "Manifest",
    "ModelIdentity",
    "ModelSpec",
    "OnnxEmbedder",
    "TokenCounter",
    "VerifyReport",
    "available_cpus",
    "embed_stream",
    "find_model",
    "identity_of",
    "identity_of_build",
    "installed",
    "known_models",
    "load",
    "load_token_counter",
    "open_build",
    "open_model",
    "prepare",
    "verify",
]
