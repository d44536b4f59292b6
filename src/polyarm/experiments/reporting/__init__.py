"""What rows on disk say: verdicts, curves, pictures."""
