"""Tests that are minutes long or need several processes."""
