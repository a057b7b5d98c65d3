"""MDP -> Solution: one loop, one rule per file, and a certificate on every answer."""
