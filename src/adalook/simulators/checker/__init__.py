"""`check_simulator`: tests that a simulator can be saved, restored and expanded faithfully."""
