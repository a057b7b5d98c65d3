"""Direct and Krylov solvers of a policy's linear equations, (I − γ P_π) v = r_π."""
