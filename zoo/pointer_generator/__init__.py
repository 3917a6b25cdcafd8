"""Abstractive summarization with a pointer-generator (RUM, task E)."""
