"""Postgres with pgvector: the server, the schema, the connections, one module per aggregate.

Belongs here: everything that speaks SQL. `server` starts the embedded PostgreSQL, `migrate` brings
a schema up to date, `pool` hands out transactions by role and scope, `sql` loads named statements
from `queries/`, `translate` turns psycopg's errors into ours; the other modules each read and write
one aggregate. What does not: deciding what to store (`stages`) or whom to answer (`retrieve`).
See https://www.postgresql.org/docs/current/ and https://github.com/pgvector/pgvector.
"""
