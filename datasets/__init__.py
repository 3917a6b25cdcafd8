"""The corpora of the two papers, one module each: generate or prepare, then load a split."""
