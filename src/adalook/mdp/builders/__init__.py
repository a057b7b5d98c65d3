"""Models made from functions and from other libraries' tables."""
