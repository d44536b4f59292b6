"""Studies: runs to tidy results, tables and figures."""
