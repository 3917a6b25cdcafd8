"""Question answering on bAbI (RUM, task C)."""
