"""Studies: runs to tidy results on disk, and from there to tables, figures and a report."""

from polyarm.errors import require_extra

require_extra("pyarrow", "experiments")
