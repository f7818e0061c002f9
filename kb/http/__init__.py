"""The HTTP API and the page's server.

Belongs here: requests to use cases and results to JSON. What does not: any use case; what the page
shows (`page/`). Errors become RFC 9457 problems, who asks becomes a `kb.access.Identity`.
"""
