"""Planning beyond float64: double-double residuals, and policies that are compared and proven by them."""
