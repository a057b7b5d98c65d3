"""Accelerated CPU twins of the plain PyTorch code."""
