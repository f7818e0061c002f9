"""PDFs and pictures read by docling's models, here or behind a docling-serve address.

Belongs here: the two ways to a `DoclingDocument` and the reader that makes our contract of it. What
docling needs no models for is read by `office` and `pdf`.
"""
