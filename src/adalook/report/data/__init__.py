"""Results on disk, read into records."""
