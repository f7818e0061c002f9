"""The Model Context Protocol door: read-only tools over stdio and streamable HTTP.

Belongs here: what a model may call and what it gets back. What does not: searching and reading
(`kb.reader`), who asks (the HTTP app and the command line say). Every tool names one scope, gives
ranks instead of scores, and hands passages out as data. See https://modelcontextprotocol.io.
"""

from kb.mcp.server import create_server, http_app

__all__ = ["create_server", "http_app"]
