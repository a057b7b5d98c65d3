"""One file per subcommand: a commented dataclass, which is its help, and a function that runs it."""
