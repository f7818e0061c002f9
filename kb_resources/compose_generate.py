"""What the stages that ask a language model are built from; nothing at all while both are off.

Belongs here: the same as in `compose`, for convert and enrich. What does not: asking
(`kb_resources.generate`), or any decision about a document.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kb_resources.errors import InputError
from kb_resources.model import ModelStage

if TYPE_CHECKING:
    from kb_resources.generate import Model, Request, Said
    from kb_resources.settings import Settings
    from kb_resources.stages.capabilities import Asking


def stages_asked(settings: Settings) -> frozenset[ModelStage]:
    """The stages that are on."""
    on = {ModelStage.CONVERT: settings.convert, ModelStage.ENRICH: settings.enrich}
    return frozenset(stage for stage, wanted in on.items() if wanted)


def asking(settings: Settings) -> Mapping[ModelStage, Asking[Any]]:
    """What each stage that is on is handed.

    Raises:
        InputError: one is on, and no endpoint or no model is named.
    """
    if not (on := stages_asked(settings)):
        return {}
    from kb_resources.answer.disclosure import Destination
    from kb_resources.generate import CONVERT_VERSION, ENRICH_VERSION, Converter, Enricher
    from kb_resources.stages.capabilities import Asking
    from kb_resources.stages.usage import Prices

    model = _model(settings)
    at = Destination(settings.generate_url, settings.generate_model, settings.generate_hosting)
    prices = Prices.read(settings.prices, settings.currency)

    def price(prompt: int, reply: int) -> tuple[float, str] | None:
        money = prices.of_tokens(model.name, prompt, reply)
        return None if money is None else (money.amount, money.currency)

    made: dict[ModelStage, Asking[Any]] = {
        ModelStage.CONVERT: Asking(
            f"{model.name}/{CONVERT_VERSION}",
            at,
            Converter(model, files=settings.convert_files),
            price,
        ),
        ModelStage.ENRICH: Asking(
            f"{model.name}/{ENRICH_VERSION}",
            at,
            Enricher(model, most_calls=settings.enrich_calls),
            price,
        ),
    }
    return {stage: made[stage] for stage in ModelStage if stage in on}


def asked_names(asked: Mapping[ModelStage, Asking[Any]]) -> dict[str, str | None]:
    """`LineVersions.converter` and `enricher`: None for a stage that is off."""
    fields = {"converter": ModelStage.CONVERT, "enricher": ModelStage.ENRICH}
    return {name: asked[of].name if of in asked else None for name, of in fields.items()}


def _model(settings: Settings) -> Model:
    from kb_resources.answer.endpoint import LONGEST_WAIT_S, ChatEndpoint, chat_transport
    from kb_resources.answer.prompt import Message
    from kb_resources.embed.remote.transport import Retry
    from kb_resources.generate import Model, Said

    for name in ("generate_url", "generate_model"):
        if not getattr(settings, name):
            raise InputError(
                "KB_CONVERT or KB_ENRICH is on, and the model they ask is not named.",
                next_step=f"Set KB_{name.upper()}, or turn them off.",
            )
    endpoint = ChatEndpoint(
        settings.generate_url,
        settings.generate_model,
        chat_transport(
            settings.generate_key,
            settings.generate_timeout_s,
            Retry(attempts=4, longest_wait_s=LONGEST_WAIT_S),
            service="model endpoint",
        ),
        settings.generate_hosting,
    )

    def complete(request: Request, reply_tokens: int) -> Said:
        messages = [Message("system", request.system), Message("user", _content(request))]
        reply = endpoint.complete(messages, as_json=request.as_json, max_tokens=reply_tokens)
        return Said(
            reply.text, reply.finish, reply.refusal, reply.prompt_tokens, reply.answer_tokens
        )

    return Model(settings.generate_model, complete, settings.generate_reply_tokens)


def _content(request: Request) -> str | list[dict[str, Any]]:
    """The user's message; a file as the chat completions API takes PDFs."""
    if request.file is None:
        return request.text
    data = f"data:application/pdf;base64,{base64.b64encode(request.file).decode()}"
    return [
        {"type": "text", "text": request.text},
        {"type": "file", "file": {"filename": "document.pdf", "file_data": data}},
    ]
