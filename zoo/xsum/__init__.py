"""Extreme summarization (Topic-ConvS2S, XSum)."""
