# The pipeline: code server, daemon and web server of Dagster, migrations, ingest workers.
# Build in the repository's root: docker build -f deploy/pipeline.Dockerfile -t dagster-kb-pipeline .
# For Kubernetes and an object store: --build-arg ADDED="dagster-k8s==0.29.27 s3fs" (gcsfs, adlfs).
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
COPY bootstrap.lock requirements.lock ./
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --require-hashes -r bootstrap.lock \
    && /venv/bin/uv pip install --no-cache --python /venv/bin/python --require-hashes -r requirements.lock
ARG ADDED=""
# hadolint ignore=SC2086
RUN test -z "$ADDED" \
    || /venv/bin/uv pip install --no-cache --python /venv/bin/python -c requirements.lock $ADDED
COPY pyproject.toml README.md LICENSE THIRD_PARTY_NOTICES.md ./
COPY kb kb
COPY kb_resources kb_resources
COPY kb_checks kb_checks
COPY kb_assets kb_assets
RUN /venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
    && KB_HOME=/tmp/kb KB_MODELS_DIR=/models /venv/bin/kb models prepare \
    && /venv/bin/pip uninstall --yes uv

FROM python:3.11-slim-bookworm
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tesseract-ocr tesseract-ocr-deu \
        tesseract-ocr-bul tesseract-ocr-rus tesseract-ocr-srp tesseract-ocr-srp-latn \
        tesseract-ocr-mkd tesseract-ocr-hrv tesseract-ocr-slv tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin kb \
    && install -d -o 10001 -g 10001 /data /dagster
COPY --from=build /venv /venv
COPY --from=build /models /models
COPY deploy/dagster.yaml /dagster/dagster.yaml
COPY deploy/workspace.yaml /dagster/workspace.yaml
ENV PATH=/venv/bin:$PATH KB_HOME=/data KB_MODELS_DIR=/models DAGSTER_HOME=/dagster \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 10001
WORKDIR /data
ENTRYPOINT ["tini", "--"]
CMD ["dagster", "code-server", "start", "--host", "0.0.0.0", "--port", "4000", "--module-name", "kb_assets.definitions", "--location-name", "kb"]
