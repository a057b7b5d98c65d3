"""Files that are never half written: atomic writes, the lock, the pickle-free serialiser."""
