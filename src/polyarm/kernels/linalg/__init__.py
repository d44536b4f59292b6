"""Small dense linear algebra for kernels: in place, and exact to rounding."""
