# The reading side: HTTP API, page and MCP. Holds neither Dagster nor docling, only what a query's
# embedding needs; the model is made in a stage of its own and copied.
# Build in the repository's root: docker build -f deploy/read.Dockerfile -t dagster-kb-read .
# For an object store: --build-arg ADDED=s3fs (gcsfs, adlfs).
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
COPY bootstrap.lock requirements-read.lock ./
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --require-hashes -r bootstrap.lock \
    && /venv/bin/uv pip install --no-cache --python /venv/bin/python --require-hashes -r requirements-read.lock
ARG ADDED=""
# hadolint ignore=SC2086
RUN test -z "$ADDED" \
    || /venv/bin/uv pip install --no-cache --python /venv/bin/python -c requirements-read.lock $ADDED
COPY pyproject.toml README.md LICENSE THIRD_PARTY_NOTICES.md ./
COPY kb kb
COPY kb_resources kb_resources
COPY kb_checks kb_checks
COPY kb_assets kb_assets
RUN /venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
    && cp -a /venv /reader \
    && /reader/bin/pip uninstall --yes uv setuptools \
    && rm -rf /reader/lib/python3.11/site-packages/kb_assets /reader/lib/python3.11/site-packages/kb_checks

FROM build AS model
COPY requirements.lock ./
RUN /venv/bin/uv pip install --no-cache --python /venv/bin/python --require-hashes -r requirements.lock \
    && KB_HOME=/tmp/kb KB_MODELS_DIR=/models /venv/bin/kb models prepare

FROM python:3.11-slim-bookworm
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin kb \
    && install -d -o 10001 -g 10001 /data
COPY --from=build /reader /venv
COPY --from=model /models /models
ENV PATH=/venv/bin:$PATH KB_HOME=/data KB_MODELS_DIR=/models \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 10001
WORKDIR /data
EXPOSE 8765
ENTRYPOINT ["tini", "--"]
CMD ["kb", "serve", "--host", "0.0.0.0", "--port", "8765"]
