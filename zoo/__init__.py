"""Recipes, one folder a task: model, training, card, a flagfile for each row of a table."""
