"""Planning on shards: models that no single process holds, solved in rounds in which only boundary values travel."""
