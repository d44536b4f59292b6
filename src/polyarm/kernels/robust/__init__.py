"""The robust mixture: every arm's components around a centre of its own, with scales that all arms share."""
