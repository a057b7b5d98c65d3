"""Planning methods: one small frozen rule per file, all run by the one loop in `planning.solve`."""
