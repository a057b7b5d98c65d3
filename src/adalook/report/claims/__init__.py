"""The paper's claims, each tested against the data."""
