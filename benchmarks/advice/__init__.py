"""Whether predictions of `la.plan` come true."""
