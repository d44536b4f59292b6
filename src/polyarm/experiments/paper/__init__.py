"""Every table and figure of the paper, one small file each."""
