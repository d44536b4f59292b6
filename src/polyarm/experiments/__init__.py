"""Studies: runs to tidy results on disk, and from there to tables, figures and a report."""
