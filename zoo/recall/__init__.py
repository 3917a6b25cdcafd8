"""Associative recall (RUM, task B)."""
