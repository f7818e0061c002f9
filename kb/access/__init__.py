"""Who may do what: keys, sessions, members, roles, sign-in at an identity provider.

Belongs here: everything between a secret shown once and an `Identity` that a request runs as. What
does not: HTTP (`kb.http`), rows (`kb_resources.store.access`).
See the OWASP cheat sheets on session management and on authorisation.
"""
