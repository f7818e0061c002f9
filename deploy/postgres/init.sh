#!/bin/sh
# First start of the database's container: databases, logins and the one thing only a superuser may.
set -eu
psql --set=ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
  --set=pipeline="$KB_PIPELINE_PASSWORD" --set=app="$KB_APP_PASSWORD" --set=dagster="$DAGSTER_PASSWORD" <<'SQL'
create role kb_pipeline login nosuperuser nobypassrls password :'pipeline';
create role kb_app login nosuperuser nobypassrls password :'app';
create role dagster login nosuperuser password :'dagster';
create database kb;
create database dagster owner dagster;
revoke all on database kb, dagster from public;
grant connect on database kb to kb_pipeline, kb_app;
\connect kb
create extension vector;
SQL
