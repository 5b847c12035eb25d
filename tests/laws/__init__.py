"""Laws: what holds for every conversation and for every capture, shown by property tests."""
