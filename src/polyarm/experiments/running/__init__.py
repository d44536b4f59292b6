"""Playing policies in worlds: studies, their processes, and their rows on disk."""
