"""Ways to evaluate a policy, one file each, and the chooser between them."""
