"""The copying memory task (RUM, task A)."""
