"""Where the nodes of a tree are stepped: in this process or in others."""
