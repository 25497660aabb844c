"""Learn which kernels matter, with a certificate."""
