"""Tests against tensorflow-addons, and the script that computes its values."""
