"""What is found, in which captures, and at what cost."""
