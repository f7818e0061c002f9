"""Embedders behind HTTP: OpenAI-compatible servers and Hugging Face's TEI.

Belongs here: requests, retries, canaries and the refusal of wrong answers. What does not: deciding
which documents may leave the machine (a policy of the stages). Nothing here reads the environment.
"""

from typing import TYPE_CHECKING

from kb_resources.lazy import on_demand

if TYPE_CHECKING:
    from kb_resources.embed.remote.canary import CanaryRecord, probe
    from kb_resources.embed.remote.dialect import Endpoint
    from kb_resources.embed.remote.embedder import RemoteEmbedder, probe_endpoint
    from kb_resources.embed.remote.transport import HttpTransport, Retry
else:
    __getattr__ = on_demand(
        __name__,
        {
            "canary": (
                "CanaryRecord",
                "probe",
            ),
            "dialect": ("Endpoint",),
            "embedder": (
                "RemoteEmbedder",
                "probe_endpoint",
            ),
            "transport": (
                "HttpTransport",
                "Retry",
            ),
        },
    )

__all__ = [
    "CanaryRecord",
    "Endpoint",
    "HttpTransport",
    "RemoteEmbedder",
    "Retry",
    "probe",
    "probe_endpoint",
]
