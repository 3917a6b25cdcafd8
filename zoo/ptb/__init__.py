"""Character-level language models of the Penn Treebank (RUM, task D)."""
