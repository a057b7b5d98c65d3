"""Training runs in a directory: started, resumed, logged and checkpointed."""
